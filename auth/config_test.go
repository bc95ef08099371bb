package auth_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// nobody fails the test when anything is sent.
func nobody(t *testing.T) *http.Client {
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		t.Errorf("a request was sent to %s", r.URL.Host)
		return nil, errors.New("refused")
	})}
}

func TestConfigErrors(t *testing.T) {
	flow := &auth.DeviceFlow{
		Config: oauth2.Config{
			ClientSecret: "canary-secret", Scopes: []string{"a", "b c", ""},
			Endpoint: oauth2.Endpoint{DeviceAuthURL: "http://as.test/?canary=1", TokenURL: "https://as.test/#canary", AuthStyle: 7},
		},
		HTTPClient:     nobody(t),
		Params:         url.Values{"scope": {"x"}, "client_id": {"x"}},
		TokenParams:    url.Values{"device_code": {"canary"}},
		RequestTimeout: -1,
	}
	_, err := flow.Login(t.Context())
	e, ok := errors.AsType[*auth.ConfigError](err)
	if !ok {
		t.Fatalf("%v", err)
	}
	var fields []string
	for _, p := range e.Problems {
		fields = append(fields, p.Field)
	}
	want := "Config.ClientID Config.Endpoint.DeviceAuthURL Config.Endpoint.TokenURL Config.Endpoint.AuthStyle " +
		"Config.Scopes[1] Config.Scopes[2] Params Params TokenParams RequestTimeout Prompter"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("problems with %s\nwant          %s", got, want)
	}
	if text := err.Error(); strings.Contains(text, "canary") || !strings.HasPrefix(text, "auth: ") {
		t.Errorf("%s", text)
	}
	if _, err := flow.Start(t.Context()); err == nil || strings.Contains(err.Error(), "Prompter") {
		t.Errorf("Start: %v", err)
	}
	if _, err := (&auth.DeviceFlow{}).Login(t.Context()); err == nil {
		t.Error("the zero value logs in")
	}
}

func TestEndpoints(t *testing.T) {
	for address, good := range map[string]bool{
		"https://as.test/token":            true,
		"https://as.test/token?tenant=a":   true,
		"HTTPS://as.test/token":            true,
		"http://localhost/token":           true,
		"http://as.localhost:80/token":     true,
		"http://127.0.0.1:8080/token":      true,
		"http://[::1]:8080/token":          true,
		"http://[::ffff:127.0.0.1]/token":  true,
		"http://as.test/token":             false,
		"http://127.0.0.1.as.test/token":   false,
		"http://0.0.0.0/token":             false,
		"http://10.0.0.1/token":            false,
		"http://localhost.as.test/token":   false,
		"https://user:pass@as.test/token":  false,
		"https://as.test/token#fragment":   false,
		"https://as.test/token#":           false,
		"https://as.test:port/token":       false,
		"https://as.test/%zz":              false,
		"https:///token":                   false,
		"https://":                         false,
		"as.test/token":                    false,
		"//as.test/token":                  false,
		"ftp://as.test/token":              false,
		"https://as.test/to ken":           false,
		"https://as.test\\token":           false,
		"https://as.test/\u202etoken":      false,
		"":                                 false,
		"https://as.test/token\r\nHost: x": false,
	} {
		sent := false
		flow := flowWith(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			sent = true
			return nil, errors.New("refused")
		})})
		flow.Config.Endpoint.DeviceAuthURL = address
		_, err := flow.Start(t.Context())
		if _, bad := errors.AsType[*auth.ConfigError](err); bad == good || sent != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestClientAuthentication(t *testing.T) {
	const id, secret = "my app:1", "s&cret %/:ü"
	for _, tt := range []struct {
		name   string
		secret string
		style  oauth2.AuthStyle
		header bool
		body   bool
	}{
		{name: "none"},
		{name: "none, in params", style: oauth2.AuthStyleInParams},
		{name: "none, in header", style: oauth2.AuthStyleInHeader, header: true},
		{name: "secret", secret: secret, header: true},
		{name: "secret, in params", secret: secret, style: oauth2.AuthStyleInParams, body: true},
		{name: "secret, in header", secret: secret, style: oauth2.AuthStyleInHeader, header: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newRig(t, pending, tokenAnswer)
				r.server.ClientID, r.server.ClientSecret = id, tt.secret
				r.flow.Config.ClientID, r.flow.Config.ClientSecret = id, tt.secret
				r.flow.Config.Endpoint.AuthStyle = tt.style
				if _, err := r.flow.Login(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.obeyed(t)
				if n := len(r.server.Requests()); n != 3 {
					t.Errorf("%d requests", n)
				}
				for _, req := range r.server.Requests() {
					if has := req.Header.Get("Authorization") != ""; has != tt.header {
						t.Errorf("authorization header: %v", has)
					}
					if has := req.Form.Has("client_secret"); has != tt.body {
						t.Errorf("client_secret in the form: %v", has)
					}
					if req.Form.Has("scope") {
						t.Error("scope was sent")
					}
				}
			})
		})
	}
}

