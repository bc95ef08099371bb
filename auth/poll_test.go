package auth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// TestPoll has each row of the table of what a poll comes back with, in both modes.
func TestPoll(t *testing.T) {
	html := with(plain(502, "<html>"), "Content-Type", "text/html")
	cut := func(a fakes.AuthAnswer) fakes.AuthAnswer { a.ContentLength = 500; return a }
	late := func(a fakes.AuthAnswer, s float64) fakes.AuthAnswer { a.Latency = s; return a }
	wait := func(a fakes.AuthAnswer, s string) fakes.AuthAnswer { return with(a, "Retry-After", s) }
	err400 := func(body string) fakes.AuthAnswer { return raw(400, body) }

	tests := []struct {
		name   string
		polls  []fakes.AuthAnswer // a token follows
		strict bool
		life   int // of the code; 0 is 900

		outcome string // "" is a token
		status  int
		code    string
		waits   []float64
		causes  string
	}{
		{name: "at once", waits: []float64{5}},
		{name: "pending", polls: []fakes.AuthAnswer{pending}, waits: []float64{5, 5}, causes: "authorization_pending"},
		{name: "pending on any 4xx", polls: []fakes.AuthAnswer{
			fakes.OAuthError(401, "authorization_pending"), fakes.OAuthError(403, "authorization_pending"),
			fakes.OAuthError(404, "authorization_pending"), fakes.OAuthError(429, "authorization_pending"),
		}, waits: []float64{5, 5, 5, 5, 5}},
		{name: "pending on any 4xx, strict", strict: true, polls: []fakes.AuthAnswer{
			fakes.OAuthError(403, "authorization_pending"), wait(fakes.OAuthError(429, "authorization_pending"), "60"),
		}, waits: []float64{5, 5, 5}},
		{name: "pending on 200", polls: []fakes.AuthAnswer{fakes.OAuthError(200, "authorization_pending")}, waits: []float64{5, 5}},
		{name: "pending on 200, strict", strict: true, polls: []fakes.AuthAnswer{fakes.OAuthError(200, "authorization_pending")}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "pending on 500", polls: []fakes.AuthAnswer{fakes.OAuthError(500, "authorization_pending")}, outcome: "rejected", status: 500, code: "authorization_pending", waits: []float64{5}},
		{name: "pending on 503", polls: []fakes.AuthAnswer{fakes.OAuthError(503, "authorization_pending")}, waits: []float64{5, 5}, causes: "503 authorization_pending"},
		{name: "pending on 503, strict", strict: true, polls: []fakes.AuthAnswer{fakes.OAuthError(503, "authorization_pending")}, outcome: "rejected", status: 503, code: "authorization_pending", waits: []float64{5}},
		{name: "pending in message", polls: []fakes.AuthAnswer{err400(`{"message":"authorization_pending"}`), err400(`{"error":null,"message":"slow_down"}`)}, waits: []float64{5, 5, 10}},
		{name: "an end in message", polls: []fakes.AuthAnswer{err400(`{"message":"access_denied"}`)}, outcome: "rejected", status: 400, waits: []float64{5}},
		{name: "message beside an error", polls: []fakes.AuthAnswer{err400(`{"error":"invalid_grant","message":"authorization_pending"}`)}, outcome: "rejected", status: 400, code: "invalid_grant", waits: []float64{5}},
		{name: "message beside an error object", polls: []fakes.AuthAnswer{err400(`{"error":{"code":1},"message":"authorization_pending"}`)}, outcome: "rejected", status: 400, waits: []float64{5}},

		{name: "slow_down", polls: []fakes.AuthAnswer{wait(fakes.OAuthError(403, "slow_down"), "60"), pending}, waits: []float64{5, 10, 10}, causes: "slow_down, authorization_pending"},
		{name: "slow_down naming", polls: []fakes.AuthAnswer{
			err400(`{"error":"slow_down","interval":3}`), err400(`{"error":"slow_down","interval":40}`), err400(`{"error":"slow_down","interval":"50"}`),
		}, waits: []float64{5, 10, 40, 50}},
		{name: "slow_down naming nonsense", polls: []fakes.AuthAnswer{
			err400(`{"error":"slow_down","interval":1e100}`), err400(`{"error":"slow_down","interval":-7}`), err400(`{"error":"slow_down","interval":1.5}`),
			err400(`{"error":"slow_down","interval":{}}`), err400(`{"error":"slow_down","interval":""}`), err400(`{"error":"slow_down","interval":null}`),
		}, waits: []float64{5, 10, 15, 20, 25, 30, 35}},
		{name: "slow_down beyond the code's life", life: 60, polls: []fakes.AuthAnswer{err400(`{"error":"slow_down","interval":2147483}`)}, outcome: "expired", waits: []float64{5, 55}},
		{name: "slow_down naming, strict", strict: true, polls: []fakes.AuthAnswer{err400(`{"error":"slow_down","interval":"40"}`), err400(`{"error":"slow_down","interval":50}`)}, waits: []float64{5, 40, 50}},

		{name: "denied", polls: []fakes.AuthAnswer{fakes.OAuthError(403, "access_denied")}, outcome: "access_denied", status: 403, code: "access_denied", waits: []float64{5}},
		{name: "declined", polls: []fakes.AuthAnswer{fakes.OAuthError(400, "authorization_declined")}, outcome: "access_denied", status: 400, code: "authorization_declined", waits: []float64{5}},
		{name: "denied on 200", polls: []fakes.AuthAnswer{fakes.OAuthError(200, "access_denied")}, outcome: "access_denied", status: 200, waits: []float64{5}},
		{name: "denied on 500", polls: []fakes.AuthAnswer{fakes.OAuthError(500, "access_denied")}, outcome: "rejected", status: 500, code: "access_denied", waits: []float64{5}},
		{name: "expired", polls: []fakes.AuthAnswer{fakes.OAuthError(400, "expired_token")}, outcome: "expired", status: 400, code: "expired_token", waits: []float64{5}},

		{name: "throttled", polls: []fakes.AuthAnswer{fakes.Throttle(30), fakes.Throttle(0), fakes.Throttle(2)}, waits: []float64{5, 30, 5, 5}, causes: "429 too_many_requests, 429 too_many_requests, 429 too_many_requests"},
		{name: "throttled, strict", strict: true, polls: []fakes.AuthAnswer{fakes.Throttle(30)}, waits: []float64{5, 30}},
		{name: "throttled with 400", polls: []fakes.AuthAnswer{fakes.OAuthError(400, "too_many_requests")}, outcome: "rejected", status: 400, code: "too_many_requests", waits: []float64{5}},
		{name: "throttled, with a header of no use", polls: []fakes.AuthAnswer{
			wait(fakes.Throttle(0), "Sun, 29 Nov 2026 12:10:00 GMT"), wait(fakes.Throttle(0), "-1"), wait(fakes.Throttle(0), "0"), wait(fakes.Throttle(0), "1.5"),
		}, waits: []float64{5, 5, 5, 5, 5}},
		{name: "another 429", polls: []fakes.AuthAnswer{wait(plain(429, "no"), "12"), fakes.OAuthError(429, "rate_limited"), raw(429, `{"error":{}}`)}, waits: []float64{5, 12, 5, 5}, causes: "429, 429 rate_limited, 429"},
		{name: "another 429, strict", strict: true, polls: []fakes.AuthAnswer{fakes.OAuthError(429, "rate_limited")}, outcome: "rejected", status: 429, code: "rate_limited", waits: []float64{5}},
		{name: "429 with a protocol error", polls: []fakes.AuthAnswer{fakes.OAuthError(429, "invalid_grant")}, outcome: "rejected", status: 429, code: "invalid_grant", waits: []float64{5}},
		{name: "gateways", polls: []fakes.AuthAnswer{html, wait(plain(503, ""), "7"), wait(plain(504, ""), "x"), fakes.OAuthError(503, "invalid_client")}, waits: []float64{5, 5, 7, 5, 5}, causes: "502, 503, 504, 503 invalid_client"},
		{name: "502, strict", strict: true, polls: []fakes.AuthAnswer{html}, outcome: "rejected", status: 502, waits: []float64{5}},
		{name: "503, strict", strict: true, polls: []fakes.AuthAnswer{fakes.OAuthError(503, "too_many_requests")}, outcome: "rejected", status: 503, code: "too_many_requests", waits: []float64{5}},
		{name: "a header does not outlive its wait", polls: []fakes.AuthAnswer{wait(plain(503, ""), "60"), pending, drop, drop, pending}, waits: []float64{5, 60, 5, 10, 20, 5}},

		{name: "dropped", polls: []fakes.AuthAnswer{drop, drop, pending, drop}, waits: []float64{5, 10, 20, 5, 10}, causes: "no answer: the connection was closed, no answer: the connection was closed, authorization_pending, no answer: the connection was closed"},
		{name: "dropped after slow_down", polls: []fakes.AuthAnswer{slowDown, drop, drop, slowDown, drop}, waits: []float64{5, 10, 20, 40, 15, 30}},
		{name: "hanging", polls: []fakes.AuthAnswer{hang}, waits: []float64{5, 10}, causes: "no answer: no answer within 30s"},
		{name: "later than 30 s", polls: []fakes.AuthAnswer{late(tokenAnswer, 31)}, waits: []float64{5, 10}},
		{name: "later than the wait", polls: []fakes.AuthAnswer{late(pending, 20)}, waits: []float64{5, 5}},
		{name: "hanging until the code is dead", life: 20, polls: []fakes.AuthAnswer{hang}, outcome: "expired", waits: []float64{5}},
		{name: "answered when the code is dead", life: 20, polls: []fakes.AuthAnswer{late(tokenAnswer, 16)}, outcome: "expired", waits: []float64{5}},
		{name: "an error without its body", polls: []fakes.AuthAnswer{cut(err400(`{"error":"authoriz`)), cut(err400(`{"error":"authorization_pending"}`))}, waits: []float64{5, 10, 5}, causes: "no answer: the connection was closed, authorization_pending"},
		{name: "a gateway without its body", polls: []fakes.AuthAnswer{wait(cut(plain(502, "<ht")), "9")}, waits: []float64{5, 9}},
		{name: "a server without its body", polls: []fakes.AuthAnswer{cut(plain(500, "<ht"))}, outcome: "rejected", status: 500, waits: []float64{5}},

		{name: "another OAuth error", polls: []fakes.AuthAnswer{fakes.OAuthError(400, "invalid_grant")}, outcome: "rejected", status: 400, code: "invalid_grant", waits: []float64{5}},
		{name: "another OAuth error on 200", polls: []fakes.AuthAnswer{fakes.OAuthError(200, "incorrect_device_code")}, outcome: "rejected", status: 200, code: "incorrect_device_code", waits: []float64{5}},
		{name: "an error object on 200", polls: []fakes.AuthAnswer{raw(200, `{"error":{}}`)}, outcome: "rejected", status: 200, waits: []float64{5}},
		{name: "an error of another type", polls: []fakes.AuthAnswer{err400(`{"error":7}`)}, outcome: "rejected", status: 400, waits: []float64{5}},
		{name: "no error", polls: []fakes.AuthAnswer{err400(`{"error":""}`)}, outcome: "rejected", status: 400, waits: []float64{5}},
		{name: "an array", polls: []fakes.AuthAnswer{err400(`["authorization_pending"]`)}, outcome: "rejected", status: 400, waits: []float64{5}},
		{name: "201 with a token", polls: []fakes.AuthAnswer{{Status: 201, Body: tokenAnswer.Body}}, outcome: "rejected", status: 201, waits: []float64{5}},
		{name: "204", polls: []fakes.AuthAnswer{{Status: 204}}, outcome: "rejected", status: 204, waits: []float64{5}},
		{name: "500", polls: []fakes.AuthAnswer{wait(plain(500, "boom"), "5")}, outcome: "rejected", status: 500, waits: []float64{5}},
		{name: "307", polls: []fakes.AuthAnswer{with(fakes.AuthAnswer{Status: 307}, "Location", "https://evil.test/")}, outcome: "rejected", status: 307, waits: []float64{5}},
		{name: "a redirect to nowhere", polls: []fakes.AuthAnswer{with(fakes.AuthAnswer{Status: 302}, "Location", "http://[bad")}, outcome: "rejected", status: 302, waits: []float64{5}},
		{name: "304", polls: []fakes.AuthAnswer{{Status: 304}}, outcome: "rejected", status: 304, waits: []float64{5}},

		{name: "200 array", polls: []fakes.AuthAnswer{raw(200, `[]`)}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "200 null", polls: []fakes.AuthAnswer{raw(200, `null`)}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "200 empty", polls: []fakes.AuthAnswer{raw(200, ``)}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "200 object without anything", polls: []fakes.AuthAnswer{raw(200, `{}`)}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "200 with an empty error", polls: []fakes.AuthAnswer{raw(200, `{"error":""}`)}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "200 HTML", polls: []fakes.AuthAnswer{plain(200, "<html>")}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "200 with two objects", polls: []fakes.AuthAnswer{raw(200, `{"access_token":"at"}{}`)}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "token that is a number", polls: []fakes.AuthAnswer{raw(200, `{"access_token":7}`)}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "token beside an error", polls: []fakes.AuthAnswer{raw(200, `{"access_token":"at","error":"access_denied"}`)}, waits: []float64{5}},
		{name: "oversized", polls: []fakes.AuthAnswer{{Oversized: true}}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "oversized error", polls: []fakes.AuthAnswer{{Status: 400, Oversized: true}}, outcome: "malformed", status: 400, waits: []float64{5}},
		{name: "cut behind the object", polls: []fakes.AuthAnswer{cut(raw(200, "{\"access_token\":\"at\"}\n"))}, waits: []float64{5}},
		{name: "cut inside the object", polls: []fakes.AuthAnswer{cut(raw(200, `{"access_token":"at"`))}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "cut before the object", polls: []fakes.AuthAnswer{cut(raw(200, ``))}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "form cut", polls: []fakes.AuthAnswer{cut(with(plain(200, "access_token=at"), "Content-Type", "application/x-www-form-urlencoded"))}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "form, strict", strict: true, polls: []fakes.AuthAnswer{with(plain(200, "access_token=at&expires_in=3600&scope="), "Content-Type", "application/x-www-form-urlencoded; charset=utf-8")}, waits: []float64{5}},
		{name: "no form", polls: []fakes.AuthAnswer{with(plain(200, "access_token=%zz"), "Content-Type", "application/x-www-form-urlencoded")}, outcome: "malformed", status: 200, waits: []float64{5}},
		{name: "names are exact", polls: []fakes.AuthAnswer{raw(200, `{"Access_Token":"at"}`)}, outcome: "malformed", status: 200, waits: []float64{5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newRig(t, append(tt.polls, tokenAnswer)...)
				r.flow.Strict = tt.strict
				if tt.life > 0 {
					r.server.Device = lives(tt.life)
				}
				tok, err := r.flow.Login(t.Context())
				want := tt.outcome
				if want == "" {
					want = "token"
				}
				if got := reason(t, tok, err); got != want {
					t.Errorf("outcome %s, want %s: %v", got, want, err)
				}
				if !near(r.waits(), tt.waits) {
					t.Errorf("waits %v, want %v", r.waits(), tt.waits)
				}
				if got := strings.Join(r.causes(), ", "); tt.causes != "" && got != tt.causes {
					t.Errorf("causes %s\nwant   %s", got, tt.causes)
				}
				r.obeyed(t)
				e, _ := errors.AsType[*auth.DeviceError](err)
				if e != nil && tt.status != e.Status || e != nil && tt.code != "" && e.Code != tt.code {
					t.Errorf("status %d code %q, want %d %q", e.Status, e.Code, tt.status, tt.code)
				}
				if e != nil && e.Reason == auth.ErrMalformed && e.Status == 200 && !tt.strict && tt.name != "oversized" && !strings.Contains(err.Error(), "approval was probably spent") {
					t.Errorf("a spent approval is not mentioned: %v", err)
				}
			})
		})
	}
}

