package auth_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// answering is a client whose every request gets the same answer, at once.
func answering(status int, contentType, body string) *http.Client {
	return &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})}
}

func flowWith(c *http.Client) *auth.DeviceFlow {
	return &auth.DeviceFlow{
		Config: oauth2.Config{ClientID: "c", Endpoint: oauth2.Endpoint{
			DeviceAuthURL: "https://as.test" + fakes.DevicePath, TokenURL: "https://as.test" + fakes.TokenPath,
		}},
		HTTPClient: c,
	}
}

// deviceWith is a device authorization response with members replaced, or taken out when the value is "".
func deviceWith(members map[string]string) string {
	all := map[string]string{
		"device_code": `"dc"`, "user_code": `"AB-CD"`, "verification_uri": `"https://as.test/device"`, "expires_in": `900`, "interval": `5`,
	}
	maps.Copy(all, members)
	var parts []string
	for name, value := range all {
		if value != "" {
			parts = append(parts, `"`+name+`":`+value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestDeviceAnswer(t *testing.T) {
	const malformed = "malformed"
	type m = map[string]string
	tests := []struct {
		name    string
		members m
		normal  string // malformed, or the interval
		strict  string
	}{
		{"ordinary", nil, "5s", "5s"},
		{"no device code", m{"device_code": ""}, malformed, malformed},
		{"null device code", m{"device_code": "null"}, malformed, malformed},
		{"device code a number", m{"device_code": "7"}, malformed, malformed},
		{"no user code", m{"user_code": ""}, malformed, malformed},
		{"empty user code", m{"user_code": `""`}, malformed, malformed},
		{"user code an array", m{"user_code": `["A"]`}, malformed, malformed},
		{"user code with a space", m{"user_code": `"AB CD"`}, malformed, malformed},
		{"user code with a line feed", m{"user_code": `"AB\nCD"`}, malformed, malformed},
		{"user code with an NBSP", m{"user_code": `"AB\u00a0CD"`}, malformed, malformed},
		{"user code turned round", m{"user_code": `"AB\u202eCD"`}, malformed, malformed},
		{"user code isolated", m{"user_code": `"AB\u2066CD"`}, malformed, malformed},
		{"user code with a hidden space", m{"user_code": `"AB\u200bCD"`}, malformed, malformed},
		{"user code with C1", m{"user_code": `"AB\u009b2JCD"`}, malformed, malformed},
		{"user code that was no UTF-8", m{"user_code": "\"AB\xffCD\""}, malformed, malformed},
		{"user code of another script", m{"user_code": `"ÄБ-Ω"`}, "5s", "5s"},

		{"no address", m{"verification_uri": ""}, malformed, malformed},
		{"alias", m{"verification_uri": "", "verification_url": `"https://as.test/d"`}, "5s", "5s"},
		{"alias for an empty one", m{"verification_uri": `""`, "verification_url": `"https://as.test/d"`}, "5s", "5s"},
		{"alias not for a bad one", m{"verification_uri": `"ftp://as.test/"`, "verification_url": `"https://as.test/d"`}, malformed, malformed},
		{"alias not for a number", m{"verification_uri": `7`, "verification_url": `"https://as.test/d"`}, malformed, malformed},
		{"bad alias", m{"verification_uri": "", "verification_url": `"http://as.test/d"`}, malformed, malformed},
		{"empty alias", m{"verification_uri": "", "verification_url": `""`}, malformed, malformed},
		{"http", m{"verification_uri": `"http://as.test/device"`}, malformed, malformed},
		{"http on localhost", m{"verification_uri": `"http://localhost:8080/device"`}, "5s", "5s"},
		{"http on app.localhost", m{"verification_uri": `"http://App.LocalHost/device"`}, "5s", "5s"},
		{"http on 127.9.9.9", m{"verification_uri": `"http://127.9.9.9/"`}, "5s", "5s"},
		{"http on ::1", m{"verification_uri": `"http://[::1]:80/"`}, "5s", "5s"},
		{"http on a name like it", m{"verification_uri": `"http://localhost.evil.test/"`}, malformed, malformed},
		{"http on a number like it", m{"verification_uri": `"http://127.0.0.1.evil.test/"`}, malformed, malformed},
		{"credentials", m{"verification_uri": `"https://google.com@evil.test/"`}, malformed, malformed},
		{"no credentials, but the sign", m{"verification_uri": `"https://@as.test/"`}, malformed, malformed},
		{"javascript", m{"verification_uri": `"javascript:alert(1)"`}, malformed, malformed},
		{"no scheme", m{"verification_uri": `"as.test/device"`}, malformed, malformed},
		{"no host", m{"verification_uri": `"https:///device"`}, malformed, malformed},
		{"opaque", m{"verification_uri": `"https:as.test"`}, malformed, malformed},
		{"port alone", m{"verification_uri": `"https://:443/"`}, malformed, malformed},
		{"backslash", m{"verification_uri": `"https://as.test\\@evil.test/"`}, malformed, malformed},
		{"address with a space", m{"verification_uri": `"https://as.test/ device"`}, malformed, malformed},
		{"address with an escape", m{"verification_uri": `"https://as.test/\u001b[2J"`}, malformed, malformed},
		{"address turned round", m{"verification_uri": `"https://as.test/\u202emoc"`}, malformed, malformed},

		{"no expiry", m{"expires_in": ""}, malformed, malformed},
		{"null expiry", m{"expires_in": "null"}, malformed, malformed},
		{"expiry 0", m{"expires_in": "0"}, malformed, malformed},
		{"expiry empty", m{"expires_in": `""`}, malformed, malformed},
		{"expiry negative", m{"expires_in": "-900"}, malformed, malformed},
		{"expiry at the limit", m{"expires_in": "2147483"}, "5s", "5s"},
		{"expiry over the limit", m{"expires_in": "2147484"}, malformed, malformed},
		{"expiry a string", m{"expires_in": `"900"`}, "5s", malformed},
		{"expiry fractional", m{"expires_in": `900.5`}, malformed, malformed},

		{"no interval", m{"interval": ""}, "5s", "5s"},
		{"interval null", m{"interval": "null"}, "5s", "5s"},
		{"interval 0", m{"interval": "0"}, "5s", malformed},
		{"interval 0.0", m{"interval": "0.0"}, "5s", malformed},
		{"interval empty", m{"interval": `""`}, "5s", malformed},
		{"interval 1e1", m{"interval": "1e1"}, "10s", "10s"},
		{"interval 7.0", m{"interval": "7.0"}, "7s", "7s"},
		{"interval a string", m{"interval": `"5.0"`}, "5s", malformed},
		{"interval a string of 0", m{"interval": `"0"`}, "5s", malformed},
		{"interval a word", m{"interval": `"soon"`}, malformed, malformed},
		{"interval with a space", m{"interval": `" 5"`}, malformed, malformed},
		{"interval true", m{"interval": `true`}, malformed, malformed},
		{"interval an object", m{"interval": `{}`}, malformed, malformed},
		{"interval 1.5", m{"interval": `1.5`}, malformed, malformed},
		{"interval too fine for a float", m{"interval": `5.00000000000000000001`}, malformed, malformed},
		{"interval at the limit", m{"interval": `2147483`}, "596h31m23s", "596h31m23s"},
		{"interval over the limit", m{"interval": `2147484`}, malformed, malformed},
		{"interval beyond a float", m{"interval": `1e400`}, malformed, malformed},

		{"unknown members", m{"x": `1e400`, "y": `{"device_code":""}`, "Interval": "7"}, "5s", "5s"},
		{"error beside a code", m{"error": `"invalid_client"`}, "rejected", "rejected"},
		{"empty error beside a code", m{"error": `""`}, "5s", "5s"},
	}
	for _, tt := range tests {
		for _, strict := range []bool{false, true} {
			flow := flowWith(answering(200, "application/json", deviceWith(tt.members)))
			flow.Strict = strict
			p, err := flow.Start(t.Context())
			var got string
			if e, is := errors.AsType[*auth.DeviceError](err); is {
				got = string(e.Reason)
			} else if err != nil {
				got = err.Error()
			} else {
				got = p.Interval.String()
			}
			if want := map[bool]string{false: tt.normal, true: tt.strict}[strict]; got != want {
				t.Errorf("%s, strict %v: %s, want %s: %v", tt.name, strict, got, want, err)
			}
		}
	}
}

func TestDeviceStatus(t *testing.T) {
	good := deviceWith(nil)
	tests := []struct {
		name        string
		status      int
		contentType string
		body        string
		want        string
	}{
		{"200", 200, "application/json", good, "started"},
		{"any content type", 200, "text/plain", good, "started"},
		{"201", 201, "application/json", good, "started"},
		{"204", 204, "", "", "malformed 204 "},
		{"302", 302, "application/json", good, "rejected 302 "},
		{"400", 400, "application/json", `{"error":"invalid_scope"}`, "rejected 400 invalid_scope"},
		{"error on 200", 200, "application/json", `{"error":"device_flow_disabled"}`, "rejected 200 device_flow_disabled"},
		{"error object", 400, "application/json", `{"error":{"message":"m"}}`, "rejected 400 "},
		{"too many requests", 429, "application/json", `{"error":"too_many_requests"}`, "rejected 429 too_many_requests"},
		{"404", 404, "text/html", "<html>", "rejected 404 "},
		{"array", 200, "application/json", `[]`, "malformed 200 "},
		{"nothing", 200, "application/json", ``, "malformed 200 "},
		{"too much", 200, "application/json", good[:len(good)-1] + `,"x":"` + strings.Repeat("x", 1<<20) + `"}`, "malformed 200 "},
		{"form", 200, "application/x-www-form-urlencoded", "device_code=d&user_code=u&verification_uri=https%3A%2F%2Fas.test&expires_in=900&interval=", "started"},
	}
	for _, tt := range tests {
		_, err := flowWith(answering(tt.status, tt.contentType, tt.body)).Start(t.Context())
		got := "started"
		if e, ok := errors.AsType[*auth.DeviceError](err); ok {
			got = strings.Join([]string{string(e.Reason), itoa(e.Status), e.Code}, " ")
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s: %v", tt.name, got, tt.want, err)
		}
	}
}

func TestDeviceCutShort(t *testing.T) {
	for body, want := range map[string]string{deviceWith(nil): "expired", deviceWith(nil)[:20]: "transport"} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, pending)
			a := raw(200, body)
			a.ContentLength = 5000
			r.server.Device = &a
			tok, err := r.flow.Login(t.Context())
			if got := reason(t, tok, err); got != want {
				t.Errorf("%s: %s, want %s: %v", body, got, want, err)
			}
		})
	}
}

