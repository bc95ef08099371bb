package interop_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

// refusal is how a server refuses.
type refusal struct {
	status int
	code   string
}

// testRejected has logins that a server refuses. It says so in words of its own, and the error has them as they are.
func testRejected(t *testing.T, s *server) {
	tests := []struct {
		name       string
		id, secret string
		style      oauth2.AuthStyle
		resource   string
		want       map[string]refusal // by server; none where the server does not refuse
		late       string             // the server that gives a code and refuses when it is used
	}{
		{
			name: "unknown client", id: "nobody",
			want: map[string]refusal{oidcProvider: {401, "invalid_client"}, zitadelOP: {500, "server_error"}},
		},
		{
			name: "unknown client with a secret", id: "nobody", secret: "guess",
			want: map[string]refusal{oidcProvider: {401, "invalid_client"}, zitadelOP: {400, "unauthorized_client"}},
		},
		{
			name: "bad secret", id: confidentialID, secret: "guess",
			want: map[string]refusal{oidcProvider: {401, "invalid_client"}, zitadelOP: {400, "unauthorized_client"}},
		},
		{
			name: "no secret", id: confidentialID,
			want: map[string]refusal{oidcProvider: {401, "invalid_client"}, zitadelOP: {401, "invalid_client"}}, late: zitadelOP,
		},
		{
			name: "secret in the body", id: confidentialID, secret: confidentialSecret, style: oauth2.AuthStyleInParams,
			want: map[string]refusal{zitadelOP: {401, "invalid_client"}}, late: zitadelOP,
		},
		{
			name: "unknown resource", id: publicID, resource: "urn:example:nothing",
			want: map[string]refusal{oidcProvider: {400, "invalid_target"}},
		},
	}
	for _, tt := range tests {
		want, ok := tt.want[s.name]
		if !ok {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLogin(t, s.config(tt.id, tt.secret, tt.style, scopes...))
			if tt.resource != "" {
				l.flow.Params = url.Values{"resource": {tt.resource}}
			}
			l.decide = s.Approve
			token, err := l.run()
			wantEnd(t, token, err, auth.ErrRejected, want.status, want.code)
			if asked, polls := len(l.wire.asked()), len(l.wire.polled()); asked != 1 || polls > 0 != (tt.late == s.name) {
				t.Errorf("%d requests for a code and %d polls", asked, polls)
			}
		})
	}
}

const deviceTTL = 4 * time.Second

// TestShortLived runs against servers whose codes live for four seconds.
func TestShortLived(t *testing.T) {
	servedBy{
		{"expired", testExpired},
		{"approved too late", testTooLate},
	}.onEach(t, pace{DeviceTTL: deviceTTL, Interval: time.Second})
}

// testExpired lets a code die. No poll is sent for a dead code, so mostly it is the login's own clock that says so.
func testExpired(t *testing.T, s *server) {
	l := newLogin(t, s.config(publicID, "", 0, scopes...))
	began := time.Now()
	token, err := l.run()
	took := time.Since(began)
	if token != nil || !errors.Is(err, auth.ErrExpired) {
		t.Fatalf("the login ended with token %v and error %v", token != nil, err)
	}
	e, _ := errors.AsType[*auth.DeviceError](err)
	switch {
	case e.Status == 0 && e.Code == "":
		if took < deviceTTL {
			t.Errorf("given up after %v of %v", took, deviceTTL)
		}
	// oidc-provider counts in whole seconds of the wall clock, so that a code can live for almost a second less.
	case s.name == oidcProvider && e.Status == 400 && e.Code == "expired_token":
	default:
		t.Errorf("%d %q: %v", e.Status, e.Code, err)
	}
	for outcome := range strings.FieldsSeq(l.outcomes()) {
		if outcome != "authorization_pending" && outcome != "expired_token" {
			t.Errorf("the polls came back with %q", l.outcomes())
		}
	}
}

