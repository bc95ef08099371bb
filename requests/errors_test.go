package requests_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/heed-sdk/heed/requests"
)

// clientOn is a client whose every request is answered alike, once.
func clientOn(t *testing.T, r reply) *requests.Client {
	t.Helper()
	c, err := requests.NewClient(api, &requests.Transport{Base: &base{replies: []reply{r}}, MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func failed(t *testing.T, r reply) *requests.Error {
	t.Helper()
	_, err := clientOn(t, r).Do(get())
	e, ok := errors.AsType[*requests.Error](err)
	if !ok {
		t.Fatalf("%v is no *requests.Error", err)
	}
	return e
}

func TestClasses(t *testing.T) {
	tests := []struct {
		status    int
		code      requests.Code
		exit      int
		retryable bool
	}{
		{400, requests.CodeValidation, 9, false},
		{401, requests.CodeAuthRequired, 3, false},
		{402, requests.CodeAPI, 7, false},
		{403, requests.CodeForbidden, 4, false},
		{404, requests.CodeNotFound, 2, false},
		{408, requests.CodeAPI, 7, false},
		{409, requests.CodeAPI, 7, false},
		{422, requests.CodeValidation, 9, false},
		{429, requests.CodeRateLimit, 5, true},
		{500, requests.CodeAPI, 7, true},
		{501, requests.CodeAPI, 7, true},
		{502, requests.CodeAPI, 7, true},
		{503, requests.CodeAPI, 7, true},
		{504, requests.CodeAPI, 7, true},
		{507, requests.CodeLimitExceeded, 10, false},
		{599, requests.CodeAPI, 7, true},
	}
	for _, tt := range tests {
		e := failed(t, reply{status: tt.status, header: http.Header{"X-Request-Id": {"req-1"}, "Retry-After": {"99999"}}})
		if e.Code != tt.code || e.ExitCode() != tt.exit || e.Retryable != tt.retryable || e.Status != tt.status {
			t.Errorf("%d: %s, exit %d, retryable %v", tt.status, e.Code, e.ExitCode(), e.Retryable)
		}
		if e.RequestID != "req-1" || e.RetryAfter != 99999*time.Second {
			t.Errorf("%d: request %q, wait %v", tt.status, e.RequestID, e.RetryAfter)
		}
		if _, limited := errors.AsType[*requests.RateLimited](error(e)); limited != (tt.status == 429) {
			t.Errorf("%d: RateLimited %v", tt.status, limited)
		}
		if errors.Is(e, &requests.TransportFailed{}) {
			t.Errorf("%d: an answer is no TransportFailed in this policy", tt.status)
		}
	}
	for code, exit := range map[requests.Code]int{
		requests.CodeUsage: 1, requests.CodeNetwork: 6, requests.CodeAmbiguous: 8, "": 7,
	} {
		if code.ExitCode() != exit {
			t.Errorf("%q exits with %d, want %d", code, code.ExitCode(), exit)
		}
	}
}

func TestMessages(t *testing.T) {
	const problem = "application/problem+json"
	tests := []struct {
		name        string
		status      int
		contentType string
		body        string
		message     string
		hint        string
		fields      map[string][]string
	}{
		{name: "nothing", status: 404, message: "Not Found"},
		{name: "an unknown status", status: 599, message: "status 599"},
		{name: "no JSON", status: 502, body: "<html>Bad gateway</html>", message: "Bad Gateway"},
		{name: "no object", status: 500, body: `["error"]`, message: "Internal Server Error"},
		{name: "null", status: 500, body: `null`, message: "Internal Server Error"},
		{name: "error", status: 404, body: `{"error":"No such todo","message":"other"}`, message: "No such todo"},
		{name: "error that is no string", status: 404, body: `{"error":{"message":"x"},"message":"other"}`, message: "other"},
		{name: "error that is null", status: 404, body: `{"error":null,"message":"other"}`, message: "other"},
		{name: "empty error", status: 404, body: `{"error":"","message":"other"}`, message: "other"},
		{name: "message", status: 404, body: `{"message":"Gone fishing"}`, message: "Gone fishing"},
		{name: "hint", status: 403, body: `{"error":"insufficient_scope","error_description":"ask for write"}`, message: "insufficient_scope", hint: "ask for write"},
		{name: "hint alone", status: 403, body: `{"error_description":"ask for write"}`, message: "Forbidden", hint: "ask for write"},
		{name: "problem", status: 403, contentType: problem + "; charset=utf-8", body: `{"title":"No credit","detail":"30, but 50 needed"}`, message: "No credit: 30, but 50 needed"},
		{name: "problem title", status: 403, contentType: problem, body: `{"title":"No credit"}`, message: "No credit"},
		{name: "problem detail", status: 403, contentType: problem, body: `{"detail":"50 needed"}`, message: "50 needed"},
		{name: "error before problem", status: 403, contentType: problem, body: `{"title":"No credit","error":"broke"}`, message: "broke"},
		{name: "title of something else", status: 409, contentType: "application/json", body: `{"title":"My todo"}`, message: "Conflict"},
		{
			name: "fields", status: 422, body: `{"errors":{"name":["can't be blank","is short"],"color":["is odd"]}}`,
			message: "color: is odd, name: can't be blank; is short",
			fields:  map[string][]string{"name": {"can't be blank", "is short"}, "color": {"is odd"}},
		},
		{
			name: "fields behind a message", status: 400, body: `{"message":"Invalid","errors":{"a":["x"]}}`,
			message: "Invalid (a: x)", fields: map[string][]string{"a": {"x"}},
		},
		{
			name: "fields behind a problem", status: 400, contentType: problem, body: `{"title":"Invalid","errors":{"a":["x"]}}`,
			message: "Invalid (a: x)", fields: map[string][]string{"a": {"x"}},
		},
		{
			name: "what is usable of the fields", status: 422, body: `{"error":{},"errors":{"a":["x",7,null,["y"]],"b":"z","c":[],"d":[1]}}`,
			message: "a: x", fields: map[string][]string{"a": {"x"}},
		},
		{name: "no usable field", status: 422, body: `{"errors":{"b":"z"}}`, message: "Unprocessable Entity"},
		{name: "errors is a list", status: 422, body: `{"errors":["a","b"]}`, message: "Unprocessable Entity"},
		{name: "errors is null", status: 422, body: `{"errors":null,"a":["x"]}`, message: "Unprocessable Entity"},
		{
			name: "the body is the map", status: 400, body: `{"url":["is invalid"],"__proto__":["is reserved"]}`,
			message: "__proto__: is reserved, url: is invalid",
			fields:  map[string][]string{"url": {"is invalid"}, "__proto__": {"is reserved"}},
		},
		{
			name: "no field name is special", status: 400, body: `{"error":["x"],"message":["y"]}`,
			message: "error: x, message: y", fields: map[string][]string{"error": {"x"}, "message": {"y"}},
		},
		{name: "one member is no list", status: 400, body: `{"error":"Invalid","url":["x"]}`, message: "Invalid"},
		{name: "one list is empty", status: 400, body: `{"a":["x"],"b":[]}`, message: "Bad Request"},
		{name: "one message is empty", status: 400, body: `{"a":["x",""]}`, message: "Bad Request"},
		{name: "one message is no string", status: 400, body: `{"a":["x",1]}`, message: "Bad Request"},
		{name: "an empty object", status: 400, body: `{}`, message: "Bad Request"},
		{name: "fields elsewhere", status: 409, body: `{"a":["x"]}`, message: "Conflict"},
		{name: "a name is spelled otherwise", status: 404, body: `{"Error":"x"}`, message: "Not Found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := failed(t, reply{status: tt.status, body: tt.body, header: http.Header{"Content-Type": {tt.contentType}}})
			if e.Message != tt.message || e.Hint != tt.hint || !reflect.DeepEqual(e.FieldErrors, tt.fields) {
				t.Errorf("message %q, hint %q, fields %v", e.Message, e.Hint, e.FieldErrors)
			}
		})
	}
}

func TestMessageIsCut(t *testing.T) {
	long := strings.Repeat("é", 300) // 600 bytes
	body, _ := json.Marshal(map[string]any{"error": "x" + long, "errors": map[string]any{"f": []string{long}}})
	e := failed(t, reply{status: 422, body: string(body)})
	if len(e.Message) != 499 || !utf8.ValidString(e.Message) || e.FieldErrors["f"][0] != long {
		t.Errorf("%d bytes, valid %v", len(e.Message), utf8.ValidString(e.Message))
	}
	// Composing comes first: the field map may be cut off altogether.
	body, _ = json.Marshal(map[string]any{"error": strings.Repeat("x", 498), "errors": map[string]any{"f": []string{"y"}}})
	if e := failed(t, reply{status: 422, body: string(body)}); e.Message != strings.Repeat("x", 498)+" (" {
		t.Errorf("%q", e.Message)
	}
}

// An error's body is read up to 1 MiB, and what is longer says nothing.
func TestErrorBodyIsBounded(t *testing.T) {
	b := &base{replies: []reply{{status: 500, body: `{"error":"x","padding":"` + strings.Repeat("x", 4<<20) + `"}`}}}
	c, _ := requests.NewClient(api, &requests.Transport{Base: b})
	_, err := c.Do(get())
	if a := b.answers[0]; !a.closed || a.read > 1<<20+64<<10 {
		t.Errorf("closed %v, read %d", a.closed, a.read)
	}
	if e, ok := errors.AsType[*requests.Error](err); !ok || e.Message != "Internal Server Error" {
		t.Errorf("%v", err)
	}
}

func TestNetworkErrors(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errors.New("connection refused"))}
	e := failed(t, reply{err: refused})
	if e.Code != requests.CodeNetwork || e.Status != 0 || !e.Retryable || e.ExitCode() != 6 {
		t.Errorf("%+v", e)
	}
	if !errors.Is(e, refused) || !errors.Is(e, &requests.TransportFailed{}) || !strings.Contains(e.Error(), "connection refused") {
		t.Errorf("%v", e)
	}
	if e := failed(t, reply{err: x509.UnknownAuthorityError{}}); e.Code != requests.CodeNetwork || e.Retryable {
		t.Errorf("a certificate that does not verify: %+v", e)
	}
	timeout, ok := errors.AsType[*requests.TransportFailed](error(failed(t, reply{err: os.ErrDeadlineExceeded})))
	if !ok || !timeout.Timeout() {
		t.Errorf("%v is no timeout", timeout)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := clientOn(t, reply{status: 200}).Do(request(ctx, "GET", "/", ""))
	cancelled, ok := errors.AsType[*requests.Error](err)
	if !ok || cancelled.Code != requests.CodeNetwork || cancelled.Retryable || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestErrorText(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{failed(t, reply{status: 404}), "requests: Not Found (404)"},
		{failed(t, reply{status: 401}), "requests: Unauthorized (401): log in again"},
		{
			failed(t, reply{status: 429, body: `{"error":"Slow down"}`, header: http.Header{"Retry-After": {"90"}}}),
			"requests: Slow down (429); the server asks to wait 1m30s",
		},
		{&requests.RateLimited{RetryAfter: time.Minute}, "requests: rate limited: the server asks to wait 1m0s"},
		{&requests.RateLimited{}, "requests: rate limited"},
		{&requests.TransportFailed{Status: 502}, "requests: failed with status 502"},
		{&requests.TransportFailed{Err: io.EOF}, "requests: no answer: EOF"},
	} {
		if tt.err.Error() != tt.want {
			t.Errorf("%q, want %q", tt.err, tt.want)
		}
	}
}
