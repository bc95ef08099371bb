package optest

import (
	"context"
	"testing"
	"time"
)

// Server is what the flows need of a server; all of ours have it.
type Server interface {
	Issuer() string
	Approve(ctx context.Context, address, userCode string) error
	Deny(ctx context.Context, address, userCode string) error
}

// Scope asks for everything that the flows look at: an ID, a refresh token, and a scope of our own.
const Scope = "openid offline_access read"

// Approved runs a device flow to its token.
func Approved(t *testing.T, s Server, c *Client) Answer {
	t.Helper()
	d := c.Device(Scope)
	c.wantError(c.Poll(d.String("device_code")), 400, "authorization_pending")
	if err := s.Approve(t.Context(), d.String("verification_uri_complete"), d.String("user_code")); err != nil {
		t.Fatal(err)
	}
	return c.wantToken(c.Poll(d.String("device_code")))
}

// TestApproved checks the token of an approved flow, that the user may as well type the code, and that a device code is
// spent once. It returns the last answer.
func TestApproved(t *testing.T, s Server, c *Client, subject string) Answer {
	t.Helper()
	a := Approved(t, s, c)
	if a.String("refresh_token") == "" || a.String("id_token") == "" || a.Number("expires_in") <= 0 {
		t.Errorf("the token answer lacks something: %v", a.Body)
	}
	if info := c.UserInfo(a.String("access_token")); info.String("sub") != subject {
		t.Errorf("userinfo: %d %s", info.Status, info.Raw)
	}
	if info := c.UserInfo("nonsense"); info.Status != 401 {
		t.Errorf("userinfo with a bad token: %d %s", info.Status, info.Raw)
	}

	d := c.Device(Scope)
	if err := s.Approve(t.Context(), d.String("verification_uri"), d.String("user_code")); err != nil {
		t.Fatal(err)
	}
	c.wantToken(c.Poll(d.String("device_code")))
	return c.Poll(d.String("device_code"))
}

// TestDenied checks that a denied flow ends, and that a code that nobody was given cannot be approved or denied.
func TestDenied(t *testing.T, s Server, c *Client) {
	t.Helper()
	d := c.Device(Scope)
	if err := s.Deny(t.Context(), d.String("verification_uri_complete"), d.String("user_code")); err != nil {
		t.Fatal(err)
	}
	c.wantError(c.Poll(d.String("device_code")), 400, "access_denied")

	if s.Approve(t.Context(), d.String("verification_uri"), "AAAA-AAAA") == nil {
		t.Error("a code that does not exist was approved")
	}
	if s.Deny(t.Context(), d.String("verification_uri"), "AAAA-AAAA") == nil {
		t.Error("a code that does not exist was denied")
	}
}

// TestExpired checks a device code that nobody approves. The server's DeviceTTL must be two seconds.
func TestExpired(t *testing.T, s Server, c *Client) {
	t.Helper()
	asked := time.Now()
	d := c.Device(Scope)
	if got := d.Number("expires_in"); got != 2 {
		t.Errorf("expires_in is %v, want 2", got)
	}
	for {
		a := c.Poll(d.String("device_code"))
		if a.String("error") == "expired_token" {
			break
		}
		c.wantError(a, 400, "authorization_pending")
		if time.Since(asked) > 5*time.Second {
			t.Fatal("the code outlived its two seconds by three")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if life := time.Since(asked); life < time.Second {
		t.Errorf("the code lived for %v", life)
	}
}

// TestSlowDown checks that a poll sooner than the server's MinPoll gets slow_down, and that one in time does not.
func TestSlowDown(t *testing.T, c *Client, minPoll time.Duration) {
	t.Helper()
	code := c.Device(Scope).String("device_code")
	c.wantError(c.Poll(code), 400, "authorization_pending")
	c.wantError(c.Poll(code), 400, "slow_down")
	time.Sleep(minPoll + 50*time.Millisecond)
	c.wantError(c.Poll(code), 400, "authorization_pending")
}

// TestRefresh checks that a refresh token is spent once, and returns the answer to the second use of the first one and
// the tokens that the first use brought.
func TestRefresh(t *testing.T, s Server, c *Client) (replay, tokens Answer) {
	t.Helper()
	first := Approved(t, s, c)
	second := c.wantToken(c.Refresh(first.String("refresh_token")))
	if second.String("refresh_token") == "" || second.String("refresh_token") == first.String("refresh_token") {
		t.Error("the refresh token was not rotated")
	}
	if second.String("access_token") == first.String("access_token") {
		t.Error("the access token is the old one")
	}
	replay = c.Refresh(first.String("refresh_token"))
	c.wantError(replay, 400, "invalid_grant")
	return replay, second
}

// TestRevoke checks that a revoked refresh token and its access token are dead, and that revoking nonsense is no error.
func TestRevoke(t *testing.T, s Server, c *Client) {
	t.Helper()
	a := Approved(t, s, c)
	for _, token := range []string{a.String("refresh_token"), "nonsense"} {
		if r := c.Revoke(token); r.Status != 200 {
			t.Errorf("revocation: %d %s", r.Status, r.Raw)
		}
	}
	c.wantError(c.Refresh(a.String("refresh_token")), 400, "invalid_grant")
	if info := c.UserInfo(a.String("access_token")); info.Status < 400 {
		t.Errorf("the access token outlived its grant: %d %s", info.Status, info.Raw)
	}
}

func (c *Client) wantToken(a Answer) Answer {
	c.t.Helper()
	if a.Status != 200 || a.String("access_token") == "" || a.String("token_type") != "Bearer" {
		c.t.Fatalf("want a token, got %d %s", a.Status, a.Raw)
	}
	return a
}

func (c *Client) wantError(a Answer, status int, code string) {
	c.t.Helper()
	if a.Status != status || a.String("error") != code {
		c.t.Fatalf("want %d %s, got %d %s", status, code, a.Status, a.Raw)
	}
}
