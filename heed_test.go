package heed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed"
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// provider is an authorization server with discovery, refresh and revocation, and an API behind it.
type provider struct {
	as *fakes.AuthServer

	mu        sync.Mutex
	refreshes int
	revoked   []string
	valid     map[string]bool
	asked     []url.Values // device requests
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	form, _ := url.ParseQuery(string(body))
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": "https://as.test", "token_endpoint": "https://as.test/token",
			"device_authorization_endpoint": "https://as.test/device_authorization", "revocation_endpoint": "https://as.test/revoke",
		})
	case r.URL.Path == "/revoke":
		p.revoked = append(p.revoked, form.Get("token"))
	case form.Get("grant_type") == "refresh_token":
		p.refreshes++
		token := fmt.Sprintf("refreshed-%d", p.refreshes)
		p.valid[token] = true
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "refresh_token": token + "-r", "expires_in": 600})
	default:
		if r.URL.Path == fakes.DevicePath {
			p.asked = append(p.asked, form)
		}
		p.as.ServeHTTP(w, r)
	}
}

func (p *provider) accepts(token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.valid[token] || p.as.Valid(token)
}

// rig runs a test in a bubble with a provider and an API that wants its tokens.
func rig(t *testing.T, run func(t *testing.T, p *provider, cfg heed.Config)) {
	t.Helper()
	fakes.Bubble(t, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), func(t *testing.T) {
		p := &provider{as: &fakes.AuthServer{ClientID: "app", ApproveOnPoll: 2, TokenLifetime: 600}, valid: map[string]bool{}}
		n := fakes.NewNetwork(t)
		n.Serve(t, "as.test", p)
		n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !p.accepts(token) {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))
		run(t, p, heed.Config{
			Issuer: "https://as.test", ClientID: "app", Scopes: []string{"read"}, API: "https://api.test",
			Store: &auth.MemStore{}, HTTPClient: n.Client(),
			Prompter: auth.PrompterFunc(func(context.Context, auth.Prompt) error { return nil }),
		})
	})
}

