package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// The early window is min(5 min, a fifth of the life).
func TestRefreshesAheadOfExpiry(t *testing.T) {
	for life, ahead := range map[time.Duration]time.Duration{
		24 * time.Hour:   5 * time.Minute,
		25 * time.Minute: 5 * time.Minute,
		24 * time.Minute: 288 * time.Second,
		time.Minute:      12 * time.Second,
		5 * time.Second:  time.Second,
		time.Second:      200 * time.Millisecond,
	} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newSourceRig(t, life)
			s := r.open()
			time.Sleep(life - ahead - 1)
			r.old(s)
			r.refreshed(0)
			time.Sleep(time.Nanosecond)
			r.old(s)
			r.refreshed(1)
			if r.fresh(s); r.names() != "refreshed" {
				t.Errorf("%v: events %s", life, r.names())
			}
			r.refreshed(1)
		})
	}
}

// A login whose beginning is not known counts from now.
func TestUnknownLifetime(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		c := r.stored()
		c.Obtained, c.Expiry = time.Time{}, time.Now().Add(100*time.Second)
		r.save(c)
		s := r.open()
		time.Sleep(80*time.Second - 1)
		r.old(s)
		r.refreshed(0)
		time.Sleep(time.Nanosecond)
		r.old(s)
		r.refreshed(1)
	})
}

func TestOldTokenIsHandedOutWhileOneRefreshRuns(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.server.OddRefresh = map[int]fakes.RefreshAnswer{1: {AuthAnswer: fakes.AuthAnswer{Latency: 20}}}
		s := r.open()
		time.Sleep(55 * time.Minute)
		for range 19 {
			r.old(s)
			time.Sleep(time.Second)
		}
		r.refreshed(1)
		time.Sleep(time.Second)
		synctest.Wait()
		r.fresh(s)
		r.refreshed(1)
	})
}

func TestOneAttemptAMinuteAheadOfExpiry(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.server.OddRefresh = map[int]fakes.RefreshAnswer{}
		for n := range 5 {
			r.server.OddRefresh[n+1] = fakes.RefreshAnswer{AuthAnswer: plain(500, "")}
		}
		s := r.open()
		time.Sleep(55 * time.Minute)
		for second := range 300 {
			r.old(s)
			r.refreshed(second/60 + 1)
			time.Sleep(time.Second)
		}
		if want := strings.Repeat("refresh_failed ", 5); r.names()+" " != want {
			t.Errorf("events %s", r.names())
		}
		r.fresh(s)
		r.refreshed(6)
	})
}

func TestAfterExpiryCallersWait(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.server.OddRefresh = map[int]fakes.RefreshAnswer{1: {AuthAnswer: fakes.AuthAnswer{Latency: 3}}}
		s := r.open()
		time.Sleep(time.Hour)
		begin := time.Now()
		got := make([]string, 1000)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				if got[i] = r.token(s); time.Since(begin) != 3*time.Second {
					t.Errorf("a caller waited %v", time.Since(begin))
				}
			})
		}
		all.Wait()
		for _, token := range got {
			if token != got[0] || token == firstAccess {
				t.Fatal("callers have different tokens")
			}
		}
		r.refreshed(1)
	})
}

// A caller whose context ends returns at that instant, and the refresh that nobody waits for any more is stored.
func TestCallerGivesUp(t *testing.T) {
	cause := errors.New("the caller's own reason")
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.server.OddRefresh = map[int]fakes.RefreshAnswer{1: {AuthAnswer: fakes.AuthAnswer{Latency: 10}}}
		s := r.open()
		time.Sleep(time.Hour)
		begin := time.Now()

		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := s.TokenContext(ended); !errors.Is(err, context.Canceled) || time.Since(begin) != 0 {
			t.Errorf("a context that has ended: %v", err)
		}
		synctest.Wait()
		r.refreshed(0)

		cancelled, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2*time.Second, func() { cancel(cause) })
		late, cancelLate := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancelLate()
		var both sync.WaitGroup
		both.Go(func() {
			_, err := s.TokenContext(cancelled)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || time.Since(begin) != 2*time.Second {
				t.Errorf("cancelled after 2 s: %v after %v", err, time.Since(begin))
			}
		})
		both.Go(func() {
			_, err := s.Refresh(late, nil)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 3*time.Second {
				t.Errorf("a deadline after 3 s: %v after %v", err, time.Since(begin))
			}
		})
		both.Wait()
		time.Sleep(7 * time.Second)
		synctest.Wait()
		stored := r.stored()
		if stored.RefreshToken == firstRefresh || !r.server.Valid(stored.AccessToken) || stored.Presented != nil {
			t.Errorf("what nobody waited for is lost: %v", stored)
		}
		if r.token(s) != stored.AccessToken {
			t.Error("the token handed out is not the one stored")
		}
		r.refreshed(1)
	})
}

