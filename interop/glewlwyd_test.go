package interop_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed"
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/interop/glewlwyd"
	"github.com/heed-sdk/heed/interop/internal/optest"
)

// TestGlewlwyd is what the SDK makes of the answers of a server that does many things in a way of its own. Its logins
// share one server; a code lives for six seconds there, and a poll that is sooner than a second after the last gets
// slow_down.
func TestGlewlwyd(t *testing.T) {
	t.Parallel()
	s := glewlwyd.Start(t, glewlwyd.Config{DeviceTTL: 6 * time.Second, Interval: time.Second})

	d := auth.Discovery{HTTPClient: newClient(t)}
	m, err := d.Issuer(t.Context(), s.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	// What it publishes names neither the grant refresh_token nor the authentication none.
	if m.Issuer != s.Issuer() || !strings.HasPrefix(m.TokenEndpoint, s.Issuer()+"/") || m.RevocationEndpoint == "" {
		t.Errorf("the metadata: %+v", m)
	}
	for _, grant := range []string{auth.GrantDeviceCode, auth.GrantRefreshToken} {
		if err := m.For(grant); err != nil {
			t.Errorf("for %s: %v", grant, err)
		}
	}
	public := oauth2.Config{ClientID: glewlwyd.ClientID, Scopes: scopes, Endpoint: m.Endpoint()}
	confidential := public
	confidential.ClientID, confidential.ClientSecret = glewlwyd.ConfidentialID, glewlwyd.ConfidentialSecret
	confidential.Endpoint.AuthStyle = oauth2.AuthStyleInHeader

	t.Run("approved", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name   string
			config oauth2.Config
			typed  bool
		}{
			{"public client", public, false},
			{"public client, with the code typed in", public, true},
			{"secret by HTTP Basic", confidential, false},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				l := newLogin(t, tt.config)
				l.decide, l.ready, l.typed = s.Approve, firstPending, tt.typed
				token, err := l.run()
				if err != nil {
					t.Fatal(err)
				}
				wantPolite(t, l)
				wantAuthentication(t, l, tt.config.ClientSecret, tt.config.Endpoint.AuthStyle)
				polls := l.wire.polled()
				if got := polls[len(polls)-1].member("token_type"); got != "bearer" {
					t.Errorf("the server has named the type %q", got)
				}
				if token.Type() != "Bearer" || token.RefreshToken == "" || token.Extra("scope") != strings.Join(scopes, " ") {
					t.Errorf("the token is of type %q, for %q, with a refresh token: %v",
						token.Type(), token.Extra("scope"), token.RefreshToken != "")
				}
			})
		}
	})
	t.Run("strict", func(t *testing.T) {
		t.Parallel()
		// Its errors are bare and its type is in lower case; both are as the RFC has it (RFC 6749, sections 5.1 and 5.2).
		l := newLogin(t, public)
		l.flow.Strict, l.decide, l.ready = true, s.Approve, firstPending
		if _, err := l.run(); err != nil {
			t.Error(err)
		}
	})
	t.Run("slow down", func(t *testing.T) {
		t.Parallel()
		l := newLogin(t, public)
		// On a busy machine another second may have begun before the login's own poll, which is then not too soon.
		l.wire.beforePoll = func(n int, resend func() exchange) {
			if n > 1 {
				glewlwyd.EarlyInSecond()
				resend()
			}
		}
		token, err := l.run()
		// The new interval is longer than the code lives, so that the last wait ends with the code.
		wantEnd(t, token, err, auth.ErrExpired, 0, "")
		polls := strings.Fields(l.outcomes())
		if n := len(polls); n < 2 || polls[n-1] != "slow_down" || slices.Contains(polls[:n-1], "slow_down") {
			t.Errorf("the polls came back with %q", polls)
		}
		if !slices.Contains(l.events, auth.Event(auth.Slowed{From: time.Second, To: 6 * time.Second})) {
			t.Errorf("no event says that the interval has grown: %v", l.events)
		}
		l.wantWaits(append(slices.Repeat([]time.Duration{time.Second}, len(polls)), 0)...)
	})
	t.Run("unknown code", func(t *testing.T) {
		t.Parallel()
		l := newLogin(t, public)
		raw := optest.NewClient(t, s.Issuer(), glewlwyd.ClientID, "")
		// The user approves, and somebody else who knows the code is faster.
		l.wire.beforePoll = func(n int, _ func() exchange) {
			if n != 1 {
				return
			}
			device := l.wire.asked()[0]
			if err := s.Approve(t.Context(), device.member("verification_uri"), device.member("user_code")); err != nil {
				t.Error(err)
			}
			if a := raw.Poll(device.member("device_code")); a.Status != http.StatusOK {
				t.Errorf("the other poll was answered by %d %s", a.Status, a.Raw)
			}
		}
		token, err := l.run()
		wantEnd(t, token, err, auth.ErrAccessDenied, 400, "access_denied")
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		l := newLogin(t, public)
		token, err := l.run()
		if !errors.Is(err, auth.ErrExpired) || token != nil {
			t.Errorf("the login ended with %v", err)
		}
		l.wantPending()
	})
	t.Run("refresh", func(t *testing.T) {
		t.Parallel()
		testGlewlwydRefresh(t, s, public)
	})
	t.Run("logout", func(t *testing.T) {
		t.Parallel()
		testGlewlwydLogout(t, s)
	})
}

