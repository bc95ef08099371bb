package fakes

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// AuthAnswer is what a server says to one request. Its JSON form is that of the cases.
type AuthAnswer struct {
	Status        int               `json:"status"` // 0 is 200
	Headers       map[string]string `json:"headers"`
	Body          json.RawMessage   `json:"body"`          // a string is sent as it is, as text/plain; all else as JSON
	RawBody       *string           `json:"rawBody"`       // sent as it is, as JSON
	Drop          bool              `json:"drop"`          // break the connection without an answer
	Hang          bool              `json:"hang"`          // never answer
	Oversized     bool              `json:"oversized"`     // send 2 MiB of JSON, with a token in it
	Latency       float64           `json:"latency"`       // seconds before the answer
	ContentLength int               `json:"contentLength"` // announced, and then the body ends sooner
}

// AuthJSON is an AuthAnswer with a body.
func AuthJSON(status int, body any) AuthAnswer {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return AuthAnswer{Status: status, Body: b}
}

// OAuthError is an AuthAnswer that is an error of RFC 6749, section 5.2.
func OAuthError(status int, code string) AuthAnswer {
	return AuthJSON(status, map[string]string{"error": code})
}

// Throttle is an AuthAnswer that refuses to serve: 429 with too_many_requests, and Retry-After if seconds is positive.
func Throttle(seconds int) AuthAnswer {
	a := OAuthError(http.StatusTooManyRequests, "too_many_requests")
	if seconds > 0 {
		a.Headers = map[string]string{"Retry-After": strconv.Itoa(seconds)}
	}
	return a
}

// write sends the answer.
func (a AuthAnswer) write(w http.ResponseWriter) {
	body, kind := a.content()
	w.Header().Set("Content-Type", kind)
	for name, value := range a.Headers {
		w.Header().Set(name, value)
	}
	if a.ContentLength > len(body) {
		w.Header().Set("Content-Length", strconv.Itoa(a.ContentLength))
	}
	w.WriteHeader(orElse(a.Status, http.StatusOK))
	_, _ = io.WriteString(w, body)
}

func (a AuthAnswer) content() (body, kind string) {
	var text string
	switch {
	case a.Oversized:
		return `{"access_token":"at","token_type":"Bearer","padding":"` + strings.Repeat("x", 2<<20) + `"}`, "application/json"
	case a.RawBody != nil:
		return *a.RawBody, "application/json"
	case json.Unmarshal(a.Body, &text) == nil && a.Body[0] == '"':
		return text, "text/plain"
	}
	return string(a.Body), "application/json"
}

// members are what the answer says, for the server to go by.
func (a AuthAnswer) members() url.Values {
	body, _ := a.content()
	var object map[string]any
	if json.Unmarshal([]byte(body), &object) != nil {
		form, _ := url.ParseQuery(body)
		return form
	}
	said := url.Values{}
	for name, v := range object {
		switch v := v.(type) {
		case string:
			said.Set(name, v)
		case float64:
			said.Set(name, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	return said
}

func authSeconds(s string) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 2_147_483 {
		return 0
	}
	return time.Duration(f * float64(time.Second))
}

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
