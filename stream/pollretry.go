package stream

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// Page is one answer of a poll.
type Page[E any] struct {
	Events []E
	// Position is where a later walk goes on once the events are dealt with; "" if the server named none.
	Position string
	// Next is the position of the page that follows; "" at the head.
	Next string
}

// PollFunc asks once for the page at a.Position, with a.Credential. It keeps the rules of a [Dialer]: it does not repeat or
// wait, it returns promptly when ctx ends, an [*AttemptError] says what a failure means, and no error text has a secret in
// it. [HTTPPoll] has one for HTTP.
type PollFunc[E any] func(ctx context.Context, a Attempt) (Page[E], error)

// Walk polls page after page until it has caught up. Only Poll is needed. A Walk may be used more than once, and by several
// goroutines: every call of Pages counts for itself.
type Walk[E any] struct {
	// Poll asks for one page.
	Poll PollFunc[E]

	// Credential obtains a fresh credential for each poll. If nil, polls carry none.
	Credential CredentialFunc

	// Base and Ceiling bound the draw after k failed polls in a row, where the server asks for nothing: uniform(0,
	// min(Ceiling, Base·2^(k-1))). If zero, they are those of the table, 1 s and 60 s.
	Base, Ceiling time.Duration

	// Timeout bounds a poll. If zero, 30 s; if negative, nothing does.
	Timeout time.Duration

	// AuthorizationThreshold is how many times in a row a credential may be refused until the walk ends. If zero, 3.
	AuthorizationThreshold int

	// Rand draws the waits. If nil, math/rand/v2 does.
	Rand delay.Rand

	// Clock is what time it is. If nil, the real one.
	Clock clock.Clock

	// Trace, if set, is told what happens: Failed, Waiting and Served.
	Trace *Trace

	// Logger, if set, is told the same.
	Logger *slog.Logger
}

// Validate reports all mistakes of the configuration, joined into one error. Pages does it too, before anything is sent.
func (w Walk[E]) Validate() error {
	var all []error
	if w.Poll == nil {
		all = append(all, &ConfigError{"Poll", "is missing: there is nothing to poll with"})
	}
	all = append(all, schedule(w.Base, w.Ceiling)...)
	if w.AuthorizationThreshold < 0 {
		all = append(all, &ConfigError{"AuthorizationThreshold", "is negative"})
	}
	return errors.Join(all...)
}

// Pages polls from a position on and yields each page that is served, until there is no next one. A poll that fails
// in a way that time heals is repeated: after exactly the time that the server asked for, else after a draw. A served page
// starts the count of failed polls anew.
//
// The loop ends without an error at the head, when it is broken and when ctx ends. Otherwise it ends with one [*Error],
// yielded last with an empty Page.
func (w Walk[E]) Pages(ctx context.Context, position string) iter.Seq2[Page[E], error] {
	return func(yield func(Page[E], error) bool) {
		if err := w.Validate(); err != nil {
			yield(Page[E]{}, &Error{Reason: Usage, Err: err})
			return
		}
		threshold := w.AuthorizationThreshold
		if threshold == 0 {
			threshold = DefaultAuthorizationThreshold
		}
		walk := newWalker(w, &authorization{threshold: threshold})
		for delay.Ended(ctx) == nil {
			page, err := walk.page(ctx, position)
			switch {
			case errors.Is(err, ErrEnd) || delay.Ended(ctx) != nil:
				return
			case err != nil:
				yield(Page[E]{}, err)
				return
			case !yield(page, nil) || page.Next == "":
				return
			}
			position = page.Next
		}
	}
}

// patience is how many empty pages may lead nowhere in a row.
const patience = 3

// errNoProgress ends a walk that would go round for ever.
var errNoProgress = errors.New("page after page is empty and names itself as the next")

// walker is a walk under way. It belongs to one goroutine.
type walker[E any] struct {
	Walk[E]
	timers   *delay.Timers
	observe  observer
	ledger   ledger
	attempts int
	stuck    int
	refused  Credential
}

// newWalker starts a walk that counts refused credentials on a counter of the caller's.
func newWalker[E any](w Walk[E], counter *authorization) *walker[E] {
	if w.Timeout == 0 {
		w.Timeout = DefaultPollTimeout
	}
	return &walker[E]{
		Walk:    w,
		timers:  delay.TimersOn(w.Clock),
		observe: observe(w.Trace, w.Logger),
		ledger: ledger{
			retries:       delay.PollRetry.OwnRetries(w.Base, w.Ceiling, delay.Unlimited, w.Rand),
			authorization: counter,
		},
	}
}

// page polls for one page until it is served. Its error is ErrEnd, the *Error that ends the walk, or of no interest because
// ctx has ended.
func (w *walker[E]) page(ctx context.Context, position string) (Page[E], error) {
	for {
		page, failure := w.poll(ctx, position)
		if failure == nil {
			return page, w.served(position, page)
		}
		if errors.Is(failure, ErrEnd) {
			return page, ErrEnd
		}
		if err := delay.Ended(ctx); err != nil {
			return page, err
		}
		reason := PollFailed
		if failure.step == "credential" {
			reason = MintFailed
		}
		o := afterFailure(reason, failure.AttemptError)
		w.observe.failed(FailedInfo{Attempt: w.attempts, Step: failure.step, Err: failure.AttemptError, Unauthorized: w.ledger.count(o)})
		wait, end := w.ledger.verdict(o)
		if end != nil {
			return page, end
		}
		p := delay.Pause{Timers: w.timers, Kind: delay.KindPollRetry, OnWait: w.observe.waiting}
		if err := p.Sleep(ctx, wait); err != nil {
			return page, &Error{Reason: DeadlinePassed, Err: err}
		}
	}
}

// pollFailure is a failed poll, and which half of it failed.
type pollFailure struct {
	*AttemptError
	step string
}

// poll asks once.
func (w *walker[E]) poll(ctx context.Context, position string) (page Page[E], failure *pollFailure) {
	w.attempts++
	a := Attempt{Number: w.attempts, Position: position, now: w.timers.Now}
	if w.Credential != nil {
		c, err := w.Credential(ctx, w.refused)
		if err != nil {
			return page, &pollFailure{asCredential(ctx, a, err), "credential"}
		}
		a.Credential, w.refused = c, Credential{}
	}
	within, cancel := ctx, context.CancelFunc(func() {})
	if w.Timeout > 0 {
		within, cancel = w.timers.WithTimeout(ctx, delay.KindRequestTimeout, w.Timeout)
	}
	defer cancel()
	page, err := w.Poll(within, a)
	if err == nil {
		return page, nil
	}
	e := asAttempt(a, err)
	if late, ok := errors.AsType[*delay.TimeoutError](context.Cause(within)); ok && e.Status == 0 {
		e = &AttemptError{Err: late}
	}
	if e.Class == Unauthorized {
		w.refused = a.Credential
	}
	return page, &pollFailure{e, "poll"}
}

// served accounts for a served page.
func (w *walker[E]) served(position string, page Page[E]) error {
	w.ledger.retries.Reset()
	w.ledger.authorization.prove()
	w.observe.served(ServedInfo{Attempt: w.attempts, Events: len(page.Events), More: page.Next != ""})
	if len(page.Events) > 0 || page.Next == "" || page.Next != position {
		w.stuck = 0
		return nil
	}
	if w.stuck++; w.stuck >= patience {
		return &Error{Reason: PollFailed, Err: errNoProgress}
	}
	return nil
}
