package stream

import (
	"sync"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// kindWakeCheck is the timer of Config.WakeCheck.
const kindWakeCheck delay.Kind = "wake-check"

// sleepMargin is how far the wall clock must have run ahead of the timers to call it sleep. Less may be a busy machine, or a
// wall clock that is being set right.
const sleepMargin = time.Second

// wallGap is how far the wall clock moved.
func wallGap(from, to time.Time) time.Duration {
	return to.Round(0).Sub(from.Round(0))
}

// wakeCheck looks at both clocks every so often: a timer that fires long after its moment on the wall clock fired after the
// machine was asleep. It is the only place that looks without a reason.
type wakeCheck struct {
	timers *delay.Timers
	every  time.Duration
	woken  func() // must not block

	mu      sync.Mutex
	timer   *delay.Timer
	stopped bool
}

func (c *wakeCheck) start() {
	if c.every > 0 {
		c.look()
	}
}

func (c *wakeCheck) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil && wallGap(c.timer.Deadline(), c.timers.Now()) > sleepMargin {
		c.woken()
	}
	if !c.stopped {
		c.timer = c.timers.After(kindWakeCheck, c.every, c.look)
	}
}

func (c *wakeCheck) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}

// respite is a wait under way.
type respite struct {
	cut     chan struct{} // closed to end it early
	over    bool
	woken   bool      // it was ended because the machine was asleep
	short   bool      // it is the short wait after a sleep already
	servers time.Time // until when the server asked to wait
}

// end ends the wait, once. The caller holds the stream's mu.
func (r *respite) end(woken bool) {
	if r.over {
		return
	}
	r.over, r.woken = true, woken
	close(r.cut)
}

// handshake is the deadline of a dial under way.
type handshake struct {
	until  time.Time
	expire func() // must not block
}

// bound notes the deadline of the dial under way, or that there is none.
func (s *Stream) bound(h *handshake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handshake = h
}
