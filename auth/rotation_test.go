package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// odd is a script of answers to refreshes, from the first on.
func odd(answers ...fakes.RefreshAnswer) map[int]fakes.RefreshAnswer {
	script := map[int]fakes.RefreshAnswer{}
	for i, a := range answers {
		script[i+1] = a
	}
	return script
}

// refusing is an answer that spends no token.
func refusing(a fakes.AuthAnswer) fakes.RefreshAnswer { return fakes.RefreshAnswer{AuthAnswer: a} }

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

// A failure before the request was written leaves everything as it was, and is tried again by row generated-retry.
func TestFailureBeforeTheRequest(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		client, stranger := r.cfg.Refresher.HTTPClient, fakes.NewNetwork(t)
		before := form(r.stored())
		for name, broken := range map[string]*http.Client{
			"no such name":       failing(client, fakes.TokenPath, noSuchHost, 100),
			"connection refused": dialling(r.net, "nobody.test:443"),
			"certificate":        {Transport: routedThrough(r.net, stranger)},
		} {
			r.cfg.Refresher.HTTPClient = broken
			s := r.open()
			time.Sleep(2 * time.Hour)
			begin, told := time.Now(), len(r.waits())
			if e := refusal(t, s); e.Reason != auth.ErrNotSent || !e.Repeatable() {
				t.Errorf("%s: %v", name, e)
			}
			waits := r.waits()[told:]
			if len(waits) != 2 || waits[0] < time.Second || waits[0] > 1100*time.Millisecond || waits[1] < 2*time.Second || waits[1] > 2100*time.Millisecond || time.Since(begin) != waits[0]+waits[1] {
				t.Errorf("%s: waits %v, took %v", name, waits, time.Since(begin))
			}
			if form(r.stored()) != before {
				t.Errorf("%s: the login was changed", name)
			}
		}
		r.refreshed(0)
		r.cfg.Refresher.HTTPClient = failing(client, fakes.TokenPath, noSuchHost, 2)
		r.fresh(r.open())
		r.refreshed(1)
	})
}

// routedThrough connects to a network whose certificates it does not trust.
func routedThrough(n, trusted *fakes.Network) http.RoundTripper {
	transport := trusted.Transport()
	transport.DialContext = n.DialContext
	return transport
}

// Whatever is no verdict on the refresh token keeps the login as it was.
func TestRefusalsThatKeepTheLogin(t *testing.T) {
	for name, a := range map[string]fakes.AuthAnswer{
		"429":                    fakes.Throttle(0),
		"429, a wait":            fakes.Throttle(7200),
		"429, invalid_grant":     fakes.OAuthError(429, "invalid_grant"),
		"503":                    plain(503, ""),
		"503, a wait":            with(plain(503, ""), "Retry-After", "7200"),
		"500":                    plain(500, "<html>"),
		"500, invalid_grant":     fakes.OAuthError(500, "invalid_grant"),
		"502":                    plain(502, ""),
		"504":                    plain(504, ""),
		"400, invalid_client":    fakes.OAuthError(400, "invalid_client"),
		"401":                    plain(401, ""),
		"400, invalid_scope":     fakes.OAuthError(400, "invalid_scope"),
		"a redirect":             with(fakes.AuthAnswer{Status: 307}, "Location", "https://as.test/elsewhere"),
		"404":                    plain(404, ""),
		"200, invalid_client":    fakes.OAuthError(200, "invalid_client"),
		"400, no error":          raw(400, `{}`),
		"503, malformed header":  with(plain(503, ""), "Retry-After", "soon"),
		"429, malformed headers": with(fakes.OAuthError(429, "x"), "Retry-After", "-1"),
	} {
		for _, stored := range []bool{true, false} {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newSourceRig(t, time.Hour)
				r.server.OddRefresh = odd(refusing(a), refusing(a), refusing(a))
				before := form(r.stored())
				s := r.open()
				if !stored {
					s = r.inMemory()
				}
				time.Sleep(time.Hour)
				e := refusal(t, s)
				if e.Reason != auth.ErrRefused || e.Status != max(a.Status, 200) {
					t.Errorf("%s: %v", name, e)
				}
				if e.Repeatable() != (len(r.waits()) == 2 || e.RetryAfter.Duration() == 2*time.Hour) {
					t.Errorf("%s: waits %v", name, r.waits())
				}
				if form(s.Credential()) != before || stored && form(r.stored()) != before {
					t.Errorf("%s: the login was changed", name)
				}
				r.server.OddRefresh = nil
				r.fresh(s)
				if v := r.server.Violations(); len(v) > 0 {
					t.Errorf("%s: %q", name, v)
				}
			})
		}
	}
}

