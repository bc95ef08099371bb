package auth_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// Two commands that are started together refresh once.
func TestAnotherProcessHasRefreshed(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.server.OddRefresh = odd(refusing(fakes.AuthAnswer{Latency: 2}))
		first, second := r.open(), r.open()
		time.Sleep(time.Hour)
		got := make(chan string)
		for _, s := range []*auth.TokenSource{first, second} {
			go func() { got <- r.token(s) }()
		}
		if a, b := <-got, <-got; a != b || a == firstAccess {
			t.Error("they have different tokens")
		}
		if r.names() != "refreshed refreshed" {
			t.Errorf("events %s", r.names())
		}
		var by []bool
		for _, e := range r.events {
			by = append(by, e.(auth.Refreshed).ByOther)
		}
		if !slices.Equal(by, []bool{false, true}) {
			t.Errorf("by another: %v", by)
		}
		r.refreshed(1)
	})
}

// Some servers give the same access token a longer life.
func TestAnotherProcessHasTheSameTokenForLonger(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		s := r.open()
		time.Sleep(time.Hour)
		r.save(firstLogin(time.Hour))
		r.old(s)
		r.refreshed(0)
		if tok, err := s.Refresh(t.Context(), &oauth2.Token{AccessToken: firstAccess}); err != nil || tok.AccessToken == firstAccess {
			t.Errorf("the refused token again: %v", err)
		}
		r.refreshed(1)
	})
}

// Where there are no locks to be had, an event says so, and the store is read again while somebody else is at it.
func TestNoLocksToBeHad(t *testing.T) {
	theirs := func() auth.Credential {
		c := firstLogin(time.Hour)
		c.AccessToken, c.RefreshToken = "canary-theirs", "canary-their-refresh"
		return c
	}
	for name, tt := range map[string]struct {
		noted    time.Duration // before the call; negative is never
		stored   time.Duration // after the call, by the other process; negative is never
		want     string        // a token, the reason of a session's end, or an error
		requests int
		within   time.Duration
	}{
		"nobody is at it":                 {-1, -1, "fresh", 1, 0},
		"somebody is, and stores":         {0, 3 * time.Second, "canary-theirs", 0, 5 * time.Second},
		"somebody was, and died":          {time.Minute + 1, -1, "reply_lost", 0, 0},
		"somebody was, not long ago":      {55 * time.Second, -1, "reply_lost", 0, 7 * time.Second},
		"somebody is, and takes too long": {0, -1, "locked", 0, time.Minute},
		"the clock was set back":          {-2 * time.Hour, -1, "reply_lost", 0, 0},
	} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newSourceRig(t, time.Hour)
			r.store.onLock = func() error { return errNoLock }
			s := r.open()
			time.Sleep(time.Hour)
			if tt.noted != -1 {
				c := r.stored()
				c.Present(time.Now().Add(-tt.noted))
				r.save(c)
			}
			if tt.stored >= 0 {
				time.AfterFunc(tt.stored, func() { r.save(theirs()) })
			}
			begin := time.Now()
			tok, err := s.Token()
			got := "fresh"
			switch e, isEnd := errors.AsType[*auth.SessionExpired](err); {
			case isEnd:
				got = string(e.Reason)
			case errors.Is(err, auth.ErrStoreLocked):
				got = "locked"
			case err != nil:
				got = err.Error()
			case !r.server.Valid(tok.AccessToken) || tok.AccessToken == firstAccess:
				got = tok.AccessToken
			}
			if took := time.Since(begin); got != tt.want || took > tt.within {
				t.Errorf("%s: %s after %v", name, got, took)
			}
			if !strings.HasPrefix(r.names(), "store_trouble ") {
				t.Errorf("%s: events %s", name, r.names())
			}
			r.refreshed(tt.requests)
		})
	}
}

// Somebody who was at it and died is not waited for inside the grace window.
func TestNoLocksInsideTheGrace(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.store.onLock = func() error { return errNoLock }
		r.cfg.ReuseGrace, r.server.ReuseGrace = 10*time.Second, 10*time.Second
		s := r.open()
		time.Sleep(time.Hour)
		c := r.stored()
		c.Present(time.Now())
		r.save(c)
		if _, err := r.cfg.Refresher.Refresh(t.Context(), c.Token()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if r.fresh(s); time.Since(begin) != 0 {
			t.Errorf("after %v", time.Since(begin))
		}
		r.refreshed(2)
	})
}

// A store may see before the bound that it will not get the lock. Nothing is sent then.
func TestLockGivenUp(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.store.onLock = func() error { return &auth.StoreError{Op: auth.OpLock, Reason: auth.ErrStoreLocked} }
		s := r.open()
		time.Sleep(time.Hour)
		if _, err := s.Token(); !errors.Is(err, auth.ErrStoreLocked) || r.names() != "refresh_failed" {
			t.Errorf("%v, events %s", err, r.names())
		}
		r.refreshed(0)
	})
}

// A store without locks at all is read again just the same.
func TestStoreWithoutLocks(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.cfg.Store = struct{ auth.Store }{r.store} // which hides its other methods
		s, other := r.open(), r.open()
		time.Sleep(time.Hour)
		if r.fresh(s) != r.token(other) {
			t.Error("they have different tokens")
		}
		if r.names() != "refreshed refreshed" {
			t.Errorf("events %s", r.names())
		}
		r.refreshed(1)
	})
}

// A lock that somebody holds is waited for no longer than the bound, and by no caller longer than it lives.
func TestLockHeldElsewhere(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.cfg.Timeout = 20 * time.Second
		s := r.open()
		unlock, err := r.store.MemStore.Lock(t.Context(), storeKey)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(55 * time.Minute)
		r.old(s)
		time.Sleep(5 * time.Minute)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := s.TokenContext(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, auth.ErrStoreLocked) || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if _, err := s.Token(); !errors.Is(err, auth.ErrStoreLocked) || time.Since(begin) != 20*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		time.AfterFunc(10*time.Second, unlock)
		r.fresh(s)
		if time.Since(begin) != 30*time.Second {
			t.Errorf("the lock took %v", time.Since(begin))
		}
		r.refreshed(1)
	})
}
