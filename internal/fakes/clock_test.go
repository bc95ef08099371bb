package fakes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestClockStandsStill(t *testing.T) {
	c := fakes.NewClock(noon)
	if !c.Now().Equal(noon) || c.Now() != c.Now().Round(0) {
		t.Errorf("a new clock shows %v", c.Now())
	}
	c.Add(time.Minute)
	c.Advance(time.Second)
	if got := c.Since(noon); got != 61*time.Second {
		t.Errorf("%v have passed", got)
	}
	if got := c.Until(noon); got != -61*time.Second {
		t.Errorf("%v are left", got)
	}
	if delay.TimersOn(c) != c.Timers() || !c.Timers().Now().Equal(c.Now()) {
		t.Error("the clock's registry is not the one it carries")
	}
	if at := time.Now(); fakes.NewClock(at).Now() != at.Round(0) {
		t.Error("a virtual instant has a monotonic reading")
	}
}

func TestClockAdvance(t *testing.T) {
	c := fakes.NewClock(noon)
	var fired []string
	arm := func(name string, d time.Duration, then func()) *delay.Timer {
		return c.Timers().After(delay.KindBackoff, d, func() {
			fired = append(fired, fmt.Sprintf("%s at %v", name, c.Since(noon)))
			if then != nil {
				then()
			}
		})
	}
	stopped := arm("stopped", 3*time.Second, nil)
	arm("b", 2*time.Second, nil)
	arm("a", time.Second, func() {
		arm("tied, but later", time.Second, nil)
		arm("chained", 1500*time.Millisecond, nil)
		arm("beyond", time.Hour, nil)
		stopped.Stop()
	})
	c.Advance(10 * time.Second)
	want := []string{"a at 1s", "b at 2s", "tied, but later at 2s", "chained at 2.5s"}
	if !slices.Equal(fired, want) {
		t.Errorf("fired %q, want %q", fired, want)
	}
	if got := c.Since(noon); got != 10*time.Second {
		t.Errorf("the clock was advanced by %v", got)
	}
	if got := c.Armed(); !slices.Equal(got, []delay.Kind{delay.KindBackoff}) {
		t.Errorf("armed are %v", got)
	}
}

func TestClockFireNext(t *testing.T) {
	c := fakes.NewClock(noon)
	var fired []time.Duration
	for _, d := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
		c.Timers().After(delay.KindBackoff, d, func() { fired = append(fired, d) })
	}
	c.Timers().After(delay.KindStaleness, 1, func() { t.Error("a timer of another kind fired") })
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
		if d, ok := c.FireNext(delay.KindBackoff); d != want || !ok {
			t.Errorf("FireNext returned %v, %v, want %v", d, ok, want)
		}
	}
	if d, ok := c.FireNext(delay.KindBackoff); d != 0 || ok {
		t.Errorf("FireNext returned %v, %v with nothing armed", d, ok)
	}
	if !slices.Equal(fired, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}) || !c.Now().Equal(noon) {
		t.Errorf("fired %v, and it is %v", fired, c.Now())
	}
}

func TestClockAwait(t *testing.T) {
	c := fakes.NewClock(noon)
	timers := c.Timers()
	if armed, err := c.Await(t.Context()); len(armed) != 0 || err != nil {
		t.Errorf("awaiting nothing: %v, %v", armed, err)
	}
	late := timers.After(delay.KindRepairPoll, time.Minute, func() {})
	surplus := timers.After(delay.KindHandshakeDeadline, time.Hour, func() {})
	go func() {
		timers.After(delay.KindStaleness, time.Second, func() {})
		surplus.Stop()
	}()
	armed, err := c.Await(t.Context(), delay.KindRepairPoll, delay.KindStaleness)
	if err != nil || len(armed) != 2 || armed[0].Kind() != delay.KindStaleness || armed[1] != late {
		t.Errorf("awaited %v, %v", armed, err)
	}

	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	// One too many of a kind is not what was awaited.
	timers.After(delay.KindStaleness, time.Second, func() {})
	_, err = c.Await(ctx, delay.KindRepairPoll, delay.KindStaleness)
	if !errors.Is(err, stopped) || !strings.Contains(err.Error(), "[repair-poll staleness], armed are [staleness staleness repair-poll]") {
		t.Errorf("awaiting what does not come: %v", err)
	}
}