func TestPollSendsWhatTheRFCSays(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, pending, tokenAnswer)
		r.flow.Config.Scopes = []string{"a", "b"}
		r.flow.Params = map[string][]string{"audience": {"api"}, "resource": {"https://one", "https://two"}}
		r.flow.TokenParams = map[string][]string{"code_verifier": {"v"}}
		if _, err := r.flow.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.obeyed(t)
		var forms []string
		for _, req := range r.server.Requests() {
			forms = append(forms, req.Form.Encode())
			if req.Header.Get("Accept") != "application/json" || req.Header.Get("Authorization") != "" {
				t.Errorf("header %v", req.Header)
			}
		}
		poll := "client_id=c&code_verifier=v&device_code=canary-device-code&grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code"
		want := []string{"audience=api&client_id=c&resource=https%3A%2F%2Fone&resource=https%3A%2F%2Ftwo&scope=a+b", poll, poll}
		if !slices.Equal(forms, want) {
			t.Errorf("forms %q\nwant  %q", forms, want)
		}
		if len(r.flow.Params) != 2 || len(r.flow.TokenParams) != 1 {
			t.Error("the configuration was changed")
		}
	})
}

// The server asked for 30 s and then does not answer: the header is spent, the backoff starts from the interval.
func TestUnreachableReported(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, fakes.Throttle(30), drop, hang)
		r.server.Device = lives(100)
		_, err := r.flow.Login(t.Context())
		e, ok := errors.AsType[*auth.DeviceError](err)
		if !ok || e.Reason != auth.ErrExpired || e.Err == nil || errors.Is(err, auth.ErrTransport) {
			t.Fatalf("%v", err)
		}
		if want := "auth: the code expired before the login was approved; the last poll got no answer: no answer within 5s; start a new login"; err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		// 30 s of a request are between the last two, and 5 s are left for another.
		if want := []float64{5, 30, 10, 20}; !near(r.waits(), want) {
			t.Errorf("waits %v", r.waits())
		}
		r.obeyed(t)
		var failures []int
		for _, e := range r.events {
			if u, ok := e.(auth.Unreachable); ok {
				failures = append(failures, u.Failures)
			}
		}
		if !slices.Equal(failures, []int{1, 2, 3}) {
			t.Errorf("failures %v", failures)
		}
	})
}

