package auth_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestInvalidGrant(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		s := r.open()
		time.Sleep(55 * time.Minute)
		r.server.EndSession(firstRefresh)
		r.old(s) // the access token may be good all the same
		r.old(s)
		r.refreshed(1)
		if _, err := r.store.MemStore.Load(t.Context(), storeKey); !errors.Is(err, auth.ErrStoreNotFound) {
			t.Errorf("the login is still there: %v", err)
		}
		time.Sleep(5 * time.Minute)
		for range 3 {
			if reason := ended(t, s); reason != "refused" {
				t.Error(reason)
			}
		}
		_, err := s.Token()
		if e, ok := errors.AsType[*auth.RefreshError](err); !ok || e.Status != 400 || e.Code != "invalid_grant" {
			t.Errorf("the cause is %v", e)
		}
		r.refreshed(1)

		// Somebody logs in again, and out.
		r.server.Login("canary-again", "canary-again-refresh")
		c := firstLogin(time.Hour)
		c.AccessToken, c.RefreshToken = "canary-again", "canary-again-refresh"
		r.save(c)
		if r.token(s) != "canary-again" {
			t.Error("the new login is not taken")
		}
		if err := r.store.MemStore.Delete(t.Context(), storeKey); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if reason := ended(t, s); reason != "logged_out" {
			t.Error(reason)
		}
		r.refreshed(1)
	})
}

// A token that a resource server has refused is not handed out again once its refresh token was refused, too.
func TestRefusedTwice(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		s := r.open()
		tok, err := s.Token()
		if err != nil {
			t.Fatal(err)
		}
		r.server.EndSession(firstRefresh)
		for range 2 {
			if _, err := s.Refresh(t.Context(), tok); !errors.Is(err, auth.ErrSessionRefused) {
				t.Errorf("the refresh says %v", err)
			}
			if reason := ended(t, s); reason != "refused" {
				t.Error(reason)
			}
		}
		r.refreshed(1)
	})
}

// GitHub has a code of its own, and sends it with status 200.
func TestRefusedInOtherWords(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.server.OddRefresh = odd(refusing(plain(200, `{"error":"bad_refresh_token","error_description":"incorrect or expired"}`)))
		s := r.open()
		time.Sleep(2 * time.Hour)
		for range 2 {
			if reason := ended(t, s); reason != "refused" {
				t.Error(reason)
			}
		}
		r.refreshed(1)
		if _, err := r.store.MemStore.Load(t.Context(), storeKey); !errors.Is(err, auth.ErrStoreNotFound) {
			t.Errorf("the login is still there: %v", err)
		}
	})
}

// Some servers say nothing at all about a refresh token that they do not take.
func TestRefusedWithoutAWord(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		empty := ""
		r.server.OddRefresh = map[int]fakes.RefreshAnswer{1: {AuthAnswer: fakes.AuthAnswer{Status: 400, RawBody: &empty}}}
		s := r.open()
		time.Sleep(2 * time.Hour)
		if reason := ended(t, s); reason != "refused" {
			t.Error(reason)
		}
		c, err := r.store.MemStore.Load(t.Context(), storeKey)
		if _, noted := c.Unanswered(); err != nil || noted {
			t.Errorf("the store has %v, %v", c, err)
		}
		// It was somebody else who answered.
		if tok, err := s.Token(); err != nil || tok.AccessToken == "" {
			t.Errorf("the login is lost: %v", err)
		}
	})
}

func TestInvalidGrantInMemory(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		s := r.inMemory()
		time.Sleep(55 * time.Minute)
		r.server.EndSession(firstRefresh)
		r.old(s)
		r.old(s)
		time.Sleep(5 * time.Minute)
		for range 3 {
			if reason := ended(t, s); reason != "refused" {
				t.Error(reason)
			}
		}
		if c := s.Credential(); c.RefreshToken != "" || c.Presented != nil {
			t.Errorf("kept: %v", c)
		}
		r.refreshed(1)
	})
}

