package requests_test

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/heed-sdk/heed/requests"
)

func TestDoJSON(t *testing.T) {
	type todo struct{ Title string }
	tests := []struct {
		name   string
		answer reply
		want   string
		code   requests.Code
		status int
	}{
		{name: "decoded", answer: reply{status: 200, body: `{"title":"x"}`}, want: "x"},
		{name: "nothing to decode", answer: reply{status: 204}},
		{name: "no JSON", answer: reply{status: 200, body: "<html>"}, code: requests.CodeAPI},
		{name: "empty", answer: reply{status: 200}, code: requests.CodeAPI},
		{name: "more than one", answer: reply{status: 200, body: `{} {}`}, code: requests.CodeAPI},
		{name: "too long", answer: reply{status: 200, body: `"` + strings.Repeat("x", 50<<20) + `"`}, code: requests.CodeAPI},
		{name: "refused", answer: reply{status: 422}, code: requests.CodeValidation, status: 422},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got todo
			err := clientOn(t, tt.answer).DoJSON(get(), &got)
			if tt.code == "" {
				if err != nil || got.Title != tt.want {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			e, ok := errors.AsType[*requests.Error](err)
			if !ok || e.Code != tt.code || e.Status != tt.status || e.Retryable || tt.name == "too long" && !strings.Contains(err.Error(), "longer than 50 MiB") {
				t.Errorf("%v", err)
			}
		})
	}
	if err := clientOn(t, reply{status: 200, body: "not looked at"}).DoJSON(get(), nil); err != nil {
		t.Error(err)
	}
	b := &base{replies: statusReplies(204)}
	c, _ := requests.NewClient(api, &requests.Transport{Base: b})
	own := get()
	own.Header.Set("Accept", "application/vnd.api+json")
	for i, req := range []*http.Request{get(), own} {
		if err := c.DoJSON(req, nil); err != nil {
			t.Fatal(err)
		}
		if got := b.sent[i].header.Get("Accept"); got != []string{"application/json", "application/vnd.api+json"}[i] {
			t.Errorf("asked for %q", got)
		}
	}
}

// A body that breaks off is the caller's to see: it is neither repeated nor taken for an answer.
func TestBrokenBody(t *testing.T) {
	n := 0
	tr := &requests.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) {
		n++
		body := io.NopCloser(io.MultiReader(strings.NewReader(`{"ti`), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, ContentLength: 100}, nil
	})}
	c, _ := requests.NewClient(api, tr)
	err := c.DoJSON(get(), &struct{}{})
	e, ok := errors.AsType[*requests.Error](err)
	if !ok || e.Code != requests.CodeNetwork || !errors.Is(err, io.ErrUnexpectedEOF) || n != 1 {
		t.Errorf("%v after %d attempts", err, n)
	}
}

func TestNewClient(t *testing.T) {
	for _, bad := range []string{
		"", "api.test", "://", "https://", "http://api.test", "ftp://api.test", "https://u:p@api.test",
		"https://api.test?key=1", "https://api.test/#x", "http://localhost.evil.test", "http://127.0.0.1.evil.test",
	} {
		_, err := requests.NewClient(bad, nil)
		e, ok := errors.AsType[*requests.Error](err)
		if !ok || e.Code != requests.CodeUsage || strings.Contains(err.Error(), "u:p") || strings.Contains(err.Error(), "key=1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{
		"https://api.test", "https://api.test:8443/v1/", "http://localhost:8080", "http://127.0.0.1", "http://127.9.9.9:1",
		"http://[::1]:3000", "http://app.localhost", "http://LOCALHOST",
	} {
		if _, err := requests.NewClient(good, nil); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	if _, err := requests.NewClient(api, &requests.Transport{Origin: "api.test"}); err == nil {
		t.Error("a bad Origin was taken")
	}
}

func TestNoURL(t *testing.T) {
	_, err := clientOn(t, reply{status: 200}).Do(&http.Request{Body: http.NoBody})
	if e, ok := errors.AsType[*requests.Error](err); !ok || e.Code != requests.CodeUsage {
		t.Errorf("%v", err)
	}
}

// http.Client refuses a request that was received, with an error that has no type to know it by.
func TestReceivedRequest(t *testing.T) {
	body := &counted{Reader: strings.NewReader("x")}
	req := request(t.Context(), "POST", "/", "")
	req.RequestURI, req.Body = "/", body
	_, err := clientOn(t, reply{status: 200}).Do(req)
	if e, ok := errors.AsType[*requests.Error](err); !ok || e.Code != requests.CodeUsage || !body.closed {
		t.Errorf("%v, closed %v", err, body.closed)
	}
}

func TestRelativeURL(t *testing.T) {
	var urls []string
	tr := &requests.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		urls = append(urls, r.URL.String())
		return &http.Response{StatusCode: 200, Header: http.Header{}}, nil
	})}
	c, _ := requests.NewClient("https://api.test/v1/", tr)
	for _, u := range []string{"/todos?page=2", "todos/7", "https://other.test/x"} {
		req, err := http.NewRequest("GET", u, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(req); err != nil {
			t.Error(err)
		}
	}
	want := []string{"https://api.test/todos?page=2", "https://api.test/v1/todos/7", "https://other.test/x"}
	if !reflect.DeepEqual(urls, want) {
		t.Errorf("%q", urls)
	}
}
