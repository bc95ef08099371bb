package auth_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestEvents(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		granted := fakes.AuthJSON(200, map[string]any{"access_token": "canary-access", "expires_in": 60, "scope": "a"})
		r := newRig(t, pending, slowDown, fakes.Throttle(30), drop, drop, granted)
		r.flow.Config.Scopes = []string{"a", "b"}
		var log bytes.Buffer
		r.flow.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		if _, err := r.flow.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, e := range r.events {
			fmt.Fprintf(&got, "%s: %s\n", e.Name(), e)
		}
		want := `code_issued: code WDJB-MJHT issued for https://as.test/device, polling every 5s
code_shown: code shown, 15m0s left
waiting: device-poll: wait 5s, local 5s: a poll: the server's interval
polled: poll 1: authorization_pending
waiting: device-poll attempt 1 (authorization_pending): wait 5s, local 5s: a poll: the server's interval
polled: poll 2: slow_down
slowed: the server slowed the polling down from 5s to 10s
waiting: device-poll attempt 2 (slow_down): wait 10s, local 10s: a poll: slow_down lengthened the interval for good
polled: poll 3: 429 too_many_requests
throttled: the server refused to serve the poll (status 429), Retry-After 30s
waiting: device-poll attempt 3 (429 too_many_requests): wait 30s, local 10s, server 30s: Retry-After is longer than the local delay
polled: poll 4: no answer: the connection was closed
unreachable: the server gave no answer: the connection was closed
waiting: device-poll attempt 4 (no answer: the connection was closed): wait 20s, local 20s: no answer, so no header: the timeout backoff
polled: poll 5: no answer: the connection was closed
unreachable: the server gave no answer, 2 times in a row: the connection was closed
waiting: device-poll attempt 5 (no answer: the connection was closed): wait 40s, local 40s: no answer, so no header: the timeout backoff
polled: poll 6: granted
granted: login granted with a, but not b
`
		if got.String() != want {
			t.Errorf("%s", got.String())
		}
		for _, line := range []string{
			`level=INFO msg="auth: code_issued" verification_uri=https://as.test/device expires_at=2026-11-29T12:15:00.000Z interval=5s`,
			`level=DEBUG msg="auth: waiting" loop=device-poll cause="429 too_many_requests" wait=30s local=10s server=30s reason="Retry-After is longer than the local delay" until=2026-11-29T12:00:50.000Z`,
			`level=WARN msg="auth: unreachable" failures=2 cause="the connection was closed"`,
			`level=INFO msg="auth: granted" scopes=[a] not_granted=[b] expires_at=2026-11-29T12:02:50.000Z`,
		} {
			if !strings.Contains(log.String(), line+"\n") {
				t.Errorf("the log lacks %s", line)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != len(r.events) {
			t.Errorf("%d lines for %d events", n, len(r.events))
		}
		if strings.Contains(log.String(), "WDJB-MJHT") {
			t.Error("the log has the user code, with which its reader could approve the login")
		}
	})
}

func TestScopesNotGranted(t *testing.T) {
	for _, tt := range []struct {
		asked, scope    string
		granted, missed string
	}{
		{"a b", ``, "[a b]", "[]"},
		{"a b", `,"scope":null`, "[a b]", "[]"},
		{"a b", `,"scope":""`, "[]", "[a b]"},
		{"a b", `,"scope":"b a c"`, "[b a c]", "[]"},
		{"a b", `,"scope":"a"`, "[a]", "[b]"},
		{"a b", `,"scope":["b"]`, "[b]", "[a]"},
		{"a b", `,"scope":"a,b"`, "[a,b]", "[]"},
		{"a,b", `,"scope":"a,b"`, "[a,b]", "[]"},
		{"", `,"scope":"a"`, "[a]", "[]"},
	} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, raw(200, `{"access_token":"at"`+tt.scope+`}`))
			r.flow.Config.Scopes = strings.Fields(tt.asked)
			if _, err := r.flow.Login(t.Context()); err != nil {
				t.Fatal(err)
			}
			g, ok := r.events[len(r.events)-1].(auth.Granted)
			if got, missed := fmt.Sprint(g.Scopes), fmt.Sprint(g.NotGranted); !ok || got != tt.granted || missed != tt.missed {
				t.Errorf("asked for %q, got %s: granted %s, missed %s", tt.asked, tt.scope, got, missed)
			}
		})
	}
}

