package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestDiscoveryTimeout(t *testing.T) {
	drip := func(w http.ResponseWriter, r *http.Request) {
		for {
			lasts(r, time.Second)
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
		}
	}
	for _, timeout := range []time.Duration{0, 7 * time.Second} {
		for _, doc := range []http.HandlerFunc{hangs, drip} {
			fakes.Bubble(t, noon, func(t *testing.T) {
				p := newPublished(t)
				// The time is one for all documents.
				slow := func(w http.ResponseWriter, r *http.Request) { time.Sleep(5 * time.Second); http.NotFound(w, r) }
				p.serve(t, "as.test", documents{serverPath: http.HandlerFunc(slow), openIDPath: doc})
				d := auth.Discovery{HTTPClient: p.client(), Timeout: timeout}
				_, err := d.Issuer(t.Context(), "https://as.test")
				if got := failureOf(t, err); got.reason != auth.ErrUnreachable {
					t.Errorf("%+v", got)
				}
				if e, ok := errors.AsType[*delay.TimeoutError](err); !ok || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the error is not the timeout's own: %v", err)
				} else if want := max(timeout, 7*time.Second); timeout == 0 && e.After != 30*time.Second || timeout != 0 && e.After != want {
					t.Errorf("after %v", e.After)
				}
				if want := map[bool]time.Duration{true: 30 * time.Second, false: timeout}[timeout == 0]; time.Since(noon) != want {
					t.Errorf("it took %v, want %v", time.Since(noon), want)
				}
			})
		}
	}
}

// TestDiscoveryOnAFakeClock takes its timeout from the clock that it is given.
func TestDiscoveryOnAFakeClock(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		p.serve(t, "as.test", documents{serverPath: hangs})
		clk := fakes.NewClock(noon)
		d := auth.Discovery{HTTPClient: p.client(), Clock: clk, Timeout: time.Minute}
		done := make(chan error)
		go func() {
			_, err := d.Issuer(t.Context(), "https://as.test")
			done <- err
		}()
		if _, err := clk.Await(t.Context(), delay.KindRequestTimeout); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		clk.Advance(time.Minute)
		if err := <-done; !errors.Is(err, auth.ErrUnreachable) {
			t.Errorf("%v", err)
		}
		if armed := clk.Armed(); len(armed) != 0 {
			t.Errorf("still armed: %v", armed)
		}
	})
}

func TestDiscoveryInterrupted(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		p.serve(t, "as.test", documents{serverPath: hangs})
		d := auth.Discovery{HTTPClient: p.client()}
		why := errors.New("closing down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		_, err := d.Issuer(ctx, "https://as.test")
		if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("%v", err)
		}
		if _, ok := errors.AsType[*auth.DiscoveryError](err); ok || time.Since(noon) != time.Second {
			t.Errorf("%T after %v", err, time.Since(noon))
		}
	})
}

func TestDiscoveryFailuresOfTheNetwork(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		p.serve(t, "other.test", documents{})
		client := p.client()
		tr := client.Transport.(*http.Transport)
		tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return p.dial(ctx, network, "other.test:443")
		}
		d := auth.Discovery{HTTPClient: client}
		_, err := d.Issuer(t.Context(), "https://as.test")
		if got := failureOf(t, err); got.reason != auth.ErrUnreachable || !strings.Contains(err.Error(), "certificate is for another name") {
			t.Errorf("%v", err)
		}
		d = auth.Discovery{HTTPClient: p.client(), Timeout: -1}
		if _, err := d.Issuer(t.Context(), "https://as.test"); err == nil || !strings.Contains(err.Error(), "Timeout is negative") {
			t.Errorf("%v", err)
		} else if _, ok := errors.AsType[*auth.ConfigError](err); !ok {
			t.Errorf("%T", err)
		}
	})
}

// TestDiscoveredLogin is the way from a resource to a token.
func TestDiscoveredLogin(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		p.serve(t, "api.test", documents{resourcePath: map[string]any{"resource": "https://api.test", "authorization_servers": []string{"https://as.test"}}})
		p.serve(t, "as.test", documents{
			serverPath: metadataOf("https://as.test"),
			"/device":  map[string]any{"device_code": "canary-device-code", "user_code": "WDJB-MJHT", "verification_uri": "https://as.test/activate", "expires_in": 900},
			"/token":   map[string]any{"access_token": "canary-access", "token_type": "Bearer"},
		})
		d := auth.Discovery{HTTPClient: p.client()}
		m, err := d.Resource(t.Context(), "https://api.test")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.For(auth.GrantDeviceCode); err != nil {
			t.Fatal(err)
		}
		flow := auth.DeviceFlow{
			Config:     oauth2.Config{ClientID: "c", Endpoint: m.Endpoint()},
			HTTPClient: m.HTTPClient(),
			Prompter:   auth.PrompterFunc(func(context.Context, auth.Prompt) error { return nil }),
		}
		token, err := flow.Login(t.Context())
		if err != nil || token.AccessToken != "canary-access" {
			t.Errorf("%v, %v", token, err)
		}
	})
}
