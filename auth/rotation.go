package auth

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
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
	reread   bool // the login had been replaced when its token was refused
}

// settled is how a login stands after a presentation whose note could not be taken out of the store. It counts as long
// as the store has that very note.
type settled struct {
	note Presentation
	Credential
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
	r.ended = nil
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
	switch {
	case err != nil:
		return nil, err
	case adopted:
		return r.adopt(c), nil
	case c.RefreshToken == "" && r.ended != nil:
		return nil, r.ended
	case c.RefreshToken == "" || !r.cfg.refreshes():
		return nil, &SessionExpired{Reason: ErrSessionNotRefreshable}
	}
	if at, ok := c.Unanswered(); ok && !r.inGrace(at) {
		return nil, &SessionExpired{Reason: ErrSessionReplyLost}
	}
	return r.exchange(ctx, c)
}

// adopt takes over a login that somebody else has stored.
func (r *rotation) adopt(c Credential) *held {
	r.tell(Refreshed{ExpiresAt: c.Expiry, ByOther: true})
	return r.hold(c)
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
		c = r.known(c)
		now := r.wall()
		// Some servers give the same access token a longer life. It is no use in place of itself when it was refused.
		newer := c.AccessToken != h.AccessToken || !h.fresh(now) && c.Expiry.After(h.Expiry)
		if newer && r.hold(c).fresh(now) {
			return c, true, nil
		}
		// Without a lock, a note may be somebody's who is at it. One from the future is of a clock that was set back since.
		at, noted := c.Unanswered()
		if r.locked || !noted || r.inGrace(at) || now.Sub(at).Abs() > r.cfg.Timeout {
			return c, false, nil
		}
		pause := delay.Pause{Timers: r.timers, Kind: delay.KindStoreLock}
		if err := pause.Sleep(ctx, delay.Wait{For: pauses.NextBackOff()}); err != nil {
			return c, false, &StoreError{Op: OpLock, Reason: ErrStoreLocked, Err: err}
		}
	}
}

// known is a login from the store as it is known to stand here. What explains something else is of no use any more.
func (s *TokenSource) known(c Credential) Credential {
	i := slices.IndexFunc(s.settled, func(k settled) bool {
		return c.Presented != nil && c.Presented.Digest == k.note.Digest && c.Presented.At.Equal(k.note.At)
	})
	if i < 0 {
		s.settled = nil
		return c
	}
	s.settled = s.settled[i : i+1]
	return s.settled[0].Credential
}

// inGrace reports whether a token presented at an instant may be presented again. If the clock was set back since, nobody
// knows how long ago that was.
func (r *rotation) inGrace(at time.Time) bool {
	ago := r.wall().Sub(at)
	return ago >= 0 && ago < r.cfg.ReuseGrace
}

// exchange presents the refresh token, again only where that is safe, and stores what came of it.
func (r *rotation) exchange(ctx context.Context, c Credential) (*held, error) {
	retries := delay.GeneratedRetry.OwnRetries(0, 0, refreshAttempts, nil)
	for {
		// A token that was presented before and not answered stays so, whatever becomes of its being presented again.
		_, lost := c.Unanswered()
		if !lost {
			if err := r.note(ctx, &c); err != nil {
				return nil, err // a rotated token could not be stored either
			}
		}
		tok, err := r.cfg.Refresher.Refresh(ctx, c.Token())
		if err == nil {
			return r.rotated(c, NewCredential(tok, r.wall(), r.cfg.Keep...)), nil
		}
		failure, ok := errors.AsType[*RefreshError](err)
		if !ok {
			failure = &RefreshError{Reason: ErrNotSent, Err: err}
		}
		switch {
		case failure.Reason == ErrReplyLost && !r.replayed && r.inGrace(c.Presented.At) && delay.Ended(ctx) == nil:
			r.replayed = true
			continue
		case failure.Reason == ErrReplyLost, failure.Reason == ErrUnusableToken:
			return nil, r.lost(c, failure)
		case failure.refusesGrant():
			return r.cleared(ctx, c, failure)
		case !lost:
			// A wait may be long, and whoever finds the note after a crash must not take the token for spent.
			note := *c.Presented
			c.Presented = nil
			r.keep(note, c)
		}
		again := failure.Repeatable() && r.again(ctx, retries, failure)
		switch {
		case lost && !(again && r.inGrace(c.Presented.At)):
			return nil, r.lost(c, failure)
		case !again && failure.saysNothing():
			// Some servers answer so to a refresh token that they do not take any more. The login stays where it is, in case
			// it was somebody else who answered.
			return nil, &SessionExpired{Reason: ErrSessionRefused, Err: failure}
		case !again:
			return nil, failure
		}
	}
}

