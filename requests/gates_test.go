package requests_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// attempts counts how often a request is sent that is answered alike each time.
func attempts(t *testing.T, req *http.Request, answer reply, set func(*requests.Transport)) int {
	t.Helper()
	n := 0
	quick(t, []reply{answer}, func(_ *testing.T, tr *requests.Transport, b *base) {
		if set != nil {
			set(tr)
		}
		_, _ = trip(tr, req)
		n = len(b.sent)
	})
	return n
}

func TestMethodAndOperationGates(t *testing.T) {
	safe := map[string]bool{
		"": true, "GET": true, "HEAD": true, "PUT": true, "DELETE": true, "OPTIONS": true, "TRACE": true,
		"POST": false, "PATCH": false, "PURGE": false, "CONNECT": false, "get": false,
	}
	operations := []struct {
		name string
		op   *requests.Operation
		key  bool
		max  int  // attempts when it may be repeated
		mark bool // repeated whatever the method
	}{
		{name: "none", max: 3},
		{name: "not marked", op: &requests.Operation{}, max: 3},
		{name: "not marked, with a retry block", op: &requests.Operation{Max: 5, RetryOn: []int{429, 503}}, max: 5},
		{name: "marked", op: &requests.Operation{Idempotent: true}, max: 3, mark: true},
		{name: "marked, max 2", op: &requests.Operation{Idempotent: true, Max: 2}, max: 2, mark: true},
		{name: "marked, exactly one", op: &requests.Operation{Idempotent: true, Max: -1}, max: 1, mark: true},
		{name: "with a key", key: true, max: 3, mark: true},
		{name: "not marked, with a key", op: &requests.Operation{Max: 4}, key: true, max: 4, mark: true},
	}
	for method, may := range safe {
		for _, o := range operations {
			for _, failure := range []reply{{status: 503}, {err: errBroken}} {
				t.Run(fmt.Sprintf("%s/%s/%d", method, o.name, failure.status), func(t *testing.T) {
					ctx := context.Background()
					if o.key {
						ctx = requests.WithIdempotencyKey(ctx, "k")
					}
					req := request(ctx, "GET", "/thing", "")
					req.Method = method
					want := 1
					if may || o.mark {
						want = o.max
					}
					got := attempts(t, req, failure, func(tr *requests.Transport) {
						if o.op != nil {
							tr.Operations = requests.MustOperations(map[string]requests.Operation{"/thing": *o.op})
						}
					})
					if got != want {
						t.Errorf("%d attempts, want %d", got, want)
					}
				})
			}
		}
	}
}

func TestKeyInHeaderMarks(t *testing.T) {
	req := request(context.Background(), "POST", "/", "")
	req.Header.Set("Idempotency-Key", "k")
	if n := attempts(t, req, reply{status: 503}, nil); n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}
	quick(t, statusReplies(503, 200), func(t *testing.T, tr *requests.Transport, b *base) {
		_, _ = trip(tr, req.WithContext(requests.WithIdempotencyKey(t.Context(), "other")))
		for _, s := range b.sent {
			if got := s.header["Idempotency-Key"]; len(got) != 1 || got[0] != "k" {
				t.Errorf("sent the keys %q, and the request had one", got)
			}
		}
	})
}

func TestFailureGate(t *testing.T) {
	cancelled := fmt.Errorf("somewhere below: %w", context.Canceled)
	tests := []struct {
		name    string
		failure reply
		retryOn []int
		want    int
	}{
		{"429", reply{status: 429}, nil, 3},
		{"503", reply{status: 503}, nil, 3},
		{"500 by default", reply{status: 500}, nil, 1},
		{"502 by default", reply{status: 502}, nil, 1},
		{"504 by default", reply{status: 504}, nil, 1},
		{"502 declared", reply{status: 502}, []int{502}, 3},
		{"409 declared", reply{status: 409}, []int{409}, 3},
		{"429 not declared", reply{status: 429}, []int{503}, 1},
		{"nothing declared", reply{status: 503}, []int{}, 1},
		{"400 declared", reply{status: 400}, []int{400}, 1},
		{"401 declared", reply{status: 401}, []int{401}, 1},
		{"403 declared", reply{status: 403}, []int{403}, 1},
		{"404 declared", reply{status: 404}, []int{404}, 1},
		{"422 declared", reply{status: 422}, []int{422}, 1},
		{"broken", reply{err: errBroken}, nil, 3},
		{"broken, nothing declared", reply{err: errBroken}, []int{}, 3},
		{"cancelled below", reply{err: cancelled}, nil, 1},
		{"deadline below", reply{err: context.DeadlineExceeded}, nil, 3},
		{"certificate", reply{err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, nil, 1},
		{"authority", reply{err: fmt.Errorf("x: %w", x509.UnknownAuthorityError{})}, nil, 1},
		{"hostname", reply{err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}}, nil, 1},
		{"not TLS", reply{err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}}, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := attempts(t, get(), tt.failure, func(tr *requests.Transport) {
				tr.Operations = requests.MustOperations(map[string]requests.Operation{"GET /": {RetryOn: tt.retryOn}})
			})
			if got != tt.want {
				t.Errorf("%d attempts, want %d", got, tt.want)
			}
		})
	}
}

