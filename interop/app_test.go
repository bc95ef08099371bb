package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed"
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/interop/glewlwyd"
	"github.com/heed-sdk/heed/interop/internal/optest"
	"github.com/heed-sdk/heed/interop/oidcprovider"
	"github.com/heed-sdk/heed/interop/zitadel"
)

const glewlwydAS = "glewlwyd"

// approver is what the helpers of all three servers offer.
type approver interface {
	Issuer() string
	Approve(ctx context.Context, address, userCode string) error
}

// app is a heed.App, with what it has told.
type app struct {
	*heed.App
	t *testing.T

	mu     sync.Mutex
	events []auth.Event
	user   chan error // what became of the user's approval
}

// newApp returns an app that knows of the server nothing but its issuer. Its user approves whatever code is shown.
func newApp(t *testing.T, s approver, cfg heed.Config) *app {
	t.Helper()
	a := &app{t: t, user: make(chan error, 1)}
	cfg.Issuer = s.Issuer()
	cfg.HTTPClient = newClient(t)
	cfg.Prompter = auth.PrompterFunc(func(_ context.Context, p auth.Prompt) error {
		// Not on the Prompter's context: the token may be there before the user has seen the last page.
		go func() { a.user <- s.Approve(t.Context(), p.VerificationURIComplete, p.UserCode) }()
		return nil
	})
	cfg.OnEvent = func(e auth.Event) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.events = append(a.events, e)
	}
	var err error
	if a.App, err = heed.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return a
}

// login logs in, and waits until the user has seen the last page.
func (a *app) login() *oauth2.Token {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	token, err := a.Login(ctx)
	if err != nil {
		a.t.Fatalf("login: %v", err)
	}
	if err := <-a.user; err != nil {
		a.t.Fatalf("the user: %v", err)
	}
	return token
}

// stored is the login as the store has it.
func (a *app) stored() auth.Credential {
	a.t.Helper()
	_, c, err := a.Session(a.t.Context())
	if err != nil {
		a.t.Fatalf("the store: %v", err)
	}
	return c
}

// refreshed returns the refreshes so far.
func (a *app) refreshed() []auth.Refreshed {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []auth.Refreshed
	for _, e := range a.events {
		if r, ok := e.(auth.Refreshed); ok {
			all = append(all, r)
		}
	}
	return all
}

// get asks for what the server knows of the user.
func (a *app) get(address string) (sub string, err error) {
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	res, err := a.HTTPClient().Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var info struct{ Sub string }
	if err := json.NewDecoder(res.Body).Decode(&info); err != nil {
		return "", fmt.Errorf("%s: %w", res.Status, err)
	}
	return info.Sub, nil
}

// userInfoURL is where a server tells of the user.
func userInfoURL(t *testing.T, s approver) string {
	t.Helper()
	d := auth.Discovery{HTTPClient: newClient(t)}
	m, err := d.Issuer(t.Context(), s.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	return m.UserinfoEndpoint
}

// TestApp is the life of a login as a program has it: from the issuer's name alone to the logout, on each of the servers.
func TestApp(t *testing.T) {
	t.Parallel()
	brief := pace{AccessTTL: 8 * time.Second, Interval: time.Second, MinPoll: time.Second}
	tests := []struct {
		name       string
		start      func(testing.TB) approver
		id, secret string
		subject    string // "" if it is the server's choice
		expired    int    // the answer to an expired token at userinfo; oidc-provider forgives 15 s
		code       string // with which a revoked refresh token is refused
	}{
		{
			oidcProvider, func(t testing.TB) approver { return oidcprovider.Start(t, oidcprovider.Config(brief)) },
			oidcprovider.ClientID, "", oidcprovider.User, 200, "invalid_grant",
		},
		{
			zitadelOP, func(t testing.TB) approver { return zitadel.Start(t, zitadel.Config(brief)) },
			zitadel.ClientID, "", zitadel.User, 403, "invalid_grant",
		},
		{
			// A public client cannot revoke anything there: see TestGlewlwyd.
			glewlwydAS, func(t testing.TB) approver { return glewlwyd.Start(t, glewlwyd.Config(brief)) },
			glewlwyd.ConfidentialID, glewlwyd.ConfidentialSecret, "", 401, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tt.start(t)
			cfg := heed.Config{
				ClientID: tt.id, ClientSecret: tt.secret, Scopes: scopes, Store: &auth.FileStore{Dir: t.TempDir()},
			}
			first := newApp(t, s, cfg).login()
			if first.RefreshToken == "" || first.Type() != "Bearer" {
				t.Fatalf("the token is of type %q and has a refresh token: %v", first.Type(), first.RefreshToken != "")
			}

			a := newApp(t, s, cfg) // the program, started again
			info := userInfoURL(t, s)
			subject, err := a.get(info)
			if err != nil || subject == "" || tt.subject != "" && subject != tt.subject {
				t.Fatalf("userinfo: subject %q: %v", subject, err)
			}
			if got := a.stored(); got.AccessToken != first.AccessToken || len(a.refreshed()) > 0 {
				t.Error("the token was not the one of the login")
			}

			// The server counts in whole seconds: a little later it does not take the token any more either.
			time.Sleep(time.Until(first.Expiry) + 1100*time.Millisecond)
			raw := optest.NewClient(t, s.Issuer(), tt.id, tt.secret)
			if answer := raw.UserInfo(first.AccessToken); answer.Status != tt.expired {
				t.Errorf("the server answered the expired token with %d %s", answer.Status, answer.Raw)
			}
			var together sync.WaitGroup
			for range 4 {
				together.Go(func() {
					if sub, err := a.get(info); err != nil || sub != subject {
						t.Errorf("userinfo after the expiry: subject %q: %v", sub, err)
					}
				})
			}
			together.Wait()
			if got := a.refreshed(); len(got) != 1 || got[0].ByOther {
				t.Errorf("the refreshes were %v, want one", got)
			}
			second := a.stored()
			if second.RefreshToken == first.RefreshToken || second.AccessToken == first.AccessToken || second.Presented != nil {
				t.Errorf("the store has %v", second)
			}
			granted := strings.Fields(second.Scope)
			if !slices.Contains(granted, "openid") || !slices.Contains(granted, "read") {
				t.Errorf("the scope is %q", second.Scope)
			}

			if err := a.Logout(t.Context()); err != nil {
				t.Errorf("logout: %v", err)
			}
			if _, _, err := a.Session(t.Context()); !errors.Is(err, auth.ErrStoreNotFound) {
				t.Errorf("the store after the logout: %v", err)
			}
			if _, err := a.TokenSource().Token(); !errors.Is(err, auth.ErrStoreNotFound) {
				t.Errorf("a token after the logout: %v", err)
			}
			if answer := raw.Refresh(second.RefreshToken); answer.Status != 400 || answer.String("error") != tt.code {
				t.Errorf("the revoked refresh token was answered with %d %s", answer.Status, answer.Raw)
			}
			if answer := raw.UserInfo(second.AccessToken); answer.Status < 400 {
				t.Errorf("the revoked access token was answered with %d %s", answer.Status, answer.Raw)
			}
		})
	}
}