// A server that fails was reached, whatever becomes of its error page.
func TestDeviceFailureCutShort(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, pending)
		a := with(plain(503, "<ht"), "Retry-After", "60")
		a.ContentLength = 5000
		r.server.Device = &a
		_, err := r.flow.Login(t.Context())
		e, ok := errors.AsType[*auth.DeviceError](err)
		if !ok || e.Reason != auth.ErrRejected || e.Status != 503 || e.RetryAfter != time.Minute {
			t.Errorf("%v", err)
		}
	})
}

func TestDeviceHangs(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		r.server.Device = &hang
		for timeout, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Minute: time.Minute} {
			r.flow.RequestTimeout = timeout
			start := time.Now()
			_, err := r.flow.Login(t.Context())
			if !errors.Is(err, auth.ErrTransport) || time.Since(start) != want {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
	})
}

func TestCompleteAddress(t *testing.T) {
	for value, want := range map[string]string{
		`"https://as.test/device?user_code=AB-CD"`: "https://as.test/device?user_code=AB-CD",
		`"http://as.test/"`:                        "",
		`"https://u:p@as.test/"`:                   "",
		`"https://as.test/\u001b[2J"`:              "",
		`"https://as.test/\n"`:                     "",
		`7`:                                        "",
		`null`:                                     "",
		`""`:                                       "",
	} {
		p, err := flowWith(answering(200, "application/json", deviceWith(map[string]string{"verification_uri_complete": value}))).Start(t.Context())
		if err != nil || p.VerificationURIComplete != want {
			t.Errorf("%s: %q, %v", value, p.VerificationURIComplete, err)
		}
	}
}