// A 429, and a 503 with Retry-After, are refused before processing: the refresh waits by row generated-retry.
func TestWaitsThatTheServerAsksFor(t *testing.T) {
	unavailable := func(after string) fakes.RefreshAnswer {
		return refusing(with(plain(503, ""), "Retry-After", after))
	}
	for _, tt := range []struct {
		name     string
		answers  []fakes.RefreshAnswer
		least    []time.Duration
		jitter   time.Duration
		requests int
		fails    bool
	}{
		{"429 and 503", []fakes.RefreshAnswer{refusing(fakes.Throttle(20)), unavailable("7")}, []time.Duration{20 * time.Second, 7 * time.Second}, 0, 3, false},
		{"a date", []fakes.RefreshAnswer{unavailable("Sun, 29 Nov 2026 13:00:09 GMT")}, []time.Duration{9 * time.Second}, 0, 2, false},
		{"429 without", []fakes.RefreshAnswer{refusing(fakes.Throttle(0)), refusing(fakes.Throttle(0))}, []time.Duration{time.Second, 2 * time.Second}, 100 * time.Millisecond, 3, false},
		{"three are all", []fakes.RefreshAnswer{refusing(fakes.Throttle(1)), refusing(fakes.Throttle(1)), refusing(fakes.Throttle(9))}, []time.Duration{time.Second, time.Second}, 0, 3, true},
		{"503 without", []fakes.RefreshAnswer{refusing(plain(503, ""))}, nil, 0, 1, true},
	} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newSourceRig(t, time.Hour)
			r.server.OddRefresh = odd(tt.answers...)
			s := r.open()
			time.Sleep(time.Hour)
			begin := time.Now()
			if tt.fails {
				refusal(t, s)
			} else {
				r.fresh(s)
			}
			var sum time.Duration
			waits := r.waits()
			for i, w := range waits {
				sum += w
				if len(waits) != len(tt.least) || w < tt.least[i] || w > tt.least[i]+tt.jitter {
					t.Errorf("%s: waits %v, want %v", tt.name, waits, tt.least)
					break
				}
			}
			if time.Since(begin) != sum || len(waits) != len(tt.least) {
				t.Errorf("%s: took %v with waits %v", tt.name, time.Since(begin), waits)
			}
			r.refreshed(tt.requests)
			for _, e := range r.events {
				if w, ok := e.(auth.Waiting); ok && (w.Wait.Loop != delay.GeneratedRetry || w.Wait.Until.IsZero() || w.Wait.Of != 3 || w.Wait.Cause != "429" && w.Wait.Cause != "503") {
					t.Errorf("%s: %v", tt.name, w)
				}
			}
		})
	}
}

// While a refresh waits, its token is known to be good: whoever finds the login then, after a crash, can use it.
func TestCrashWithinAWait(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.server.OddRefresh = odd(refusing(fakes.Throttle(30)))
		before := form(r.stored())
		s := r.open()
		time.Sleep(55 * time.Minute)
		r.old(s)
		if r.names() != "waiting" || form(r.stored()) != before {
			t.Errorf("events %s; in the wait the store has %v", r.names(), r.stored())
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		r.fresh(s)
		r.refreshed(2)
	})
}

// A Retry-After beyond the bound is not slept on: it comes back at once, on the error.
func TestRetryAfterBeyondTheBound(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.cfg.Timeout = 20 * time.Second
		r.server.OddRefresh = odd(refusing(fakes.Throttle(21)), refusing(fakes.Throttle(15)), refusing(fakes.Throttle(6)))
		s := r.open()
		time.Sleep(time.Hour)
		begin := time.Now()
		if e := refusal(t, s); e.RetryAfter.Duration() != 21*time.Second || time.Since(begin) != 0 {
			t.Errorf("%v after %v", e, time.Since(begin))
		}
		// The bound is of all waits together.
		if e := refusal(t, s); e.RetryAfter.Duration() != 6*time.Second || time.Since(begin) != 15*time.Second {
			t.Errorf("%v after %v", e, time.Since(begin))
		}
		r.refreshed(3)
	})
}

// The bound holds for a server that does not answer as well.
func TestBoundOfARefresh(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.cfg.Timeout = 20 * time.Second
		r.server.OddRefresh = odd(refusing(hang))
		s := r.open()
		time.Sleep(time.Hour)
		begin := time.Now()
		if e := refusal(t, s); e.Reason != auth.ErrReplyLost || time.Since(begin) != 20*time.Second {
			t.Errorf("%v after %v", e, time.Since(begin))
		}
	})
}

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