// Neither the context of the construction nor that of a caller has a part in a refresh.
func TestNoContextIsCaptured(t *testing.T) {
	type mark struct{}
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		next := r.cfg.Refresher.HTTPClient.Transport
		r.cfg.Refresher.HTTPClient = &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Context().Value(mark{}) != nil {
				t.Error("the request carries a caller's context")
			}
			return next.RoundTrip(req)
		})}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), mark{}, true))
		s, err := auth.LoadTokenSource(ctx, r.cfg)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Hour)
		if _, err := s.TokenContext(context.WithValue(t.Context(), mark{}, true)); err != nil {
			t.Error(err)
		}
		r.refreshed(1)
	})
}

// The new refresh token is in the store before anybody sees the new access token: a store that does not come back from
// Save proves it.
func TestRotatedTokenIsStoredBeforeItIsSeen(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		saving, goOn := make(chan string, 1), make(chan struct{})
		r.store.onSave = func(c auth.Credential) error {
			if c.AccessToken != firstAccess {
				saving <- c.AccessToken
				<-goOn
			}
			return nil
		}
		s := r.open()
		time.Sleep(55 * time.Minute)
		r.old(s)
		rotated := <-saving
		r.old(s)
		if s.Credential().AccessToken != firstAccess {
			t.Error("the new login is visible before it is stored")
		}
		time.Sleep(5 * time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if tok, err := s.TokenContext(ctx); err == nil {
			t.Errorf("a token was handed out before it was stored, the new one: %v", tok.AccessToken == rotated)
		}
		close(goOn)
		if r.token(s) != rotated || r.stored().AccessToken != rotated {
			t.Error("the token is not the one that was stored")
		}
		r.refreshed(1)
	})
}

func TestWhatTheAnswerLeavesOutStays(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       auth.Credential
	}{
		{
			"everything", `{"access_token":"at"}`,
			auth.Credential{AccessToken: "at", RefreshToken: firstRefresh, Scope: "a b", Resources: []string{"https://api"}, IDToken: "id", Extra: map[string]any{"tenant": "t", "plan": "p"}},
		},
		{
			"nothing", `{"access_token":"at","refresh_token":"r2","scope":"a","resource":"https://two","id_token":"id2","tenant":"t2","other":"o"}`,
			auth.Credential{AccessToken: "at", RefreshToken: "r2", Scope: "a", Resources: []string{"https://two"}, IDToken: "id2", Extra: map[string]any{"tenant": "t2", "plan": "p"}},
		},
		{
			"nulls", `{"access_token":"at","refresh_token":null,"scope":null,"resource":null,"id_token":null}`,
			auth.Credential{AccessToken: "at", RefreshToken: firstRefresh, Scope: "a b", Resources: []string{"https://api"}, IDToken: "id", Extra: map[string]any{"tenant": "t", "plan": "p"}},
		},
		{
			"an empty refresh token", `{"access_token":"at","refresh_token":""}`,
			auth.Credential{AccessToken: "at", RefreshToken: firstRefresh, Scope: "a b", Resources: []string{"https://api"}, IDToken: "id", Extra: map[string]any{"tenant": "t", "plan": "p"}},
		},
	} {
		for _, stored := range []bool{true, false} {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newSourceRig(t, time.Hour)
				r.server.KeepRefresh = true
				r.server.OddRefresh = map[int]fakes.RefreshAnswer{1: {AuthAnswer: raw(200, tt.body), Spend: true}}
				r.cfg.Keep = []string{"tenant"}
				c := r.stored()
				c.Resources, c.IDToken, c.Extra = []string{"https://api"}, "id", map[string]any{"tenant": "t", "plan": "p"}
				r.save(c)
				s := r.open()
				if !stored {
					s = r.inMemory()
				}
				time.Sleep(time.Hour)
				r.token(s)
				tt.want.TokenType, tt.want.Obtained = "Bearer", time.Now()
				if got := s.Credential(); form(got) != form(tt.want) {
					t.Errorf("%s: %s", tt.name, form(got))
				}
				if got := r.stored(); stored && form(got) != form(tt.want) {
					t.Errorf("%s: stored %s", tt.name, form(got))
				}
				requests := r.server.Requests()
				if f := requests[0].Form; f.Get("resource") != "https://api" || f.Has("scope") {
					t.Errorf("%s: the request has the resource %q, a scope %v", tt.name, f["resource"], f.Has("scope"))
				}
				// And again, with what was kept.
				if _, err := s.Refresh(t.Context(), nil); err != nil {
					t.Error(err)
				}
				r.refreshed(2)
			})
		}
	}
}

