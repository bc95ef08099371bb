package auth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

func itoa(n int) string { return strconv.Itoa(n) }

// after returns a context that is cancelled after d of the bubble's time.
func after(t *testing.T, d time.Duration, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(d, func() { cancel(cause) })
	return ctx
}

func TestCancelled(t *testing.T) {
	cause := errors.New("the user pressed ^C")
	tests := []struct {
		name   string
		device fakes.AuthAnswer
		polls  []fakes.AuthAnswer
		at     time.Duration
		sent   int // polls
	}{
		{"before anything", device, []fakes.AuthAnswer{pending}, 0, 0},
		{"while asking", hang, []fakes.AuthAnswer{pending}, 7 * time.Second, 0},
		{"in the first wait", device, []fakes.AuthAnswer{pending}, 3 * time.Second, 0},
		{"in a later wait", device, []fakes.AuthAnswer{pending}, 12 * time.Second, 2},
		{"in a poll", device, []fakes.AuthAnswer{hang}, 12 * time.Second, 1},
		{"as a wait ends", device, []fakes.AuthAnswer{pending}, 10 * time.Second, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newRig(t, tt.polls...)
				r.server.Device = &tt.device
				ctx := after(t, tt.at, cause)
				if tt.at == 0 {
					c, cancel := context.WithCancelCause(t.Context())
					cancel(cause)
					ctx = c
				}
				tok, err := r.flow.Login(ctx)
				if tok != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || errors.Is(err, auth.ErrExpired) {
					t.Errorf("%v", err)
				}
				if _, ok := errors.AsType[*auth.DeviceError](err); ok {
					t.Errorf("a DeviceError: %v", err)
				}
				if took := time.Since(noon); took != tt.at {
					t.Errorf("it took %v", took)
				}
				if n := len(r.polls()); n != tt.sent {
					t.Errorf("%d polls", n)
				}
			})
		})
	}
}

// A deadline that falls before the end of a wait ends the login at once: sleeping into it helps nobody.
func TestDeadline(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, pending, fakes.Throttle(60), tokenAnswer)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := r.flow.Login(ctx)
		long, ok := errors.AsType[*delay.TooLongError](err)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, auth.ErrExpired) || !ok || long.Wait.For != time.Minute {
			t.Errorf("%v", err)
		}
		if took := time.Since(noon); took != 10*time.Second || len(r.polls()) != 2 {
			t.Errorf("after %v and %d polls", took, len(r.polls()))
		}
	})
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, pending, hang)
		ctx, cancel := context.WithTimeout(t.Context(), 17*time.Second)
		defer cancel()
		_, err := r.flow.Login(ctx)
		if took := time.Since(noon); !errors.Is(err, context.DeadlineExceeded) || took != 17*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// The request's own timeout must not look like the caller's.
func TestTimeoutIsNotTheCallers(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, hang)
		r.server.Device = lives(20)
		_, err := r.flow.Login(t.Context())
		if !errors.Is(err, auth.ErrExpired) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if _, ok := errors.AsType[*delay.TimeoutError](err); !ok {
			t.Errorf("the timeout cannot be told: %v", err)
		}
		r.server.Device = &hang
		_, err = r.flow.Login(t.Context())
		if !errors.Is(err, auth.ErrTransport) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// endingWith makes the context of a login end as the answer to a poll has arrived.
func endingWith(t *testing.T, r *rig) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	next := r.flow.HTTPClient.Transport
	r.flow.HTTPClient = &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(req)
		if err == nil && req.URL.Path == fakes.TokenPath {
			res.Body = ending{res.Body, cancel}
		}
		return res, err
	})}
	return ctx
}

// A token that arrives as the context ends is returned.
func TestTokenIsKept(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		ctx := endingWith(t, r)
		tok, err := r.flow.Login(ctx)
		if err != nil || tok.AccessToken != "canary-access" || ctx.Err() == nil {
			t.Errorf("%v, %v", tok, err)
		}
	})
}

// Any other answer that arrives as the context ends is what the next Poll goes by, here and elsewhere.
func TestAnswerIsKept(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer fakes.AuthAnswer
		want   string
		waits  []float64
	}{
		{"slow_down", slowDown, "token", []float64{5, 10}},
		{"throttled", fakes.Throttle(30), "token", []float64{5, 30}},
		{"pending", pending, "token", []float64{5, 5}},
		{"denied", fakes.OAuthError(400, "access_denied"), "access_denied", []float64{5}},
	} {
		for _, resumed := range []bool{false, true} {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newRig(t, tt.answer, tokenAnswer)
				ctx := endingWith(t, r)
				p, err := r.flow.Start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Poll(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", tt.name, err)
				}
				data, err := p.Save()
				if resumed && err == nil {
					p, err = r.flow.Resume(data)
					if err != nil {
						t.Fatal(err)
					}
				}
				tok, err := p.Poll(t.Context())
				if got := reason(t, tok, err); got != tt.want || !near(r.waits(), tt.waits) || len(r.server.Violations()) > 0 {
					t.Errorf("%s, resumed %v: %s after waits %v: %v", tt.name, resumed, got, r.waits(), r.server.Violations())
				}
			})
		}
	}
}

// ending ends a context when it was read to the end.
type ending struct {
	io.ReadCloser
	end func()
}

func (e ending) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err == io.EOF {
		e.end()
	}
	return n, err
}

func TestPollAgain(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, slowDown, hang, pending, tokenAnswer)
		p, err := r.flow.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.shown = time.Now()
		for _, d := range []time.Duration{8 * time.Second, 20 * time.Second, 13 * time.Second} {
			// in the wait of 10 s; in the poll that hangs; in the wait after the third
			if _, err := p.Poll(after(t, d, nil)); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		tok, err := p.Poll(t.Context())
		if err != nil || tok.AccessToken != "canary-access" {
			t.Fatalf("%v, %v", tok, err)
		}
		if v := r.server.Violations(); len(v) > 0 {
			t.Error(v)
		}
		if want := []float64{5, 10, 10, 10, 10, 10}; !near(r.waits(), want) {
			t.Errorf("waits %v", r.waits())
		}
		if tok, err := p.Poll(t.Context()); tok != nil || err == nil || len(r.polls()) != 4 {
			t.Errorf("a spent login was polled again: %v", err)
		}
	})
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, fakes.OAuthError(400, "access_denied"), tokenAnswer)
		p, err := r.flow.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := p.Poll(t.Context()); !errors.Is(err, auth.ErrAccessDenied) {
				t.Error(err)
			}
		}
		if len(r.polls()) != 1 {
			t.Error("a login that ended was polled again")
		}
	})
}

func TestDeadCode(t *testing.T) {
	for _, display := range []time.Duration{20 * time.Second, time.Hour} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, tokenAnswer)
			r.server.Device = lives(20)
			r.flow.Prompter = r.prompter(display)
			_, err := r.flow.Login(t.Context())
			if !errors.Is(err, auth.ErrExpired) || len(r.waits()) != 0 || len(r.polls()) != 0 {
				t.Errorf("%v after waits %v", err, r.waits())
			}
		})
	}
	// Between Start and Poll the code grows old, too.
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		r.server.Device = lives(20)
		p, err := r.flow.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(17 * time.Second)
		if left := p.Prompt().ExpiresIn; left != 3*time.Second {
			t.Errorf("%v left", left)
		}
		if _, err := p.Poll(t.Context()); !errors.Is(err, auth.ErrExpired) || !near(r.waits(), []float64{3}) || len(r.polls()) != 0 {
			t.Errorf("%v after waits %v", err, r.waits())
		}
	})
}
