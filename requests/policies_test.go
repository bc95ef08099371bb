package requests_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

func TestDeclared(t *testing.T) {
	t.Run("what the operation declares, and nothing else", func(t *testing.T) {
		bubble(t, statuses(502, 502, 500), func(r *rig) {
			tr := r.transport()
			tr.Operations = requests.MustOperations(map[string]requests.Operation{
				"POST /todos/{id}/completion": {Idempotent: true, BaseDelay: 2 * time.Second, RetryOn: []int{502}},
			})
			status, _ := trip(tr, request(r.t.Context(), "POST", "/todos/7/completion", ""))
			if status != 500 {
				r.t.Errorf("got %d", status)
			}
			r.waits(2*time.Second, 4*time.Second)
		})
	})
	t.Run("a request that calls no operation keeps the default", func(t *testing.T) {
		bubble(t, statuses(502), func(r *rig) {
			tr := r.transport()
			tr.Operations = requests.MustOperations(map[string]requests.Operation{"GET /todos": {RetryOn: []int{502}}})
			_, _ = trip(tr, request(r.t.Context(), "GET", "/others", ""))
		})
	})
	t.Run("a write that may have been processed is not repeated", func(t *testing.T) {
		for _, failure := range []int{429, 503, 0} {
			bubble(t, statuses(failure), func(r *rig) {
				_, _ = trip(r.transport(), request(r.t.Context(), "POST", "/", "x"))
			})
		}
	})
	t.Run("a schedule of the caller's", func(t *testing.T) {
		bubble(t, statuses(503, 503, 200), func(r *rig) {
			tr := r.transport()
			var base time.Duration
			tr.Policy = requests.Declared{Schedule: func(b time.Duration) backoff.BackOff {
				base = b
				return backoff.NewConstantBackOff(7 * time.Second)
			}}
			_, _ = trip(tr, get())
			r.waits(7*time.Second, 7*time.Second)
			if base != time.Second {
				r.t.Errorf("the schedule was made for a base of %v", base)
			}
		})
	})
	t.Run("a schedule that stops", func(t *testing.T) {
		bubble(t, statuses(503, 503), func(r *rig) {
			tr := r.transport()
			tr.Policy = requests.Declared{Schedule: func(time.Duration) backoff.BackOff {
				return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 1)
			}}
			if status, err := trip(tr, get()); status != 503 {
				r.t.Errorf("%d, %v", status, err)
			}
		})
	})
}

func TestRefusedOnly(t *testing.T) {
	booking := func(ctx context.Context) *http.Request { return request(ctx, "POST", "/bookings", `{"seat":"12A"}`) }
	t.Run("a refused booking is made again, since nothing happened", func(t *testing.T) {
		bubble(t, statuses(429, 429, 201), func(r *rig) {
			tr := r.transport()
			tr.Policy = requests.RefusedOnly{Times: 3, Sleep: 2 * time.Second}
			resp, err := r.client(tr).Do(booking(r.t.Context()))
			if err != nil {
				r.t.Fatal(err)
			}
			resp.Body.Close()
			r.waits(2*time.Second, 4*time.Second)
		})
	})
	t.Run("a booking of which nobody knows whether it was made is not, since a duplicate costs money", func(t *testing.T) {
		for _, failure := range []fakes.Answer{{Status: 500}, {Status: 502}, retryAfter(503, "1"), {Status: 504}, {Drop: true}, {Status: 404}} {
			for _, method := range []string{"POST", "GET"} {
				bubble(t, []fakes.Answer{failure}, func(r *rig) {
					tr := r.transport()
					tr.Policy = requests.RefusedOnly{Times: 3}
					_, err := r.client(tr).Do(request(r.t.Context(), method, "/bookings", ""))
					failed, ok := errors.AsType[*requests.TransportFailed](err)
					if !ok || failed.Status != failure.Status || !errors.Is(err, &requests.TransportFailed{}) {
						r.t.Errorf("%s: %v", method, err)
					}
				})
			}
		}
	})
	t.Run("as a pointer", func(t *testing.T) {
		bubble(t, statuses(503), func(r *rig) {
			tr := r.transport()
			tr.Policy = &requests.RefusedOnly{Times: 3}
			if _, err := r.client(tr).Do(booking(r.t.Context())); !errors.Is(err, &requests.TransportFailed{}) {
				r.t.Errorf("%v", err)
			}
		})
	})
	t.Run("when the 429s run out, the job releases itself for as long as the server asks", func(t *testing.T) {
		bubble(t, []fakes.Answer{retryAfter(429, "1"), retryAfter(429, "7200")}, func(r *rig) {
			tr := r.transport()
			tr.Policy = requests.RefusedOnly{Times: 1}
			_, err := r.client(tr).Do(booking(r.t.Context()))
			limited, ok := errors.AsType[*requests.RateLimited](err)
			if !ok || limited.RetryAfter != 2*time.Hour || !errors.Is(err, &requests.RateLimited{}) {
				r.t.Errorf("%v", err)
			}
		})
	})
	t.Run("Times: 0 turns it off", func(t *testing.T) {
		bubble(t, statuses(429), func(r *rig) {
			tr := r.transport()
			tr.Policy = requests.RefusedOnly{Times: 0}
			_, err := r.client(tr).Do(booking(r.t.Context()))
			if !errors.Is(err, &requests.RateLimited{}) {
				r.t.Errorf("%v", err)
			}
		})
	})
	t.Run("without a sleep of its own", func(t *testing.T) {
		bubble(t, statuses(429, 429, 200), func(r *rig) {
			tr := r.transport()
			tr.Policy = requests.RefusedOnly{Times: 2, Sleep: -1}
			_, _ = trip(tr, get())
			r.waits(0, 0)
		})
	})
}

