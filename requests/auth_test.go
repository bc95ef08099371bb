package requests_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// failing is a TokenSource that has no token.
type failing struct{ err error }

func (f failing) Token() (*oauth2.Token, error) { return nil, f.err }

// fixed is a TokenSource that has one token.
type fixed struct{}

func (fixed) Token() (*oauth2.Token, error) { return token("f"), nil }

// contextual is a TokenSource that is asked with a context.
type contextual struct{ failing }

func (contextual) TokenContext(ctx context.Context) (*oauth2.Token, error) {
	t, _ := ctx.Value(contextual{}).(*oauth2.Token)
	return t, ctx.Err()
}

func TestContextTokenSource(t *testing.T) {
	quick(t, statusReplies(200), func(t *testing.T, tr *requests.Transport, b *base) {
		tr.Tokens = contextual{failing{errBroken}}
		ctx := context.WithValue(t.Context(), contextual{}, &oauth2.Token{AccessToken: "c", TokenType: "DPoP"})
		if status, err := trip(tr, request(ctx, "GET", "/", "")); status != 200 {
			t.Fatal(status, err)
		}
		if got := b.sent[0].header.Get("Authorization"); got != "DPoP c" {
			t.Errorf("sent %q", got)
		}
	})
	quick(t, statusReplies(200), func(t *testing.T, tr *requests.Transport, _ *base) {
		tr.Tokens = contextual{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := trip(tr, request(ctx, "GET", "/", "")); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestReplay(t *testing.T) {
	refused := errors.New("session expired")
	tests := []struct {
		name      string
		method    string
		replies   []int
		tokens    oauth2.TokenSource
		cap       int
		policy    requests.Policy
		sent      int
		refreshes int
		status    int // 0: an error
	}{
		{name: "once", replies: []int{401, 200}, tokens: &source{}, sent: 2, refreshes: 1, status: 200},
		{name: "not twice", replies: []int{401, 401}, tokens: &source{}, sent: 2, refreshes: 1, status: 401},
		{name: "a write too, since it was refused", method: "POST", replies: []int{401, 201}, tokens: &source{}, sent: 2, refreshes: 1, status: 201},
		{name: "in any policy", replies: []int{401, 200}, tokens: &source{}, policy: requests.RefusedOnly{Times: 1}, sent: 2, refreshes: 1, status: 200},
		{name: "it counts as an attempt", replies: []int{503, 401, 503}, tokens: &source{}, sent: 3, refreshes: 1, status: 503},
		{name: "no attempt is left", replies: []int{503, 503, 401}, tokens: &source{}, sent: 3, refreshes: 0, status: 401},
		{name: "no attempt is allowed", replies: []int{401}, tokens: &source{}, cap: 1, sent: 1, refreshes: 0, status: 401},
		{name: "the source cannot refresh", replies: []int{401}, tokens: oauth2.StaticTokenSource(token("s")), sent: 1, status: 401},
		{name: "there is no source", replies: []int{401}, sent: 1, status: 401},
		{name: "the refresh fails", replies: []int{401}, tokens: &source{err: refused}, sent: 1, refreshes: 1},
		{name: "another refusal", replies: []int{403}, tokens: &source{}, sent: 1, status: 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			quick(t, statusReplies(tt.replies...), func(t *testing.T, tr *requests.Transport, b *base) {
				tr.Tokens, tr.MaxAttempts, tr.Policy = tt.tokens, tt.cap, tt.policy
				method := tt.method
				if method == "" {
					method = "GET"
				}
				status, err := trip(tr, request(t.Context(), method, "/", "body"))
				if status != tt.status || len(b.sent) != tt.sent {
					t.Errorf("%d, %v after %d attempts; want %d after %d", status, err, len(b.sent), tt.status, tt.sent)
				}
				if s, ok := tt.tokens.(*source); ok && s.refreshes != tt.refreshes {
					t.Errorf("%d refreshes, want %d", s.refreshes, tt.refreshes)
				}
				if e, ok := errors.AsType[*requests.Error](err); tt.status == 0 &&
					(!ok || e.Code != requests.CodeAuthRequired || e.Status != 401 || !errors.Is(err, refused)) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// A 401 is no retry: its Retry-After is not read, and the next wait goes by the number of the attempt.
func TestReplayDoesNotWait(t *testing.T) {
	bubble(t, []fakes.Answer{retryAfter(401, "60"), {Status: 503}, {Status: 200}}, func(r *rig) {
		tr := r.transport()
		tr.Tokens = &source{}
		_, _ = trip(tr, get())
		r.waits(0, 2*time.Second)
	})
}

// again is an error of a source that knows whether another try makes sense.
type again bool

func (again) Error() string      { return "not now" }
func (a again) Repeatable() bool { return bool(a) }

// A token that cannot be had now is told from a login that is over, and what the token endpoint wrote is quoted in neither.
func TestRefreshFails(t *testing.T) {
	const body = "<html>\naccess_token=canary"
	endpoint := func(status int, code string) error {
		return &oauth2.RetrieveError{Response: &http.Response{StatusCode: status, Status: "gone"}, Body: []byte(body), ErrorCode: code, ErrorDescription: body}
	}
	for _, tt := range []struct {
		name      string
		err       error
		retryable bool
		says      string
	}{
		{"bad gateway", endpoint(502, ""), true, "refused to issue a token (401): try again later"},
		{"throttled", endpoint(429, ""), true, "(401): try again later"},
		{"grant refused", endpoint(400, "invalid_grant"), false, "(invalid_grant) (401): log in again"},
		{"a code that is none", endpoint(400, body), false, "refused to issue a token (401): log in again"},
		{"the source says so", fmt.Errorf("wrapped: %w", again(true)), true, "try again later"},
		{"the source says no", again(false), false, "log in again"},
		{"unreachable", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, true, "try again later"},
		{"anything else", errors.New("no such login"), false, "log in again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, statuses(401), func(r *rig) {
				tr := r.transport()
				tr.Tokens = &source{err: tt.err}
				_, err := r.client(tr).Do(request(r.t.Context(), http.MethodGet, "/", ""))
				e, ok := errors.AsType[*requests.Error](err)
				if !ok || e.Code != requests.CodeAuthRequired || e.Retryable != tt.retryable {
					t.Fatalf("the error is %+v", err)
				}
				if !strings.HasSuffix(err.Error(), tt.says) {
					t.Errorf("it says %q", err)
				}
				if text := err.Error() + e.Err.Error(); strings.Contains(text, "canary") || strings.Contains(text, "\n") {
					t.Errorf("it quotes the answer: %q", text)
				}
				if !errors.Is(err, tt.err) {
					t.Error("its cause is lost")
				}
			})
		})
	}
}

// N requests refused together lead to one refresh.
func TestRefusedTogether(t *testing.T) {
	s := &source{}
	tr := &requests.Transport{Tokens: s, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
		status := 200
		if req.Header.Get("Authorization") == "Bearer t1" {
			status = 401
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}, nil
	})}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if status, err := trip(tr, get()); status != 200 || err != nil {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
	all.Wait()
	if s.refreshes != 1 {
		t.Errorf("%d refreshes, want 1", s.refreshes)
	}
}

// narrow is a source that refreshes through the same connections as the requests.
type narrow struct {
	source
	client *http.Client
}

func (n *narrow) Refresh(ctx context.Context, refused *oauth2.Token) (*oauth2.Token, error) {
	req, _ := http.NewRequestWithContext(ctx, "POST", api+"/token", nil)
	resp, err := n.client.Do(req)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	return n.source.Refresh(ctx, refused)
}

// With one connection to a host, a 401 that still held it would keep the refresh from it for ever.
func TestOneConnection(t *testing.T) {
	script := []fakes.Answer{
		{Status: 401, Body: "<html>no</html>"},
		{Status: 200},
		{Status: 503, Body: "busy"},
		{Status: 200, Body: "done"},
	}
	bubble(t, script, func(r *rig) {
		base := r.net.Transport()
		base.DisableKeepAlives, base.MaxConnsPerHost = false, 1
		defer base.CloseIdleConnections()
		tr := r.transport()
		tr.Base, tr.Tokens = base, &narrow{client: &http.Client{Transport: base}}
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
		defer cancel()
		if status, err := trip(tr, request(ctx, "GET", "/", "")); status != 200 {
			r.t.Errorf("%d, %v", status, err)
		}
	})
}

// A token from a file that ends with a line break cannot be sent at all, and sending it again would not change that.
func TestTokenThatCannotBeSent(t *testing.T) {
	for _, tok := range []*oauth2.Token{token("t\n"), {AccessToken: "t", TokenType: "Bearer\r\nX: y"}} {
		quick(t, statusReplies(200), func(t *testing.T, tr *requests.Transport, b *base) {
			tr.Tokens = oauth2.StaticTokenSource(tok)
			began := time.Now()
			_, err := trip(tr, get())
			e, ok := errors.AsType[*requests.Error](err)
			if !ok || e.Code != requests.CodeAuthRequired || e.Retryable || len(b.sent) != 0 || time.Since(began) != 0 {
				t.Errorf("%v after %d attempts and %v", err, len(b.sent), time.Since(began))
			}
		})
	}
}

func TestNoToken(t *testing.T) {
	gone := errors.New("the keyring is locked")
	quick(t, statusReplies(200), func(t *testing.T, tr *requests.Transport, b *base) {
		tr.Tokens = failing{gone}
		c, err := requests.NewClient(api, tr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(get())
		e, ok := errors.AsType[*requests.Error](err)
		if !ok || e.Code != requests.CodeAuthRequired || e.Status != 0 || e.Retryable || !errors.Is(err, gone) ||
			!strings.Contains(err.Error(), gone.Error()) || len(b.sent) != 0 {
			t.Errorf("%v after %d attempts", err, len(b.sent))
		}
	})
}