func get(t *testing.T, app *heed.App) int {
	t.Helper()
	res, err := app.HTTPClient().Get("https://api.test/")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

func TestLoginUseRefreshLogout(t *testing.T) {
	rig(t, func(t *testing.T, p *provider, cfg heed.Config) {
		cfg.Audience, cfg.Resources, cfg.PKCE = "api", []string{"urn:a"}, true
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.TokenSource().Token(); !errors.Is(err, auth.ErrStoreNotFound) {
			t.Errorf("before the login the token source says %v", err)
		}
		tok, err := app.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		asked := p.asked[0]
		if asked.Get("audience") != "api" || asked.Get("resource") != "urn:a" || asked.Get("scope") != "read" || asked.Get("code_challenge") == "" {
			t.Errorf("the device request was %v", asked)
		}
		if code := get(t, app); code != http.StatusOK {
			t.Errorf("the API answers %d", code)
		}

		// Another process finds the login in the store, and refreshes it when it is time.
		other, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := other.TokenSource().Token(); err != nil || again.AccessToken != tok.AccessToken {
			t.Errorf("the other process has %v, %v", again, err)
		}
		time.Sleep(700 * time.Second)
		if code := get(t, other); code != http.StatusOK {
			t.Errorf("after the expiry the API answers %d", code)
		}
		if code := get(t, app); code != http.StatusOK || p.refreshes != 1 {
			t.Errorf("the API answers %d after %d refreshes in place of one", code, p.refreshes)
		}

		if err := app.Logout(t.Context()); err != nil {
			t.Error(err)
		}
		if want := "refreshed-1-r refreshed-1"; strings.Join(p.revoked, " ") != want {
			t.Errorf("revoked were %v in place of %s", p.revoked, want)
		}
		if _, _, err := app.Session(t.Context()); !errors.Is(err, auth.ErrStoreNotFound) {
			t.Errorf("after the logout the store says %v", err)
		}
		if err := app.Logout(t.Context()); err != nil {
			t.Errorf("a second logout says %v", err)
		}
		for _, a := range []*heed.App{app, other} {
			if err := a.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAnotherLoginRevokesTheOldOne(t *testing.T) {
	rig(t, func(t *testing.T, p *provider, cfg heed.Config) {
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		first, err := app.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second, err := app.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := first.RefreshToken + " " + first.AccessToken; strings.Join(p.revoked, " ") != strings.TrimSpace(want) {
			t.Errorf("revoked were %v in place of %q", p.revoked, want)
		}
		if tok, err := app.TokenSource().Token(); err != nil || tok.AccessToken != second.AccessToken {
			t.Errorf("the source has %v, %v", tok, err)
		}
	})
}

// full is a store that finds out too late that there is no room.
type full struct{ auth.MemStore }

var errFull = &auth.StoreError{Op: auth.OpSave, Reason: auth.ErrStoreFailed, Err: errors.New("no space left on device")}

func (*full) Save(context.Context, auth.Key, auth.Credential) error { return errFull }

func TestTokenThatCannotBeStored(t *testing.T) {
	rig(t, func(t *testing.T, _ *provider, cfg heed.Config) {
		cfg.Store = &full{}
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := app.Login(t.Context())
		if tok == nil || !errors.Is(err, auth.ErrStoreFailed) {
			t.Fatalf("the login returns %v, %v", tok, err)
		}
		if code := get(t, app); code != http.StatusOK {
			t.Errorf("the API answers %d", code)
		}
	})
}

// probed is a store that says beforehand that it has no chance.
type probed struct{ auth.MemStore }

func (*probed) Probe(context.Context) error { return errFull }

func TestStoreIsProbedBeforeTheLogin(t *testing.T) {
	rig(t, func(t *testing.T, p *provider, cfg heed.Config) {
		cfg.Store = &probed{}
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.Login(t.Context()); !errors.Is(err, auth.ErrStoreFailed) || len(p.asked) > 0 {
			t.Errorf("%d device requests, and the login says %v", len(p.asked), err)
		}
	})
}

func TestServerWithoutDiscovery(t *testing.T) {
	rig(t, func(t *testing.T, p *provider, cfg heed.Config) {
		cfg.Issuer = ""
		cfg.Endpoint = oauth2.Endpoint{DeviceAuthURL: "https://as.test/device_authorization", TokenURL: "https://as.test/token"}
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := app.Logout(t.Context()); err != nil || len(p.revoked) > 0 {
			t.Errorf("revoked were %v without an endpoint: %v", p.revoked, err)
		}
	})
}

func TestProvider(t *testing.T) {
	rig(t, func(t *testing.T, p *provider, cfg heed.Config) {
		twitch, ok := auth.ProfileNamed("twitch")
		if !ok {
			t.Fatal("there is no such profile")
		}
		// At the test's own addresses.
		twitch.DeviceAuthURL, twitch.TokenURL = "https://as.test/device_authorization", "https://as.test/token"
		cfg.Issuer, cfg.Provider = "", twitch
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		if asked := p.asked[0]; asked.Get("scopes") != "read" || asked.Has("scope") {
			t.Errorf("the provider was asked %v", asked)
		}

		cfg.Issuer = "https://as.test"
		if _, err := heed.New(cfg); err == nil {
			t.Error("an issuer beside a provider is no mistake")
		}
		cfg.Issuer = ""
		for _, name := range []string{"aws", "okta"} {
			if cfg.Provider, ok = auth.ProfileNamed(name); !ok {
				t.Fatal("there is no such profile")
			}
			if _, err := heed.New(cfg); err == nil {
				t.Errorf("%s as it is cannot be logged in to, and is taken", name)
			}
		}
	})
}

func TestNewFindsAllMistakes(t *testing.T) {
	_, err := heed.New(heed.Config{RevocationURL: "https://as.test/", Store: &auth.MemStore{}, Stores: &auth.StorePolicy{}})
	wrong, ok := errors.AsType[*auth.ConfigError](err)
	if !ok || len(wrong.Problems) != 4 {
		t.Errorf("the mistakes are %v", err)
	}
}

func TestCallersContext(t *testing.T) {
	rig(t, func(t *testing.T, _ *provider, cfg heed.Config) {
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := app.Login(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the login says %v", err)
		}
		if err := app.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Close says %v", err)
		}
	})
}

func TestNoSecretIsPrinted(t *testing.T) {
	const secret = "canary"
	rig(t, func(t *testing.T, _ *provider, cfg heed.Config) {
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := app.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cfg.ClientSecret = secret
		apart, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := apart.TokenSource().Token(); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		logger := slog.New(slog.NewJSONHandler(&log, nil))
		var text strings.Builder
		for _, v := range []any{cfg, &cfg, app, apart, app.TokenSource(), app.HTTPClient().Transport} {
			text.WriteString(fmt.Sprintf("%v %+v %#v %s\n", v, v, v, v))
			if _, ok := v.(*requests.Transport); !ok { // JSON has no way to print its functions
				logger.Info("x", "v", v)
			}
		}
		for _, s := range []string{secret, tok.AccessToken} {
			if strings.Contains(text.String()+log.String(), s) {
				t.Errorf("%q is printed: %s %s", s, text.String(), log.String())
			}
		}
	})
}
