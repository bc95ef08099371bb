package delay

import (
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// minBase is the least base that a server may set.
const minBase = 100 * time.Millisecond

// Unlimited is the number of attempts of a loop that goes on until something else ends it.
const Unlimited = math.MaxInt

// Retries counts the attempts of one run of a loop and decides the wait after each: the row's composition of its
// schedule with the server's Retry-After. It belongs to one goroutine.
type Retries struct {
	// Limit, if positive, is the longest wait the caller is willing to make: a longer one is not waited, Next refuses it.
	Limit time.Duration
	// Cap, if positive, cuts every wait, the server's included.
	Cap time.Duration

	loop     Loop
	local    Local
	rand     Rand
	schedule backoff.BackOff
	own      bool // the schedule is the row's
	attempts int
	n        int
}

// Retries starts a run of the loop on a schedule of the caller's; attempts is the number of attempts in all, the first
// included, and anything below 1 counts as 1.
func (l Loop) Retries(b backoff.BackOff, attempts int) *Retries {
	return &Retries{loop: l, local: table[l-1].Local, schedule: b, attempts: max(attempts, 1)}
}

// OwnRetries starts a run of the loop on the schedule of its row. A base or ceiling of 0 keeps the row's.
func (l Loop) OwnRetries(base, ceiling time.Duration, attempts int, r Rand) *Retries {
	local := l.Row().Local
	if base > 0 {
		local.Base = base
	}
	if ceiling > 0 {
		local.Ceiling = ceiling
	}
	return &Retries{loop: l, local: local, rand: r, schedule: local.Schedule(r), own: true, attempts: max(attempts, 1)}
}

// Next decides the wait after an attempt that is to be retried, and reports whether there is to be another attempt. It
// says no when the attempts are used up, when the schedule stops, and when the wait is over the limit; the Wait then
// still carries what the server asked for.
func (r *Retries) Next(after RetryAfter) (Wait, bool) {
	return r.next(0, after)
}

// NextUnheeded is Next for a failure whose header must not be read, such as a refused credential.
func (r *Retries) NextUnheeded() (Wait, bool) {
	w, ok := r.Next(RetryAfter{})
	w.Reason = Unheeded
	return w, ok
}

// NextSpread is Next after the server dropped everybody at once: the first draw of a run is taken from at least the given
// width, so that they do not all come back together. Later draws are wide enough by themselves.
func (r *Retries) NextSpread(width time.Duration) (Wait, bool) {
	if r.n > 0 || width <= r.local.Term(1) {
		return r.Next(RetryAfter{})
	}
	w, ok := r.next(width, RetryAfter{})
	w.Reason = Spread
	return w, ok
}

// NextWoken is Next after the machine was asleep: uniform(0, 2 s), whatever the count is.
func (r *Retries) NextWoken() (Wait, bool) {
	w, ok := r.next(2*time.Second, RetryAfter{})
	w.Reason = Woken
	return w, ok
}

// next takes a width to draw from in place of the schedule's delay. The schedule moves on all the same, and its Stop
// counts.
func (r *Retries) next(width time.Duration, after RetryAfter) (Wait, bool) {
	if r.n < math.MaxInt {
		r.n++
	}
	w := Wait{Loop: r.loop, Server: after.asked, Attempt: r.n, Of: r.of(), Reason: OwnDelay}
	if r.n >= r.attempts {
		return w, false
	}
	local := r.schedule.NextBackOff()
	if local == backoff.Stop {
		return w, false
	}
	if width > 0 {
		local = r.rand.draw(width)
	}
	w = r.loop.Compose(local, after)
	w.Attempt, w.Of = r.n, r.of()
	w = w.Bounded(r.Cap, r.Limit)
	return w, w.Bound != OverLimit
}

func (r *Retries) of() int {
	if r.attempts == Unlimited {
		return 0
	}
	return r.attempts
}

// Failed returns how many attempts have failed since the start or the last Reset.
func (r *Retries) Failed() int { return r.n }

// Reset starts the count and the schedule anew.
func (r *Retries) Reset() {
	r.n = 0
	r.schedule.Reset()
}

// Rebase gives a run on its row's schedule another base, at most the ceiling and at least 100 ms, and keeps the count.
// On a schedule of the caller's it changes nothing. It serves the retry field of an event stream.
func (r *Retries) Rebase(base time.Duration) {
	if !r.own {
		return
	}
	r.local.Base = min(max(base, minBase), r.local.Ceiling)
	r.schedule = r.local.schedule(r.rand, r.n)
}
