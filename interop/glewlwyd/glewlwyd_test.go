package glewlwyd_test

import (
	"testing"
	"time"

	"github.com/heed-sdk/heed/interop/glewlwyd"
	"github.com/heed-sdk/heed/interop/internal/optest"
)

func TestServer(t *testing.T) {
	t.Parallel()
	s := glewlwyd.Start(t, glewlwyd.Config{})
	c := optest.NewClient(t, s.Issuer(), glewlwyd.ClientID, "")

	t.Run("defaults", func(t *testing.T) {
		if d := c.Device(optest.Scope); d.Number("interval") != 5 || d.Number("expires_in") != 600 {
			t.Errorf("device answer: %v", d.Body)
		}
	})
	t.Run("approved", func(t *testing.T) {
		code, tokens := approved(t, s, c)
		if tokens.String("token_type") != "bearer" || tokens.Number("expires_in") != 3600 || tokens.Number("iat") <= 0 ||
			tokens.String("id_token") == "" || tokens.String("scope") != optest.Scope {
			t.Errorf("the token answer: %v", tokens.Body)
		}
		if info := c.UserInfo(tokens.String("access_token")); info.Status != 200 || info.String("sub") == "" {
			t.Errorf("userinfo: %d %s", info.Status, info.Raw)
		}
		want(t, "a spent code", c.Poll(code), 400, `{"error":"access_denied"}`)
		want(t, "an unknown code", c.Poll("nonsense"), 400, `{"error":"access_denied"}`)
		want(t, "userinfo with nonsense", c.UserInfo("nonsense"), 401, "")
	})
	t.Run("typed", func(t *testing.T) {
		d := c.Device(optest.Scope)
		if err := s.Approve(t.Context(), d.String("verification_uri"), d.String("user_code")); err != nil {
			t.Fatal(err)
		}
		if s.Approve(t.Context(), d.String("verification_uri"), "AAAA-AAAA") == nil {
			t.Error("a code that does not exist was approved")
		}
	})
	t.Run("refresh", func(t *testing.T) {
		_, first := approved(t, s, c)
		second := c.Refresh(first.String("refresh_token"))
		if rotated := second.String("refresh_token"); rotated == "" || rotated == first.String("refresh_token") {
			t.Errorf("the refresh token was not rotated: %d %s", second.Status, second.Raw)
		}
		want(t, "a spent refresh token", c.Refresh(first.String("refresh_token")), 400, "")
		want(t, "the refresh token after the spent one's replay", c.Refresh(second.String("refresh_token")), 400, "")
	})
	t.Run("revocation", func(t *testing.T) {
		_, public := approved(t, s, c)
		want(t, "a public client's", c.Revoke(public.String("refresh_token")), 401, "")
		own := optest.NewClient(t, s.Issuer(), glewlwyd.ConfidentialID, glewlwyd.ConfidentialSecret)
		_, tokens := approved(t, s, own)
		for _, name := range []string{"refresh_token", "access_token"} {
			want(t, "the "+name+"'s", own.Revoke(tokens.String(name)), 200, "")
		}
		want(t, "the revoked refresh token", own.Refresh(tokens.String("refresh_token")), 400, "")
		want(t, "the revoked access token", own.UserInfo(tokens.String("access_token")), 401, "")
	})
	t.Run("unknown client", func(t *testing.T) {
		a := optest.NewClient(t, s.Issuer(), "nobody", "").Post("device_authorization_endpoint", "scope", "openid")
		want(t, "the device answer", a, 403, `{"error":"unauthorized_client"}`)
	})
}

// approved runs a device flow to its token.
func approved(t *testing.T, s *glewlwyd.Server, c *optest.Client) (code string, tokens optest.Answer) {
	t.Helper()
	d := c.Device(optest.Scope)
	if err := s.Approve(t.Context(), d.String("verification_uri_complete"), d.String("user_code")); err != nil {
		t.Fatal(err)
	}
	code = d.String("device_code")
	if tokens = c.Poll(code); tokens.Status != 200 {
		t.Fatalf("want a token, got %d %s", tokens.Status, tokens.Raw)
	}
	return code, tokens
}

func want(t *testing.T, what string, a optest.Answer, status int, body string) {
	t.Helper()
	if a.Status != status || a.Raw != body {
		t.Errorf("%s: %d %q, want %d %q", what, a.Status, a.Raw, status, body)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	s := glewlwyd.Start(t, glewlwyd.Config{DeviceTTL: 3 * time.Second, AccessTTL: 7 * time.Second, Interval: time.Second})
	c := optest.NewClient(t, s.Issuer(), glewlwyd.ClientID, "")

	if _, tokens := approved(t, s, c); tokens.Number("expires_in") != 7 {
		t.Errorf("expires_in is %v, want 7", tokens.Number("expires_in"))
	}
	glewlwyd.EarlyInSecond()
	asked := time.Now()
	d := c.Device(optest.Scope)
	if d.Number("interval") != 1 || d.Number("expires_in") != 3 {
		t.Errorf("device answer: %v", d.Body)
	}
	code := d.String("device_code")
	want(t, "the first poll", c.Poll(code), 400, `{"error":"authorization_pending"}`)
	want(t, "a poll at once", c.Poll(code), 400, `{"error":"slow_down"}`)
	time.Sleep(time.Until(asked.Add(5 * time.Second)))
	want(t, "a poll too late", c.Poll(code), 400, `{"error":"expired_token"}`)
}