// TestClockStepWall: whatever is done to the wall clock, each timer fires after its own delay, and ties in order of
// creation.
func TestClockStepWall(t *testing.T) {
	steps := []time.Duration{time.Hour, -time.Hour, -5 * time.Second, 3 * time.Second, -1}
	for _, step := range steps {
		c := fakes.NewClock(noon)
		var fired []string
		passed := time.Duration(0)
		arm := func(name string, d time.Duration) {
			due := passed + d
			c.Timers().After(delay.KindBackoff, d, func() {
				fired = append(fired, name)
				if wall := c.Since(noon); wall != due+step && wall != due+2*step {
					t.Errorf("step %v: %s fired at %v by the wall, due after %v", step, name, wall, due)
				}
			})
		}
		advance := func(d time.Duration) {
			passed += d
			c.Advance(d)
		}
		arm("a10", 10*time.Second)
		arm("b11", 11*time.Second)
		c.StepWall(step)
		if got := c.Since(noon); got != step {
			t.Errorf("a step of %v moved the wall by %v", step, got)
		}
		arm("c10", 10*time.Second)
		arm("d11", 11*time.Second)
		advance(4 * time.Second)
		arm("e10", 6*time.Second)
		c.StepWall(step)
		arm("f10", 6*time.Second)
		arm("g9", 5*time.Second)
		advance(5 * time.Second)
		if !slices.Equal(fired, []string{"g9"}) {
			t.Errorf("step %v: after 9s fired %v", step, fired)
		}
		advance(time.Second)
		if want := []string{"g9", "a10", "c10", "e10", "f10"}; !slices.Equal(fired, want) {
			t.Errorf("step %v: after 10s fired %v, want %v", step, fired, want)
		}
		advance(time.Second)
		if want := []string{"g9", "a10", "c10", "e10", "f10", "b11", "d11"}; !slices.Equal(fired, want) {
			t.Errorf("step %v: after 11s fired %v, want %v", step, fired, want)
		}
		if got := c.Since(noon); got != 11*time.Second+2*step {
			t.Errorf("step %v: the wall has moved by %v", step, got)
		}
	}

	// Also from within a firing, in the middle of an advance.
	c := fakes.NewClock(noon)
	fired := false
	c.Timers().After(delay.KindBackoff, 2*time.Second, func() { fired = true })
	c.Timers().After(delay.KindBackoff, time.Second, func() { c.StepWall(-time.Hour) })
	c.Advance(3 * time.Second)
	if got := c.Since(noon); !fired || got != 3*time.Second-time.Hour {
		t.Errorf("fired %v, and the wall has moved by %v", fired, got)
	}
}

// TestClockIsAMockToo: whoever uses the rest of the interface gets the mock's timers, on the same time.
func TestClockIsAMockToo(t *testing.T) {
	c := fakes.NewClock(noon)
	c.Advance(time.Minute) // before the mock is used
	var seam clock.Clock = c
	timer, after, ticker := seam.Timer(2*time.Second), seam.After(time.Second), seam.Ticker(3*time.Second)
	defer ticker.Stop()
	tick := seam.Tick(3 * time.Second)
	called := make(chan struct{})
	seam.AfterFunc(2*time.Second, func() { close(called) })
	seam.Sleep(0)
	timeout, cancel := seam.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	deadline, cancel := seam.WithDeadline(t.Context(), c.Now().Add(2*time.Second))
	defer cancel()
	select {
	case at := <-timer.C:
		t.Errorf("a timer fired early, at %v", at)
	default:
	}
	c.Advance(3 * time.Second)
	if at := <-after; !at.Equal(noon.Add(61 * time.Second)) {
		t.Errorf("After fired at %v", at)
	}
	if at := <-timer.C; !at.Equal(noon.Add(62 * time.Second)) {
		t.Errorf("a timer fired at %v", at)
	}
	<-ticker.C
	<-tick
	<-called
	<-timeout.Done()
	<-deadline.Done()
	if !errors.Is(timeout.Err(), context.DeadlineExceeded) || !errors.Is(deadline.Err(), context.DeadlineExceeded) {
		t.Errorf("%v, %v", timeout.Err(), deadline.Err())
	}
	if len(c.Armed()) != 0 {
		t.Errorf("the mock's timers are not the registry's: %v", c.Armed())
	}
}
