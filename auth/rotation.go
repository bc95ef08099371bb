package auth

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// refreshAttempts is how many requests one refresh makes of those that are safe to repeat.
const refreshAttempts = 3

// rotation is one refresh of a login that other processes may be refreshing too.
type rotation struct {
	*TokenSource
	locked   bool // nobody else is at it
	replayed bool // inside the grace window
}

// refresh replaces a login: by what another process has stored meanwhile, or by an exchange. It runs under its own bound,
// whoever waits for it. Nobody sees a new access token before the new refresh token is stored.
func (s *TokenSource) refresh(h *held) (*held, error) {
	ctx, cancel := s.timers.WithTimeout(context.Background(), delay.KindRefresh, s.cfg.Timeout)
	defer cancel()
	r := &rotation{TokenSource: s}
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, r.failed(err)
	}
	defer unlock()
	got, err := r.renew(ctx, h)
	if err != nil {
		return nil, r.failed(err)
	}
	return got, nil
}

func (s *TokenSource) failed(err error) error {
	s.tell(RefreshFailed{Err: err})
	return err
}

// lock takes the lock of the login among processes. Where there is none to be had, it says so and goes on: the store is
// read again in any case.
func (r *rotation) lock(ctx context.Context) (unlock func(), err error) {
	locker, ok := r.cfg.Store.(Locker)
	if !ok {
		return func() {}, nil
	}
	unlock, err = locker.Lock(ctx, r.cfg.Key)
	switch {
	case err == nil:
		r.locked = true
		return unlock, nil
	case errors.Is(err, ErrStoreLocked), delay.Ended(ctx) != nil:
		return nil, err
	}
	r.tell(StoreTrouble{Err: err})
	return func() {}, nil
}

// renew looks at the store and exchanges the refresh token that it has.
func (r *rotation) renew(ctx context.Context, h *held) (*held, error) {
	c, adopted, err := r.latest(ctx, h)
	if err != nil {
		return nil, err
	}
	if adopted {
		got := r.hold(c)
		r.tell(Refreshed{ExpiresAt: c.Expiry, ByOther: true})
		return got, nil
	}
	if c.RefreshToken == "" && r.ended != nil {
		return nil, r.ended
	}
	if c.RefreshToken == "" {
		return nil, &SessionExpired{Reason: ErrSessionNotRefreshable}
	}
	if at, ok := c.Unanswered(); ok && !r.inGrace(at) {
		return nil, &SessionExpired{Reason: ErrSessionReplyLost}
	}
	// The note goes before the request, so that whoever finds the login after a crash knows that its token may be spent.
	if _, noted := c.Unanswered(); !noted {
		c.Present(r.wall())
		if err := r.save(ctx, c); err != nil {
			return nil, err // a rotated token could not be stored either
		}
	}
	return r.exchange(ctx, c)
}

// latest is the login as the store has it. adopted is true when somebody else has refreshed it.
func (r *rotation) latest(ctx context.Context, h *held) (c Credential, adopted bool, err error) {
	if r.cfg.Store == nil {
		return h.Credential, false, nil
	}
	pauses := delay.Exponential(100*time.Millisecond, 2*time.Second)
	for {
		c, err = r.cfg.Store.Load(ctx, r.cfg.Key)
		switch {
		case errors.Is(err, ErrStoreNotFound) && r.ended != nil:
			return c, false, r.ended
		case errors.Is(err, ErrStoreNotFound):
			return c, false, &SessionExpired{Reason: ErrSessionLoggedOut}
		case err != nil:
			return c, false, err
		}
		if c.AccessToken != h.AccessToken && r.hold(c).fresh(r.wall()) {
			return c, true, nil
		}
		// Without a lock, a note may be somebody's who is at it.
		at, noted := c.Unanswered()
		if r.locked || !noted || r.inGrace(at) || r.wall().Sub(at) > r.cfg.Timeout {
			return c, false, nil
		}
		pause := delay.Pause{Timers: r.timers, Kind: delay.KindStoreLock}
		if err := pause.Sleep(ctx, delay.Wait{For: pauses.NextBackOff()}); err != nil {
			return c, false, err
		}
	}
}

func (r *rotation) inGrace(at time.Time) bool {
	return r.cfg.ReuseGrace > 0 && r.wall().Sub(at) < r.cfg.ReuseGrace
}