func TestSeveralResourcesAreSentAgain(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		c := r.stored()
		c.Resources = []string{"https://one", "https://two"}
		r.save(c)
		s := r.open()
		time.Sleep(time.Hour)
		r.fresh(s)
		if got := r.server.Requests()[0].Form["resource"]; fmt.Sprint(got) != "[https://one https://two]" {
			t.Errorf("%q", got)
		}
		if got := r.stored().Resources; fmt.Sprint(got) != "[https://one https://two]" {
			t.Errorf("kept %q", got)
		}
	})
}

// A token that lives for a few seconds is not refreshed on every call.
func TestShortLivedTokens(t *testing.T) {
	for _, seconds := range []int{5, 60} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			life := time.Duration(seconds) * time.Second
			r := newSourceRig(t, life)
			r.server.TokenLifetime = seconds
			s := r.open()
			for range 400 { // over eight lives
				if !r.server.Valid(r.token(s)) {
					t.Fatal("a token that the server does not know")
				}
				synctest.Wait()
				time.Sleep(life / 50)
			}
			r.refreshed(9) // each is replaced by the call after four fifths of its life: calls 40, 80 and so on to 360
		})
	}
}

func TestNoExpiryIsNeverRefreshed(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, 0)
		s := r.open()
		for range 10 {
			time.Sleep(365 * 24 * time.Hour)
			r.old(s)
		}
		r.refreshed(0)
		// Unless a server refuses it.
		if _, err := s.Refresh(t.Context(), &oauth2.Token{AccessToken: firstAccess}); err != nil {
			t.Error(err)
		}
		r.refreshed(1)
	})
}

func TestNothingToRefreshWith(t *testing.T) {
	for _, stored := range []bool{true, false} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newSourceRig(t, time.Hour)
			c := r.stored()
			c.RefreshToken = ""
			r.save(c)
			s := r.open()
			if !stored {
				s = r.inMemory()
			}
			time.Sleep(time.Hour - 1)
			r.old(s)
			if r.names() != "" {
				t.Errorf("while the token is good: %s", r.names())
			}
			time.Sleep(time.Nanosecond)
			if reason := ended(t, s); reason != "not_refreshable" {
				t.Error(reason)
			}
			r.refreshed(0)
		})
	}
}

// Expiry goes by the wall clock, which goes on while the machine sleeps.
func TestExpiryIsOnTheWallClock(t *testing.T) {
	clk := fakes.NewClock(noon)
	n := fakes.NewNetwork(t)
	server := &fakes.AuthServer{Clock: clk}
	n.Serve(t, "as.test", server)
	server.Login("a1", "r1")
	cfg := auth.SourceConfig{Clock: clk, Refresher: auth.Refresher{
		Config:     oauth2.Config{ClientID: "cli", Endpoint: oauth2.Endpoint{TokenURL: "https://as.test" + fakes.TokenPath}},
		HTTPClient: n.Client(),
	}}
	s, err := auth.NewTokenSource(auth.Credential{AccessToken: "a1", RefreshToken: "r1", Obtained: noon, Expiry: noon.Add(time.Hour)}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	clk.StepWall(time.Hour)
	tok, err := s.Token()
	if err != nil || tok.AccessToken == "a1" || server.Refreshes() != 1 {
		t.Errorf("after a sleep of an hour: %v", err)
	}
	if want := noon.Add(2 * time.Hour); err == nil && !tok.Expiry.Equal(want) {
		t.Errorf("the new token expires %v", tok.Expiry)
	}
	if armed := clk.Armed(); len(armed) > 0 {
		t.Errorf("armed afterwards: %v", armed)
	}

	// A caller's own time has a monotonic reading, which stands still.
	s, err = auth.NewTokenSource(auth.Credential{AccessToken: "a1", Obtained: time.Now(), Expiry: time.Now().Add(time.Hour)}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{s.Credential().Expiry, s.Credential().Obtained} {
		if at != at.Round(0) {
			t.Error("an instant has kept its monotonic reading")
		}
	}
}

// Refresh is for a token that a server refused although it has not expired.
func TestRefreshOfARefusedToken(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		s := r.open()
		refused, err := s.Token()
		if err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			got := make([]*oauth2.Token, 50)
			var all sync.WaitGroup
			for i := range got {
				all.Go(func() {
					var err error
					if got[i], err = s.Refresh(t.Context(), refused); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for _, tok := range got {
				if tok != got[0] || tok.AccessToken == refused.AccessToken {
					t.Fatal("not everybody has the one new token")
				}
			}
			r.refreshed(round + 1)
			// One that comes late, with a token long replaced, gets the present one.
			if tok, err := s.Refresh(t.Context(), refused); err != nil || tok != got[0] {
				t.Error(err)
			}
			r.refreshed(round + 1)
			refused = got[0]
		}
		if tok, err := s.Refresh(t.Context(), nil); err != nil || tok.AccessToken == refused.AccessToken {
			t.Errorf("the present token, unnamed: %v", err)
		}
		r.refreshed(4)
	})
}

// Whatever happens, Refresh does not return the token that was refused.
func TestRefreshNeverReturnsTheRefusedToken(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.server.OddRefresh = map[int]fakes.RefreshAnswer{1: {AuthAnswer: drop, Spend: true}}
		s := r.inMemory()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 20 {
					if _, err := s.Refresh(t.Context(), &oauth2.Token{AccessToken: firstAccess}); err == nil {
						t.Error("a token")
					}
				}
			})
		}
		all.Wait()
		r.refreshed(1)
	})
}

