package auth_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// remark returns the events of one kind.
func remark[E auth.Event](r *rig) []E {
	var all []E
	for _, e := range r.events {
		if e, ok := e.(E); ok {
			all = append(all, e)
		}
	}
	return all
}

// The browser is asked once, when the code can be seen, and what becomes of it is a remark.
func TestBrowser(t *testing.T) {
	for _, tt := range []struct {
		name     string
		complete string
		err      error
		opened   string
		want     auth.Browser
	}{
		{name: "opened", opened: "https://as.test/device", want: auth.Browser{Opened: true}},
		{name: "with the code", complete: "https://as.test/?c=1", opened: "https://as.test/?c=1", want: auth.Browser{Opened: true}},
		{
			name: "not opened", err: errors.New("no\n browser for https://as.test/?c=canary-device-code"), opened: "https://as.test/device",
			want: auth.Browser{Cause: "no browser for https://as.test/"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newRig(t, tokenAnswer)
				device := fakes.AuthJSON(200, map[string]any{
					"device_code": "canary-device-code", "user_code": "WDJB-MJHT", "verification_uri": "https://as.test/device",
					"verification_uri_complete": tt.complete, "expires_in": 900,
				})
				r.server.Device = &device
				var opened []string
				r.flow.Browser = func(_ context.Context, address string) error {
					if _, ok := r.events[len(r.events)-1].(auth.CodeShown); !ok {
						t.Error("opened before the code was shown")
					}
					opened = append(opened, address)
					return tt.err
				}
				if _, err := r.flow.Login(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := remark[auth.Browser](r); !slices.Equal(opened, []string{tt.opened}) || !slices.Equal(got, []auth.Browser{tt.want}) {
					t.Errorf("opened %q, told %+v", opened, got)
				}
				r.obeyed(t)
			})
		})
	}
	for want, e := range map[string]auth.Browser{
		"a browser was asked to open the address": {Opened: true}, "no browser could be opened: why": {Cause: "why"},
	} {
		if e.String() != want || e.Name() != "browser" {
			t.Errorf("%s: %s", e.Name(), e)
		}
	}
}

// Nothing is opened for a login that came to its end while the code was shown.
func TestBrowserTooLate(t *testing.T) {
	for _, want := range []error{context.Canceled, auth.ErrExpired} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, tokenAnswer)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r.flow.Browser = func(context.Context, string) error {
				t.Errorf("%v: the browser was opened", want)
				return nil
			}
			r.flow.Prompter = auth.PrompterFunc(func(context.Context, auth.Prompt) error {
				if errors.Is(want, context.Canceled) {
					cancel()
				}
				time.Sleep(time.Hour)
				return nil
			})
			if _, err := r.flow.Login(ctx); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
}

func TestAlmostExpired(t *testing.T) {
	late := pending
	late.Latency = 20
	for _, tt := range []struct {
		name  string
		life  int
		takes time.Duration // the prompter
		polls []fakes.AuthAnswer
		at    []float64 // when it is told, in seconds
		left  time.Duration
		waits []float64
	}{
		{name: "a minute", life: 900, polls: []fakes.AuthAnswer{fakes.Throttle(1000)}, at: []float64{840}, left: time.Minute, waits: []float64{5, 895}},
		{name: "a fifth", life: 50, polls: []fakes.AuthAnswer{fakes.Throttle(30), pending}, at: []float64{40}, left: 10 * time.Second, waits: []float64{5, 30, 5, 5, 5}},
		{name: "as a wait begins", life: 50, polls: []fakes.AuthAnswer{fakes.Throttle(35), pending}, at: []float64{40}, left: 10 * time.Second, waits: []float64{5, 35, 5, 5}},
		{name: "in a poll", life: 50, polls: []fakes.AuthAnswer{fakes.Throttle(20), late}, at: []float64{45}, left: 5 * time.Second, waits: []float64{5, 20, 5}},
		{name: "while it is shown", life: 50, takes: 48 * time.Second, polls: []fakes.AuthAnswer{pending}, at: []float64{48}, left: 2 * time.Second, waits: []float64{2}},
		{name: "never, being dead", life: 50, takes: 50 * time.Second, polls: []fakes.AuthAnswer{pending}, waits: []float64{}},
		{name: "never, being approved", life: 50, polls: []fakes.AuthAnswer{tokenAnswer}, waits: []float64{5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newRig(t, tt.polls...)
				r.server.Device = lives(tt.life)
				r.flow.Prompter = r.prompter(tt.takes)
				var at []float64
				follow := r.flow.OnEvent
				r.flow.OnEvent = func(e auth.Event) {
					follow(e)
					if e, ok := e.(auth.AlmostExpired); ok {
						at = append(at, time.Since(noon).Seconds())
						if e.Left != tt.left {
							t.Errorf("%v left, want %v", e.Left, tt.left)
						}
					}
				}
				tok, err := r.flow.Login(t.Context())
				if (tok == nil) != errors.Is(err, auth.ErrExpired) || !near(at, tt.at) || !near(r.waits(), tt.waits) {
					t.Errorf("told at %v, want %v, waits %v, want %v: %v", at, tt.at, r.waits(), tt.waits, err)
				}
				r.obeyed(t)
			})
		})
	}
	e := auth.AlmostExpired{Left: 59*time.Second + 900*time.Millisecond}
	if e.String() != "the code expires in 1m0s" || e.Name() != "almost_expired" {
		t.Errorf("%s: %s", e.Name(), e)
	}
}

// A deadline of the caller's that falls into the wait behind the mark ends the login before the wait, as ever.
func TestAlmostExpiredAndDeadline(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, fakes.Throttle(40), tokenAnswer)
		r.server.Device = lives(50)
		ctx, cancel := context.WithTimeout(t.Context(), 44*time.Second)
		defer cancel()
		_, err := r.flow.Login(ctx)
		if took := time.Since(noon); !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second || len(remark[auth.AlmostExpired](r)) > 0 {
			t.Errorf("%v after %v", err, took)
		}
	})
	fakes.Bubble(t, noon, func(t *testing.T) { // cancelled by whoever is told
		r := newRig(t, fakes.Throttle(40), tokenAnswer)
		r.server.Device = lives(50)
		ctx, cancel := context.WithCancel(t.Context())
		r.flow.OnEvent = func(e auth.Event) {
			if _, ok := e.(auth.AlmostExpired); ok {
				cancel()
			}
		}
		_, err := r.flow.Login(ctx)
		if took := time.Since(noon); !errors.Is(err, context.Canceled) || took != 40*time.Second || strings.Contains(err.Error(), "expired") {
			t.Errorf("%v after %v", err, took)
		}
	})
}
