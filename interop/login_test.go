package interop_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/interop/oidcprovider"
)

// scopes are an ID, a refresh token, and a scope of the servers' own.
var scopes = []string{"openid", "offline_access", "read"}

// TestPaced runs against servers that answer slow_down to a poll which is sooner after the last than the interval: what
// passes here passes because the waits are right, not because nobody looks.
func TestPaced(t *testing.T) {
	servedBy{
		{"approved", testApproved},
		{"denied", testDenied},
		{"slow down", testSlowDown},
		{"scope", testScope},
		{"rejected", testRejected},
		{"token", testToken},
		{"command", testCommand},
	}.onEach(t, paced)
}

func testApproved(t *testing.T, s *server) {
	tests := []struct {
		name       string
		id, secret string
		style      oauth2.AuthStyle
		strict     bool
		typed      bool
		only       string // the one server that allows it
	}{
		{name: "public client", id: publicID},
		{name: "public client, read as the RFC writes and with the code typed in", id: publicID, strict: true, typed: true},
		{name: "secret by HTTP Basic", id: confidentialID, secret: confidentialSecret},
		{
			// The client is registered for HTTP Basic. oidc-provider takes its secret from the body as well, zitadel does not:
			// see testRejected.
			name: "secret in the body", id: confidentialID, secret: confidentialSecret, style: oauth2.AuthStyleInParams,
			only: oidcProvider,
		},
	}
	for _, tt := range tests {
		if tt.only != "" && tt.only != s.name {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLogin(t, s.config(tt.id, tt.secret, tt.style, scopes...))
			l.flow.Strict, l.typed = tt.strict, tt.typed
			l.decide, l.ready = s.Approve, firstPending
			token, err := l.run()
			if err != nil {
				t.Fatal(err)
			}
			wantToken(t, s, l, token)
			wantPolite(t, l)
			wantAuthentication(t, l, tt.secret, tt.style)
		})
	}
}

// wantToken checks the token of an approved login against what the server has sent.
func wantToken(t *testing.T, s *server, l *login, token *oauth2.Token) {
	t.Helper()
	polls := l.wire.polled()
	last := polls[len(polls)-1]
	if token.AccessToken != last.member("access_token") || token.RefreshToken != last.member("refresh_token") ||
		token.Extra("id_token") != last.member("id_token") || token.RefreshToken == "" || token.Extra("id_token") == "" {
		t.Error("the token is not the one that the server has sent")
	}
	if !token.Valid() || token.Type() != "Bearer" {
		t.Errorf("the token is of type %q and valid: %v", token.Type(), token.Valid())
	}
	// zitadel rounds what is left of its five minutes down.
	lives := map[string]int64{oidcProvider: 3600, zitadelOP: 299}[s.name]
	if token.ExpiresIn > lives || token.ExpiresIn < lives-5 {
		t.Errorf("expires_in is %d, want %d", token.ExpiresIn, lives)
	}
	life := time.Duration(token.ExpiresIn) * time.Second
	if got := token.Expiry.Sub(last.answered); got < life || got > life+5*time.Second {
		t.Errorf("the token expires after %v, want %v", got, life)
	}
	// RFC 6749, section 5.1 wants no-store. zitadel does not say it, and that is no reason to refuse a token.
	if got := last.answer.Get("Cache-Control"); (got == "no-store") != (s.name == oidcProvider) {
		t.Errorf("Cache-Control of the token is %q", got)
	}
	granted, ok := l.events[len(l.events)-1].(auth.Granted)
	if !ok || len(granted.NotGranted) > 0 || !granted.ExpiresAt.Equal(token.Expiry) {
		t.Errorf("the last event is %v", l.events[len(l.events)-1])
	}
	scope, _ := token.Extra("scope").(string)
	for _, got := range [][]string{granted.Scopes, strings.Fields(scope)} {
		slices.Sort(got)
		if !slices.Equal(got, slices.Sorted(slices.Values(scopes))) {
			t.Errorf("the scope is %q, want %q", got, scopes)
		}
	}
}

// wantPolite checks that a login polled a server that lets nobody poll faster than it has said, and was never told to
// slow down.
func wantPolite(t *testing.T, l *login) {
	t.Helper()
	outcomes := strings.Fields(l.outcomes())
	if n := len(outcomes); n < 2 || outcomes[n-1] != "granted" ||
		slices.ContainsFunc(outcomes[:n-1], func(o string) bool { return o != "authorization_pending" }) {
		t.Errorf("the polls came back with %q", outcomes)
	}
	least := slices.Repeat([]time.Duration{paced.Interval}, len(outcomes))
	l.wantWaits(least...)
	l.wire.wantPace(t, least...)
	issued, ok := l.events[0].(auth.CodeIssued)
	if !ok || issued.Interval != paced.Interval {
		t.Errorf("the first event is %v", l.events[0])
	}
	if _, ok := l.events[1].(auth.CodeShown); !ok {
		t.Errorf("the second event is %v", l.events[1])
	}
}

