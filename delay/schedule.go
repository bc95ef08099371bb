package delay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Rand draws uniformly from [0, n). It is asked only for n > 0. A nil Rand is math/rand/v2.Int64N; a test that pins a
// draw may return n itself, the end of the range.
type Rand func(n int64) int64

func (r Rand) draw(width time.Duration) time.Duration {
	if width <= 0 {
		return 0
	}
	if r == nil {
		return time.Duration(rand.Int64N(int64(width)))
	}
	return min(max(time.Duration(r(int64(width))), 0), width)
}

// Jitter is how chance enters a local delay.
type Jitter uint8

// The kinds of local operand in the table.
const (
	// AddJitter adds uniform(0, Extra) to the exponential term.
	AddJitter Jitter = iota + 1
	// FullDraw draws uniformly from 0 to the exponential term.
	FullDraw
	// PollCadence has no chance in it: a Cadence keeps its timers.
	PollCadence
)

// Local is the local operand of a row: the delay that the loop takes when the server asks for nothing.
type Local struct {
	Base    time.Duration // the first exponential term, or the interval
	Ceiling time.Duration // bounds the exponential term
	Jitter  Jitter
	Extra   time.Duration // the width of added jitter, on top of the ceiling
}

// String returns the formula as the table prints it.
func (l Local) String() string {
	term := fmt.Sprintf("min(%v, %v·2^(n-1))", short(l.Ceiling), short(l.Base))
	switch l.Jitter {
	case AddJitter:
		return fmt.Sprintf("%s + uniform(0, %v)", term, short(l.Extra))
	case FullDraw:
		return fmt.Sprintf("uniform(0, %s)", term)
	case PollCadence:
		return fmt.Sprintf("max(interval, timeout backoff), interval %v unless the server names one, backoff doubling to %v", short(l.Base), short(l.Ceiling))
	}
	return term
}

// short writes a minute as 60s: the formulas read better in one unit.
func short(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// Term returns the exponential term of attempt n, from 1: Base·2^(n-1) below the ceiling and the ceiling from there on,
// for every n.
func (l Local) Term(n int) time.Duration {
	shift := max(n, 1) - 1
	if shift > 62 || l.Base > l.Ceiling>>shift {
		return l.Ceiling
	}
	return l.Base << shift
}

// Longest returns the longest local delay of attempt n.
func (l Local) Longest(n int) time.Duration {
	if l.Jitter == PollCadence {
		return l.Base
	}
	return add(l.Term(n), l.Extra)
}

// Schedule returns the operand as a schedule that draws from r.
func (l Local) Schedule(r Rand) backoff.BackOff { return l.schedule(r, 0) }

// schedule starts behind its first n delays.
func (l Local) schedule(r Rand, n int) backoff.BackOff {
	b := Exponential(l.Base, l.Ceiling)
	for range min(n, 64) { // saturated by then, whatever the base
		b.NextBackOff()
	}
	switch l.Jitter {
	case AddJitter:
		return AddedJitter(b, l.Extra, r)
	case FullDraw:
		return FullJitter(b, r)
	}
	return b
}

// Exponential returns base·2^(n-1), saturating at the ceiling, without jitter and without an end. It is the library's own
// type with its randomisation and its fifteen-minute end switched off, and its first interval, which the library leaves
// unbounded, clamped. It is exact for ceilings up to 2^53 ns, 104 days.
func Exponential(base, ceiling time.Duration) backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(base, ceiling)),
		backoff.WithMaxInterval(ceiling),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0),
		backoff.WithMaxElapsedTime(0),
		backoff.WithClockProvider(stopped{}),
	)
}

// stopped is the clock of a schedule without an end: what has elapsed is of no interest, and asking a real clock costs
// more than the rest of a decision.
type stopped struct{}

func (stopped) Now() time.Time { return time.Time{} }

// FullJitter draws each delay uniformly from 0 to what b says. The library's own randomisation is a band around the
// interval, which goes past the ceiling and cannot express this.
func FullJitter(b backoff.BackOff, r Rand) backoff.BackOff {
	return jittered{b, func(d time.Duration) time.Duration { return r.draw(d) }}
}

// AddedJitter adds uniform(0, extra) to what b says, on top of b's ceiling.
func AddedJitter(b backoff.BackOff, extra time.Duration, r Rand) backoff.BackOff {
	return jittered{b, func(d time.Duration) time.Duration { return add(d, r.draw(extra)) }}
}

type jittered struct {
	backoff.BackOff
	jitter func(time.Duration) time.Duration
}

func (j jittered) NextBackOff() time.Duration {
	d := j.BackOff.NextBackOff()
	if d == backoff.Stop {
		return backoff.Stop
	}
	return j.jitter(d)
}

// Linear returns step, 2·step, 3·step and so on, saturating. The library has no such schedule.
func Linear(step time.Duration) backoff.BackOff { return &linear{step: max(step, 0)} }

type linear struct{ step, last time.Duration }

func (l *linear) NextBackOff() time.Duration {
	l.last = add(l.last, l.step)
	return l.last
}

func (l *linear) Reset() { l.last = 0 }

// add saturates, for durations that are not negative.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
