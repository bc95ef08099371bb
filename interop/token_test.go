package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/requests"
)

// testToken is the life of one login's tokens: used, refreshed, refused, replaced and revoked. The parts come one after
// the other, because a refresh token is spent once.
func testToken(t *testing.T, s *server) {
	l := newLogin(t, s.config(publicID, "", oauth2.AuthStyleInParams, scopes...))
	l.decide = s.Approve
	token, err := l.run()
	if err != nil {
		t.Fatal(err)
	}
	wantUser(t, s, oauth2.StaticTokenSource(token))

	r := &refresher{config: &l.flow.Config, client: newClient(t), token: token}
	heed := auth.Refresher{Config: l.flow.Config, HTTPClient: r.client, Strict: true}
	for _, by := range []struct {
		name string
		// x/oauth2 takes a token that Heed has returned as one of its own, and refreshes it once it has expired.
		refresh func(context.Context, *oauth2.Token) (*oauth2.Token, error)
	}{{"x/oauth2", r.renew}, {"auth.Refresher", heed.Refresh}} {
		t.Run("refreshed by "+by.name, func(t *testing.T) {
			fresh, err := by.refresh(t.Context(), r.token)
			if err != nil {
				t.Fatal(err)
			}
			if fresh.RefreshToken == r.token.RefreshToken || fresh.RefreshToken == "" {
				t.Error("the refresh token was not rotated")
			}
			if fresh.AccessToken == r.token.AccessToken || !fresh.Valid() {
				t.Error("the access token was not replaced")
			}
			r.token = fresh
			wantUser(t, s, r)
		})
	}
	t.Run("nonsense", func(t *testing.T) { testNonsense(t, s) })
	t.Run("refused and replaced", func(t *testing.T) { testReplaced(t, s, r) })
	t.Run("revoked", func(t *testing.T) { testRevoked(t, s, r) })
}

// userInfo asks for what the server knows of the user, and returns the status of every answer.
func userInfo(t *testing.T, s *server, tokens oauth2.TokenSource, base http.RoundTripper) (
	sub string, statuses []int, err error,
) {
	t.Helper()
	transport := &requests.Transport{Tokens: tokens, Base: base}
	transport.Hooks.OnRequestEnd = func(_ context.Context, r requests.Result) { statuses = append(statuses, r.Status) }
	client, err := requests.NewClient(s.Issuer(), transport)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.userInfoURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	var info struct{ Sub string }
	err = client.DoJSON(req, &info)
	return info.Sub, statuses, err
}

// wantUser checks that the server takes the token.
func wantUser(t *testing.T, s *server, tokens oauth2.TokenSource) {
	t.Helper()
	sub, statuses, err := userInfo(t, s, tokens, newClient(t).Transport)
	if err != nil || sub != user || !slices.Equal(statuses, []int{200}) {
		t.Errorf("userinfo: %v, subject %q: %v", statuses, sub, err)
	}
}

// wantRefused checks how a request ended whose token the server does not take.
func wantRefused(t *testing.T, err error, code requests.Code, status int, message, token string) {
	t.Helper()
	e, ok := errors.AsType[*requests.Error](err)
	if !ok || e.Code != code || e.Status != status || e.Message != message || e.Retryable {
		t.Errorf("want %s with %d %q, got %#v", code, status, message, err)
	}
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, token) {
		t.Errorf("the error has the token in it: %s", text)
	}
}

// testNonsense sends a token that the server never issued. Nobody can replace it, so one request is all.
func testNonsense(t *testing.T, s *server) {
	const nonsense = "nonsense-0123456789"
	_, statuses, err := userInfo(t, s, oauth2.StaticTokenSource(&oauth2.Token{AccessToken: nonsense}), newClient(t).Transport)
	// zitadel answers in plain text, so that the status is all there is to say.
	message := map[string]string{oidcProvider: "invalid_token", zitadelOP: "Unauthorized"}[s.name]
	wantRefused(t, err, requests.CodeAuthRequired, 401, message, nonsense)
	if !slices.Equal(statuses, []int{401}) {
		t.Errorf("the answers were %v", statuses)
	}
}