// Outside a bubble, on a clock that stands still: the test awaits each timer by its kind.
func TestInjectedClock(t *testing.T) {
	clk := fakes.NewClock(noon)
	polls := 0
	flow := flowWith(&http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		body := deviceWith(map[string]string{"interval": "3600"})
		if req.URL.Path == fakes.TokenPath {
			polls++
			body = `{"access_token":"at","expires_in":"60"}`
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})})
	flow.Clock = clk
	flow.HTTPClient.Timeout = time.Nanosecond // which is not used
	p, err := flow.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !p.ExpiresAt.Equal(noon.Add(15 * time.Minute)) {
		t.Errorf("expires at %v", p.ExpiresAt)
	}

	// The interval is longer than the code lives.
	done := make(chan error)
	go func() { _, err := p.Poll(t.Context()); done <- err }()
	timers, err := clk.Await(t.Context(), delay.KindDevicePoll)
	if err != nil || timers[0].Delay() != 15*time.Minute {
		t.Fatalf("%v, %v", timers, err)
	}
	clk.Advance(15 * time.Minute)
	if err := <-done; polls != 0 || err == nil || err.Error() != "auth: the code expired before the login was approved; start a new login" {
		t.Errorf("%v after %d polls", err, polls)
	}

	flow.Prompter = auth.PrompterFunc(func(context.Context, auth.Prompt) error { return nil })
	tokens := make(chan *oauth2.Token)
	flow.HTTPClient.Transport = answeringInTurn(deviceWith(nil), `{"access_token":"at","expires_in":"60"}`)
	go func() {
		tok, err := flow.Login(t.Context())
		if err != nil {
			t.Error(err)
		}
		tokens <- tok
	}()
	if _, err := clk.Await(t.Context(), delay.KindDevicePoll); err != nil {
		t.Fatal(err)
	}
	clk.Advance(5 * time.Second)
	tok := <-tokens
	if want := noon.Add(15*time.Minute + 65*time.Second); tok == nil || !tok.Expiry.Equal(want) {
		t.Errorf("%+v", tok)
	}
	if armed := clk.Armed(); len(armed) > 0 {
		t.Errorf("armed afterwards: %v", armed)
	}
}

// answeringInTurn answers each request with the next body.
func answeringInTurn(bodies ...string) http.RoundTripper {
	return roundTripper(func(*http.Request) (*http.Response, error) {
		body := bodies[0]
		bodies = bodies[1:]
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
}

func TestTokenExtra(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, raw(200, `{"access_token":"at","token_type":"bearer","refresh_token":null,"id_token":"x.y.z","scope":["a","b"],"resource":"https://api","n":1e400,"expires_in":3600.0,"list":[1]}`))
		tok, err := r.flow.Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%v %v %v %v %v %v %v %q", tok.Extra("id_token"), tok.Extra("scope"), tok.Extra("resource"), tok.Extra("n"), tok.Extra("expires_in"), tok.Extra("list"), tok.Extra("none"), tok.RefreshToken)
		if want := `x.y.z a b https://api 1e400 3600 [1] <nil> ""`; got != want {
			t.Errorf("%s", got)
		}
		if tok.TokenType != "bearer" || tok.Type() != "Bearer" || tok.ExpiresIn != 3600 || !tok.Expiry.Equal(noon.Add(5*time.Second+time.Hour)) {
			t.Errorf("%+v", tok)
		}
	})
}

func TestTokenFields(t *testing.T) {
	const ok, malformed = "ok", "malformed"
	for member, want := range map[string][2]string{ // in either mode
		``:                              {ok, ok},
		`"token_type":""`:               {malformed, malformed},
		`"token_type":7`:                {malformed, malformed},
		`"token_type":"DPoP"`:           {ok, ok},
		`"refresh_token":7`:             {malformed, malformed},
		`"refresh_token":""`:            {ok, ok},
		`"scope":7`:                     {malformed, malformed},
		`"scope":["a"]`:                 {ok, malformed},
		`"scope":["a",7]`:               {malformed, malformed},
		`"scope":["a",null]`:            {malformed, malformed},
		`"scope":{}`:                    {malformed, malformed},
		`"scope":[]`:                    {ok, malformed},
		`"resource":""`:                 {malformed, malformed},
		`"resource":["a"]`:              {malformed, malformed},
		`"resource":null`:               {ok, ok},
		`"expires_in":null`:             {ok, ok},
		`"expires_in":0`:                {ok, malformed},
		`"expires_in":0.0`:              {ok, malformed},
		`"expires_in":"0"`:              {ok, malformed},
		`"expires_in":""`:               {malformed, malformed},
		`"expires_in":"3600"`:           {ok, malformed},
		`"expires_in":"3600.0"`:         {ok, malformed},
		`"expires_in":3600.0`:           {ok, ok},
		`"expires_in":36e2`:             {ok, ok},
		`"expires_in":2147483647`:       {ok, ok},
		`"expires_in":2147483648`:       {malformed, malformed},
		`"expires_in":1e400`:            {malformed, malformed},
		`"expires_in":"NaN"`:            {malformed, malformed},
		`"expires_in":1.5`:              {malformed, malformed},
		`"expires_in":true`:             {malformed, malformed},
		`"expires_in":[3600]`:           {malformed, malformed},
		`"access_token":"second"`:       {ok, ok},
		`"error":null`:                  {ok, ok},
		`"id_token":7,"other":{"a":[]}`: {ok, ok},
	} {
		for i, strict := range []bool{false, true} {
			body := `{"access_token":"at"}`
			if member != "" {
				body = `{"access_token":"at",` + member + `}`
			}
			tok, _, err := auth.Judge(200, "application/json", []byte(body), false, strict, noon, "")
			got := ok
			if err != nil {
				got = string(err.Reason)
			}
			if got != want[i] || (tok == nil) != (got != ok) {
				t.Errorf("%s, strict %v: %s, want %s: %v", member, strict, got, want[i], err)
			}
		}
	}
}

// Scopes are the server's words, and nothing that is told in a line steers a terminal.
func TestGrantedInALine(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, raw(200, `{"access_token":"at","scope":"a\u001b[2J b\u202e\u009b1A\rc"}`))
		if _, err := r.flow.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.events[len(r.events)-1].String(); got != "login granted with a[2J b1A c" {
			t.Errorf("%q", got)
		}
	})
}
