package requests_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when bubbles begin.
var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// noJitter pins every draw to 0.
func noJitter(int64) int64 { return 0 }

const api = "https://api.test"

// rig is a scripted API, in a bubble.
type rig struct {
	t   *testing.T
	net *fakes.Network
	api *fakes.API
}

// bubble runs a test against a scripted API, which must have had no request beyond its script.
func bubble(t *testing.T, script []fakes.Answer, run func(r *rig)) {
	t.Helper()
	fakes.Bubble(t, start, func(t *testing.T) {
		r := &rig{t: t, net: fakes.NewNetwork(t), api: fakes.NewAPI(script...)}
		r.net.Serve(t, "api.test", r.api)
		run(r)
		for _, v := range r.api.Violations() {
			t.Error(v)
		}
	})
}

// transport is a Transport on the rig's network, without jitter.
func (r *rig) transport() *requests.Transport {
	return &requests.Transport{Base: r.net.Transport(), Rand: noJitter}
}

func (r *rig) client(tr *requests.Transport) *requests.Client {
	r.t.Helper()
	c, err := requests.NewClient(api, tr)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// waits compares the times between requests, as the server saw them.
func (r *rig) waits(want ...time.Duration) {
	r.t.Helper()
	got := r.api.Waits()
	if len(got) != len(want) {
		r.t.Errorf("the server saw waits %v, want %v", got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			r.t.Errorf("the server saw waits %v, want %v", got, want)
			return
		}
	}
}

// request makes a request of the API.
func request(ctx context.Context, method, path, body string) *http.Request {
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, api+path, b)
	if err != nil {
		panic(err)
	}
	return req
}

// statuses is a script of nothing else.
func statuses(list ...int) []fakes.Answer {
	script := make([]fakes.Answer, len(list))
	for i, s := range list {
		if script[i].Status = s; s == 0 {
			script[i].Drop = true
		}
	}
	return script
}

func retryAfter(status int, value string) fakes.Answer {
	return fakes.Answer{Status: status, Header: http.Header{"Retry-After": {value}}}
}

func token(s string) *oauth2.Token { return &oauth2.Token{AccessToken: s} }

// source is a TokenSource whose tokens are t1, t2 and so on.
type source struct {
	mu        sync.Mutex
	n         int
	refreshes int
	err       error // of Refresh
}

func (s *source) current() *oauth2.Token { return token("t" + string(rune('1'+s.n))) }

func (s *source) Token() (*oauth2.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(), nil
}

func (s *source) Refresh(_ context.Context, refused *oauth2.Token) (*oauth2.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused.AccessToken != s.current().AccessToken {
		return s.current(), nil
	}
	s.refreshes++
	if s.err != nil {
		return nil, s.err
	}
	s.n++
	return s.current(), nil
}

var _ requests.Refresher = (*source)(nil)
