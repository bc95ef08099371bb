package delay

import "time"

const (
	// spacing is the width of the draw between two that leave after one another: the added jitter of a retry.
	spacing = 100 * time.Millisecond
	// share is how many have to be served for one more to be under way: when the server's patience ends again, at most
	// one and a 64th of what it served are refused.
	share = 64
	// patience is how long one that is under way keeps the next from leaving, so that a long poll does not hold up
	// everybody; and how long after the moment those who come are still let through with care.
	patience = time.Second
)

// Throttle is what a server told one of its callers to wait for, and how the many that waited for the same moment leave
// after it: the first at the moment itself, the others in turn, at drawn distances, each when the one before is answered.
// The more are served, the more may be under way at once.
//
// It decides and does not wait. It belongs to one goroutine at a time; the zero value keeps nobody waiting.
type Throttle struct {
	// Rand draws the distances.
	Rand Rand

	until  time.Time // the moment
	left   time.Time // when the last one left
	gap    time.Duration
	out    int // under way
	served int // since the moment
}

// Told notes what the server asked for, in an answer received now, cut to a cap if that is positive. It reports whether
// the moment is later than before: it is never earlier, so that no attempt is.
func (t *Throttle) Told(now time.Time, after RetryAfter, upTo time.Duration) bool {
	d := after.asked
	if upTo > 0 {
		d = min(d, upTo)
	}
	until := now.Add(d)
	if d <= 0 || !until.After(t.until) {
		return false
	}
	t.until, t.left, t.gap, t.served = until, time.Time{}, 0, 0
	return true
}

// Next returns how long the first in line has to wait; For is 0 when it may leave. It has to ask again after the wait, and
// when one that is under way was answered. Those behind the first have a Wait only while its Reason is Held.
func (t *Throttle) Next(now time.Time) Wait {
	w := Wait{Loop: GeneratedRetry}
	switch {
	case now.Before(t.until):
		w.Reason, w.For = Held, t.until.Sub(now)
		w.Server = w.For
	case t.out > t.served/share:
		w.Reason, w.For = InTurn, t.left.Add(patience).Sub(now)
	default:
		w.Reason, w.For = InTurn, t.left.Add(t.gap).Sub(now)
	}
	w.For = max(w.For, 0)
	w.Local = w.For - w.Server
	return w
}

// Leave notes that one leaves, and draws the distance of the next if others are about to.
func (t *Throttle) Leave(now time.Time, others bool) {
	t.out++
	t.left, t.gap = now, 0
	if others {
		// Over the share of those under way, so that a line of any length is served in a time that grows with its logarithm.
		t.gap = t.Rand.draw(spacing) / time.Duration(1+t.served/share)
	}
}

// Answered notes that one that left is under way no longer, and whether it was served.
func (t *Throttle) Answered(served bool) {
	t.out--
	if served {
		t.served++
	}
}

// Over reports whether the moment is long enough ago that the throttle may be forgotten, once nobody is in line.
func (t *Throttle) Over(now time.Time) bool { return !now.Before(t.until.Add(patience)) }