func TestTransportErrors(t *testing.T) {
	t.Run("a port that refuses, and then answers", func(t *testing.T) {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, tokenAnswer)
			r.flow.Config.Endpoint.TokenURL = "https://elsewhere.test" + fakes.TokenPath
			time.AfterFunc(12*time.Second, func() { r.net.Serve(t, "elsewhere.test", r.server) })
			if _, err := r.flow.Login(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !near(r.waits(), []float64{5, 10}) || r.causes()[0] != "no answer: connection refused" {
				t.Errorf("waits %v after %q", r.waits(), r.causes())
			}
		})
	})
	t.Run("a name that is unknown", func(t *testing.T) {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, tokenAnswer)
			r.flow.HTTPClient = failing(r.flow.HTTPClient, fakes.TokenPath, noSuchHost, 2)
			if _, err := r.flow.Login(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !near(r.waits(), []float64{5, 10, 20}) || r.causes()[0] != "no answer: its name was not found" {
				t.Errorf("waits %v after %q", r.waits(), r.causes())
			}
		})
	})
	t.Run("a certificate of nobody's", func(t *testing.T) {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, tokenAnswer)
			other := fakes.NewNetwork(t) // whose authority is another
			other.Serve(t, "as.test", r.server)
			r.flow.HTTPClient = routed(r.flow.HTTPClient, fakes.TokenPath, r.net.Transport(), other)
			_, err := r.flow.Login(t.Context())
			if !errors.Is(err, auth.ErrUnavailable) || errors.Is(err, auth.ErrTransport) || len(r.waits()) != 1 || len(r.polls()) != 0 {
				t.Errorf("%v, after waits %v", err, r.waits())
			}
		})
	})
	t.Run("a certificate for another name", func(t *testing.T) {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, tokenAnswer)
			r.flow.HTTPClient = dialling(r.net, "as.test:443")
			r.flow.Config.Endpoint.DeviceAuthURL = "https://other.test" + fakes.DevicePath
			_, err := r.flow.Login(t.Context())
			if !errors.Is(err, auth.ErrUnavailable) || len(r.server.Requests()) != 0 {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("a policy", func(t *testing.T) {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, tokenAnswer)
			r.flow.HTTPClient = failing(r.flow.HTTPClient, fakes.TokenPath, policyError{}, 1)
			_, err := r.flow.Login(t.Context())
			if !errors.Is(err, auth.ErrUnavailable) || !errors.Is(err, policyError{}) || len(r.waits()) != 1 {
				t.Errorf("%v, after waits %v", err, r.waits())
			}
		})
	})
}

