package delay_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
)

func TestCadence(t *testing.T) {
	type step = func(*delay.Cadence) delay.Wait
	var (
		first       = (*delay.Cadence).First
		pending     = (*delay.Cadence).Pending
		unreachable = (*delay.Cadence).Unreachable
		slow        = func(named int64) step {
			return func(c *delay.Cadence) delay.Wait { return c.SlowDown(seconds(named)) }
		}
		throttled = func(asked int64) step {
			return func(c *delay.Cadence) delay.Wait { return c.Throttled(delay.Asked(seconds(asked))) }
		}
		refused = func(c *delay.Cadence) delay.Wait { return c.Throttled(none) }
	)
	tests := []struct {
		name     string
		interval int64 // in s, as are the waits
		steps    []step
		want     []int64
	}{
		{"pending", 5, []step{first, pending, pending}, []int64{5, 5, 5}},
		{"no interval is 5 s", 0, []step{first, pending}, []int64{5, 5}},
		{"a negative one too", -3, []step{first, pending}, []int64{5, 5}},
		{"an interval of 1 s", 1, []step{first, pending}, []int64{1, 1}},
		{"slow_down is for good", 5, []step{slow(0), pending, slow(0), pending}, []int64{10, 10, 15, 15}},
		{"slow_down names a longer interval", 5, []step{slow(30), pending, slow(0)}, []int64{30, 30, 35}},
		{"slow_down names the next one", 5, []step{slow(10), pending}, []int64{10, 10}},
		{"slow_down names a shorter interval", 5, []step{slow(3), pending, slow(7), pending}, []int64{10, 10, 15, 15}},
		{"slow_down names nonsense", 5, []step{slow(-60), pending}, []int64{10, 10}},
		{"slow_down saturates", 5, []step{slow(math.MaxInt64 / 1_000_000_000), pending, slow(0), pending}, []int64{2147483647, 2147483647, 2147483647, 2147483647}},
		{"an interval that is beyond the timers", math.MaxInt64 / 1_000_000_000, []step{first, slow(0), pending, unreachable}, []int64{2147483647, 2147483647, 2147483647, 2147483647}},
		{"Retry-After longer, once", 5, []step{throttled(90), pending, refused}, []int64{90, 5, 5}},
		{"Retry-After shorter", 5, []step{throttled(1), pending}, []int64{5, 5}},
		{"Retry-After malformed", 5, []step{throttled(-1), pending}, []int64{5, 5}},
		{"Retry-After twice", 5, []step{throttled(90), throttled(7), refused}, []int64{90, 7, 5}},
		{"Retry-After against a slowed interval", 5, []step{slow(0), throttled(7), throttled(12), pending}, []int64{10, 10, 12, 10}},
		{"no answer doubles to 60 s", 5, []step{unreachable, unreachable, unreachable, unreachable, unreachable}, []int64{10, 20, 40, 60, 60}},
		{"an answer ends the backoff", 5, []step{unreachable, unreachable, pending, unreachable}, []int64{10, 20, 5, 10}},
		{"a refusal is an answer", 5, []step{unreachable, unreachable, refused, unreachable}, []int64{10, 20, 5, 10}},
		{"slow_down is an answer", 5, []step{unreachable, unreachable, slow(0), unreachable}, []int64{10, 20, 10, 20}},
		{"the backoff never touches the interval", 5, []step{unreachable, unreachable, slow(0), pending}, []int64{10, 20, 10, 10}},
		{"Retry-After never touches the backoff", 5, []step{throttled(90), unreachable, unreachable}, []int64{90, 10, 20}},
		{"Retry-After does not take the backoff's part", 5, []step{unreachable, unreachable, throttled(7)}, []int64{10, 20, 7}},
		{"an interval over the backoff's ceiling", 120, []step{unreachable, unreachable, pending}, []int64{120, 120, 120}},
		{"an interval of 40 s", 40, []step{unreachable, unreachable}, []int64{60, 60}},
		{"an interval of 60 s", 60, []step{unreachable, slow(0), unreachable}, []int64{60, 65, 65}},
		{"First says nothing about an answer", 5, []step{unreachable, first, unreachable}, []int64{10, 5, 20}},
	}
	for _, tt := range tests {
		c := delay.NewCadence(seconds(tt.interval))
		var got []int64
		for _, do := range tt.steps {
			got = append(got, int64(do(c).For/sec))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: the waits are %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestCadenceReasons(t *testing.T) {
	c := delay.NewCadence(5 * sec)
	row := func(reason delay.Reason, local, server, wait time.Duration, attempt int) delay.Wait {
		return delay.Wait{Loop: delay.DevicePoll, Reason: reason, Local: local, Server: server, For: wait, Attempt: attempt}
	}
	for i, tt := range []struct{ got, want delay.Wait }{
		{c.First(), row(delay.Interval, 5*sec, 0, 5*sec, 0)},
		{c.Pending(), row(delay.Interval, 5*sec, 0, 5*sec, 1)},
		{c.SlowDown(0), row(delay.SlowedDown, 10*sec, 0, 10*sec, 2)},
		{c.Throttled(delay.Asked(15 * sec)), row(delay.Floored, 10*sec, 15*sec, 15*sec, 3)},
		{c.Throttled(delay.Asked(sec)), row(delay.LocalLonger, 10*sec, sec, 10*sec, 4)},
		{c.Throttled(delay.Asked(0)), row(delay.MalformedHeader, 10*sec, 0, 10*sec, 5)},
		{c.Throttled(none), row(delay.OwnDelay, 10*sec, 0, 10*sec, 6)},
		{c.Unreachable(), row(delay.Unreachable, 20*sec, 0, 20*sec, 7)},
		{c.Pending().Within(7 * sec), delay.Wait{Loop: delay.DevicePoll, Reason: delay.Interval, Bound: delay.ByLifetime, Local: 10 * sec, For: 7 * sec, Attempt: 8}},
	} {
		if tt.got != tt.want {
			t.Errorf("wait %d is %+v, want %+v", i, tt.got, tt.want)
		}
	}
	if c.Interval() != 10*sec {
		t.Errorf("the interval is %v", c.Interval())
	}
}

// cadenceModel is the device poll's three timers in whole seconds, written from the rules alone: it keeps the history of
// the answers and works each wait out from the beginning.
type cadenceModel struct {
	interval int64
	events   []cadenceEvent
}

type cadenceEvent struct {
	kind  string
	value int64
}

const greatest = 2147483647

// wait is the wait after the last event.
func (m *cadenceModel) wait() int64 {
	interval, unanswered := m.interval, 0
	for _, e := range m.events {
		if e.kind == "slow_down" {
			interval += 5
			if e.value > interval {
				interval = e.value
			}
			if interval > greatest {
				interval = greatest
			}
		}
		unanswered++
		if e.kind != "unreachable" {
			unanswered = 0
		}
	}
	last := m.events[len(m.events)-1]
	switch last.kind {
	case "throttled":
		return max(interval, min(last.value, greatest))
	case "unreachable":
		backoff := float64(interval) * math.Pow(2, float64(unanswered))
		return max(interval, int64(math.Min(backoff, 60)))
	}
	return interval
}

func TestCadenceAgainstModel(t *testing.T) {
	r := seeded(t)
	kinds := []string{"pending", "slow_down", "throttled", "unreachable"}
	for range 400 {
		m := cadenceModel{interval: 1 + r.Int64N(1<<r.IntN(31))}
		c := delay.NewCadence(seconds(m.interval))
		for range 1 + r.IntN(40) {
			e := cadenceEvent{kind: kinds[r.IntN(len(kinds))]}
			if r.IntN(3) > 0 {
				e.value = r.Int64N(1 << (1 + r.IntN(33)))
			}
			m.events = append(m.events, e)
			value := seconds(e.value)
			var w delay.Wait
			switch e.kind {
			case "pending":
				w = c.Pending()
			case "slow_down":
				w = c.SlowDown(value)
			case "throttled":
				w = c.Throttled(delay.Asked(value))
			case "unreachable":
				w = c.Unreachable()
			}
			if want := seconds(m.wait()); w.For != want || w.Attempt != len(m.events) {
				t.Fatalf("interval %d, after %v: wait %v (attempt %d), want %v", m.interval, m.events, w.For, w.Attempt, want)
			}
		}
	}
}