// wantPending checks that nothing but a wait was ever heard of the server, apart from the last word.
func (l *login) wantPending() {
	l.t.Helper()
	outcomes := strings.TrimSuffix(l.outcomes(), " expired_token")
	if rest := strings.TrimSpace(strings.ReplaceAll(outcomes, "authorization_pending", "")); rest != "" || outcomes == "" {
		l.t.Errorf("the polls came back with %q", l.outcomes())
	}
}

// testGlewlwydRefresh refreshes, and then presents the spent token once more, which is answered by 400 and no word of
// explanation.
func testGlewlwydRefresh(t *testing.T, s *glewlwyd.Server, config oauth2.Config) {
	l := newLogin(t, config)
	l.decide = s.Approve
	first, err := l.run()
	if err != nil {
		t.Fatal(err)
	}
	r := auth.Refresher{Config: config, HTTPClient: newClient(t), Strict: true}
	second, err := r.Refresh(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if second.RefreshToken == first.RefreshToken || second.AccessToken == first.AccessToken || second.Type() != "Bearer" {
		t.Error("the tokens were not replaced")
	}
	_, err = r.Refresh(t.Context(), first)
	refused, ok := errors.AsType[*auth.RefreshError](err)
	if !ok || refused.Reason != auth.ErrRefused || refused.Status != 400 || refused.Code != "" || refused.Repeatable() {
		t.Errorf("the spent refresh token: %v", err)
	}
	if !strings.Contains(err.Error(), "log in again") {
		t.Errorf("the error does not say what to do: %v", err)
	}

	// The same under a token source. An answer without invalid_grant is not the server's word that the login is over, so
	// that it is kept, and its token may be presented again.
	store, key := &auth.FileStore{Dir: t.TempDir()}, auth.Key{Issuer: s.Issuer(), ClientID: config.ClientID}
	c := auth.NewCredential(first, time.Now())
	c.Expiry = time.Now().Add(-time.Minute)
	if err := store.Save(t.Context(), key, c); err != nil {
		t.Fatal(err)
	}
	source, err := auth.LoadTokenSource(t.Context(), auth.SourceConfig{Refresher: r, Store: store, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	_, err = source.Token()
	if refused, ok := errors.AsType[*auth.RefreshError](err); !ok || refused.Status != 400 || !errors.Is(err, auth.ErrSessionRefused) {
		t.Errorf("the token source: %v", err)
	}
	if kept, err := store.Load(t.Context(), key); err != nil || kept.RefreshToken != first.RefreshToken || kept.Presented != nil {
		t.Errorf("the store has %v: %v", kept, err)
	}
}

// testGlewlwydLogout logs out where a public client can revoke nothing: the user is told, and logged out on this machine.
func testGlewlwydLogout(t *testing.T, s *glewlwyd.Server) {
	a := newApp(t, s, heed.Config{
		ClientID: glewlwyd.ClientID, Scopes: scopes, Store: &auth.FileStore{Dir: t.TempDir()},
	})
	token := a.login()
	err := a.Logout(t.Context())
	failed, ok := errors.AsType[*auth.RevokeError](err)
	if !ok || failed.Token != "refresh_token" || failed.Status != http.StatusUnauthorized || failed.Code != "" {
		t.Errorf("logout: %v", err)
	}
	if err != nil {
		for _, secret := range []string{token.AccessToken, token.RefreshToken} {
			if strings.Contains(err.Error(), secret) {
				t.Error("the error has a token in it")
			}
		}
	}
	if _, _, err := a.Session(context.Background()); !errors.Is(err, auth.ErrStoreNotFound) {
		t.Errorf("the store after the logout: %v", err)
	}
	raw := optest.NewClient(t, s.Issuer(), glewlwyd.ClientID, "")
	if answer := raw.Refresh(token.RefreshToken); answer.Status != 200 {
		t.Errorf("the server has revoked the token all the same: %d %s", answer.Status, answer.Raw)
	}
}