func TestMalformedIsNotRepeated(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"method": func(r *http.Request) { r.Method = "G T"; r.Header.Set("Idempotency-Key", "k") },
		"header": func(r *http.Request) { r.Header["Bad Name"] = []string{"x"} },
		"value":  func(r *http.Request) { r.Header["X"] = []string{"a\nb"} },
	} {
		t.Run(name, func(t *testing.T) {
			req := get()
			change(req)
			if n := attempts(t, req, reply{err: errors.New("net/http: invalid something")}, nil); n != 1 {
				t.Errorf("%d attempts, want 1", n)
			}
			_, err := trip(&requests.Transport{Base: &base{replies: []reply{{err: errBroken}}}}, req)
			e, ok := errors.AsType[*requests.Error](err)
			if !ok || e.Code != requests.CodeUsage || e.Retryable || !errors.Is(err, errBroken) {
				t.Errorf("%v is none of usage", err)
			}
		})
	}
}

func TestKeyThatCannotBeSent(t *testing.T) {
	quick(t, statusReplies(200), func(t *testing.T, tr *requests.Transport, b *base) {
		body := &counted{Reader: strings.NewReader("x")}
		req := request(requests.WithIdempotencyKey(t.Context(), "a\nb"), "POST", "/", "")
		req.Body = body
		_, err := trip(tr, req)
		e, ok := errors.AsType[*requests.Error](err)
		if !ok || e.Code != requests.CodeUsage || len(b.sent) != 0 || !body.closed {
			t.Errorf("%v after %d attempts, closed %v", err, len(b.sent), body.closed)
		}
	})
}

func TestBudget(t *testing.T) {
	op := map[string]requests.Operation{"GET /": {Max: 4}}
	tests := []struct {
		name      string
		transport int // Transport.MaxAttempts
		context   int // WithMaxAttempts, unless 99
		want      int
	}{
		{"the operation's own", 0, 99, 4},
		{"the transport's", 2, 99, 2},
		{"the transport's is larger", 9, 99, 4},
		{"the context's", 0, 3, 3},
		{"the context's is larger", 0, 9, 4},
		{"the smallest", 3, 2, 2},
		{"zero is one", 0, 0, 1},
		{"negative is one", 0, -3, 1},
		{"negative is one at the transport", -1, 99, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			if tt.context != 99 {
				ctx = requests.WithMaxAttempts(ctx, tt.context)
			}
			told := 0
			got := attempts(t, request(ctx, "GET", "/", ""), reply{status: 503}, func(tr *requests.Transport) {
				tr.Operations, tr.MaxAttempts = requests.MustOperations(op), tt.transport
				tr.Hooks.OnRequestStart = func(_ context.Context, a requests.Attempt) { told = a.Of }
			})
			if got != tt.want || told != tt.want {
				t.Errorf("%d attempts of %d, want %d", got, told, tt.want)
			}
		})
	}
}

// The caller's own end is never repeated, wherever it comes.
func TestCallersEnd(t *testing.T) {
	why := errors.New("the user pressed the button")
	tests := []struct {
		name    string
		replies []reply
		after   time.Duration // when the caller cancels
		sent    int
	}{
		{"before", statusReplies(503, 200), 0, 1},
		{"in an attempt", []reply{{status: 503, latency: time.Minute}}, time.Second, 1},
		{"in a wait", statusReplies(503, 200), 500 * time.Millisecond, 1},
		{"in the second attempt", []reply{{status: 503}, {status: 503, latency: time.Minute}}, 2 * time.Second, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			quick(t, tt.replies, func(t *testing.T, tr *requests.Transport, b *base) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(tt.after, func() { cancel(why) })
				if tt.after == 0 {
					cancel(why)
				}
				began := time.Now()
				_, err := trip(tr, request(ctx, "GET", "/", ""))
				if !errors.Is(err, context.Canceled) || errors.As(err, new(*requests.TransportFailed)) {
					t.Errorf("the error is %v", err)
				}
				if len(b.sent) != tt.sent || time.Since(began) != tt.after {
					t.Errorf("%d attempts in %v, want %d in %v", len(b.sent), time.Since(began), tt.sent, tt.after)
				}
			})
		})
	}
}

