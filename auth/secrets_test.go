package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// canaries are parts of every secret of newRig's logins and of what these tests add.
var canaries = []string{"canary", "Y2FuYXJ5"} // and the beginning of it in base64

// spill is everything that a login printed, in every way there is to print.
type spill struct{ bytes.Buffer }

func (s *spill) add(values ...any) {
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			fmt.Fprintf(s, verb+"\n", v)
		}
		if b, err := json.Marshal(v); err == nil {
			s.Write(b)
		}
		slog.New(slog.NewJSONHandler(s, nil)).Info("any", "v", v)
		slog.New(slog.NewTextHandler(s, nil)).Info("any", "v", v)
	}
}

// chain adds an error and everything it unwraps to.
func (s *spill) chain(err error) {
	if err == nil {
		return
	}
	s.add(err)
	switch e := any(err).(type) { // this one itself, then what it wraps
	case interface{ Unwrap() error }:
		s.chain(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			s.chain(inner)
		}
	}
}

// TestNothingLeaks runs every way a login can go with marked secrets, against servers that echo them wherever they can,
// and looks for the marks in everything printed.
func TestNothingLeaks(t *testing.T) {
	echo := `"error_description":"no canary-device-code here, nor canary-secret\u200b, ca\u0000nary-device-code, Canary, canary%2Ddevice%2Dcode https://as.test/?t=canary-query"`
	echo = strings.Replace(echo, ", Canary, canary%2Ddevice%2Dcode", "", 1) // other spellings are other texts
	polls := map[string]fakes.AuthAnswer{
		"token":        tokenAnswer,
		"denied":       raw(400, `{"error":"access_denied",`+echo+`}`),
		"expired":      raw(400, `{"error":"expired_token",`+echo+`}`),
		"rejected":     raw(400, `{"error":"canary-device-code",`+echo+`}`),
		"object":       raw(400, `{"error":{"message":"canary-device-code"}}`),
		"message":      raw(400, `{"message":"invalid device code canary-device-code"}`),
		"201":          raw(201, `{"access_token":"canary-new-access","error":"canary-new-access","error_description":"canary-new-access canary-device-code"}`),
		"throttled":    raw(429, `{"error":"canary-device-code",`+echo+`}`),
		"malformed":    raw(200, `{"access_token":"canary-access","expires_in":"canary"}`),
		"cut":          {RawBody: new(`{"access_token":"canary-access`), ContentLength: 500},
		"html":         plain(200, "canary-device-code"),
		"header":       with(plain(503, ""), "Retry-After", "canary"),
		"redirect":     with(fakes.AuthAnswer{Status: 302}, "Location", "https://evil.test/?code=canary-device-code"),
		"drop":         drop,
		"slow":         slowDown,
		"no HTTP":      {},
		"an old error": {},
	}
	for name, answer := range polls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fakes.Bubble(t, noon, func(t *testing.T) {
				out := &spill{}
				r := newRig(t, pending, answer)
				r.server.Device = lives(60)
				r.server.ClientSecret = "canary-secret"
				r.flow.Config.ClientSecret = "canary-secret"
				r.flow.Config.Endpoint.TokenURL += "?tenant=canary-query"
				r.flow.Config.Endpoint.DeviceAuthURL += "?tenant=canary-query"
				r.flow.TokenParams = url.Values{"code_verifier": {"canary-verifier"}}
				r.flow.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
				r.flow.OnEvent = func(e auth.Event) { out.add(e) }
				switch name {
				case "no HTTP":
					l, err := r.net.Listen("speaks.test:80")
					if err != nil {
						t.Fatal(err)
					}
					go func() {
						for {
							c, err := l.Accept()
							if err != nil {
								return
							}
							io.WriteString(c, "canary-access without HTTP\r\n\r\n")
							c.Close()
						}
					}()
					transport := r.net.Transport()
					next := r.flow.HTTPClient.Transport
					r.flow.HTTPClient = &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
						if req.URL.Path == fakes.TokenPath {
							req = req.Clone(req.Context())
							req.URL.Scheme, req.URL.Host = "http", "speaks.test"
							return transport.RoundTrip(req)
						}
						return next.RoundTrip(req)
					})}
				case "an old error":
					leak := &url.Error{Op: "Post", URL: "https://as.test/?code=canary-device-code", Err: errors.New("canary-access")}
					r.flow.HTTPClient = failing(r.flow.HTTPClient, fakes.TokenPath, fmt.Errorf("canary-device-code: %w", leak), 100)
				}
				p, err := r.flow.Start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				out.add(p, *p, p.Prompt(), r.flow, *r.flow, struct{ P *auth.Pending }{p}, []any{*p})
				tok, err := p.Poll(t.Context())
				out.chain(err)
				out.add(p, *p)
				_, err = p.Poll(t.Context()) // what is left of a login that is over
				out.chain(err)
				if name == "token" && (tok == nil || tok.AccessToken != "canary-access") {
					t.Error("no token, so nothing could leak")
				}
				if !strings.Contains(out.String(), "auth: polled") {
					t.Error("nothing was printed")
				}
				for _, canary := range canaries {
					for line := range strings.Lines(out.String()) {
						if strings.Contains(line, canary) {
							t.Errorf("leaked: %s", line)
						}
					}
				}
			})
		})
	}
}

