package auth_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// The note "presented, not yet answered" is in the store while the request is on its way, and gone afterwards.
func TestNoteGoesBeforeTheRequest(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		var notes []string
		next := r.cfg.Refresher.HTTPClient.Transport
		r.cfg.Refresher.HTTPClient = &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			at, noted := r.stored().Unanswered()
			notes = append(notes, fmt.Sprint(noted, at.Sub(noon)))
			return next.RoundTrip(req)
		})}
		r.server.OddRefresh = odd(refusing(fakes.Throttle(30)))
		s := r.open()
		time.Sleep(time.Hour)
		r.fresh(s)
		if want := []string{"true 1h0m0s", "true 1h0m30s"}; !slices.Equal(notes, want) {
			t.Errorf("notes %q, want %q", notes, want)
		}
		if r.stored().Presented != nil {
			t.Error("the note is still there")
		}
		r.refreshed(2)
	})
}

// A process that dies between the note and the answer leaves a token behind that may be spent. The next one presents it
// inside the grace window only, and else says so.
func TestCrashBetweenNoteAndAnswer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		grace  time.Duration
		ago    time.Duration
		reason string // "" is a token
	}{
		{"no grace", 0, time.Second, "reply_lost"},
		{"no grace, at once", 0, 0, "reply_lost"},
		{"inside the grace", 10 * time.Second, 9 * time.Second, ""},
		{"at its end", 10 * time.Second, 10 * time.Second, "reply_lost"},
		{"long after", 10 * time.Second, time.Hour, "reply_lost"},
		{"the clock was set back", 10 * time.Second, -time.Hour, "reply_lost"},
	} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newSourceRig(t, time.Hour)
			r.cfg.ReuseGrace, r.server.ReuseGrace = tt.grace, tt.grace
			time.Sleep(2 * time.Hour)
			// What a process does that is killed before it reads the answer:
			c := r.stored()
			c.Present(time.Now().Add(max(-tt.ago, 0)))
			r.save(c)
			if _, err := r.cfg.Refresher.Refresh(t.Context(), c.Token()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(max(tt.ago, 0))
			before := form(r.stored())
			s := r.open()
			if tt.reason == "" {
				got := r.fresh(s)
				if r.stored().AccessToken != got || r.stored().Presented != nil {
					t.Errorf("%s: stored %v", tt.name, r.stored())
				}
				r.refreshed(2)
				return
			}
			for range 2 {
				if reason := ended(t, s); reason != tt.reason {
					t.Errorf("%s: %s", tt.name, reason)
				}
			}
			if form(r.stored()) != before {
				t.Errorf("%s: the login was changed", tt.name)
			}
			r.refreshed(1)
			// Whoever logs in again is not held up by it.
			r.server.Login("canary-again", "canary-again-refresh")
			r.save(auth.Credential{AccessToken: "canary-again", RefreshToken: "canary-again-refresh", Obtained: time.Now(), Expiry: time.Now().Add(time.Hour)})
			if got := r.token(s); got != "canary-again" {
				t.Errorf("%s: after another login %s", tt.name, got)
			}
		})
	}
}

// As long as the access token is good, nobody is told to log in.
func TestCrashWhileTheTokenIsGood(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		time.Sleep(56 * time.Minute)
		c := r.stored()
		c.Present(time.Now())
		r.save(c)
		s := r.open()
		r.old(s)
		if r.names() != "refresh_failed" {
			t.Errorf("events %s", r.names())
		}
		time.Sleep(4 * time.Minute)
		if reason := ended(t, s); reason != "reply_lost" {
			t.Error(reason)
		}
		r.refreshed(0)
	})
}

