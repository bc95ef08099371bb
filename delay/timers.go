package delay

import (
	"container/heap"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// Kind says what a timer is for: a word of the rules, and at once a log field and the label that a test awaits.
type Kind string

// The kinds of timer of the rules. The SDK arms all but three, which are for loops that it does not have yet: KindHealth,
// KindConfirmationDeadline and KindRepairPoll.
const (
	KindRetry                Kind = "retry"
	KindThrottle             Kind = "throttle" // a request that waits for what another one was told
	KindDevicePoll           Kind = "device-poll"
	KindBackoff              Kind = "backoff"
	KindPollRetry            Kind = "poll-retry"
	KindStaleness            Kind = "staleness"
	KindHealth               Kind = "health"
	KindHandshakeDeadline    Kind = "handshake-deadline"
	KindSendDeadline         Kind = "send-deadline"
	KindConfirmationDeadline Kind = "confirmation-deadline"
	KindRepairPoll           Kind = "repair-poll"
	KindRequestTimeout       Kind = "request-timeout"
	KindRefresh              Kind = "refresh"       // the bound of a refresh as a whole
	KindStoreLock            Kind = "store-lock"    // between two tries for a lock that another process holds
	KindStoreTimeout         Kind = "store-timeout" // the bound of a store that may never answer
	KindStoreWrite           Kind = "store-write"   // between two tries to replace a file that somebody reads
	KindCountdown            Kind = "countdown"     // of a code's life, before somebody's eyes
	KindStatus               Kind = "status"        // of a line that tells how a stream or a download is, before somebody's eyes
	KindBrowser              Kind = "browser"       // the bound of what opens a browser
)

// Timers is the registry that stands between the SDK and a clock: it knows every timer outstanding, by kind. It keeps
// its own queue by deadline and order of creation, with one alarm at the clock for the head, so that ties fire in order
// on any clock. Of the clock it uses Now and AfterFunc only.
//
// An alarm that has become too early is left to ring in vain, unless no timer is left and that would be long: timers that are
// armed and stopped again and again cost the clock nothing.
type Timers struct {
	clock clock.Clock // nil when the owner of the registry moves time itself
	now   func() time.Time
	real  bool // the clock is package time's

	mu      sync.Mutex
	queue   queue
	created uint64
	alarm   *clock.Timer
	alarmAt time.Time
	firing  bool
	changed chan struct{}
}

// TimersOn returns the registry of a clock: the clock's own, if it has a method Timers() *Timers, else a new one. A nil
// clock is the real one.
func TimersOn(c clock.Clock) *Timers {
	if carrier, ok := c.(interface{ Timers() *Timers }); ok {
		return carrier.Timers()
	}
	if c == nil {
		c = clock.New()
	}
	return &Timers{clock: c, now: c.Now, real: reflect.TypeOf(c) == reflect.TypeOf(clock.New())}
}

// ManualTimers returns a registry without an alarm: whoever owns it moves the time that now reports and calls Fire. It is
// what a test clock is made of.
func ManualTimers(now func() time.Time) *Timers {
	return &Timers{now: now}
}

// Now returns the clock's time.
func (s *Timers) Now() time.Time { return s.now() }

// After arms a timer that calls f once, after d. f must not block: it hands over to its owner and returns. If d is not
// positive, f runs before After returns.
func (s *Timers) After(kind Kind, d time.Duration, f func()) *Timer {
	t := new(Timer)
	s.Arm(t, kind, d, f)
	return t
}

// Arm is After with a timer of the caller's own, which must not be armed already: a part of something larger, for whoever
// arms many.
func (s *Timers) Arm(t *Timer, kind Kind, d time.Duration, f func()) {
	t.timers, t.kind, t.delay, t.at, t.f, t.index = s, kind, d, s.now().Add(d), f, -1
	if d <= 0 {
		f()
		return
	}
	s.mu.Lock()
	s.created++
	t.order = s.created
	heap.Push(&s.queue, t)
	s.setAlarm()
	s.notify()
	s.mu.Unlock()
}

// Outstanding lists the armed timers, the next to fire first. The channel is closed when the list changes.
func (s *Timers) Outstanding() ([]*Timer, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	list := slices.Clone([]*Timer(s.queue))
	slices.SortFunc(list, compare)
	return list, s.changed
}

// Fire fires a timer now, without moving time, and reports whether it was still armed.
func (s *Timers) Fire(t *Timer) bool {
	if !t.Stop() {
		return false
	}
	t.f()
	return true
}

// fireDue fires everything due, one at a time and in order, also what the firing arms. Only one goroutine does.
func (s *Timers) fireDue() {
	s.mu.Lock()
	if s.firing {
		s.mu.Unlock()
		return
	}
	s.firing = true
	for len(s.queue) > 0 && !s.queue[0].at.After(s.now()) {
		t := heap.Pop(&s.queue).(*Timer)
		s.notify()
		s.mu.Unlock()
		t.f()
		s.mu.Lock()
	}
	s.firing = false
	s.stopAlarm()
	s.setAlarm()
	s.mu.Unlock()
}

// soon is the longest delay of a stopped timer whose alarm is left to ring in vain.
const soon = 2 * time.Second

// setAlarm sees to it that the clock's one alarm rings when the head of the queue is due, or sooner: it is set again then.
// The caller holds mu.
func (s *Timers) setAlarm() {
	if s.clock == nil || s.firing || len(s.queue) == 0 {
		return // the owner fires; or fireDue sets the alarm when it is done
	}
	head := s.queue[0].at
	if s.alarm != nil {
		if !s.alarmAt.After(head) {
			return
		}
		s.alarm.Stop()
	}
	// At least 1 ns: a mock clock does not fire an alarm of 0 before it is moved again.
	s.alarm, s.alarmAt = s.clock.AfterFunc(max(head.Sub(s.now()), 1), s.fireDue), head
}

// stopAlarm takes the alarm off. The caller holds mu.
func (s *Timers) stopAlarm() {
	if s.alarm != nil {
		s.alarm.Stop()
		s.alarm = nil
	}
}

// notify tells whoever watches the list that it changed. The caller holds mu.
func (s *Timers) notify() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Timer is an armed timer of a registry.
type Timer struct {
	timers *Timers
	kind   Kind
	delay  time.Duration
	at     time.Time
	order  uint64
	f      func()
	index  int // in the queue; -1 when not armed
}

// Kind returns what the timer is for.
func (t *Timer) Kind() Kind { return t.kind }

// Delay returns the duration that the timer was armed with.
func (t *Timer) Delay() time.Duration { return t.delay }

// Deadline returns the instant the timer is due.
func (t *Timer) Deadline() time.Time { return t.at }

// Stop disarms the timer. If it returns true, the timer's function never runs; if false, it has run or is running, or
// the timer was stopped before. Stopping a nil Timer, or one that was never armed, does nothing.
func (t *Timer) Stop() bool {
	if t == nil || t.timers == nil {
		return false
	}
	s := t.timers
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&s.queue, t.index)
	if len(s.queue) == 0 && t.delay > soon && !s.firing {
		s.stopAlarm()
	}
	s.notify()
	return true
}

func compare(a, b *Timer) int {
	if c := a.at.Compare(b.at); c != 0 {
		return c
	}
	if a.order < b.order {
		return -1
	}
	return 1
}

// queue is a heap by deadline, then by order of creation.
type queue []*Timer

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return compare(q[i], q[j]) < 0 }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	t := x.(*Timer)
	t.index = len(*q)
	*q = append(*q, t)
}

func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.index = -1
	return t
}