// What the first request is told must not show either.
func TestNothingLeaksAtFirst(t *testing.T) {
	for _, answer := range []string{
		`{"error":"invalid_client","error_description":"canary-secret is wrong for canary-challenge-not"}`,
		`{"device_code":"canary-device-code","user_code":"canary-bad code","verification_uri":"https://as.test","expires_in":900}`,
		`{"device_code":"canary-device-code","user_code":"A","verification_uri":"ftp://canary","expires_in":900}`,
		`{"error":"x","device_code":"canary-device-code","error_description":"canary-device-code"}`,
	} {
		out := &spill{}
		flow := flowWith(answering(400, "application/json", strings.Replace(answer, "canary-challenge-not", "", 1)))
		if !strings.Contains(answer, "error") {
			flow.HTTPClient = answering(200, "application/json", answer)
		}
		flow.Config.ClientSecret = "canary-secret"
		_, err := flow.Start(t.Context())
		if err == nil {
			t.Error("it started")
		}
		out.chain(err)
		for _, canary := range canaries {
			if strings.Contains(out.String(), canary) {
				t.Errorf("leaked: %s", out.String())
			}
		}
	}
}

// What the server writes reaches an error as one short, printable line.
func TestDescriptionsAreCleaned(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for body, want := range map[string]string{
		`{"error":"e","error_description":"one\ntwo\u001b[31m\u202e three\u0000"}`:   "one two[31m three",
		`{"error":"e","error_description":"` + long + `"}`:                           long[:200] + "…",
		`{"error":"e","error_description":"see https://as.test/help?a=1#b, please"}`: "see https://as.test/help please",
		`{"error":"e","error_description":7,"message":"m"}`:                          "m",
		`{"error":{"message":"of an object"}}`:                                       "of an object",
		`{"error":"e"}`:                                                              "",
	} {
		_, err := flowWith(answering(400, "application/json", body)).Start(t.Context())
		e, _ := errors.AsType[*auth.DeviceError](err)
		if e == nil || e.Description != want {
			t.Errorf("%.60s: %v", body, err)
		}
	}
	_, err := flowWith(answering(400, "application/json", `{"error":"a\u001b]0;\nb`+long+`"}`)).Start(t.Context())
	if e, _ := errors.AsType[*auth.DeviceError](err); e == nil || len(e.Code) > 210 || strings.ContainsAny(e.Code, "\n\x1b") {
		t.Errorf("%q", err)
	}
}

