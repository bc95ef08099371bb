package main

import (
	"time"

	"github.com/benbjohnson/clock"
)

// now is the wall clock, for reading dates.
func now() time.Time { return clock.New().Now() }

// fastClock is a real clock on which everything takes 1/speed of its time. It has the two methods that the SDK uses; the
// rest of the interface stays the real clock's.
type fastClock struct {
	clock.Clock
	start time.Time
	speed float64
}

func newFastClock(speed float64) *fastClock {
	c := clock.New()
	return &fastClock{Clock: c, start: c.Now(), speed: speed}
}

// Now has no monotonic reading: its instants are not those of a context's deadline.
func (c *fastClock) Now() time.Time {
	passed := c.Clock.Now().Sub(c.start)
	return c.start.Round(0).Add(time.Duration(float64(passed) * c.speed))
}

// AfterFunc rounds up, so that nothing fires early.
func (c *fastClock) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return c.Clock.AfterFunc(time.Duration(float64(d)/c.speed)+1, f)
}
