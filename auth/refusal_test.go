package auth_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

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
		"302, invalid_grant":     with(fakes.OAuthError(302, "invalid_grant"), "Location", "https://as.test/elsewhere"),
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