func TestThrottled(t *testing.T) {
	t.Run("three attempts, 500 ms doubled, for reads and writes", func(t *testing.T) {
		for _, method := range []string{"GET", "POST"} {
			bubble(t, statuses(429, 429, 429), func(r *rig) {
				tr := r.transport()
				tr.Policy = requests.Throttled{}
				status, _ := trip(tr, request(r.t.Context(), method, "/", "x"))
				if status != 429 {
					r.t.Errorf("got %d", status)
				}
				r.waits(500*time.Millisecond, time.Second)
			})
		}
	})
	t.Run("fractions count, a date does not, and nothing is waited longer than 5 s", func(t *testing.T) {
		script := []fakes.Answer{retryAfter(429, "0.0001"), retryAfter(429, "3600"), {Status: 200}}
		bubble(t, script, func(r *rig) {
			tr := r.transport()
			tr.Policy = requests.Throttled{}
			var cut []delay.Bound
			tr.Hooks.OnWait = func(w delay.Wait) { cut = append(cut, w.Bound) }
			_, _ = trip(tr, get())
			r.waits(time.Millisecond, 5*time.Second)
			if !slices.Equal(cut, []delay.Bound{delay.Unbounded, delay.ByCap}) {
				r.t.Errorf("bounds %v", cut)
			}
		})
		bubble(t, []fakes.Answer{retryAfter(429, "Sun, 29 Nov 2026 13:00:00 GMT"), {Status: 200}}, func(r *rig) {
			tr := r.transport()
			tr.Policy = requests.Throttled{}
			_, _ = trip(tr, get())
			r.waits(500 * time.Millisecond)
		})
	})
	t.Run("429 alone", func(t *testing.T) {
		for _, failure := range []int{503, 0} {
			bubble(t, statuses(failure), func(r *rig) {
				tr := r.transport()
				tr.Policy = requests.Throttled{}
				_, _ = trip(tr, get())
			})
		}
	})
}

func TestWaitThatIsNotMade(t *testing.T) {
	tests := []struct {
		name     string
		answer   fakes.Answer
		limit    time.Duration
		deadline time.Duration
		cause    error
		code     requests.Code // rate_limit if empty
	}{
		{name: "over the limit", answer: retryAfter(429, "60"), limit: 59 * time.Second},
		{name: "local wait over the limit", answer: fakes.Answer{Status: 429}, limit: time.Millisecond},
		{name: "past the deadline", answer: retryAfter(429, "60"), deadline: 10 * time.Second, cause: context.DeadlineExceeded},
		{name: "503 past the deadline", answer: retryAfter(503, "60"), deadline: 10 * time.Second, cause: context.DeadlineExceeded, code: requests.CodeAPI},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.code == "" {
				tt.code = requests.CodeRateLimit
			}
			tt.answer.Body = `{"error":"slow down"}`
			for _, through := range []string{"Client", "Transport"} {
				bubble(t, []fakes.Answer{tt.answer}, func(r *rig) {
					ctx := r.t.Context()
					if tt.deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, tt.deadline)
						defer cancel()
					}
					tr := r.transport()
					tr.Limit = tt.limit
					tr.Hooks.OnWait = func(w delay.Wait) { r.t.Errorf("an event of a wait that is not made: %v", w) }
					began := time.Now()
					if through == "Transport" {
						// The answer itself, unread.
						resp, err := tr.RoundTrip(request(ctx, "GET", "/", ""))
						if err != nil {
							r.t.Fatal(err)
						}
						defer resp.Body.Close()
						if e := newErrorOf(r, resp); e.Message != "slow down" {
							r.t.Errorf("the body was not there: %v", e)
						}
					} else {
						_, err := r.client(tr).Do(request(ctx, "GET", "/", ""))
						e, ok := errors.AsType[*requests.Error](err)
						if !ok || e.Code != tt.code || e.Message != "slow down" {
							r.t.Fatalf("%v", err)
						}
						if tt.cause != nil && !errors.Is(err, tt.cause) {
							r.t.Errorf("%v is no %v", err, tt.cause)
						}
					}
					if d := time.Since(began); d != 0 {
						r.t.Errorf("it took %v", d)
					}
				})
			}
		})
	}
}

// newErrorOf reads an answer as a Client does.
func newErrorOf(r *rig, resp *http.Response) *requests.Error {
	r.t.Helper()
	status, header, body := resp.StatusCode, resp.Header, resp.Body
	tr := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: header, Body: body}, nil
	})
	c, err := requests.NewClient(api, &requests.Transport{Base: tr, MaxAttempts: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = c.Do(get())
	e, ok := errors.AsType[*requests.Error](err)
	if !ok {
		r.t.Fatalf("%v", err)
	}
	return e
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestReadWait(t *testing.T) {
	script := []fakes.Answer{
		{Status: 429, Header: http.Header{"Retry-After-Ms": {"1234"}, "Retry-After": {"60"}}},
		retryAfter(429, "3"),
		{Status: 200},
	}
	bubble(t, script, func(r *rig) {
		tr := r.transport()
		tr.ReadWait = func(h http.Header, _ time.Time) delay.RetryAfter {
			if ms, err := time.ParseDuration(h.Get("Retry-After-Ms") + "ms"); err == nil {
				return delay.Asked(ms)
			}
			return delay.RetryAfter{}
		}
		_, _ = trip(tr, get())
		r.waits(1234*time.Millisecond, 3*time.Second)
	})
}
