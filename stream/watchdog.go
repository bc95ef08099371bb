package stream

import (
	"sync"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// silence is why the watchdog ended a connection.
type silence struct {
	lasted time.Duration
	slept  bool
}

func (*silence) Error() string { return "nothing came from the server for too long" }

// watchdog ends a connection on which nothing came for too long. It has one timer, and a stamp that each sign of life
// moves; the timer looks at the stamp when it fires, so a sign of life costs no timer. While the consumer has a message in
// hand nothing is read, so that time does not count against the server.
//
// Timers count waking time. When the wall clock ran on without them the machine was asleep, and a sign of life that comes
// only then is no proof: it may have waited in a buffer since before. So the wall clock is asked at each.
type watchdog struct {
	timers *delay.Timers
	limit  time.Duration

	mu    sync.Mutex
	last  time.Time
	timer *delay.Timer
	armed bool
	seen  bool           // a sign of life came since the timer was armed
	busy  bool           // the consumer has a message in hand
	end   func(*silence) // nil before start and after the end
}

// start begins the watch. end is called at most once, and must not block.
func (w *watchdog) start(end func(*silence)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end, w.last = end, w.timers.Now()
	w.arm(w.limit)
}

// stop ends the watch: end is not called afterwards.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = nil
	w.timer.Stop()
}

// alive is a sign of life.
func (w *watchdog) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touch()
}

// deliver is a message, which the consumer now has in hand.
func (w *watchdog) deliver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touch()
	w.busy = true
}

// resume says that the consumer wants the next message.
func (w *watchdog) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil {
		return
	}
	now := w.timers.Now()
	if slept := wallGap(w.last, now) - now.Sub(w.last); slept > w.limit {
		w.bark(slept, true)
		return
	}
	w.busy, w.last, w.seen = false, now, true
	if !w.armed {
		w.arm(w.limit)
	}
}

// check looks at the wall clock now.
func (w *watchdog) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != nil && !w.busy {
		w.overdue(w.timers.Now())
	}
}

// touch moves the stamp, unless the sign of life came too late. The caller holds mu.
func (w *watchdog) touch() {
	if w.end == nil {
		return
	}
	now := w.timers.Now()
	if !w.busy && w.overdue(now) {
		return
	}
	w.last, w.seen = now, true
}

// overdue ends the connection if the wall clock says that the silence was too long. The caller holds mu.
func (w *watchdog) overdue(now time.Time) bool {
	gap := wallGap(w.last, now)
	if gap <= w.limit {
		return false
	}
	w.bark(gap, true)
	return true
}

func (w *watchdog) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	if w.end == nil || w.busy {
		return // resume arms it again
	}
	now := w.timers.Now()
	gone := now.Sub(w.last)
	switch {
	case !w.seen || gone >= w.limit:
		w.bark(gone, wallGap(w.last, now)-gone > sleepMargin)
	case !w.overdue(now):
		w.arm(w.limit - gone)
	}
}

// arm arms the timer. The caller holds mu.
func (w *watchdog) arm(d time.Duration) {
	w.armed, w.seen = true, false
	w.timer = w.timers.After(delay.KindStaleness, d, w.fire)
}

// bark ends the connection. The caller holds mu.
func (w *watchdog) bark(lasted time.Duration, slept bool) {
	end := w.end
	w.end = nil
	w.timer.Stop()
	end(&silence{lasted, slept})
}