// testReplaced sends several requests at once with a token that the server refuses. They are all refused before the one
// refresh begins. Here a second one would be worse than waste: oidc-provider revokes everything when a refresh token comes
// again.
func testReplaced(t *testing.T, s *server, r *refresher) {
	const together = 4
	r.token = &oauth2.Token{AccessToken: "nonsense", RefreshToken: r.token.RefreshToken}
	base := &tally{next: newClient(t).Transport, left: together, all: make(chan struct{})}
	r.after = base.all

	refreshes := r.refreshes
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			sub, statuses, err := userInfo(t, s, r, base)
			if err != nil || sub != user || !slices.Equal(statuses, []int{401, 200}) {
				t.Errorf("userinfo: %v, subject %q: %v", statuses, sub, err)
			}
		})
	}
	all.Wait()
	r.after = nil
	if n := r.refreshes - refreshes; n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	wantUser(t, s, r)

	// A server that goes on refusing is asked twice and no more.
	_, statuses, err := userInfo(t, s, alwaysBad{}, newClient(t).Transport)
	e, ok := errors.AsType[*requests.Error](err)
	if !ok || e.Code != requests.CodeAuthRequired || !slices.Equal(statuses, []int{401, 401}) {
		t.Errorf("refused twice: %v: %v", statuses, err)
	}
}

// testRevoked revokes the refresh token, with which the access token dies. oidc-provider refuses it like nonsense, so that a
// refresh is tried, for which there is no grant any more. To zitadel the request is forbidden, and a refresh would not help.
func testRevoked(t *testing.T, s *server, r *refresher) {
	token := r.token
	revoke(t, s, token.RefreshToken)
	refreshes := r.refreshes
	_, statuses, err := userInfo(t, s, r, newClient(t).Transport)
	if s.name == zitadelOP {
		wantRefused(t, err, requests.CodeForbidden, 403, "Forbidden", token.AccessToken)
		if !slices.Equal(statuses, []int{403}) || r.refreshes != refreshes {
			t.Errorf("the answers were %v, and there were %d refreshes", statuses, r.refreshes-refreshes)
		}
		return
	}
	e, ok := errors.AsType[*requests.Error](err)
	gone, isGrant := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || e.Code != requests.CodeAuthRequired || e.Status != 401 || !isGrant || gone.ErrorCode != "invalid_grant" {
		t.Errorf("want auth_required because of invalid_grant, got %#v", err)
	}
	if !slices.Equal(statuses, []int{401}) || r.refreshes != refreshes+1 {
		t.Errorf("the answers were %v, and there were %d refreshes", statuses, r.refreshes-refreshes)
	}
	text := fmt.Sprintf("%v %+v", err, err)
	if strings.Contains(text, token.AccessToken) || strings.Contains(text, token.RefreshToken) {
		t.Errorf("the error has a token in it: %s", text)
	}
}

// revoke revokes a token, because the SDK does not yet.
func revoke(t *testing.T, s *server, token string) {
	t.Helper()
	body := strings.NewReader(url.Values{"token": {token}, "client_id": {publicID}}.Encode())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.revocationURL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := newClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("revocation: %s %s", res.Status, bytes.TrimSpace(body))
	}
}

// refresher is a requests.Refresher on top of x/oauth2, as somebody writes it who has one already.
type refresher struct {
	config *oauth2.Config
	client *http.Client
	after  <-chan struct{} // if set, no refresh begins before it is closed

	mu        sync.Mutex
	token     *oauth2.Token
	refreshes int
}

var _ requests.Refresher = (*refresher)(nil)

func (r *refresher) Token() (*oauth2.Token, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.token, nil
}

func (r *refresher) Refresh(ctx context.Context, refused *oauth2.Token) (*oauth2.Token, error) {
	if r.after != nil {
		select {
		case <-r.after:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if refused.AccessToken != r.token.AccessToken {
		return r.token, nil
	}
	r.refreshes++
	fresh, err := r.renew(ctx, r.token)
	if err != nil {
		return nil, err
	}
	r.token = fresh
	return fresh, nil
}

// renew spends the refresh token.
func (r *refresher) renew(ctx context.Context, token *oauth2.Token) (*oauth2.Token, error) {
	expired := *token
	expired.Expiry = time.Now().Add(-time.Minute)
	ctx = context.WithValue(ctx, oauth2.HTTPClient, r.client)
	return r.config.TokenSource(ctx, &expired).Token()
}

// alwaysBad replaces one bad token by another.
type alwaysBad struct{}

func (alwaysBad) Token() (*oauth2.Token, error) { return &oauth2.Token{AccessToken: "nonsense"}, nil }

func (alwaysBad) Refresh(context.Context, *oauth2.Token) (*oauth2.Token, error) {
	return &oauth2.Token{AccessToken: "more-nonsense"}, nil
}

// tally closes a channel when so many answers have come that refuse a token.
type tally struct {
	next http.RoundTripper
	all  chan struct{}

	mu   sync.Mutex
	left int
}

func (b *tally) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.left--; b.left == 0 {
			close(b.all)
		}
	}
	return res, err
}
