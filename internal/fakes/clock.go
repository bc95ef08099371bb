package fakes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// Clock is a clock.Clock that stands still until it is told to move. Its own registry of timers is what the SDK arms,
// so that a test sees every timer by its kind. It embeds clock.Mock for whoever uses the rest of the interface.
type Clock struct {
	*clock.Mock
	timers *delay.Timers

	mu       sync.Mutex
	now      time.Time
	steps    map[*delay.Timer]steps
	mockUsed bool
	moving   sync.Mutex
}

// steps is how far the wall clock was stepped since a timer was armed, and how often.
type steps struct {
	by time.Duration
	n  int
}

var _ clock.Clock = (*Clock)(nil)

// NewClock returns a clock that stands at an instant.
func NewClock(at time.Time) *Clock {
	c := &Clock{Mock: clock.NewMock(), now: at.Round(0)}
	c.Set(at)
	c.timers = delay.ManualTimers(c.Now)
	return c
}

// Timers returns the clock's registry; delay.TimersOn finds it.
func (c *Clock) Timers() *delay.Timers { return c.timers }

// Now returns the instant at which the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since returns the time passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until returns the time left until t.
func (c *Clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// Advance moves the clock by d and fires what falls due, in the order of deadlines and then of creation. The clock stands
// at a timer's own deadline while it fires, and a timer armed meanwhile that falls within d fires too.
func (c *Clock) Advance(d time.Duration) {
	c.moving.Lock()
	defer c.moving.Unlock()
	for {
		next, in := c.next()
		if next == nil || in > d {
			break
		}
		c.moveTo(c.Now().Add(in))
		d -= in
		c.timers.Fire(next)
	}
	c.moveTo(c.Now().Add(d))
}

// next returns the timer that fires next, and how long from now.
func (c *Clock) next() (next *delay.Timer, in time.Duration) {
	armed, _ := c.timers.Outstanding()
	c.mu.Lock()
	defer c.mu.Unlock()
	var most int
	for _, t := range armed {
		s := c.steps[t]
		left := max(t.Deadline().Add(s.by).Sub(c.now), 0)
		// Of a tie, the one that saw more steps was created earlier.
		if next == nil || left < in || left == in && s.n > most {
			next, in, most = t, left, s.n
		}
	}
	return next, in
}

// Add is Advance.
func (c *Clock) Add(d time.Duration) { c.Advance(d) }

// StepWall moves what Now reports without any time passing for the timers, as when somebody sets the wall clock: each
// timer armed before still fires after its delay. Deadline and the order of Armed go by what Now reported when the timer
// was armed.
func (c *Clock) StepWall(d time.Duration) {
	armed, _ := c.timers.Outstanding()
	c.mu.Lock()
	stepped := make(map[*delay.Timer]steps, len(armed)) // a new one, so that timers no longer armed are forgotten
	for _, t := range armed {
		s := c.steps[t]
		stepped[t] = steps{s.by + d, s.n + 1}
	}
	c.steps = stepped
	c.mu.Unlock()
	c.moveTo(c.Now().Add(d))
}

// FireNext fires the earliest timer of a kind without moving time and returns the delay it was armed with; ok is false
// when there is none.
func (c *Clock) FireNext(kind delay.Kind) (d time.Duration, ok bool) {
	armed, _ := c.timers.Outstanding()
	for _, t := range armed {
		if t.Kind() == kind && c.timers.Fire(t) {
			return t.Delay(), true
		}
	}
	return 0, false
}

// Armed lists the kinds of the timers outstanding, the next to fire first.
func (c *Clock) Armed() []delay.Kind {
	armed, _ := c.timers.Outstanding()
	return kinds(armed)
}

// Await waits until exactly the named kinds are armed, in any order, and returns those timers, the next to fire first.
// It fails when ctx ends.
func (c *Clock) Await(ctx context.Context, want ...delay.Kind) ([]*delay.Timer, error) {
	want = slices.Sorted(slices.Values(want))
	for {
		armed, changed := c.timers.Outstanding()
		have := kinds(armed)
		if slices.Equal(slices.Sorted(slices.Values(have)), want) {
			return armed, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("fakes: awaited timers %v, armed are %v: %w", want, have, context.Cause(ctx))
		}
	}
}

func kinds(armed []*delay.Timer) []delay.Kind {
	list := make([]delay.Kind, len(armed))
	for i, t := range armed {
		list[i] = t.Kind()
	}
	return list
}

func (c *Clock) moveTo(t time.Time) {
	c.mu.Lock()
	c.now = t
	used := c.mockUsed
	c.mu.Unlock()
	if used {
		c.Set(t)
	}
}

// use makes moveTo move the mock as well, which costs a real millisecond each time.
func (c *Clock) use() *clock.Mock {
	c.mu.Lock()
	c.mockUsed = true
	now := c.now
	c.mu.Unlock()
	if !c.Mock.Now().Equal(now) {
		c.Set(now)
	}
	return c.Mock
}

// After is clock.Mock's.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.use().After(d) }

// AfterFunc is clock.Mock's.
func (c *Clock) AfterFunc(d time.Duration, f func()) *clock.Timer { return c.use().AfterFunc(d, f) }

// Sleep is clock.Mock's.
func (c *Clock) Sleep(d time.Duration) { c.use().Sleep(d) }

// Tick is clock.Mock's.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.use().Tick(d) }

// Ticker is clock.Mock's.
func (c *Clock) Ticker(d time.Duration) *clock.Ticker { return c.use().Ticker(d) }

// Timer is clock.Mock's.
func (c *Clock) Timer(d time.Duration) *clock.Timer { return c.use().Timer(d) }

// WithDeadline is clock.Mock's.
func (c *Clock) WithDeadline(parent context.Context, at time.Time) (context.Context, context.CancelFunc) {
	return c.use().WithDeadline(parent, at)
}

// WithTimeout is clock.Mock's.
func (c *Clock) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.use().WithTimeout(parent, d)
}
