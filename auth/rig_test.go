package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// noon is where the clock of a bubble stands at the beginning.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// device is an ordinary answer to the device authorization request.
var device = fakes.AuthJSON(200, map[string]any{
	"device_code": "canary-device-code", "user_code": "WDJB-MJHT", "verification_uri": "https://as.test/device",
	"expires_in": 900, "interval": 5,
})

// lives is device with another lifetime, in seconds.
func lives(seconds int) *fakes.AuthAnswer {
	a := fakes.AuthJSON(200, map[string]any{
		"device_code": "canary-device-code", "user_code": "WDJB-MJHT", "verification_uri": "https://as.test/device",
		"expires_in": seconds, "interval": 5,
	})
	return &a
}

var (
	tokenAnswer = fakes.AuthJSON(200, map[string]any{"access_token": "canary-access", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "canary-refresh"})
	pending     = fakes.OAuthError(400, "authorization_pending")
	slowDown    = fakes.OAuthError(400, "slow_down")
	drop        = fakes.AuthAnswer{Drop: true}
	hang        = fakes.AuthAnswer{Hang: true}
)

// plain is an answer in plain text.
func plain(status int, body string) fakes.AuthAnswer { return fakes.AuthJSON(status, body) }

// with returns the answer with a header.
func with(a fakes.AuthAnswer, name, value string) fakes.AuthAnswer {
	a.Headers = map[string]string{name: value}
	return a
}

// raw is an answer whose JSON is written here.
func raw(status int, body string) fakes.AuthAnswer {
	return fakes.AuthAnswer{Status: status, RawBody: &body}
}

// rig is a login and the server it talks to, in a bubble.
type rig struct {
	net    *fakes.Network
	server *fakes.AuthServer
	flow   *auth.DeviceFlow
	prompt auth.Prompt
	shown  time.Time // when the prompter was done
	events []auth.Event
}

// newRig makes a login whose polls are answered in order; call it in a bubble.
func newRig(t *testing.T, polls ...fakes.AuthAnswer) *rig {
	t.Helper()
	r := &rig{net: fakes.NewNetwork(t), server: &fakes.AuthServer{ClientID: "c", Device: &device, Polls: polls}}
	r.net.Serve(t, "as.test", r.server)
	r.flow = &auth.DeviceFlow{
		Config: oauth2.Config{ClientID: "c", Endpoint: oauth2.Endpoint{
			DeviceAuthURL: "https://as.test" + fakes.DevicePath, TokenURL: "https://as.test" + fakes.TokenPath,
		}},
		HTTPClient: r.net.Client(),
		Prompter:   r.prompter(0),
		OnEvent:    func(e auth.Event) { r.events = append(r.events, e) },
	}
	return r
}

// prompter takes its time.
func (r *rig) prompter(takes time.Duration) auth.Prompter {
	return auth.PrompterFunc(func(_ context.Context, p auth.Prompt) error {
		r.prompt = p
		time.Sleep(takes)
		r.shown = time.Now()
		return nil
	})
}

// waits are the waits that the events told of, in seconds.
func (r *rig) waits() []float64 {
	waits := []float64{}
	for _, e := range r.events {
		if w, ok := e.(auth.Waiting); ok {
			waits = append(waits, w.Wait.For.Seconds())
		}
	}
	return waits
}

// causes are what each wait followed on, for all but the first.
func (r *rig) causes() []string {
	var causes []string
	for _, e := range r.events {
		if w, ok := e.(auth.Waiting); ok && w.Wait.Attempt > 0 {
			causes = append(causes, w.Wait.Cause)
		}
	}
	return causes
}

// seen are the pauses before each poll as the server saw them, in seconds.
func (r *rig) seen() []float64 {
	seen, last := []float64{}, r.shown
	for _, req := range r.polls() {
		seen = append(seen, req.Begin.Sub(last).Seconds())
		last = req.End
	}
	return seen
}

func (r *rig) polls() []fakes.AuthRequest {
	var polls []fakes.AuthRequest
	for _, req := range r.server.Requests() {
		if req.Path == fakes.TokenPath {
			polls = append(polls, req)
		}
	}
	return polls
}

// obeyed fails the test if the server found anything wrong with the requests, or if the waits told and those seen are
// not the same.
func (r *rig) obeyed(t *testing.T) {
	t.Helper()
	for _, v := range r.server.Violations() {
		t.Errorf("violation: %s", v)
	}
	waits, seen := r.waits(), r.seen()
	if len(seen) > len(waits) || len(seen) < len(waits)-1 || !near(seen, waits[:len(seen)]) {
		t.Errorf("waits told %v, seen by the server %v", waits, seen)
	}
	for _, e := range r.events {
		if w, ok := e.(auth.Waiting); ok && (w.Wait.Loop != delay.DevicePoll || w.Wait.Until.IsZero()) {
			t.Errorf("a wait of another loop, or without an end: %+v", w.Wait)
		}
	}
}

// near compares seconds to the microsecond.
func near(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if d := a[i] - b[i]; d > 1e-6 || d < -1e-6 {
			return false
		}
	}
	return true
}

// reason is the word for how a login ended.
func reason(t *testing.T, tok *oauth2.Token, err error) string {
	t.Helper()
	if err == nil {
		if tok == nil {
			t.Error("neither a token nor an error")
		}
		return "token"
	}
	if tok != nil {
		t.Error("a token and an error")
	}
	e, ok := errors.AsType[*auth.DeviceError](err)
	if !ok {
		return err.Error()
	}
	if !errors.Is(err, e.Reason) {
		t.Errorf("the error is not the one of its reason %s", e.Reason)
	}
	return string(e.Reason)
}
