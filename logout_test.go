package heed_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed"
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/requests"
)

// late brings the answers of the token endpoint late, while it is on.
type late struct {
	base http.RoundTripper
	on   atomic.Bool
}

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.base.RoundTrip(r)
	if l.on.Load() && r.URL.Path == "/token" {
		time.Sleep(5 * time.Second)
	}
	return res, err
}

// lockless is a store without a lock.
type lockless struct{ auth.Store }

// refreshing logs in and, after the expiry, begins a refresh whose answer comes late.
func refreshing(t *testing.T, cfg heed.Config, other bool) (app *heed.App, done chan struct{}) {
	t.Helper()
	slow := &late{base: cfg.HTTPClient.Transport}
	cfg.HTTPClient = &http.Client{Transport: slow}
	app, err := heed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(700 * time.Second)
	who := app
	if other {
		if who, err = heed.New(cfg); err != nil {
			t.Fatal(err)
		}
	}
	slow.on.Store(true)
	done = make(chan struct{})
	go func() {
		defer close(done)
		_, _ = who.TokenSource().Token()
	}()
	time.Sleep(time.Second)
	slow.on.Store(false) // the one under way stays late
	return app, done
}

func TestLogoutDuringARefresh(t *testing.T) {
	for name, other := range map[string]bool{"here": false, "elsewhere": true, "here, without a lock": false} {
		t.Run(name, func(t *testing.T) {
			rig(t, func(t *testing.T, p *provider, cfg heed.Config) {
				if strings.Contains(name, "without") {
					cfg.Store = lockless{cfg.Store}
				}
				app, done := refreshing(t, cfg, other)
				if err := app.Logout(t.Context()); err != nil {
					t.Error(err)
				}
				<-done
				if _, c, err := app.Session(t.Context()); !errors.Is(err, auth.ErrStoreNotFound) {
					t.Errorf("after the logout the store has %v, %v", c, err)
				}
				if want := "refreshed-1-r refreshed-1"; strings.Join(p.revoked, " ") != want {
					t.Errorf("revoked were %v in place of %s", p.revoked, want)
				}
			})
		})
	}
}

func TestLoginDuringARefresh(t *testing.T) {
	for name, other := range map[string]bool{"here": false, "elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			rig(t, func(t *testing.T, _ *provider, cfg heed.Config) {
				app, done := refreshing(t, cfg, other)
				choice, err := app.Choose(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				tok := (auth.Credential{AccessToken: "new", RefreshToken: "new-r", Expiry: time.Now().Add(time.Hour)}).Token()
				if err := app.Keep(t.Context(), choice, tok); err != nil {
					t.Error(err)
				}
				<-done
				if _, c, err := app.Session(t.Context()); err != nil || c.AccessToken != "new" {
					t.Errorf("after the login the store has the token %q, %v", c.AccessToken, err)
				}
			})
		})
	}
}

// What no store has is revoked all the same.
func TestLogoutOfWhatCouldNotBeStored(t *testing.T) {
	rig(t, func(t *testing.T, p *provider, cfg heed.Config) {
		cfg.Store = &full{}
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := app.Login(t.Context())
		if !errors.Is(err, auth.ErrStoreFailed) {
			t.Fatal(err)
		}
		for range 2 {
			if err := app.Logout(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if want := strings.TrimSpace(tok.RefreshToken + " " + tok.AccessToken); strings.Join(p.revoked, " ") != want {
			t.Errorf("revoked were %v in place of %s", p.revoked, want)
		}
		if _, err := app.TokenSource().Token(); !errors.Is(err, auth.ErrStoreNotFound) {
			t.Errorf("after the logout the source says %v", err)
		}
	})
}

func TestRevokesOnlyWhatTheNewLoginHasNot(t *testing.T) {
	for name, tt := range map[string]struct {
		old, now auth.Credential
		want     string
	}{
		"no refresh tokens":     {auth.Credential{AccessToken: "a"}, auth.Credential{AccessToken: "b"}, "a"},
		"the same token":        {auth.Credential{AccessToken: "a"}, auth.Credential{AccessToken: "a"}, ""},
		"the same access token": {auth.Credential{AccessToken: "a", RefreshToken: "r"}, auth.Credential{AccessToken: "a", RefreshToken: "s"}, "r"},
		// Revoking an access token may end the grant (RFC 7009, section 2.1).
		"the same refresh token": {auth.Credential{AccessToken: "a", RefreshToken: "r"}, auth.Credential{AccessToken: "b", RefreshToken: "r"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rig(t, func(t *testing.T, p *provider, cfg heed.Config) {
				app, err := heed.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range []auth.Credential{tt.old, tt.now} {
					if err := app.Keep(t.Context(), auth.Choice{Store: cfg.Store}, c.Token()); err != nil {
						t.Fatal(err)
					}
				}
				if got := strings.Join(p.revoked, " "); got != tt.want {
					t.Errorf("revoked were %q in place of %q", got, tt.want)
				}
			})
		})
	}
}

// stuck is a store that does not answer until it is told to.
type stuck struct {
	auth.Store
	on chan struct{}
}

func (s *stuck) Load(ctx context.Context, key auth.Key) (auth.Credential, error) {
	<-s.on
	return s.Store.Load(ctx, key)
}

// One caller's context ends while another one waits for the store: its error is the context's, also when that has a cause.
func TestCallersContextWithACause(t *testing.T) {
	rig(t, func(t *testing.T, _ *provider, cfg heed.Config) {
		store := &stuck{cfg.Store, make(chan struct{})}
		cfg.Store = store
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = app.TokenSource().Token() }()
		synctest.Wait()
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		_, err = app.TokenSource().(requests.ContextTokenSource).TokenContext(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("the source says %v", err)
		}
		close(store.on)
	})
}

// failing is a store that cannot be read, and counts how often it was asked.
type failing struct {
	auth.MemStore
	asked int
}

func (s *failing) Load(context.Context, auth.Key) (auth.Credential, error) {
	s.asked++
	return auth.Credential{}, &auth.StoreError{Op: auth.OpLoad, Reason: auth.ErrStoreLocked}
}

// Somebody may be shown a prompt each time.
func TestLogoutAsksAStoreThatFailsOnce(t *testing.T) {
	rig(t, func(t *testing.T, _ *provider, cfg heed.Config) {
		store := &failing{}
		cfg.Store = store
		app, err := heed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := app.Logout(t.Context()); err != nil || store.asked != 1 {
			t.Errorf("asked %d times, and then %v", store.asked, err)
		}
	})
}
