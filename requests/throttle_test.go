package requests_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// told makes a host refuse one request of a credential, and leaves it waiting.
func told(t *testing.T, tr *requests.Transport, who string) {
	t.Helper()
	go func() { _, _ = trip(tr, as(t.Context(), who, "/told")) }()
	synctest.Wait()
}

// refusing answers the first request with a status and a Retry-After, and all others with 200.
func refusing(status int, after string) *base {
	return &base{replies: []reply{{status: status, header: http.Header{"Retry-After": {after}}}, {status: 200}}}
}

func TestThrottleWaits(t *testing.T) {
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			b := refusing(status, "7")
			var waits []delay.Wait
			tr := &requests.Transport{Base: b, Rand: noJitter, Hooks: requests.Hooks{OnWait: func(w delay.Wait) { waits = append(waits, w) }}}
			told(t, tr, "a")
			time.Sleep(2 * time.Second)
			began := time.Now()
			if status, err := trip(tr, as(t.Context(), "a", "/")); status != 200 || err != nil {
				t.Errorf("%d, %v", status, err)
			}
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("took %v", took)
			}
			time.Sleep(time.Second)
			synctest.Wait() // for the other one
			if len(waits) < 2 || waits[1].Reason != delay.Held || waits[1].For != 5*time.Second || waits[1].Server != 5*time.Second || !waits[1].Until.Equal(began.Add(5*time.Second)) {
				t.Errorf("the waits are %v", waits)
			}
			if len(b.sent) != 3 {
				t.Errorf("%d requests were sent", len(b.sent))
			}
		})
	}
}

// Who does not repeat learns for the others too, and who was held has all of its attempts.
func TestThrottleSpendsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := refusing(429, "7")
		tr := &requests.Transport{Base: b, Rand: noJitter}
		if status, _ := trip(tr, request(t.Context(), "POST", "/", "x")); status != 429 {
			t.Errorf("got %d", status)
		}
		began := time.Now()
		ctx := requests.WithMaxAttempts(t.Context(), 1)
		if status, err := trip(tr, request(ctx, "GET", "/", "")); status != 200 || time.Since(began) != 7*time.Second {
			t.Errorf("%d, %v after %v", status, err, time.Since(began))
		}
	})
}

// What does not wait for whom.
func TestThrottleIsOfOneHostAndCredential(t *testing.T) {
	for _, name := range []string{"another credential", "no credential", "another host", "another port", "another cookie", "another API key"} {
		synctest.Test(t, func(t *testing.T) {
			tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter}
			told(t, tr, "a")
			req := as(t.Context(), "a", "/")
			switch name {
			case "another credential":
				req = as(t.Context(), "b", "/")
			case "no credential":
				req.Header.Del("Authorization")
			case "another host":
				req.URL.Host = "other.test"
			case "another port":
				req.URL.Host += ":8443"
			case "another cookie":
				req.Header.Set("Cookie", "session=1")
			case "another API key":
				req.URL.RawQuery = "api_key=b"
			}
			began := time.Now()
			if status, err := trip(tr, req); status != 200 || time.Since(began) != 0 {
				t.Errorf("%s: %d, %v after %v", name, status, err, time.Since(began))
			}
		})
	}
	for _, same := range []string{"https://API.TEST/other", "https://api.test:443/other?page=2"} {
		synctest.Test(t, func(t *testing.T) {
			tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter}
			told(t, tr, "a")
			req := as(t.Context(), "a", "/")
			req.URL, _ = req.URL.Parse(same)
			req.Header.Set("Idempotency-Key", "k")
			began := time.Now()
			if status, err := trip(tr, req); status != 200 || time.Since(began) != 7*time.Second {
				t.Errorf("%s: %d, %v after %v", same, status, err, time.Since(began))
			}
		})
	}
}

func TestThrottleBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter, ThrottleBy: func(req *http.Request) string {
			return strings.TrimRight(req.Header.Get("Authorization"), "0123456789")
		}}
		told(t, tr, "a1")
		began := time.Now()
		if status, _ := trip(tr, as(t.Context(), "b1", "/")); status != 200 || time.Since(began) != 0 {
			t.Errorf("%d after %v", status, time.Since(began))
		}
		if status, _ := trip(tr, as(t.Context(), "a2", "/")); status != 200 || time.Since(began) != 7*time.Second {
			t.Errorf("%d after %v", status, time.Since(began))
		}
	})
}

func TestThrottleRefuses(t *testing.T) {
	for name, set := range map[string]func(tr *requests.Transport){
		"by option": func(tr *requests.Transport) { tr.Throttle = requests.ThrottleRefuse },
		"limit":     func(tr *requests.Transport) { tr.Limit = 4 * time.Second },
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter}
			set(tr)
			client, err := requests.NewClient(api, tr)
			if err != nil {
				t.Fatal(err)
			}
			told(t, tr, "a")
			time.Sleep(2 * time.Second)
			began := time.Now()
			_, err = trip(tr, as(t.Context(), "a", "/"))
			limited, ok := errors.AsType[*requests.RateLimited](err)
			if !ok || limited.RetryAfter != 5*time.Second || !errors.Is(err, requests.ErrThrottled) || time.Since(began) != 0 {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			_, err = client.Do(as(t.Context(), "a", "/"))
			e, ok := errors.AsType[*requests.Error](err)
			if !ok || e.Code != requests.CodeRateLimit || !e.Retryable || e.RetryAfter != 5*time.Second || e.Status != 0 || !errors.Is(err, &requests.RateLimited{}) {
				t.Errorf("%s: %#v", name, err)
			}
			_, err = client.Download(t.Context(), "/file") // without the credential of this test
			if errors.Is(err, requests.ErrThrottled) {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(5 * time.Second)
			if status, err := trip(tr, as(t.Context(), "a", "/")); status != 200 {
				t.Errorf("%s: %d, %v after the moment", name, status, err)
			}
		})
	}
}

func TestThrottleOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter, Throttle: requests.ThrottleOff}
		told(t, tr, "a")
		began := time.Now()
		if status, err := trip(tr, as(t.Context(), "a", "/")); status != 200 || time.Since(began) != 0 {
			t.Errorf("%d, %v after %v", status, err, time.Since(began))
		}
	})
}

// Without a wait that can be used, there is nothing to wait for.
func TestThrottleNeedsAMoment(t *testing.T) {
	for _, first := range []reply{{status: 429}, {status: 429, header: http.Header{"Retry-After": {"0"}}}, {status: 500, header: http.Header{"Retry-After": {"7"}}}} {
		quick(t, []reply{first, {status: 200}}, func(t *testing.T, tr *requests.Transport, _ *base) {
			_, _ = trip(tr, request(t.Context(), "POST", "/", ""))
			began := time.Now()
			if status, err := trip(tr, get()); status != 200 || time.Since(began) != 0 {
				t.Errorf("%v: %d, %v after %v", first, status, err, time.Since(began))
			}
		})
	}
}

// A token that was refreshed during the wait is the one that is sent, and it has a throttle of its own.
func TestThrottleSendsTheCurrentToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := refusing(429, "7")
		s := &source{}
		tr := &requests.Transport{Base: b, Tokens: s, Rand: noJitter, MaxAttempts: 1}
		_, _ = trip(tr, get())
		var all sync.WaitGroup
		all.Go(func() { _, _ = trip(tr, get()) })
		synctest.Wait()
		_, _ = s.Refresh(t.Context(), token("t1"))
		all.Wait()
		if len(b.sent) != 2 || b.sent[1].header.Get("Authorization") != "Bearer t2" {
			t.Errorf("sent were %v", b.sent)
		}
	})
}

// When nothing is throttled any more, success costs nothing again.
func TestThrottleAllocatesNothingWhenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(0)
		b := refusing(429, "7")
		tr := &requests.Transport{Base: b, Rand: noJitter}
		for _, who := range []string{"a", "b"} {
			_, _ = trip(tr, as(t.Context(), who, "/"))
		}
		tr.Base = m
		time.Sleep(time.Minute)
		req := get()
		_, _ = trip(tr, req)
		counts := make([]float64, 2)
		for i, rt := range []http.RoundTripper{m, tr} {
			counts[i] = testing.AllocsPerRun(50, func() { _, _ = rt.RoundTrip(req) })
		}
		if counts[1] > counts[0] {
			t.Errorf("%v allocations, and %v without Transport", counts[1], counts[0])
		}
	})
}

// A wait that would end after the caller's deadline is not begun.
func TestThrottleAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := refusing(429, "7")
		client, err := requests.NewClient(api, &requests.Transport{Base: b, Rand: noJitter, MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = client.Do(get())
		for _, c := range []struct {
			after time.Duration
			sent  bool
		}{{3 * time.Second, false}, {8 * time.Second, true}} {
			ctx, cancel := context.WithTimeout(t.Context(), c.after)
			began := time.Now()
			resp, err := client.Do(request(ctx, "GET", "/", ""))
			switch {
			case c.sent && err == nil:
				_ = resp.Body.Close()
			case c.sent || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, &requests.RateLimited{}) ||
				!errors.Is(err, requests.ErrThrottled) || time.Since(began) != 0:
				t.Errorf("%v: %v after %v", c.after, err, time.Since(began))
			}
			cancel()
		}
	})
}

// A panic of the base does not leave the others waiting.
func TestThrottleSurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		tr := &requests.Transport{Rand: noJitter, MaxAttempts: 1, Base: roundTripper(func(*http.Request) (*http.Response, error) {
			n++
			switch n {
			case 1:
				return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
			case 2:
				panic("base")
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		})}
		_, _ = trip(tr, get())
		func() {
			defer func() { _ = recover() }()
			_, _ = trip(tr, get())
		}()
		began := time.Now()
		if status, err := trip(tr, get()); status != 200 || time.Since(began) != 0 {
			t.Errorf("%d, %v after %v", status, err, time.Since(began))
		}
	})
}

// Who asks for one thing after the other has nobody to keep a distance to.
func TestThrottleIsNotFelt(t *testing.T) {
	quick(t, []reply{refuse(429, "7"), {status: 200}}, func(t *testing.T, tr *requests.Transport, b *base) {
		tr.Rand = nil
		began := time.Now()
		for range 10 {
			if status, err := trip(tr, get()); status != 200 {
				t.Errorf("%d, %v", status, err)
			}
		}
		if took := time.Since(began); took != 7*time.Second || len(b.sent) != 11 {
			t.Errorf("%d requests took %v", len(b.sent), took)
		}
	})
}
