package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// SourceConfig says how a TokenSource keeps a login fresh. Of the Refresher, client and endpoint have to be set.
type SourceConfig struct {
	// Refresher makes the exchanges. If it has neither client nor endpoint, a login is handed out until it expires.
	Refresher Refresher

	// Store holds the login under Key, and is where other processes find what one of them has refreshed. Save the login
	// there first: one that is not in the store counts as logged out. If it is nil, the login lives in this process only.
	Store Store
	Key   Key

	// ReuseGrace is how long after its first use the server answers a refresh token with the same tokens again; see
	// [Profile.ReuseGrace]. If it is zero, a refresh whose answer was lost is never presented again.
	ReuseGrace time.Duration

	// Timeout bounds a refresh as a whole: the lock, the request, and waits that the server asks for. If it is zero, 1 min.
	Timeout time.Duration

	// Keep names members of token responses to keep besides those that Credential has fields for.
	Keep []string

	// Clock is what time it is. If it is nil, the real one.
	Clock clock.Clock

	// OnEvent, if not nil, is told of refreshes, from the goroutine that makes them. It must not block.
	OnEvent func(Event)

	// Logger, if not nil, logs the same. It is never given a secret.
	Logger *slog.Logger
}

const (
	defaultRefreshBound = time.Minute
	earliest            = 5 * time.Minute // before the expiry
	betweenTries        = time.Minute     // inside the early window
)

// refreshes reports whether there is a server to refresh at.
func (c *SourceConfig) refreshes() bool {
	return c.Refresher.Config.ClientID != "" || c.Refresher.Config.Endpoint.TokenURL != ""
}

// TokenSource is an oauth2.TokenSource that keeps a login fresh, for any number of goroutines, and with a Store for any
// number of processes.
//
// A token is refreshed ahead of its expiry by a fifth of its life, at most five minutes. Inside that window the present
// token is still handed out while one refresh runs, at most once a minute; after the expiry callers wait for the
// refresh. There is one refresh at a time. It belongs to no caller: one that gives up returns at once, and the
// refresh goes on under a bound of its own, so that a rotated token is never lost.
type TokenSource struct {
	cfg    *SourceConfig // a pointer, so that printing the struct cannot show what is in it
	timers *delay.Timers

	current atomic.Pointer[held]

	// The refresh under way owns these.
	ended   error     // why the login was deleted here
	settled []settled // what the store could not be told

	mu       sync.Mutex
	flight   *flight
	tryAfter time.Time // inside the early window
	closed   bool
}

var _ oauth2.TokenSource = (*TokenSource)(nil)

// held is a login as it is handed out.
type held struct {
	Credential
	token *oauth2.Token
	due   time.Time // when to refresh, or to look for what others have stored; zero is never
}

// flight is a refresh under way.
type flight struct {
	done chan struct{}
	got  *held
	err  error
}

// NewTokenSource returns a source that hands out a login, and refreshes it when it is time. The error is a *ConfigError.
func NewTokenSource(c Credential, cfg SourceConfig) (*TokenSource, error) {
	s, err := newSource(cfg)
	if err != nil {
		return nil, err
	}
	s.current.Store(s.hold(c))
	return s, nil
}