// wantAuthentication checks how the client has authenticated, in each request in the same way: nothing is probed.
func wantAuthentication(t *testing.T, l *login, secret string, style oauth2.AuthStyle) {
	t.Helper()
	for _, x := range append(l.wire.asked(), l.wire.polled()...) {
		basic := strings.HasPrefix(x.header.Get("Authorization"), "Basic ")
		id, inBody := x.form.Get("client_id"), x.form.Get("client_secret")
		switch {
		case secret == "":
			if basic || id == "" || inBody != "" {
				t.Errorf("a public client sent Basic: %v, client_id %q, client_secret %q", basic, id, inBody)
			}
		case style == oauth2.AuthStyleInParams:
			if basic || id == "" || inBody != secret {
				t.Errorf("with the secret in the body: Basic: %v, client_id %q, client_secret %q", basic, id, inBody)
			}
		default:
			if !basic || inBody != "" {
				t.Errorf("with HTTP Basic: Basic: %v, client_secret %q", basic, inBody)
			}
		}
	}
}

func testDenied(t *testing.T, s *server) {
	l := newLogin(t, s.config(publicID, "", 0, scopes...))
	l.decide, l.ready = s.Deny, firstPending
	token, err := l.run()
	wantEnd(t, token, err, auth.ErrAccessDenied, 400, "access_denied")
	if errors.Is(err, auth.ErrRejected) {
		t.Error("the user's no counts as the server's too")
	}
}

// testSlowDown has somebody else poll with the same code just before the login's second poll, which is then too early, as
// the server sees it. A login that gives in is not told again.
func testSlowDown(t *testing.T, s *server) {
	l := newLogin(t, s.config(publicID, "", 0, scopes...))
	l.wire.beforePoll = func(n int, resend func() exchange) {
		if n != 2 {
			return
		}
		if other := resend(); other.member("error") != "authorization_pending" {
			t.Errorf("the other poll was answered by %d %s", other.status, other.body)
		}
	}
	l.decide = s.Approve
	l.ready = func(e auth.Event) bool { _, ok := e.(auth.Slowed); return ok }
	if _, err := l.run(); err != nil {
		t.Fatal(err)
	}
	if got, want := l.outcomes(), "authorization_pending slow_down granted"; got != want {
		t.Errorf("the polls came back with %q, want %q", got, want)
	}
	slowed := paced.Interval + 5*time.Second
	if !slices.Contains(l.events, auth.Event(auth.Slowed{From: paced.Interval, To: slowed})) {
		t.Errorf("no event says that the interval has grown to %v: %v", slowed, l.events)
	}
	l.wantWaits(paced.Interval, paced.Interval, slowed)
	l.wire.wantPace(t, paced.Interval, paced.Interval, slowed)
}

func testScope(t *testing.T, s *server) {
	tests := []struct {
		name       string
		asked      []string
		resource   string
		granted    map[string]string // by server
		notGranted map[string]string
	}{
		{
			// oidc-provider grants the scopes of the resource alone. zitadel knows no resources.
			name: "narrowed by a resource", asked: scopes, resource: oidcprovider.Resource,
			granted:    map[string]string{oidcProvider: "read", zitadelOP: "openid offline_access read"},
			notGranted: map[string]string{oidcProvider: "openid offline_access"},
		},
		{
			// Neither refuses a scope that does not exist: oidc-provider grants the rest, and zitadel grants it.
			name: "unknown", asked: []string{"openid", "bogus"},
			granted:    map[string]string{oidcProvider: "openid", zitadelOP: "openid bogus"},
			notGranted: map[string]string{oidcProvider: "bogus"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLogin(t, s.config(publicID, "", 0, tt.asked...))
			if tt.resource != "" {
				l.flow.Params = url.Values{"resource": {tt.resource}}
				l.flow.TokenParams = l.flow.Params
			}
			l.decide = s.Approve
			token, err := l.run()
			if err != nil {
				t.Fatal(err)
			}
			granted, _ := l.events[len(l.events)-1].(auth.Granted)
			if got, want := strings.Join(granted.Scopes, " "), tt.granted[s.name]; got != want || token.Extra("scope") != want {
				t.Errorf("granted %q, and the token says %q, want %q", got, token.Extra("scope"), want)
			}
			if got, want := strings.Join(granted.NotGranted, " "), tt.notGranted[s.name]; got != want {
				t.Errorf("not granted %q, want %q", got, want)
			}
		})
	}
}