func TestErrorTexts(t *testing.T) {
	for want, e := range map[string]*auth.DeviceError{
		"auth: the login was declined (400 access_denied); start again to be asked once more":                                                                                          {Reason: auth.ErrAccessDenied, Status: 400, Code: "access_denied"},
		"auth: the code expired before the login was approved; start a new login":                                                                                                      {Reason: auth.ErrExpired},
		`auth: the authorization server rejected the login (401 invalid_client): "who?"; check the client id and secret, and that the device grant is enabled for the client`:          {Reason: auth.ErrRejected, Status: 401, Code: "invalid_client", Description: "who?"},
		"auth: the authorization server rejected the login (status 404); check the endpoint's address":                                                                                 {Reason: auth.ErrRejected, Status: 404},
		"auth: the authorization server rejected the login (status 500); try again later":                                                                                              {Reason: auth.ErrRejected, Status: 500},
		"auth: the authorization server rejected the login (status 503); try again in 1m0s":                                                                                            {Reason: auth.ErrRejected, Status: 503, RetryAfter: 60e9},
		"auth: the authorization server could not be reached: connection refused; check the connection and try again":                                                                  {Reason: auth.ErrTransport, Err: errors.New("connection refused")},
		"auth: the authorization server's answer cannot be used (status 200): expires_in is negative; start a new login, and tell the server's operator if it happens again":           {Reason: auth.ErrMalformed, Status: 200, Err: errors.New("expires_in is negative")},
		"auth: the authorization server is not to be trusted or used: its certificate is for another name; check the endpoint's address and the certificates that this machine trusts": {Reason: auth.ErrUnavailable, Err: errors.New("its certificate is for another name")},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// A DeviceError says how long the server wants to be left alone, in seconds or by date: nobody sleeps on it.
func TestRetryAfterIsShown(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		for value, want := range map[string]float64{"120": 120, "Sun, 29 Nov 2026 12:01:00 GMT": 60, "soon": 0} {
			r := newRig(t, tokenAnswer)
			a := with(plain(503, ""), "Retry-After", value)
			r.server.Device = &a
			_, err := r.flow.Login(context.WithoutCancel(t.Context()))
			if e, _ := errors.AsType[*auth.DeviceError](err); e == nil || e.RetryAfter.Seconds() != want {
				t.Errorf("%s: %v", value, err)
			}
			r.net.Close()
		}
	})
}

//go:fix inline

// An endpoint with credentials in it is refused, and shows them no more than the refusal does.
func TestEndpointWithCredentials(t *testing.T) {
	for _, endpoint := range []string{
		"https://u:canary@as.test/token", "https://canary@as.test", "https://u:canary?@as.test/", "https://u:can\x7fary@as.test/", "u:canary@as.test",
	} {
		flow := flowWith(nil)
		flow.Config.Endpoint.TokenURL, flow.Config.Endpoint.DeviceAuthURL = endpoint, endpoint
		out := &spill{}
		for _, v := range []any{flow, auth.Refresher{Config: flow.Config}, auth.Revoker{Config: flow.Config, URL: endpoint}} {
			fmt.Fprintf(out, "%v %+v %#v\n", v, v, v)
		}
		err := flow.Validate()
		out.chain(err)
		if _, ok := errors.AsType[*auth.ConfigError](err); !ok || strings.Contains(out.String(), "canary") || strings.Contains(out.String(), "can\x7fary") {
			t.Errorf("%q: %s", endpoint, out.String())
		}
	}
}

// A server may choose secrets that are in the mark that replaces a secret: nothing grows by that.
func TestSecretsInTheMark(t *testing.T) {
	body := `{"error":"server_error","error_description":"an e","access_token":"e","refresh_token":"d","id_token":"r"}`
	_, _, err := auth.Judge(400, "application/json", []byte(body), false, false, noon, "c")
	if err == nil || err.Description != "an [redacted]" {
		t.Errorf("%v", err)
	}
}