// LoadTokenSource returns a source that hands out the login that the store has. The error is a *ConfigError or the
// store's.
func LoadTokenSource(ctx context.Context, cfg SourceConfig) (*TokenSource, error) {
	s, err := newSource(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Store == nil {
		return nil, &ConfigError{[]Problem{{"Store", "is missing"}}}
	}
	c, err := cfg.Store.Load(ctx, cfg.Key)
	if err != nil {
		return nil, err
	}
	s.current.Store(s.hold(c))
	return s, nil
}

func newSource(cfg SourceConfig) (*TokenSource, error) {
	var problems []Problem
	if cfg.Store != nil {
		key, err := cfg.Key.Canonical()
		if err != nil {
			problems = append(problems, Problem{"Key", "names no login: it needs an issuer and a client id"})
		}
		cfg.Key = key
	}
	if cfg.ReuseGrace < 0 {
		problems = append(problems, Problem{"ReuseGrace", "is negative"})
	}
	if cfg.Timeout < 0 {
		problems = append(problems, Problem{"Timeout", "is negative"})
	}
	if cfg.refreshes() {
		_, _, err := cfg.Refresher.settings(&oauth2.Token{RefreshToken: "any"})
		if e, ok := errors.AsType[*ConfigError](err); ok {
			problems = append(problems, e.Problems...)
		}
	}
	if len(problems) > 0 {
		return nil, &ConfigError{problems}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultRefreshBound
	}
	if cfg.Refresher.Clock == nil {
		cfg.Refresher.Clock = cfg.Clock
	}
	return &TokenSource{cfg: &cfg, timers: delay.TimersOn(cfg.Clock)}, nil
}

func (s *TokenSource) hold(c Credential) *held {
	// An instant with a monotonic reading would stand still while the machine sleeps.
	c.Expiry, c.Obtained = wallTime(c.Expiry), wallTime(c.Obtained)
	h := &held{Credential: c, token: c.Token(), due: c.Expiry}
	if c.Expiry.IsZero() || c.RefreshToken == "" {
		return h
	}
	life := c.Lifetime()
	if life <= 0 {
		life = max(c.Expiry.Sub(s.wall()), 0)
	}
	h.due = c.Expiry.Add(-min(earliest, life/5))
	return h
}

// wall is the time on the wall clock, which goes on while the machine sleeps, as tokens expire by it.
func (s *TokenSource) wall() time.Time { return s.timers.Now().Round(0) }

// fresh reports whether there is no reason to refresh.
func (h *held) fresh(now time.Time) bool {
	return h.AccessToken != "" && (h.due.IsZero() || now.Before(h.due))
}

// usable reports whether the token can still be handed out.
func (h *held) usable(now time.Time) bool {
	return h.AccessToken != "" && (h.Expiry.IsZero() || now.Before(h.Expiry))
}

// Token is TokenContext without a context.
func (s *TokenSource) Token() (*oauth2.Token, error) { return s.TokenContext(context.Background()) }

// TokenContext returns a token that has not expired. It waits only when the present one has, and then no longer than ctx
// lives. The token is shared: do not change it. The error is a [*SessionExpired] when only another login helps, a
// [*RefreshError] or a [*StoreError] when a later call may succeed, or ctx's own.
func (s *TokenSource) TokenContext(ctx context.Context) (*oauth2.Token, error) {
	h := s.current.Load()
	now := s.timers.Now()
	if h.fresh(now) {
		return h.token, nil
	}
	if h.usable(now) {
		s.refreshAhead(now)
		return h.token, nil
	}
	return s.wait(ctx, "")
}

// Refresh returns a token in place of one that a server has refused although it had not expired. If the refused token has
// been replaced meanwhile, that is the new one, and nothing is refreshed.
func (s *TokenSource) Refresh(ctx context.Context, refused *oauth2.Token) (*oauth2.Token, error) {
	h := s.current.Load()
	text := h.AccessToken
	if refused != nil {
		text = refused.AccessToken
	}
	if h.AccessToken != text && h.usable(s.timers.Now()) {
		return h.token, nil
	}
	t, err := s.wait(ctx, text)
	if errors.Is(err, ErrSessionRefused) {
		s.withdraw(text)
	}
	return t, err
}

// withdraw hands an access token out no more that was refused, as its refresh token was.
func (s *TokenSource) withdraw(refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.current.Load(); h.AccessToken == refused {
		c := h.Credential
		c.AccessToken = ""
		s.current.Store(s.hold(c))
	}
}

// refreshAhead starts a refresh inside the early window, unless there is one or the last try was just now.
func (s *TokenSource) refreshAhead(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight != nil || s.closed || now.Before(s.tryAfter) {
		return
	}
	s.tryAfter = now.Add(betweenTries)
	s.start(s.current.Load())
}

// wait joins the refresh under way, or starts one, unless there is by now a good token other than the refused one. It
// goes by the token itself: a login is also held anew when only the note about its refresh token has changed.
func (s *TokenSource) wait(ctx context.Context, refused string) (*oauth2.Token, error) {
	if err := delay.Ended(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if h := s.current.Load(); h.AccessToken != refused && h.usable(s.timers.Now()) {
		s.mu.Unlock()
		return h.token, nil
	}
	f := s.flight
	if f == nil {
		f = s.start(s.current.Load())
	}
	s.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, delay.Ended(ctx)
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.got.token, nil
}

// errGone is the end of a refresh whose goroutine was ended, as by a test that fails within OnEvent.
var errGone = errors.New("auth: the refresh was ended by a hook, a store or a transport")

// start begins a refresh. The caller holds mu; Close waits for the goroutine.
func (s *TokenSource) start(h *held) *flight {
	f := &flight{done: make(chan struct{})}
	s.flight = f
	go func() {
		defer close(f.done)
		f.err = errGone
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if f.err == nil {
				s.current.Store(f.got)
				s.tryAfter = time.Time{}
			}
			s.flight = nil
		}()
		f.got, f.err = s.refresh(h)
	}()
	return f
}

// Close waits until a refresh under way has been stored, or ctx ends, and starts no more of them ahead of time. A program
// that ends without it may lose a token that was rotated just then.
func (s *TokenSource) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	f := s.flight
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return delay.Ended(ctx)
	}
}

// Credential returns the login as it stands.
func (s *TokenSource) Credential() Credential { return s.current.Load().Credential }

func (s *TokenSource) describe() string {
	return fmt.Sprintf("auth.TokenSource{%s, %s}", s.cfg.Refresher.describe(), s.Credential())
}

// Format prints the source without a secret, whatever the verb is.
func (s *TokenSource) Format(w fmt.State, _ rune) { fmt.Fprint(w, s.describe()) }

// LogValue is the source without a secret.
func (s *TokenSource) LogValue() slog.Value { return slog.StringValue(s.describe()) }