// A lost reply is not replayed, except inside the grace window.
func TestLostReply(t *testing.T) {
	for name, lost := range map[string]fakes.RefreshAnswer{
		"dropped after the token was spent":  {AuthAnswer: drop, Spend: true},
		"dropped before":                     refusing(drop),
		"cut short":                          {Cut: true},
		"never answered":                     refusing(hang),
		"never answered, the token is spent": {AuthAnswer: hang, Spend: true},
	} {
		for _, stored := range []bool{true, false} {
			for _, grace := range []time.Duration{0, time.Minute} {
				fakes.Bubble(t, noon, func(t *testing.T) {
					r := newSourceRig(t, time.Hour)
					r.cfg.ReuseGrace, r.server.ReuseGrace = grace, grace
					r.server.OddRefresh = odd(lost)
					s := r.open()
					if !stored {
						s = r.inMemory()
					}
					time.Sleep(time.Hour)
					if grace > 0 {
						got := r.fresh(s)
						r.refreshed(2)
						if stored && (r.stored().AccessToken != got || r.stored().Presented != nil) {
							t.Errorf("%s: stored %v", name, r.stored())
						}
						return
					}
					if e := refusal(t, s); e.Reason != auth.ErrReplyLost {
						t.Errorf("%s: %v", name, e)
					}
					for range 3 {
						if reason := ended(t, s); reason != "reply_lost" {
							t.Errorf("%s, stored %v: %s", name, stored, reason)
						}
					}
					r.refreshed(1)
				})
			}
		}
	}
}

// What becomes of a token's being presented again says nothing of the first time.
func TestLostReplyStaysLost(t *testing.T) {
	gone := fakes.RefreshAnswer{AuthAnswer: drop, Spend: true}
	for _, tt := range []struct {
		name     string
		then     []fakes.RefreshAnswer
		requests int
		reason   auth.RefreshReason
	}{
		{"lost again", []fakes.RefreshAnswer{gone}, 2, auth.ErrReplyLost},
		{"throttled beyond the grace", []fakes.RefreshAnswer{refusing(fakes.Throttle(20))}, 2, auth.ErrRefused},
		{"an internal error", []fakes.RefreshAnswer{refusing(plain(500, ""))}, 2, auth.ErrRefused},
		{"no client", []fakes.RefreshAnswer{refusing(fakes.OAuthError(401, "invalid_client"))}, 2, auth.ErrRefused},
	} {
		for _, stored := range []bool{true, false} {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newSourceRig(t, time.Hour)
				r.cfg.ReuseGrace, r.server.ReuseGrace = 10*time.Second, 10*time.Second
				r.server.OddRefresh = odd(append([]fakes.RefreshAnswer{gone}, tt.then...)...)
				s := r.open()
				if !stored {
					s = r.inMemory()
				}
				time.Sleep(time.Hour)
				if e := refusal(t, s); e.Reason != tt.reason {
					t.Errorf("%s: %v", tt.name, e)
				}
				time.Sleep(10 * time.Second)
				if reason := ended(t, s); reason != "reply_lost" {
					t.Errorf("%s, stored %v: %s", tt.name, stored, reason)
				}
				r.refreshed(tt.requests)
			})
		}
	}
}

// The connection may be refused when the token is presented again after a crash: it has been presented all the same.
func TestLostReplyAndThenNoConnection(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.cfg.ReuseGrace, r.server.ReuseGrace = 10*time.Second, 10*time.Second
		client := r.cfg.Refresher.HTTPClient
		time.Sleep(time.Hour)
		c := r.stored()
		c.Present(time.Now())
		r.save(c)
		if _, err := r.cfg.Refresher.Refresh(t.Context(), c.Token()); err != nil {
			t.Fatal(err)
		}
		r.cfg.Refresher.HTTPClient = failing(client, fakes.TokenPath, noSuchHost, 3)
		s := r.open()
		if e := refusal(t, s); e.Reason != auth.ErrNotSent {
			t.Error(e)
		}
		time.Sleep(10 * time.Second)
		if reason := ended(t, s); reason != "reply_lost" {
			t.Error(reason)
		}
		r.refreshed(1)
	})
}

// An answer that cannot be used was an answer to a token that is spent now.
func TestUnusableAnswerIsNotAskedForAgain(t *testing.T) {
	for _, body := range []string{`{}`, `not JSON`, `{"access_token":"at","expires_in":-1}`, `{"access_token":7}`} {
		for _, stored := range []bool{true, false} {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newSourceRig(t, time.Hour)
				r.server.OddRefresh = odd(fakes.RefreshAnswer{AuthAnswer: raw(200, body), Spend: true})
				s := r.open()
				if !stored {
					s = r.inMemory()
				}
				time.Sleep(time.Hour)
				if e := refusal(t, s); e.Reason != auth.ErrUnusableToken {
					t.Errorf("%s: %v", body, e)
				}
				if reason := ended(t, s); reason != "reply_lost" {
					t.Errorf("%s: %s", body, reason)
				}
				r.refreshed(1)
			})
		}
	}
}
