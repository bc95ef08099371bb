package stream

import (
	"sync"
	"sync/atomic"
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
//
// To ask costs a good part of what it costs to receive a small message. Where the transport tells its reads, those are the
// signs of life, and the messages are not. Between two that came in one read the clock is asked all the same, for the sake of
// a machine that was asleep then, unless messages come in a flood.
type watchdog struct {
	timers *delay.Timers
	limit  time.Duration

	mu    sync.Mutex
	last  time.Time
	timer *delay.Timer
	armed bool
	seen  bool           // a sign of life came since the timer was armed
	inner bool           // the transport is in a read that it told
	calm  bool           // there was time between two stamps
	end   func(*silence) // nil before start and after the end

	// Written by whoever holds mu.
	busy  atomic.Bool // the consumer has a message in hand, or what came along with it is on its way
	reads atomic.Bool // the transport tells its reads

	// The consumer's goroutine's own.
	row     int // so many messages in a row were swift
	unasked int // so many more are delivered before the clock is asked again
}

// In a flood, which is flood messages in a row at less than swift each, the clock is asked once in as many.
const (
	flood = 64
	swift = 5 * time.Microsecond
)

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
	w.inner = false
	w.touch()
}

// reading says that the transport is about to read from the network.
func (w *watchdog) reading() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads.Store(true)
	w.inner = true
	if w.busy.Load() {
		w.wait()
	}
}

// deliver is a message, which the consumer now has in hand.
func (w *watchdog) deliver() {
	if w.unasked > 0 && w.busy.Load() {
		w.unasked--
		return
	}
	w.delivered()
}

func (w *watchdog) delivered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.busy.Load():
		w.another()
	case !w.reads.Load():
		w.touch()
		w.busy.Store(true)
	case !w.inner:
		w.busy.Store(true)
		if w.calm {
			w.calm, w.row, w.unasked = false, 0, 0
		}
	case w.end != nil: // the transport reads ahead: the server is waited for, whatever the consumer does
		w.overdue(w.timers.Now())
	}
}

// another is a message that came in one read with the message before it. While the consumer had that one, the machine may
// have been asleep. The caller holds mu.
func (w *watchdog) another() {
	now := w.timers.Now()
	took := now.Sub(w.last)
	if w.end == nil || w.asleep(now) {
		return
	}
	w.last = now
	switch {
	case w.row >= flood && took < flood*swift:
		w.unasked = flood - 1
	case w.row < flood && took < swift:
		w.row++
	default:
		w.row = 0
	}
}

// resume says that the consumer wants the next message.
func (w *watchdog) resume() {
	if !w.reads.Load() { // else it may be there already
		w.resumed()
	}
}

func (w *watchdog) resumed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait()
}

// wait says that the server is waited for again. The caller holds mu.
func (w *watchdog) wait() {
	if w.end == nil {
		return
	}
	now := w.timers.Now()
	if w.asleep(now) {
		return
	}
	w.busy.Store(false)
	w.stamp(now)
	if !w.armed {
		w.arm(w.limit)
	}
}

// check looks at the wall clock now.
func (w *watchdog) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.end == nil:
	case w.busy.Load():
		w.asleep(w.timers.Now())
	default:
		w.overdue(w.timers.Now())
	}
}

// touch moves the stamp, unless the sign of life came too late. The caller holds mu.
func (w *watchdog) touch() {
	if w.end == nil {
		return
	}
	now := w.timers.Now()
	if !w.busy.Load() && w.overdue(now) {
		return
	}
	w.stamp(now)
}

// stamp notes a sign of life. The caller holds mu.
func (w *watchdog) stamp(now time.Time) {
	if now.Sub(w.last) >= flood*swift {
		w.calm = true
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

// asleep ends the connection if the machine was asleep for too long while the server was not waited for. The caller holds
// mu.
func (w *watchdog) asleep(now time.Time) bool {
	slept := wallGap(w.last, now) - now.Sub(w.last)
	if slept <= w.limit {
		return false
	}
	w.bark(slept, true)
	return true
}

func (w *watchdog) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	if w.end == nil || w.busy.Load() {
		return // wait arms it again
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
