package zitadel_test

import (
	"testing"
	"time"

	"github.com/heed-sdk/heed/interop/internal/optest"
	"github.com/heed-sdk/heed/interop/zitadel"
)

func TestServer(t *testing.T) {
	t.Parallel()
	s := zitadel.Start(t, zitadel.Config{})
	c := optest.NewClient(t, s.Issuer(), zitadel.ClientID, "")

	t.Run("approved", func(t *testing.T) {
		spent := optest.TestApproved(t, s, c, zitadel.User)
		if spent.Status != 400 || spent.String("error") != "access_denied" {
			t.Errorf("a spent device code: %d %s", spent.Status, spent.Raw)
		}
	})
	t.Run("denied", func(t *testing.T) { optest.TestDenied(t, s, c) })
	t.Run("revoked", func(t *testing.T) { optest.TestRevoke(t, s, c) })
	t.Run("defaults", func(t *testing.T) {
		if d := c.Device(optest.Scope); d.Number("interval") != 5 || d.Number("expires_in") != 300 {
			t.Errorf("device answer: %v", d.Body)
		}
	})
	t.Run("refresh", func(t *testing.T) {
		_, tokens := optest.TestRefresh(t, s, c)
		if a := c.Refresh(tokens.String("refresh_token")); a.Status != 200 {
			t.Errorf("replaying a spent refresh token broke the chain: %d %s", a.Status, a.Raw)
		}
	})
	t.Run("confidential", func(t *testing.T) {
		own := optest.NewClient(t, s.Issuer(), zitadel.ConfidentialID, zitadel.ConfidentialSecret)
		optest.TestRefresh(t, s, own)
		optest.TestRevoke(t, s, own)
		if a := own.Introspect(optest.Approved(t, s, own).String("access_token")); a.Body["active"] != true {
			t.Errorf("introspection of an own token: %d %s", a.Status, a.Raw)
		}
		if a := own.Introspect(optest.Approved(t, s, c).String("access_token")); a.Body["active"] != false {
			t.Errorf("introspection of another client's token: %d %s", a.Status, a.Raw)
		}
	})
	t.Run("unknown client", func(t *testing.T) {
		a := optest.NewClient(t, s.Issuer(), "nobody", "").Post("device_authorization_endpoint")
		if a.Status != 500 || a.String("error") != "server_error" {
			t.Errorf("got %d %s", a.Status, a.Raw)
		}
	})
	t.Run("unknown code", func(t *testing.T) {
		if a := c.Poll("nonsense"); a.Status != 400 || a.String("error") != "access_denied" {
			t.Errorf("got %d %s", a.Status, a.Raw)
		}
	})
}

func TestPace(t *testing.T) {
	t.Parallel()
	const minPoll = 400 * time.Millisecond
	s := zitadel.Start(t, zitadel.Config{
		AccessTTL: 2 * time.Second, Interval: time.Second, MinPoll: minPoll,
	})
	c := optest.NewClient(t, s.Issuer(), zitadel.ClientID, "")

	optest.TestSlowDown(t, c, minPoll)
	d := c.Device(optest.Scope)
	if got := d.Number("interval"); got != 1 {
		t.Errorf("interval is %v, want 1", got)
	}
	if err := s.Approve(t.Context(), d.String("verification_uri_complete"), d.String("user_code")); err != nil {
		t.Fatal(err)
	}
	a := c.Poll(d.String("device_code"))
	if a.Number("expires_in") > 2 || a.Number("expires_in") < 1 {
		t.Errorf("expires_in is %v, want at most 2", a.Number("expires_in"))
	}
	time.Sleep(2100 * time.Millisecond)
	if info := c.UserInfo(a.String("access_token")); info.Status != 403 {
		t.Errorf("userinfo with an expired token: %d %s", info.Status, info.Raw)
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	s := zitadel.Start(t, zitadel.Config{DeviceTTL: 2 * time.Second})
	optest.TestExpired(t, s, optest.NewClient(t, s.Issuer(), zitadel.ClientID, ""))
}