// exchange presents the refresh token, again only where that is safe, and stores what came of it.
func (r *rotation) exchange(ctx context.Context, c Credential) (*held, error) {
	retries := delay.GeneratedRetry.OwnRetries(0, 0, refreshAttempts, nil)
	for {
		tok, err := r.cfg.Refresher.Refresh(ctx, c.Token())
		if err == nil {
			return r.rotated(ctx, c, NewCredential(tok, r.wall(), r.cfg.Keep...))
		}
		failure, ok := errors.AsType[*RefreshError](err)
		switch {
		case !ok:
			return nil, err
		case failure.Repeatable() && delay.Ended(ctx) == nil:
			w, more := retries.Next(failure.RetryAfter)
			w.Cause = string(failure.Reason)
			if more && (delay.Pause{Timers: r.timers, Kind: delay.KindRetry}).Sleep(ctx, w) == nil {
				continue
			}
		case failure.Reason == ErrReplyLost && !r.replayed && c.Presented != nil && r.inGrace(c.Presented.At) && delay.Ended(ctx) == nil:
			r.replayed = true
			continue
		}
		return r.refused(ctx, c, failure)
	}
}

// rotated stores a new login before anybody sees it. What the answer left out stays as it was.
func (r *rotation) rotated(ctx context.Context, old, c Credential) (*held, error) {
	if c.RefreshToken == "" {
		c.RefreshToken = old.RefreshToken
	}
	if c.Scope == "" {
		c.Scope = old.Scope
	}
	if len(c.Resources) == 0 {
		c.Resources = old.Resources
	}
	if c.IDToken == "" {
		c.IDToken = old.IDToken
	}
	if len(old.Extra) > 0 {
		extra := maps.Clone(old.Extra)
		maps.Copy(extra, c.Extra)
		c.Extra = extra
	}
	// It is kept in this process even when it cannot be stored: the old one may be spent.
	if err := r.save(context.WithoutCancel(ctx), c); err != nil {
		r.tell(StoreTrouble{Err: err})
	}
	r.tell(Refreshed{ExpiresAt: c.Expiry})
	return r.hold(c), nil
}

// refused deals with an exchange that brought no token.
func (r *rotation) refused(ctx context.Context, c Credential, failure *RefreshError) (*held, error) {
	keep := context.WithoutCancel(ctx)
	switch {
	case failure.Reason == ErrReplyLost, failure.Reason == ErrUnusableToken:
		r.current.Store(r.hold(c)) // with its note, which the store has too: the token may be spent
		return nil, failure
	case failure.Reason == ErrRefused && failure.Code == "invalid_grant":
		return r.cleared(keep, c, failure)
	}
	c.Presented = nil
	if err := r.save(keep, c); err != nil {
		r.tell(StoreTrouble{Err: err})
	}
	return nil, failure
}

// cleared deletes a login whose refresh token was refused, unless somebody has replaced it meanwhile.
func (r *rotation) cleared(ctx context.Context, c Credential, failure *RefreshError) (*held, error) {
	ended := &SessionExpired{Reason: ErrSessionRefused, Err: failure}
	if r.cfg.Store == nil {
		c.RefreshToken, c.Presented = "", nil
		r.current.Store(r.hold(c))
		r.ended = ended
		return nil, ended
	}
	now, err := r.cfg.Store.Load(ctx, r.cfg.Key)
	switch {
	case errors.Is(err, ErrStoreNotFound):
		return nil, ended
	case err != nil:
		return nil, errors.Join(ended, err)
	case now.RefreshToken != c.RefreshToken && r.hold(now).usable(r.wall()):
		r.tell(Refreshed{ExpiresAt: now.Expiry, ByOther: true})
		return r.hold(now), nil
	case now.RefreshToken != c.RefreshToken:
		return nil, failure // the next call takes it from there
	}
	if err := r.cfg.Store.Delete(ctx, r.cfg.Key); err != nil {
		r.tell(StoreTrouble{Err: err})
	}
	r.ended = ended
	return nil, ended
}

func (r *rotation) save(ctx context.Context, c Credential) error {
	if r.cfg.Store == nil {
		return nil
	}
	return r.cfg.Store.Save(ctx, r.cfg.Key, c)
}
