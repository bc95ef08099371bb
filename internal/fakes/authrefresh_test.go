package fakes_test

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

// refresh presents a refresh token and returns the status, the access token and the refresh token or the error.
func (c asClient) refresh(token string) (status int, access, next string) {
	c.t.Helper()
	status, m := c.send(fakes.TokenPath, url.Values{"client_id": {"c"}, "refresh_token": {token}, "grant_type": {"refresh_token"}})
	access, _ = m["access_token"].(string)
	next, _ = m["refresh_token"].(string)
	if code, ok := m["error"].(string); ok {
		next = code
	}
	return status, access, next
}

func TestAuthServerRotates(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s := &fakes.AuthServer{}
		c := serveAS(t, s)
		s.Login("a1", "r1")
		_, a2, r2 := c.refresh("r1")
		status, a3, r3 := c.refresh(r2)
		if status != 200 || !s.Valid("a1") || !s.Valid(a2) || !s.Valid(a3) || r2 == r3 || len(s.Violations()) > 0 {
			t.Errorf("%d, violations %q", status, s.Violations())
		}
		// A spent one ends the whole login, and the tokens of others stay.
		s.Login("b1", "s1")
		if status, _, code := c.refresh("r1"); status != 400 || code != "invalid_grant" || s.Valid(a3) || s.Valid("a1") || !s.Valid("b1") {
			t.Errorf("reuse: %d %s", status, code)
		}
		if status, _, _ := c.refresh(r3); status != 400 {
			t.Errorf("the login goes on: %d", status)
		}
		if status, _, _ := c.refresh("nobody's"); status != 400 || s.Refreshes() != 5 || s.Reuses() != 1 {
			t.Errorf("%d, %d refreshes, %d reuses", status, s.Refreshes(), s.Reuses())
		}
		want := []string{"/token: the refresh token is spent", "/token: the refresh token is unknown"}
		if got := s.Violations(); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if !s.EndSession("s1") || s.EndSession("nobody's") || s.Valid("b1") {
			t.Error("the session goes on")
		}
	})
}

func TestAuthServerReuseGrace(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s := &fakes.AuthServer{ReuseGrace: 10 * time.Second}
		c := serveAS(t, s)
		s.Login("a1", "r1")
		_, a2, r2 := c.refresh("r1")
		time.Sleep(9 * time.Second)
		if _, a, r := c.refresh("r1"); a != a2 || r != r2 || len(s.Violations()) > 0 {
			t.Error("the answer within the grace is another one")
		}
		time.Sleep(time.Second)
		if status, _, _ := c.refresh("r1"); status != 400 || s.Reuses() != 1 {
			t.Errorf("after it: %d", status)
		}
	})
}

func TestAuthServerKeepsRefresh(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s := &fakes.AuthServer{KeepRefresh: true}
		c := serveAS(t, s)
		s.Login("", "r1")
		for range 3 {
			if status, a, r := c.refresh("r1"); status != 200 || !s.Valid(a) || r != "" {
				t.Errorf("%d %q", status, r)
			}
		}
	})
}

func TestAuthServerOddRefreshes(t *testing.T) {
	body := `{"access_token":"a9","refresh_token":"r9"}`
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s := &fakes.AuthServer{ReuseGrace: time.Minute, OddRefresh: map[int]fakes.RefreshAnswer{
			1: {AuthAnswer: fakes.Throttle(20)},
			2: {AuthAnswer: fakes.AuthAnswer{Drop: true}},
			3: {AuthAnswer: fakes.AuthAnswer{Drop: true}, Spend: true},
			4: {Cut: true},
			5: {AuthAnswer: fakes.AuthAnswer{Latency: 4}},
			6: {AuthAnswer: fakes.AuthAnswer{RawBody: &body}, Spend: true},
		}}
		c := serveAS(t, s)
		s.Login("", "r1")
		s.Login("", "s1")
		begin := time.Now()
		for i, want := range []struct {
			token  string
			status int
		}{{"r1", 429}, {"r1", 0}, {"r1", 0}, {"r1", 200}, {"r1", 200}, {"s1", 200}, {"r9", 200}} {
			status, access, _ := c.refresh(want.token)
			if status != want.status || (access == "") != (i < 4) || access != "" && !s.Valid(access) {
				t.Errorf("refresh %d: %d, access token %v", i+1, status, access != "")
			}
		}
		if took := time.Since(begin); took != 4*time.Second || len(s.Violations()) > 0 {
			t.Errorf("%v, %q", took, s.Violations())
		}
	})
}

func TestAuthServerRevokes(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s := &fakes.AuthServer{}
		c := serveAS(t, s)
		s.Login("a1", "r1")
		s.Login("b1", "s1")
		for _, token := range []string{"a1", "s1", "nobody's", ""} {
			form := url.Values{"client_id": {"c"}, "token_type_hint": {"refresh_token"}}
			want := 400
			if token != "" {
				form.Set("token", token)
				want = 200
			}
			if status, _ := c.send(fakes.RevokePath, form); status != want {
				t.Errorf("%q: %d", token, status)
			}
		}
		if s.Valid("a1") || s.Valid("b1") || !slices.Equal(s.Revoked(), []string{"a1", "s1", "nobody's"}) || len(s.Violations()) != 1 {
			t.Errorf("%q, %q", s.Revoked(), s.Violations())
		}
		if status, _, _ := c.refresh("r1"); status != 200 {
			t.Errorf("an access token that was revoked has ended its login: %d", status)
		}
		if status, _, _ := c.refresh("s1"); status != 400 {
			t.Errorf("a refresh token that was revoked is good: %d", status)
		}
		down := fakes.OAuthError(503, "temporarily_unavailable")
		s.Revocation = &down
		if status, _ := c.send(fakes.RevokePath, url.Values{"client_id": {"c"}, "token": {"r1"}}); status != 503 {
			t.Errorf("%d", status)
		}
	})
}
