package prompt_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/prompt"
	"github.com/heed-sdk/heed/internal/fakes"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const (
	uri      = "https://as.example.com/device"
	complete = "https://as.example.com/device?user_code=WDJB-MJHT"
)

var (
	pending  = fakes.OAuthError(400, "authorization_pending")
	slowDown = fakes.OAuthError(400, "slow_down")
	drop     = fakes.AuthAnswer{Drop: true}
	token    = fakes.AuthJSON(200, map[string]any{"access_token": "canary-access", "scope": "a", "expires_in": 60})
)

// device is an answer to the device authorization request.
func device(life int, complete string) *fakes.AuthAnswer {
	m := map[string]any{"device_code": "canary-device-code", "user_code": "WDJB-MJHT", "verification_uri": uri, "expires_in": life}
	if complete != "" {
		m["verification_uri_complete"] = complete
	}
	a := fakes.AuthJSON(200, m)
	return &a
}

// rig is a login that a Display shows, in a bubble.
type rig struct {
	server *fakes.AuthServer
	flow   *auth.DeviceFlow
}

func newRig(t *testing.T, d prompt.Display, polls ...fakes.AuthAnswer) *rig {
	t.Helper()
	n := fakes.NewNetwork(t)
	r := &rig{server: &fakes.AuthServer{Device: device(900, complete), Polls: polls}}
	n.Serve(t, "as.test", r.server)
	r.flow = &auth.DeviceFlow{
		Config: oauth2.Config{ClientID: "c", Scopes: []string{"a", "b"}, Endpoint: oauth2.Endpoint{
			DeviceAuthURL: "https://as.test" + fakes.DevicePath, TokenURL: "https://as.test" + fakes.TokenPath,
		}},
		HTTPClient: n.Client(),
		Prompter:   d,
		OnEvent:    d.OnEvent,
	}
	return r
}

// frames logs in and returns what look sees at these moments, and after the end.
func (r *rig) frames(t *testing.T, look func() string, at ...time.Duration) string {
	t.Helper()
	var b strings.Builder
	done := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := r.flow.Login(t.Context())
		done <- err
	}()
	for _, d := range at {
		time.Sleep(d - time.Since(began))
		synctest.Wait()
		fmt.Fprintf(&b, "--- after %v\n%s", d, look())
	}
	err := <-done
	fmt.Fprintf(&b, "--- at the end, after %v: %v\n%s", time.Since(began), err, look())
	if v := r.server.Violations(); len(v) > 0 {
		t.Error(v)
	}
	return b.String()
}

// nowhere is an empty environment.
func nowhere(string) (string, bool) { return "", false }

// environment has these variables.
func environment(variables ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range variables {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

func terminal(e *emulator, env ...string) prompt.Display {
	return prompt.Terminal(e, &prompt.Options{Size: e.size, Env: environment(env...)})
}
