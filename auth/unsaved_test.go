package auth_test

import (
	"errors"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// No request goes out when its outcome could not be stored.
func TestStoreThatCannotBeWritten(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.store.onSave = func(auth.Credential) error { return errSave }
		s := r.open()
		time.Sleep(55 * time.Minute)
		r.old(s)
		time.Sleep(5 * time.Minute)
		if _, err := s.Token(); !errors.Is(err, auth.ErrStoreFailed) {
			t.Errorf("%v", err)
		}
		if r.names() != "refresh_failed refresh_failed" {
			t.Errorf("events %s", r.names())
		}
		r.refreshed(0)
		r.store.onSave = nil
		r.fresh(s)
		r.refreshed(1)
	})
}

// A note that was written by a Save that failed is of a request that was never made.
func TestSaveOfTheNoteFailsHalfway(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.store.onSave = func(c auth.Credential) error { r.save(c); return errSave }
		s := r.open()
		time.Sleep(time.Hour)
		for range 2 {
			if _, err := s.Token(); !errors.Is(err, auth.ErrStoreFailed) {
				t.Errorf("%v", err)
			}
		}
		r.store.onSave = nil
		r.fresh(s)
		r.refreshed(1)
	})
}

// A rotated token that cannot be stored is used in this process all the same, and so is its refresh token.
func TestSaveAfterARotationFails(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		broken := true
		r.store.onSave = func(c auth.Credential) error {
			if broken && c.AccessToken != firstAccess {
				return errSave
			}
			return nil
		}
		s := r.open()
		time.Sleep(time.Hour)
		second := r.fresh(s)
		if r.names() != "store_trouble refreshed" || r.stored().AccessToken != firstAccess {
			t.Errorf("events %s", r.names())
		}
		if r.token(s) != second {
			t.Error("the new token is not used")
		}
		r.refreshed(1)

		// Another process finds a token that may be spent, and says so.
		if reason := ended(t, r.open()); reason != "reply_lost" {
			t.Error(reason)
		}

		// When the time comes to use the new refresh token, it can still not be stored, and then it can.
		time.Sleep(time.Hour)
		if _, err := s.Token(); !errors.Is(err, auth.ErrStoreFailed) {
			t.Errorf("%v", err)
		}
		r.refreshed(1)
		broken = false
		if third := r.fresh(s); third == second || r.stored().AccessToken != third {
			t.Error("the login is not in the store")
		}
		r.refreshed(2)
	})
}

// Another login counts for more than a rotated token that could not be stored.
func TestSaveAfterARotationFailsAndSomebodyLogsIn(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.store.onSave = func(c auth.Credential) error {
			if c.AccessToken != firstAccess {
				return errSave
			}
			return nil
		}
		s := r.open()
		time.Sleep(time.Hour)
		r.fresh(s)
		time.Sleep(time.Hour)
		c := firstLogin(time.Hour)
		c.AccessToken, c.RefreshToken = "canary-theirs", "canary-their-refresh"
		r.save(c)
		if got := r.token(s); got != "canary-theirs" {
			t.Errorf("%s", got)
		}
		r.refreshed(1)
	})
}

// A note that could not be taken out again does not end the session for the process that knows better.
func TestSaveAfterARefusalFails(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		broken := true
		r.store.onSave = func(c auth.Credential) error {
			if broken && c.Presented == nil {
				return errSave
			}
			return nil
		}
		r.server.OddRefresh = odd(refusing(plain(500, "")))
		s := r.open()
		time.Sleep(time.Hour)
		refusal(t, s)
		if r.names() != "store_trouble refresh_failed" || r.stored().Presented == nil {
			t.Errorf("events %s", r.names())
		}
		broken = false
		if got := r.fresh(s); r.stored().AccessToken != got || r.stored().Presented != nil {
			t.Errorf("stored %v", r.stored())
		}
		r.refreshed(2)
	})
}
