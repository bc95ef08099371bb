package delay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
)

func TestThrottleTold(t *testing.T) {
	var th delay.Throttle
	if w := th.Next(noon); w.For != 0 {
		t.Errorf("the zero value waits: %v", w)
	}
	for _, c := range []struct {
		name  string
		at    time.Duration
		asked delay.RetryAfter
		upTo  time.Duration
		moved bool
		want  time.Duration // the wait at that instant
	}{
		{"nothing", 0, none, 0, false, 0},
		{"something malformed", 0, delay.Asked(-1), 0, false, 0},
		{"a wait", 0, delay.Asked(10 * sec), 0, true, 10 * sec},
		{"a shorter one", sec, delay.Asked(2 * sec), 0, false, 9 * sec},
		{"the same moment", sec, delay.Asked(9 * sec), 0, false, 9 * sec},
		{"a longer one", sec, delay.Asked(10 * sec), 0, true, 10 * sec},
		{"a cap", sec, delay.Asked(time.Hour), 11 * sec, true, 11 * sec},
		{"without end", sec, delay.Asked(1<<63 - 1), 0, true, delay.MaxWait},
	} {
		now := noon.Add(c.at)
		if moved := th.Told(now, c.asked, c.upTo); moved != c.moved {
			t.Errorf("%s: moved is %v", c.name, moved)
		}
		w := th.Next(now)
		if w.For != c.want || w.Server+w.Local != c.want || c.want > 0 && (w.Reason != delay.Held || w.Server != c.want) {
			t.Errorf("%s: %+v", c.name, w)
		}
	}
}

func TestThrottleInTurn(t *testing.T) {
	th := delay.Throttle{Rand: func(n int64) int64 { return n / 2 }}
	th.Told(noon, delay.Asked(10*sec), 0)
	now := noon.Add(10 * sec)
	next := func(what string, want time.Duration) {
		t.Helper()
		if w := th.Next(now); w.For != want || w.Reason != delay.InTurn || w.Local != want || w.Server != 0 {
			t.Errorf("%s: %+v, want %v", what, w, want)
		}
	}
	next("the first at the moment itself", 0)
	th.Leave(now, true)
	next("the second behind the first's answer", sec)
	now = now.Add(20 * time.Millisecond)
	next("and as long as it is patient", 980*time.Millisecond)
	th.Answered(true)
	next("or at the distance that was drawn", 30*time.Millisecond)
	now = now.Add(30 * time.Millisecond)
	next("it has passed", 0)
	th.Leave(now, true)
	now = now.Add(sec)
	next("the answer does not come", 0)
	th.Leave(now, true)
	th.Answered(false)
	next("one still hangs", sec)
	th.Answered(false)
	next("two are answered", 50*time.Millisecond)
	now = now.Add(sec)
	th.Leave(now, false)
	th.Answered(false)
	next("nobody else is about to leave", 0)

	// Each 64 served let one more be under way, and halve, then third the distance.
	for range 64 {
		th.Leave(now, true)
		th.Answered(true)
	}
	now = now.Add(sec)
	th.Leave(now, true)
	next("two at once", 25*time.Millisecond)
	now = now.Add(25 * time.Millisecond)
	th.Leave(now, true)
	next("but not three", sec)

	// A new moment begins anew.
	th.Told(now, delay.Asked(sec), 0)
	now = now.Add(sec)
	th.Answered(true)
	th.Answered(true)
	th.Leave(now, true)
	next("one at once", sec)
}

func TestThrottleOver(t *testing.T) {
	var th delay.Throttle
	th.Told(noon, delay.Asked(10*sec), 0)
	for at, want := range map[time.Duration]bool{0: false, 10 * sec: false, 11*sec - 1: false, 11 * sec: true} {
		if got := th.Over(noon.Add(at)); got != want {
			t.Errorf("over after %v: %v", at, got)
		}
	}
}

func TestThrottleAllocatesNothing(t *testing.T) {
	th := delay.Throttle{}
	asked := delay.Asked(sec)
	if n := testing.AllocsPerRun(100, func() {
		th.Told(noon, asked, 0)
		th.Leave(noon, true)
		th.Answered(true)
		sink = th.Next(noon)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleThrottle() {
	t := delay.Throttle{Rand: func(width int64) int64 { return width / 2 }}
	now := noon
	t.Told(now, delay.Asked(30*time.Second), 0)
	fmt.Println(t.Next(now))

	now = now.Add(30 * time.Second)
	t.Leave(now, true)
	t.Answered(true)
	fmt.Println(t.Next(now))
	// Output:
	// generated-retry: wait 30s, local 0s, server 30s: another request of the same host and credential was told to wait
	// generated-retry: wait 50ms, local 50ms: many waited for the same moment: one after the other
}