// testTooLate approves a code, and polls for the first time when it is dead at the server and not yet here: then it has
// expired, although the user has said yes. That is oidc-provider's; to zitadel a code dies when it has said so.
func testTooLate(t *testing.T, s *server) {
	if s.name != oidcProvider {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 5 {
		l := newLogin(t, s.config(publicID, "", 0, scopes...))
		p, issued := startLate(ctx, t, l)
		// From the approval on, the server remembers a dead code for as long as the second of the approval was old.
		time.Sleep(time.Until(issued.Truncate(time.Second).Add(1600 * time.Millisecond)))
		if err := s.Approve(ctx, p.VerificationURIComplete, p.UserCode); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(issued.Add(2400 * time.Millisecond)))
		token, err := p.Poll(ctx) // the first poll comes one interval later
		l.wantNoLeak(err)
		polls := l.wire.polled()
		switch {
		case len(polls) == 0: // on a machine so busy that the code has died here as well
		case polls[0].member("error") == "invalid_grant": // or that the server has forgotten it
			wantEnd(t, token, err, auth.ErrRejected, 400, "invalid_grant")
		default:
			wantEnd(t, token, err, auth.ErrExpired, 400, "expired_token")
			return
		}
	}
	t.Error("never in time for the poll")
}

// startLate starts a login in the last third of a second. oidc-provider cuts the moment down to the whole second, so that
// the code is dead after 3.3 s there, and after 4 s here.
func startLate(ctx context.Context, t *testing.T, l *login) (p *auth.Pending, issued time.Time) {
	t.Helper()
	for range 20 {
		second := time.Now().Truncate(time.Second).Add(time.Second)
		time.Sleep(time.Until(second.Add(700 * time.Millisecond)))
		p, err := l.flow.Start(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if issued = time.Now(); issued.Truncate(time.Second).Equal(second) {
			return p, issued
		}
	}
	t.Fatal("the server needs more than 300 ms for a code, twenty times in a row")
	return nil, time.Time{}
}

// TestUnpaced runs against servers with the times that they have by themselves. oidc-provider names no interval, which
// means five seconds (RFC 8628, section 3.2); zitadel names as many.
func TestUnpaced(t *testing.T) {
	servedBy{
		{"interval", testInterval},
		{"spent by somebody else", testSpent},
	}.onEach(t, pace{})
}

func testInterval(t *testing.T, s *server) {
	l := newLogin(t, s.config(publicID, "", 0, scopes...))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l.flow.OnEvent = func(e auth.Event) {
		l.events = append(l.events, e)
		if _, ok := e.(auth.Waiting); ok {
			cancel()
		}
	}
	p, err := l.flow.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	body := string(l.wire.asked()[0].body)
	if named := strings.Contains(body, `"interval"`); named != (s.name == zitadelOP) || p.Interval != 5*time.Second {
		t.Errorf("the interval is %v, and the server names one: %v", p.Interval, named)
	}
	token, err := p.Poll(ctx)
	if token != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, and it ended with %v", err)
	}
	if _, ok := errors.AsType[*auth.DeviceError](err); ok {
		t.Errorf("the caller's end is told like one of the server's: %v", err)
	}
	l.wantWaits(5 * time.Second)
	if n := len(l.wire.polled()); n != 0 {
		t.Errorf("%d polls after the end", n)
	}
}

// testSpent has somebody else who knows the code fetch the token first. The RFC's answer to a code that is spent is
// invalid_grant; from zitadel it cannot be told from the user's no.
func testSpent(t *testing.T, s *server) {
	l := newLogin(t, s.config(publicID, "", 0, scopes...))
	l.decide = s.Approve
	l.wire.beforePoll = func(_ int, resend func() exchange) {
		other := resend()
		if other.member("access_token") == "" {
			t.Errorf("the other poll was answered by %d %s", other.status, other.body)
		}
	}
	token, err := l.run()
	if s.name == oidcProvider {
		wantEnd(t, token, err, auth.ErrRejected, 400, "invalid_grant")
	} else {
		wantEnd(t, token, err, auth.ErrAccessDenied, 400, "access_denied")
	}
}
