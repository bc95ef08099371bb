package delay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Pause is how a loop sleeps through a Wait.
type Pause struct {
	Timers *Timers
	Kind   Kind
	// OnWait, if set, is called before the wait begins, with the instant it ends.
	OnWait func(Wait)
	// Cut, if set, ends a wait early and without an error when something is received from it or it is closed.
	Cut <-chan struct{}
	// OnMark, if set, is called on the way, once, when the instant Mark has come; never if that is not inside the wait. It
	// runs in the goroutine that sleeps.
	OnMark func()
	Mark   time.Time
}

// Sleep waits for w.For, on the monotonic clock and on the wall clock: if the wall moved on by less than the wait, as on
// a virtual machine whose monotonic clock runs fast, the rest is waited too. A wall clock that stepped back or jumped is
// no witness and is ignored.
//
// Sleep ends at once when ctx ends, with an error that is the context's own (see Ended). If the deadline of ctx falls
// before the end of the wait, it returns a *TooLongError right away. The context is asked last after the hook and after
// the timer, so that cancellation wins ties.
func (p Pause) Sleep(ctx context.Context, w Wait) error {
	if err := Ended(ctx); err != nil {
		return err
	}
	start := p.Timers.Now()
	w.Until = start.Add(w.For)
	if at, ok := p.Timers.deadline(ctx, start); ok && at.Before(w.Until) {
		return &TooLongError{Wait: w, Deadline: at}
	}
	if p.OnWait != nil {
		p.OnWait(w)
	}
	if w.For <= 0 {
		return p.over(ctx, start) // there is no timer to arm
	}
	rest := w.For
	// Up to the mark it is one timer and from there on another, so that never more than one is armed.
	if mark := p.Mark.Sub(start); p.OnMark != nil && mark > 0 && mark < rest {
		if done, err := p.arm(ctx, mark); !done {
			return err
		}
		p.OnMark()
		rest -= mark
	}
	for again := false; ; again = true {
		if done, err := p.arm(ctx, rest); !done {
			return err
		}
		now := p.Timers.Now()
		moved := now.Round(0).Sub(start.Round(0))
		if moved <= 0 || moved >= w.For || again && w.For-moved >= rest {
			return p.over(ctx, now)
		}
		rest = w.For - moved
	}
}

// over returns whether ctx has ended, by its deadline also when that is this very instant, and the timer that tells of it
// has yet to fire.
func (p Pause) over(ctx context.Context, now time.Time) error {
	if err := Ended(ctx); err != nil {
		return err
	}
	if at, ok := p.Timers.deadline(ctx, now); ok && !at.After(now) {
		return context.DeadlineExceeded
	}
	return nil
}

// arm waits for one timer. done is false when something else has ended the wait.
func (p Pause) arm(ctx context.Context, d time.Duration) (done bool, err error) {
	fired := make(chan struct{})
	t := p.Timers.After(p.Kind, d, func() { close(fired) })
	select {
	case <-fired:
		done = true
	case <-p.Cut:
		t.Stop()
	case <-ctx.Done():
		t.Stop()
	}
	if err := Ended(ctx); err != nil {
		return false, err
	}
	return done, nil
}

// TooLongError reports a wait that was not begun, because the caller's deadline falls before its end. It is a
// context.DeadlineExceeded to errors.Is.
type TooLongError struct {
	Wait     Wait
	Deadline time.Time
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the wait of %v would end after the deadline: try again later or allow more time", e.Wait.For)
}

// Is makes the error a context.DeadlineExceeded.
func (e *TooLongError) Is(target error) bool { return target == context.DeadlineExceeded }

// Ended returns nil while ctx is alive, and then its error, joined with its cause where there is one.
func Ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return cause // err itself, or something that says more
}

// TimeoutError is the cause of a context that WithTimeout ended. It is a context.DeadlineExceeded to errors.Is, and a
// timeout to net.Error.
type TimeoutError struct {
	Kind  Kind
	After time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s: no answer within %v", e.Kind, e.After)
}

// Is makes the error a context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout reports true.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary reports true, as for other timeouts.
func (e *TimeoutError) Temporary() bool { return true }

type deadlineKey struct{}

type deadline struct {
	timers *Timers
	at     time.Time
}

// WithTimeout returns a context that ends with a *TimeoutError as its cause once d has passed on the registry's clock.
// Unlike context.WithTimeout it never puts a virtual clock's instant where the network would read it as real; Sleep
// knows the deadline all the same.
func (s *Timers) WithTimeout(ctx context.Context, kind Kind, d time.Duration) (context.Context, context.CancelFunc) {
	at := s.Now().Add(d)
	if outer, ok := s.deadline(ctx, s.Now()); !ok || at.Before(outer) {
		ctx = context.WithValue(ctx, deadlineKey{}, deadline{s, at})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t := s.After(kind, d, func() { cancel(&TimeoutError{Kind: kind, After: d}) })
	return ctx, func() {
		t.Stop()
		cancel(context.Canceled)
	}
}

// deadline returns the earlier of the deadline that WithTimeout gave ctx and its own. Its own is an instant of package
// time, so it counts only when the clock is real: package time's, or one whose instants carry a monotonic reading, which
// those of a bubble of testing/synctest do not.
func (s *Timers) deadline(ctx context.Context, now time.Time) (at time.Time, ok bool) {
	if d, found := ctx.Value(deadlineKey{}).(deadline); found && (d.timers == s || d.timers.real && s.real) {
		at, ok = d.at, true
	}
	isReal := s.real || now != now.Round(0)
	if own, found := ctx.Deadline(); found && isReal && (!ok || own.Before(at)) {
		at, ok = own, true
	}
	return at, ok
}