// A refused credential is not sent another way.
func TestNeverProbed(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		r.server.ClientSecret = "another"
		r.flow.Config.ClientSecret = "one"
		_, err := r.flow.Login(t.Context())
		e, _ := errors.AsType[*auth.DeviceError](err)
		if e == nil || e.Code != "invalid_client" || len(r.server.Requests()) != 1 {
			t.Errorf("%v after %d requests", err, len(r.server.Requests()))
		}
	})
}

// Redirects are refused on each request, whatever the caller's client does with them, and nothing reaches their target.
func TestRedirectsAreRefused(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, endpoint := range []string{fakes.DevicePath, fakes.TokenPath} {
			fakes.Bubble(t, noon, func(t *testing.T) {
				away := with(fakes.AuthAnswer{Status: status}, "Location", "https://evil.test/")
				r := newRig(t, away)
				if endpoint == fakes.DevicePath {
					r.server.Device = &away
				}
				r.net.Serve(t, "evil.test", http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
					t.Errorf("%s %s reached the target", req.Method, req.URL)
				}))
				r.flow.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
				_, err := r.flow.Login(t.Context())
				e, _ := errors.AsType[*auth.DeviceError](err)
				if e == nil || e.Reason != auth.ErrRejected || e.Status != status || !strings.Contains(err.Error(), "redirects are not followed") {
					t.Errorf("%d at %s: %v", status, endpoint, err)
				}
			})
		}
	}
}

func TestPrompter(t *testing.T) {
	broken := errors.New("the terminal is gone")
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		r.flow.Prompter = auth.PrompterFunc(func(context.Context, auth.Prompt) error { return broken })
		_, err := r.flow.Login(t.Context())
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "auth: ") || len(r.polls()) != 0 {
			t.Errorf("%v", err)
		}
	})
	fakes.Bubble(t, noon, func(t *testing.T) { // one that gives up because the context has ended
		r := newRig(t, tokenAnswer)
		ctx, cancel := context.WithCancel(t.Context())
		r.flow.Prompter = auth.PrompterFunc(func(context.Context, auth.Prompt) error { cancel(); return broken })
		if _, err := r.flow.Login(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		left := make(chan struct{})
		r.flow.Prompter = auth.PrompterFunc(func(ctx context.Context, p auth.Prompt) error {
			if p.UserCode != "WDJB-MJHT" || p.VerificationURI != "https://as.test/device" || p.ExpiresIn.Seconds() != 900 || !p.ExpiresAt.Equal(noon.Add(p.ExpiresIn)) {
				t.Errorf("%+v", p)
			}
			r.shown = noon
			go func() { // a countdown
				<-ctx.Done()
				close(left)
			}()
			return nil
		})
		if _, err := r.flow.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-left
		r.obeyed(t)
	})
}

func TestLines(t *testing.T) {
	var b strings.Builder
	p := auth.Prompt{UserCode: "WDJB-MJHT", VerificationURI: "https://as.test/device", VerificationURIComplete: "https://as.test/device?c=1", ExpiresIn: 15 * time.Minute}
	if err := auth.Lines(&b).Prompt(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	want := "To log in, open  https://as.test/device\nand enter the code  WDJB-MJHT\nor open  https://as.test/device?c=1\nThe code is good for 15 minutes.\n"
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	for life, want := range map[int]string{7200: "2 hours", 7199: "119 minutes", 119: "119 seconds", 1: "a second"} {
		b.Reset()
		p.ExpiresIn = time.Duration(life) * time.Second
		if err := auth.Lines(&b).Prompt(t.Context(), p); err != nil || !strings.Contains(b.String(), "good for "+want+".") {
			t.Errorf("%d s: %s", life, b.String())
		}
	}
}
