package oidcprovider_test

import (
	"testing"
	"time"

	"github.com/heed-sdk/heed/interop/internal/optest"
	"github.com/heed-sdk/heed/interop/oidcprovider"
)

func TestServer(t *testing.T) {
	t.Parallel()
	s := oidcprovider.Start(t, oidcprovider.Config{})
	c := optest.NewClient(t, s.Issuer(), oidcprovider.ClientID, "")

	t.Run("approved", func(t *testing.T) {
		spent := optest.TestApproved(t, s, c, oidcprovider.User)
		if spent.Status != 400 || spent.String("error") != "invalid_grant" {
			t.Errorf("a spent device code: %d %s", spent.Status, spent.Raw)
		}
	})
	t.Run("denied", func(t *testing.T) { optest.TestDenied(t, s, c) })
	t.Run("revoked", func(t *testing.T) { optest.TestRevoke(t, s, c) })
	t.Run("no interval", func(t *testing.T) {
		if d := c.Device(optest.Scope); d.Body["interval"] != nil || d.Number("expires_in") != 600 {
			t.Errorf("device answer: %v", d.Body)
		}
	})
	t.Run("refresh", func(t *testing.T) {
		_, tokens := optest.TestRefresh(t, s, c)
		if a := c.Refresh(tokens.String("refresh_token")); a.String("error") != "invalid_grant" {
			t.Errorf("replaying a spent refresh token did not revoke the grant: %d %s", a.Status, a.Raw)
		}
	})
	t.Run("confidential", func(t *testing.T) {
		c := optest.NewClient(t, s.Issuer(), oidcprovider.ConfidentialID, oidcprovider.ConfidentialSecret)
		optest.TestRefresh(t, s, c)
		optest.TestRevoke(t, s, c)
	})
	t.Run("introspection", func(t *testing.T) {
		rs := optest.NewClient(t, s.Issuer(), oidcprovider.IntrospectorID, oidcprovider.IntrospectorSecret)
		a := rs.Introspect(optest.Approved(t, s, c).String("access_token"))
		if a.Body["active"] != true || a.String("sub") != oidcprovider.User {
			t.Errorf("a live token: %d %s", a.Status, a.Raw)
		}
		if a := rs.Introspect("nonsense"); a.Status != 200 || a.Body["active"] != false {
			t.Errorf("nonsense: %d %s", a.Status, a.Raw)
		}
	})
	t.Run("resource narrows the scope", func(t *testing.T) {
		d := c.Device(optest.Scope, "resource", oidcprovider.Resource)
		if err := s.Approve(t.Context(), d.String("verification_uri_complete"), d.String("user_code")); err != nil {
			t.Fatal(err)
		}
		if a := c.Poll(d.String("device_code")); a.String("scope") != "read" {
			t.Errorf("scope is %q, want %q: %s", a.String("scope"), "read", a.Raw)
		}
	})
	t.Run("unknown client", func(t *testing.T) {
		a := optest.NewClient(t, s.Issuer(), "nobody", "").Post("device_authorization_endpoint")
		if a.Status != 401 || a.String("error") != "invalid_client" {
			t.Errorf("got %d %s", a.Status, a.Raw)
		}
	})
}

func TestPace(t *testing.T) {
	t.Parallel()
	const minPoll = 400 * time.Millisecond
	s := oidcprovider.Start(t, oidcprovider.Config{
		AccessTTL: 7 * time.Second, Interval: time.Second, MinPoll: minPoll,
	})
	c := optest.NewClient(t, s.Issuer(), oidcprovider.ClientID, "")

	if got := c.Device(optest.Scope).Number("interval"); got != 1 {
		t.Errorf("interval is %v, want 1", got)
	}
	if got := optest.Approved(t, s, c).Number("expires_in"); got != 7 {
		t.Errorf("expires_in is %v, want 7", got)
	}
	t.Run("slow down", func(t *testing.T) { optest.TestSlowDown(t, c, minPoll) })
}

func TestExpired(t *testing.T) {
	t.Parallel()
	s := oidcprovider.Start(t, oidcprovider.Config{DeviceTTL: 2 * time.Second})
	optest.TestExpired(t, s, optest.NewClient(t, s.Issuer(), oidcprovider.ClientID, ""))
}
