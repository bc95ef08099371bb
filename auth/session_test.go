package auth_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestSessionExpired(t *testing.T) {
	reasons := map[auth.SessionReason]string{
		auth.ErrSessionRefused:        "auth: the authorization server does not take the refresh token any more; log in again",
		auth.ErrSessionReplyLost:      "auth: the answer to an earlier refresh was lost, and its token may be spent; log in again",
		auth.ErrSessionLoggedOut:      "auth: this login was logged out; log in again",
		auth.ErrSessionNotRefreshable: "auth: the token has expired and cannot be refreshed; log in again",
		"another":                     "auth: the session has ended; log in again",
	}
	for reason, text := range reasons {
		err := fmt.Errorf("asking for a token: %w", &auth.SessionExpired{Reason: reason})
		e, ok := errors.AsType[*auth.SessionExpired](err)
		if !ok || !errors.Is(err, &auth.SessionExpired{}) || e.Error() != text || e.Unwrap() != nil {
			t.Errorf("%s: %v", reason, err)
		}
		for other := range reasons {
			if errors.Is(err, other) != (other == reason) {
				t.Errorf("%s is %s: %v", reason, other, other != reason)
			}
		}
		// Package stream asks in this way, which does not know the type.
		asked, ok := errors.AsType[interface {
			error
			LoginRequired() bool
		}](err)
		if !ok || !asked.LoginRequired() {
			t.Errorf("%s does not say that a login is required", reason)
		}
	}
	cause := &auth.RefreshError{Reason: auth.ErrRefused, Status: 400, Code: "invalid_grant"}
	err := error(&auth.SessionExpired{Reason: auth.ErrSessionRefused, Err: cause})
	if got, ok := errors.AsType[*auth.RefreshError](err); !ok || got != cause || !errors.Is(err, auth.ErrRefused) {
		t.Errorf("the cause is %v", got)
	}
	if n := strings.Count(err.Error(), "log in again"); n != 1 {
		t.Errorf("%s", err)
	}
}

func TestSourceEvents(t *testing.T) {
	at := noon.Add(time.Hour)
	for want, e := range map[string]auth.Event{
		"refreshed: the token was refreshed, until 2026-11-29T13:00:00Z":                          auth.Refreshed{ExpiresAt: at},
		"refreshed: another process had refreshed the token, until 2026-11-29T13:00:00Z":          auth.Refreshed{ExpiresAt: at, ByOther: true},
		"refreshed: the token was refreshed":                                                      auth.Refreshed{},
		"refresh_failed: auth: this login was logged out; log in again":                           auth.RefreshFailed{Err: &auth.SessionExpired{Reason: auth.ErrSessionLoggedOut}},
		"store_trouble: auth: the store failed (save): the disk is full; mend that and try again": auth.StoreTrouble{Err: errSave},
		"store_trouble: " + errNoLock.Error():                                                     auth.StoreTrouble{Err: errNoLock},
	} {
		if got := e.Name() + ": " + e.String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestSourceLeaksNothing runs a source against servers that echo its secrets wherever they can, and looks for them in
// everything printed.
func TestSourceLeaksNothing(t *testing.T) {
	echo := `"error_description":"no canary-refresh-1 here, nor canary-access-1, nor canary-secret https://as.test/?t=canary-query"`
	gone := fakes.RefreshAnswer{AuthAnswer: drop, Spend: true}
	for name, script := range map[string][]fakes.RefreshAnswer{
		"in order":         nil,
		"refused":          {refusing(raw(400, `{"error":"invalid_grant",`+echo+`}`))},
		"a code":           {refusing(raw(400, `{"error":"canary-refresh-1",`+echo+`}`))},
		"throttled":        {refusing(with(raw(429, `{"error":"canary-refresh-1",`+echo+`}`), "Retry-After", "5")), refusing(raw(429, `{`+echo+`}`))},
		"lost":             {gone},
		"lost twice":       {gone, gone},
		"malformed":        {{AuthAnswer: raw(200, `{"access_token":"canary-new","expires_in":"canary"}`), Spend: true}},
		"not JSON":         {{AuthAnswer: plain(200, "canary-new"), Spend: true}},
		"a token in a 201": {{AuthAnswer: raw(201, `{"access_token":"canary-new","error":"canary-new","error_description":"canary-new"}`), Spend: true}},
		"internal error":   {refusing(plain(500, "canary-refresh-1"))},
		"redirect":         {refusing(with(fakes.AuthAnswer{Status: 307}, "Location", "https://evil.test/?t=canary-refresh-1"))},
		"the store fails":  nil,
		"no locks":         nil,
		"another's":        nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fakes.Bubble(t, noon, func(t *testing.T) {
				out := &spill{}
				r := newSourceRig(t, time.Hour)
				r.server.OddRefresh = odd(script...)
				r.server.ClientSecret, r.cfg.Refresher.Config.ClientSecret = "canary-secret", "canary-secret"
				r.cfg.Refresher.Config.Endpoint.TokenURL += "?tenant=canary-query"
				r.cfg.Refresher.Params = url.Values{"assertion": {"canary-assertion"}}
				r.cfg.ReuseGrace = time.Second
				r.cfg.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
				r.cfg.OnEvent = func(e auth.Event) { out.add(e) }
				switch name {
				case "the store fails":
					r.store.onSave = func(c auth.Credential) error {
						if c.Presented == nil {
							return errSave
						}
						return nil
					}
				case "no locks":
					r.store.onLock = func() error { return errNoLock }
				}
				s := r.open()
				if name == "another's" {
					c := firstLogin(2 * time.Hour)
					c.AccessToken = "canary-theirs"
					r.save(c)
				}
				time.Sleep(time.Hour)
				for range 3 {
					tok, err := s.Token()
					out.chain(err)
					if tok == nil && err == nil {
						t.Error("neither a token nor an error")
					}
					time.Sleep(time.Hour)
				}
				out.add(s, r.cfg, r.cfg.Refresher, struct{ S *auth.TokenSource }{s}, []any{s})
				fmt.Fprintf(out, "%+v %#v %+v", s.Credential(), s.Credential(), struct{ s *auth.TokenSource }{s})
				if !strings.Contains(out.String(), "auth: refresh") {
					t.Error("nothing was printed")
				}
				for _, canary := range canaries {
					for line := range strings.Lines(out.String()) {
						if strings.Contains(line, canary) {
							t.Errorf("leaked: %s", line)
						}
					}
				}
			})
		})
	}
}
