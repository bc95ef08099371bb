package websocket_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

func TestRefusedHandshakes(t *testing.T) {
	hits := 0
	handle(t, func(w http.ResponseWriter, r *http.Request) {
		if hits++; r.URL.Path == "/elsewhere" {
			t.Error("a redirect was followed")
		}
		var status int
		fmt.Sscan(r.URL.Query().Get("status"), &status)
		switch status {
		case 302:
			http.Redirect(w, r, "/elsewhere", status)
			return
		case 307:
			w.Header().Set("Location", "https://%zz")
		}
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(status)
	}, func(t *testing.T, d websocket.Dialer) {
		for status, class := range map[int]stream.Class{
			200: stream.Permanent, 302: stream.Permanent, 307: stream.Permanent, 308: stream.Permanent, 400: stream.Permanent, 404: stream.Permanent, 410: stream.Permanent,
			401: stream.Unauthorized, 403: stream.Unauthorized, 429: stream.Throttled, 500: stream.Transient, 503: stream.Transient,
		} {
			d.URL = fmt.Sprintf("wss://ws.test/?status=%d", status)
			_, err := d.Dial(t.Context(), stream.Attempt{})
			e, ok := errors.AsType[*stream.AttemptError](err)
			if !ok || e.Class != class || e.Status != status {
				t.Errorf("%d: %#v", status, err)
				continue
			}
			if status != 302 {
				want(t, "Retry-After", e.RetryAfter.Duration(), 30*time.Second)
			}
		}
		want(t, "requests", hits, 12)
	})
}

func TestAddresses(t *testing.T) {
	hits := 0
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		net := fakes.NewNetwork(t)
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hits++; w.WriteHeader(http.StatusTeapot) })
		net.Serve(t, "ws.test", h)
		net.ServePlain(t, "ws.test", h)
		net.ServePlain(t, "localhost", h)
		net.ServePlain(t, "127.0.0.1:8080", h)
		net.ServePlain(t, "[::1]:80", h)
		for address, sent := range map[string]bool{
			"wss://ws.test/": true, "https://ws.test/": true, "ws://localhost/": true, "ws://127.0.0.1:8080/": true,
			"ws://[::1]/": true, "ws://ws.test/": false, "http://ws.test/": false, "ws://localhost.test/": false,
			"ftp://ws.test/": false, "ws.test": false, "": false, "wss://": false, "wss://ws.test:x/": false,
		} {
			hits = 0
			_, err := websocket.Dialer{URL: address, Client: net.Client()}.Dial(t.Context(), stream.Attempt{})
			e, ok := errors.AsType[*stream.AttemptError](err)
			if !ok || e.Class != stream.Permanent || (hits == 1) != sent {
				t.Errorf("%q: %v after %d requests", address, err, hits)
			}
		}
	})
}

func TestWhatTheHandshakeCarries(t *testing.T) {
	seen := make(chan *http.Request, 1)
	serve(t, &ws.AcceptOptions{Subprotocols: []string{"two"}}, func(c *ws.Conn, r *http.Request) {
		seen <- r
		linger(c)
	}, func(t *testing.T, d websocket.Dialer) {
		d.Header = http.Header{"X-Mine": {"1"}}
		d.Subprotocols = []string{"one", "two"}
		a := stream.Attempt{Credential: stream.Credential{Token: &oauth2.Token{AccessToken: "t0ken"}, URL: "wss://ws.test/t?ticket=a%2Fb+c&x"}}
		c, err := d.Dial(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		r := <-seen
		want(t, "address", r.URL.RequestURI(), "/t?ticket=a%2Fb+c&x")
		want(t, "authorization", r.Header.Get("Authorization"), "Bearer t0ken")
		want(t, "header", r.Header.Get("X-Mine"), "1")
		want(t, "origin", r.Header.Get("Origin"), "")
		want(t, "compression", r.Header.Get("Sec-WebSocket-Extensions"), "")
		want(t, "subprotocol", c.(*websocket.Conn).Subprotocol(), "two")
		want(t, "the dialer's own header", len(d.Header), 1)
		_ = c.Close()
	})
}

// What cannot be sent is not tried again and again.
func TestWhatCannotBeSent(t *testing.T) {
	client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("sent") })}
	token := stream.Attempt{Credential: stream.Credential{Token: &oauth2.Token{AccessToken: "s3cret\n"}}}
	for name, tt := range map[string]struct {
		dialer  websocket.Dialer
		attempt stream.Attempt
	}{
		"a header's value": {dialer: websocket.Dialer{Header: http.Header{"X-Key": {"s3cret\r\n"}}}},
		"a header's name":  {dialer: websocket.Dialer{Header: http.Header{"X Key": {"s3cret"}}}},
		"a subprotocol":    {dialer: websocket.Dialer{Subprotocols: []string{"a\n"}}},
		"a token":          {attempt: token},
	} {
		tt.dialer.URL, tt.dialer.Client = "wss://ws.test/", client
		_, err := tt.dialer.Dial(t.Context(), tt.attempt)
		e, ok := errors.AsType[*stream.AttemptError](err)
		if !ok || e.Class != stream.Permanent || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestDefaultClient(t *testing.T) {
	before := http.DefaultClient.Transport
	defer func() { http.DefaultClient.Transport = before }()
	own := errors.New("the default client's own")
	http.DefaultClient.Transport = roundTripper(func(*http.Request) (*http.Response, error) { return nil, own })
	_, err := websocket.Dialer{URL: "wss://ws.test/"}.Dial(t.Context(), stream.Attempt{})
	want(t, "it is used", errors.Is(err, own), true)
}

// What http.Client puts up with in a RoundTripper costs an attempt, and not the program.
func TestCarelessTransport(t *testing.T) {
	for _, res := range []*http.Response{nil, {StatusCode: http.StatusFound}, {StatusCode: http.StatusServiceUnavailable}, {StatusCode: http.StatusSwitchingProtocols}} {
		client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return res, nil })}
		if _, err := (websocket.Dialer{URL: "wss://ws.test/", Client: client}).Dial(t.Context(), stream.Attempt{}); err == nil {
			t.Errorf("%+v is a connection", res)
		}
	}
}