// Each failure has a text of ours, whatever its own says, and can still be asked about.
func TestFailureTexts(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
		why  auth.Reason
	}{
		{noSuchHost, "its name was not found", auth.ErrTransport},
		{&net.DNSError{Err: "canary", IsTemporary: true}, "its name could not be resolved", auth.ErrTransport},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "connection reset by peer", auth.ErrTransport},
		{os.ErrDeadlineExceeded, "timed out", auth.ErrTransport},
		{tls.AlertError(40), "tls: handshake failure", auth.ErrTransport},
		{tls.RecordHeaderError{Msg: "canary"}, "it does not speak TLS", auth.ErrTransport},
		{io.EOF, "the connection was closed", auth.ErrTransport},
		{context.DeadlineExceeded, "timed out", auth.ErrTransport},
		{errors.New("canary"), "the connection failed", auth.ErrTransport},
		{x509.UnknownAuthorityError{}, "its certificate was issued by nobody that this machine trusts", auth.ErrUnavailable},
		{x509.CertificateInvalidError{Reason: x509.Expired}, "its certificate has expired or is not valid yet", auth.ErrUnavailable},
		{x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}, "its certificate does not verify", auth.ErrUnavailable},
		{&tls.CertificateVerificationError{Err: errors.New("canary")}, "its certificate does not verify", auth.ErrUnavailable},
		{policyError{}, "a policy refuses its address", auth.ErrUnavailable},
	} {
		wrapped := fmt.Errorf("canary: %w", tt.err)
		_, err := flowWith(failing(nil, fakes.DevicePath, wrapped, 1)).Start(t.Context())
		e, _ := errors.AsType[*auth.DeviceError](err)
		if e == nil || e.Reason != tt.why || e.Err.Error() != tt.want {
			t.Errorf("%v: %v", tt.err, err)
		}
		if !errors.Is(err, wrapped) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: cannot be told, or is taken for the caller's", err)
		}
	}
}