// lost remembers that a presentation was not answered where there is no store to have the note of it.
func (r *rotation) lost(c Credential, failure *RefreshError) error {
	if r.cfg.Store == nil {
		r.current.Store(r.hold(c))
	}
	return failure
}

// again waits for another attempt, and reports whether there is to be one.
func (r *rotation) again(ctx context.Context, retries *delay.Retries, failure *RefreshError) bool {
	w, more := retries.Next(failure.RetryAfter)
	if !more {
		return false
	}
	w.Cause = string(failure.Reason)
	if failure.Status != 0 {
		w.Cause = strconv.Itoa(failure.Status)
	}
	pause := delay.Pause{Timers: r.timers, Kind: delay.KindRetry, OnWait: func(w delay.Wait) { r.tell(Waiting{w}) }}
	return pause.Sleep(ctx, w) == nil
}

// refusesGrant reports whether the server has looked at the refresh token and does not take it (RFC 6749, section 5.2).
// GitHub has a code of its own for that.
func (e *RefreshError) refusesGrant() bool {
	return e.Reason == ErrRefused && (e.Code == "invalid_grant" || e.Code == "bad_refresh_token") && e.Status < 500 && e.Status != http.StatusTooManyRequests
}

// saysNothing reports whether the request was called wrong and nothing was said of what is wrong with it.
func (e *RefreshError) saysNothing() bool {
	return e.Reason == ErrRefused && e.Status == http.StatusBadRequest && e.Code == "" && e.Description == "" && e.Err == nil
}

// note says in the store that the refresh token is about to be presented. It goes before the request, so that whoever
// finds the login after a crash knows that its token may be spent.
func (r *rotation) note(ctx context.Context, c *Credential) error {
	before := *c
	before.Presented = nil
	c.Present(r.wall())
	if r.cfg.Store == nil {
		return nil
	}
	if err := r.cfg.Store.Save(ctx, r.cfg.Key, *c); err != nil {
		r.settled = append(r.settled, settled{*c.Presented, before}) // it may be there all the same
		return err
	}
	r.settled = nil
	return nil
}

// keep stores how a login stands after its presentation, noted by note, was answered. That is known in this process even
// when it cannot be stored: by its store alone, the token may be spent.
func (r *rotation) keep(note Presentation, c Credential) {
	if r.cfg.Store == nil {
		return
	}
	// The token was rotated, or is known to be good: that must not be lost because time is up.
	if err := r.cfg.Store.Save(context.Background(), r.cfg.Key, c); err != nil {
		r.settled = []settled{{note, c}}
		r.tell(StoreTrouble{Err: err})
	}
}

// rotated stores a new login before anybody sees it. What the answer left out stays as it was: Refresh has seen to the
// refresh token, the scope and the resources.
func (r *rotation) rotated(old, c Credential) *held {
	if c.IDToken == "" {
		c.IDToken = old.IDToken
	}
	if len(old.Extra) > 0 {
		extra := maps.Clone(old.Extra)
		maps.Copy(extra, c.Extra)
		c.Extra = extra
	}
	r.keep(*old.Presented, c)
	r.tell(Refreshed{ExpiresAt: c.Expiry})
	return r.hold(c)
}

// cleared deletes a login whose refresh token was refused, unless somebody has replaced it meanwhile.
func (r *rotation) cleared(ctx context.Context, c Credential, failure *RefreshError) (*held, error) {
	ended := &SessionExpired{Reason: ErrSessionRefused, Err: failure}
	if r.cfg.Store == nil {
		r.ended = ended
		c.RefreshToken, c.Presented = "", nil
		r.current.Store(r.hold(c))
		return nil, ended
	}
	now, err := r.cfg.Store.Load(context.Background(), r.cfg.Key)
	switch {
	case errors.Is(err, ErrStoreNotFound):
		return nil, ended
	case err != nil:
		return nil, errors.Join(ended, err)
	case now.RefreshToken != c.RefreshToken && r.hold(now).usable(r.wall()):
		return r.adopt(now), nil
	case now.RefreshToken != c.RefreshToken && !r.reread:
		r.reread = true
		return r.renew(ctx, &held{})
	case now.RefreshToken != c.RefreshToken:
		return nil, failure // the next call takes it from there
	}
	r.ended = ended
	if err := r.cfg.Store.Delete(context.Background(), r.cfg.Key); err != nil {
		r.settled = []settled{{note: *c.Presented}} // nothing is left of it
		r.tell(StoreTrouble{Err: err})
	}
	return nil, ended
}
