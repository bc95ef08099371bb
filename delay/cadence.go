package delay

import "time"

// DefaultInterval is how often a device login polls when the server names no interval (RFC 8628, section 3.2).
const DefaultInterval = 5 * time.Second

// slowDownStep is what each slow_down adds to the interval (RFC 8628, section 3.5).
const slowDownStep = 5 * time.Second

// Cadence is the rhythm of one device login's polls: the interval, which only the server changes; the backoff after polls
// that got no answer; and a server's Retry-After, which is good for one wait. None of the three touches another. It
// belongs to one goroutine.
type Cadence struct {
	interval time.Duration
	backoff  time.Duration
	polls    int
}

// NewCadence starts a cadence on the interval that the server named; 0 or less means DefaultInterval.
func NewCadence(interval time.Duration) *Cadence {
	if interval <= 0 {
		interval = DevicePoll.Row().Local.Base
	}
	interval = min(interval, MaxWait) // as everywhere, so that slow_down never shortens it
	return &Cadence{interval: interval, backoff: interval}
}

// ResumeCadence continues a cadence that began elsewhere: on the interval that it had come to, after so many polls, of
// which the last ones, so many in a row, got no answer.
func ResumeCadence(interval time.Duration, polls, unanswered int) *Cadence {
	c := NewCadence(interval)
	for range min(unanswered, 64) { // the backoff has reached its ceiling by then, whatever the interval
		c.Unreachable()
	}
	c.polls = max(polls, 0)
	return c
}

// Interval returns the present interval.
func (c *Cadence) Interval() time.Duration { return c.interval }

// First is the wait between showing the code and the first poll.
func (c *Cadence) First() Wait { return c.poll(Interval) }

// Rest is what is left of a wait that was decided and begun elsewhere; nothing is left of one that is over.
func (c *Cadence) Rest(left time.Duration) Wait {
	w := DevicePoll.Compose(left, RetryAfter{})
	w.Reason, w.Attempt = Resumed, c.polls
	return w
}

// Pending is the wait after authorization_pending: a poll, so no header is read.
func (c *Cadence) Pending() Wait {
	c.answered()
	return c.poll(Interval)
}

// SlowDown is the wait after slow_down: a poll, so no header is read. The interval grows by 5 s for good, or to the one
// that the server named when that is longer.
func (c *Cadence) SlowDown(named time.Duration) Wait {
	c.interval = min(max(add(c.interval, slowDownStep), named), MaxWait)
	c.answered()
	return c.poll(SlowedDown)
}

// Throttled is the wait after the server refused to serve a poll: a retry, so Retry-After counts, for this wait only.
func (c *Cadence) Throttled(after RetryAfter) Wait {
	c.answered()
	w := DevicePoll.Compose(c.interval, after)
	w.Attempt = c.polls
	return w
}

// Unreachable is the wait after a poll that got no answer: a retry, but without a header to read. The backoff doubles to
// its ceiling and never goes below the interval (RFC 8628, section 3.5).
func (c *Cadence) Unreachable() Wait {
	c.polls++
	c.backoff = max(min(add(c.backoff, c.backoff), DevicePoll.Row().Local.Ceiling), c.interval)
	w := DevicePoll.Compose(c.backoff, RetryAfter{})
	w.Reason, w.Attempt = Unreachable, c.polls
	return w
}

func (c *Cadence) answered() {
	c.polls++
	c.backoff = c.interval
}

func (c *Cadence) poll(reason Reason) Wait {
	w := DevicePoll.Compose(c.interval, RetryAfter{})
	w.Reason, w.Attempt = reason, c.polls
	return w
}