// A transport that forgets the body, or the response, is no reason to panic.
func TestTransportWithoutContract(t *testing.T) {
	for _, tt := range []struct {
		res  *http.Response
		want auth.Reason
		code auth.DiscoveryReason
	}{
		{nil, auth.ErrTransport, auth.ErrUnreachable},
		{&http.Response{StatusCode: 200}, auth.ErrMalformed, auth.ErrInvalidMetadata},
		{&http.Response{StatusCode: 503}, auth.ErrRejected, auth.ErrNoMetadata},
	} {
		client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return tt.res, nil })}
		if _, err := flowWith(client).Start(t.Context()); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v", tt.res, err)
		}
		if _, err := (&auth.Discovery{HTTPClient: client}).Issuer(t.Context(), "https://as.test"); !errors.Is(err, tt.code) {
			t.Errorf("%+v: %v", tt.res, err)
		}
	}
}

// A redirect is no OAuth error, whatever it says: it must not send the user after another mistake.
func TestRedirectIsNoOAuthError(t *testing.T) {
	redirect := with(raw(302, `{"error":"invalid_client","error_description":"canary"}`), "Location", "https://evil.test/")
	for _, ask := range []bool{true, false} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, redirect)
			if ask {
				r.server.Device = &redirect
			}
			_, err := r.flow.Login(t.Context())
			e, ok := errors.AsType[*auth.DeviceError](err)
			if !ok || e.Reason != auth.ErrRejected || e.Status != 302 || e.Code != "" || e.Description != "" || !strings.Contains(err.Error(), "redirects are not followed") {
				t.Errorf("%v", err)
			}
		})
	}
}