func TestClose(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.server.OddRefresh = map[int]fakes.RefreshAnswer{1: {AuthAnswer: fakes.AuthAnswer{Latency: 5}}}
		s := r.open()
		time.Sleep(55 * time.Minute)
		r.old(s)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("a context that ends first: %v after %v", err, time.Since(begin))
		}
		if err := s.Close(t.Context()); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if r.stored().AccessToken == firstAccess {
			t.Error("the refresh under way was not stored")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		// It starts no more of them ahead of time, and is of use all the same.
		second := r.token(s)
		time.Sleep(55 * time.Minute)
		if r.token(s) != second {
			t.Error("another token")
		}
		synctest.Wait()
		r.refreshed(1)
		time.Sleep(5 * time.Minute)
		r.fresh(s)
		r.refreshed(2)
	})
}

func TestSourceConfig(t *testing.T) {
	good := auth.Refresher{Config: oauth2.Config{ClientID: "cli", Endpoint: oauth2.Endpoint{TokenURL: "https://as.test/token"}}}
	for _, tt := range []struct {
		name string
		cfg  auth.SourceConfig
		want string
	}{
		{"a client without an endpoint", auth.SourceConfig{Refresher: auth.Refresher{Config: oauth2.Config{ClientID: "cli"}}}, "Config.Endpoint.TokenURL is missing"},
		{"an endpoint without a client", auth.SourceConfig{Refresher: auth.Refresher{Config: oauth2.Config{Endpoint: good.Config.Endpoint}}}, "Config.ClientID is missing"},
		{"a store without a key", auth.SourceConfig{Refresher: good, Store: new(auth.MemStore)}, "Key names no login: it needs an issuer and a client id"},
		{"negative", auth.SourceConfig{Refresher: good, ReuseGrace: -1, Timeout: -1}, "ReuseGrace is negative, Timeout is negative"},
	} {
		_, err := auth.NewTokenSource(auth.Credential{AccessToken: "at"}, tt.cfg)
		e, ok := errors.AsType[*auth.ConfigError](err)
		if !ok {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got []string
		for _, p := range e.Problems {
			got = append(got, p.String())
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	if _, err := auth.LoadTokenSource(t.Context(), auth.SourceConfig{Refresher: good}); err == nil || !strings.Contains(err.Error(), "Store is missing") {
		t.Errorf("no store: %v", err)
	}
	_, err := auth.LoadTokenSource(t.Context(), auth.SourceConfig{Refresher: good, Store: new(auth.MemStore), Key: storeKey})
	if !errors.Is(err, auth.ErrStoreNotFound) {
		t.Errorf("an empty store: %v", err)
	}
}

// The whole of it carries requests of the ecosystem's client.
func TestSourceInAnOAuth2Client(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		r.net.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !r.server.Valid(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")) {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))
		client := oauth2.NewClient(context.WithValue(t.Context(), oauth2.HTTPClient, r.net.Client()), r.open())
		for range 5 {
			res, err := client.Get("https://api.test/")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Error(res.Status)
			}
			time.Sleep(time.Hour)
		}
		r.refreshed(4)
	})
}