// Between the reading of the store and the refusal, a process that has no lock may have replaced the token.
func TestInvalidGrantForAReplacedToken(t *testing.T) {
	for _, tt := range []struct {
		name     string
		theirs   time.Duration // life of their token
		want     string        // "" is a fresh one
		requests int
	}{
		{"by a good one", time.Hour, "canary-theirs", 1},
		{"by one that has expired as well", 0, "", 2},
	} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newSourceRig(t, time.Hour)
			r.store.onLock = func() error { return errNoLock }
			r.server.OddRefresh = odd(fakes.RefreshAnswer{AuthAnswer: fakes.AuthAnswer{Status: 400, Body: []byte(`{"error":"invalid_grant"}`), Latency: 2}})
			s := r.open()
			time.Sleep(time.Hour)
			time.AfterFunc(time.Second, func() {
				c := firstLogin(tt.theirs + 1)
				c.AccessToken, c.RefreshToken = "canary-theirs", "canary-their-refresh"
				r.server.Login(c.AccessToken, c.RefreshToken)
				r.save(c)
			})
			if got := r.token(s); got != tt.want && tt.want != "" || !r.server.Valid(got) {
				t.Errorf("%s: %s", tt.name, got)
			}
			if r.stored().RefreshToken == firstRefresh {
				t.Error("what they have stored is gone")
			}
			r.refreshed(tt.requests)
		})
	}
}

// A refused token that cannot be deleted is not presented again.
func TestInvalidGrantAndDeleteFails(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.store.onDrop = func() error { return errSave }
		s := r.open()
		time.Sleep(time.Hour)
		r.server.EndSession(firstRefresh)
		for range 3 {
			if reason := ended(t, s); reason != "refused" {
				t.Error(reason)
			}
		}
		if !strings.HasPrefix(r.names(), "store_trouble refresh_failed ") {
			t.Errorf("events %s", r.names())
		}
		r.refreshed(1)
	})
}

// When the store cannot be read after a refusal, nothing is deleted.
func TestInvalidGrantAndLoadFails(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		s := r.open()
		loads := 0
		r.store.onLoad = func() error {
			if loads++; loads == 2 {
				return &auth.StoreError{Op: auth.OpLoad, Reason: auth.ErrStoreUnavailable}
			}
			return nil
		}
		time.Sleep(time.Hour)
		r.server.EndSession(firstRefresh)
		_, err := s.Token()
		if !errors.Is(err, auth.ErrSessionRefused) || !errors.Is(err, auth.ErrStoreUnavailable) {
			t.Errorf("%v", err)
		}
		if r.stored().RefreshToken != firstRefresh {
			t.Error("the login is gone")
		}
		if reason := ended(t, s); reason != "reply_lost" {
			t.Error(reason)
		}
		r.refreshed(1)
	})
}

func TestLoggedOutElsewhere(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		s := r.open()
		if err := r.store.Delete(t.Context(), storeKey); err != nil {
			t.Fatal(err)
		}
		r.old(s)
		time.Sleep(time.Hour)
		if reason := ended(t, s); reason != "logged_out" {
			t.Error(reason)
		}
		r.refreshed(0)
	})
}

// Without a Refresher a login is handed out as long as it lasts, and another process's is still found.
func TestWithoutRefresher(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		store := &auth.MemStore{}
		key := auth.Key{Issuer: "https://as.test", ClientID: "c"}
		c := auth.Credential{AccessToken: "first", RefreshToken: "unused", Expiry: time.Now().Add(time.Hour), Obtained: time.Now()}
		if err := store.Save(t.Context(), key, c); err != nil {
			t.Fatal(err)
		}
		s, err := auth.LoadTokenSource(t.Context(), auth.SourceConfig{Store: store, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Minute)
		if tok, err := s.Token(); err != nil || tok.AccessToken != "first" {
			t.Errorf("within its life: %v, %v", tok, err)
		}
		time.Sleep(time.Minute)
		if reason := ended(t, s); reason != "not_refreshable" {
			t.Error(reason)
		}
		c.AccessToken, c.Expiry, c.Obtained = "second", time.Now().Add(time.Hour), time.Now()
		if err := store.Save(t.Context(), key, c); err != nil {
			t.Fatal(err)
		}
		if tok, err := s.Token(); err != nil || tok.AccessToken != "second" {
			t.Errorf("after another login: %v, %v", tok, err)
		}
	})
}
