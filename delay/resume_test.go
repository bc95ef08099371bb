package delay_test

import (
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// TestResumeCadence continues a cadence after each of its steps and compares what both say from there on.
func TestResumeCadence(t *testing.T) {
	const unanswered, slow, pending, throttled = 'u', 's', 'p', 't'
	step := func(c *delay.Cadence, kind rune) delay.Wait {
		switch kind {
		case unanswered:
			return c.Unreachable()
		case slow:
			return c.SlowDown(0)
		case throttled:
			return c.Throttled(delay.Asked(90 * sec))
		}
		return c.Pending()
	}
	for _, script := range []string{"", "p", "uuuuuuuu", "suupsuuu", "uuptuu", "tssuuuus"} {
		for at := range len(script) + 1 {
			whole := delay.NewCadence(7 * sec)
			inARow := 0
			for _, kind := range script[:at] {
				step(whole, kind)
				inARow++
				if kind != unanswered {
					inARow = 0
				}
			}
			resumed := delay.ResumeCadence(whole.Interval(), at, inARow)
			for i, kind := range script[at:] + "uup" {
				if a, b := step(whole, kind), step(resumed, kind); a != b {
					t.Errorf("%q resumed at %d, step %d: %+v, want %+v", script, at, i, b, a)
				}
			}
		}
	}
	if c := delay.ResumeCadence(0, -1, -1); c.Interval() != delay.DefaultInterval || c.First().Attempt != 0 {
		t.Errorf("a cadence out of nothing: %+v", c.First())
	}
}

func TestRest(t *testing.T) {
	c := delay.ResumeCadence(10*sec, 3, 0)
	for left, want := range map[time.Duration]time.Duration{7 * sec: 7 * sec, 0: 0, -sec: 0} {
		w := c.Rest(left)
		if w.For != want || w.Reason != delay.Resumed || w.Attempt != 3 || w.Loop != delay.DevicePoll {
			t.Errorf("%v left: %+v", left, w)
		}
	}
	if w := c.Pending(); w.For != 10*sec || w.Attempt != 4 {
		t.Errorf("the rest of a wait has changed what follows: %+v", w)
	}
	if got := delay.Resumed.String(); got != "the rest of a wait that began elsewhere" {
		t.Errorf("the reason says %q", got)
	}
}

func TestSleepPastAMark(t *testing.T) {
	c := fakes.NewClock(noon)
	marked := make(chan time.Time, 2)
	pause := func(at time.Duration) delay.Pause {
		return delay.Pause{Mark: c.Now().Add(at), OnMark: func() { marked <- c.Now() }}
	}
	s := sleep(t.Context(), t, c, pause(4*sec), wait(10*sec))
	s.armed(4 * sec)
	c.Advance(4 * sec)
	if at := <-marked; !at.Equal(noon.Add(4 * sec)) {
		t.Errorf("told at %v", at)
	}
	s.armed(6 * sec)
	c.Advance(6 * sec)
	s.ended("past a mark", nil)

	// The wall clock ran slow: what is missing is waited after both parts.
	s = sleep(t.Context(), t, c, pause(4*sec), wait(10*sec))
	s.armed(4 * sec)
	c.Advance(4 * sec)
	<-marked
	s.armed(6 * sec)
	c.StepWall(-3 * sec)
	c.Advance(6 * sec)
	s.armed(3 * sec)
	c.Advance(3 * sec)
	s.ended("past a mark, on a slow wall clock", nil)

	for _, at := range []time.Duration{-sec, 0, 10 * sec, time.Hour} { // none of them on the way
		s := sleep(t.Context(), t, c, pause(at), wait(10*sec))
		s.armed(10 * sec)
		c.Advance(10 * sec)
		s.ended("past no mark", nil)
	}
	if len(marked) > 0 {
		t.Error("told of a mark that is not on the way")
	}
}