// Cancellation wins ties: the context is asked after the hook and after the timer, before anything is sent.
func TestCancelledByHook(t *testing.T) {
	quick(t, statusReplies(429, 200), func(t *testing.T, tr *requests.Transport, b *base) {
		ctx, cancel := context.WithCancel(t.Context())
		tr.Policy = requests.RefusedOnly{Times: 1, Sleep: -1}
		tr.Hooks.OnWait = func(delay.Wait) { cancel() }
		_, err := trip(tr, request(ctx, "GET", "/", ""))
		if !errors.Is(err, context.Canceled) || len(b.sent) != 1 {
			t.Errorf("%v after %d attempts", err, len(b.sent))
		}
	})
}

// A base that fails in its own way when the context ends is not believed.
func TestCancelledBaseThatDoesNotSaySo(t *testing.T) {
	quick(t, nil, func(t *testing.T, tr *requests.Transport, _ *base) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, errBroken
		})
		if _, err := trip(tr, request(ctx, "GET", "/", "")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errBroken) {
			t.Errorf("%v", err)
		}
	})
}

// An answer that came together with the caller's end is closed all the same.
func TestAnswerAtTheEndIsClosed(t *testing.T) {
	quick(t, nil, func(t *testing.T, tr *requests.Transport, _ *base) {
		ctx, cancel := context.WithCancel(t.Context())
		body := &counted{Reader: strings.NewReader("x")}
		tr.Base = roundTripper(func(*http.Request) (*http.Response, error) {
			cancel()
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: body, ContentLength: 1}, nil
		})
		if _, err := trip(tr, request(ctx, "GET", "/", "")); !errors.Is(err, context.Canceled) || !body.closed {
			t.Errorf("%v, closed %v", err, body.closed)
		}
	})
}

func TestAttemptTimeout(t *testing.T) {
	slow := reply{status: 200, latency: time.Minute}
	t.Run("repeats", func(t *testing.T) {
		quick(t, []reply{slow, slow, {status: 200}}, func(t *testing.T, tr *requests.Transport, b *base) {
			tr.AttemptTimeout = 10 * time.Second
			began := time.Now()
			status, err := trip(tr, get())
			if status != 200 || err != nil || time.Since(began) != 23*time.Second {
				t.Errorf("%d, %v after %v; want 200 after 10+1+10+2 s", status, err, time.Since(began))
			}
		})
	})
	t.Run("not when it used up the caller's time", func(t *testing.T) {
		for _, d := range []time.Duration{9 * time.Second, 10 * time.Second, 10*time.Second + time.Millisecond} {
			quick(t, []reply{slow}, func(t *testing.T, tr *requests.Transport, b *base) {
				tr.AttemptTimeout = 10 * time.Second
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				began := time.Now()
				_, err := trip(tr, request(ctx, "GET", "/", ""))
				if !errors.Is(err, context.DeadlineExceeded) || len(b.sent) != 1 || time.Since(began) > 10*time.Second {
					t.Errorf("%v: %v after %d attempts and %v", d, err, len(b.sent), time.Since(began))
				}
			})
		}
	})
	t.Run("an answer that comes too late", func(t *testing.T) {
		quick(t, nil, func(t *testing.T, tr *requests.Transport, _ *base) {
			body := &counted{Reader: strings.NewReader("x")}
			tr.AttemptTimeout, tr.MaxAttempts = time.Second, 1
			tr.Base = roundTripper(func(*http.Request) (*http.Response, error) {
				time.Sleep(time.Minute) // and does not heed its context
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body}, nil
			})
			_, err := trip(tr, get())
			timeout, ok := errors.AsType[*delay.TimeoutError](err)
			if !ok || timeout.After != time.Second || !body.closed {
				t.Errorf("%v, closed %v", err, body.closed)
			}
		})
	})
	t.Run("does not bound the body, nor a wait", func(t *testing.T) {
		quick(t, []reply{{status: 503}, {status: 200, body: "slow"}}, func(t *testing.T, tr *requests.Transport, b *base) {
			tr.AttemptTimeout = time.Millisecond
			resp, err := tr.RoundTrip(get())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			ctx := resp.Request.Context()
			if ctx.Err() != nil {
				t.Error("the caller's context has ended")
			}
			data := make([]byte, 9)
			if n, _ := resp.Body.Read(data); string(data[:n]) != "slow" {
				t.Errorf("read %q", data[:n])
			}
			resp.Body.Close()
		})
	})
}
