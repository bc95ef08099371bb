package delay_test

import (
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// sink keeps the compiler from seeing that nobody looks.
var (
	sink      delay.Wait
	sinkAfter delay.RetryAfter
)

// TestDecidingAllocatesNothing measures what the benchmarks below show.
func TestDecidingAllocatesNothing(t *testing.T) {
	var (
		digits   = lines("120")
		fraction = lines("0.37")
		absent   = lines()
		asked    = delay.Asked(7 * sec)
		hop      = delay.Hop.OwnRetries(0, 0, delay.Unlimited, nil)
		draw     = delay.Reconnect.OwnRetries(0, 0, delay.Unlimited, nil)
		linear   = delay.GeneratedRetry.Retries(delay.Linear(sec), delay.Unlimited)
		cadence  = delay.NewCadence(0)
	)
	for name, decide := range map[string]func(){
		"Compose":                 func() { sink = delay.DevicePoll.Compose(sec, asked) },
		"Retries.Next":            func() { sink, _ = hop.Next(asked) },
		"Retries.Next, full draw": func() { sink, _ = draw.Next(delay.RetryAfter{}) },
		"Retries.Next, linear":    func() { sink, _ = linear.Next(asked) },
		"Retries.NextUnheeded":    func() { sink, _ = draw.NextUnheeded() },
		"Retries.NextSpread":      func() { draw.Reset(); sink, _ = draw.NextSpread(5 * sec) },
		"Retries.NextWoken":       func() { sink, _ = draw.NextWoken() },
		"Cadence.Pending":         func() { sink = cadence.Pending() },
		"Cadence.SlowDown":        func() { sink = cadence.SlowDown(0) },
		"Cadence.Throttled":       func() { sink = cadence.Throttled(asked) },
		"Cadence.Unreachable":     func() { sink = cadence.Unreachable() },
		"Within and Bounded":      func() { sink = wait(7*sec).Within(sec).Bounded(sec, sec) },
		"digits":                  func() { sinkAfter = delay.ParseRetryAfter(digits, noon) },
		"digits, device-poll":     func() { sinkAfter = delay.DevicePoll.RetryAfter(digits, noon) },
		"a fraction":              func() { sinkAfter = (delay.Digits | delay.Fraction).Read(fraction, noon) },
		"no header":               func() { sinkAfter = delay.ParseRetryAfter(absent, noon) },
	} {
		if n := testing.AllocsPerRun(100, decide); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkCompose(b *testing.B) {
	b.ReportAllocs()
	after := delay.Asked(7 * sec)
	for b.Loop() {
		sink = delay.DevicePoll.Compose(sec, after)
	}
}

func BenchmarkRetriesNext(b *testing.B) {
	b.ReportAllocs()
	run := delay.GeneratedRetry.OwnRetries(0, 0, delay.Unlimited, nil)
	after := delay.Asked(7 * sec)
	for b.Loop() {
		sink, _ = run.Next(after)
	}
}

func BenchmarkCadencePending(b *testing.B) {
	b.ReportAllocs()
	c := delay.NewCadence(0)
	for b.Loop() {
		sink = c.Pending()
	}
}

func BenchmarkRetryAfterDigits(b *testing.B) {
	b.ReportAllocs()
	h := lines("120")
	for b.Loop() {
		sinkAfter = delay.ParseRetryAfter(h, noon)
	}
}

func BenchmarkRetryAfterDate(b *testing.B) {
	b.ReportAllocs()
	h := lines("Sun, 29 Nov 2026 12:01:00 GMT")
	for b.Loop() {
		sinkAfter = delay.ParseRetryAfter(h, noon)
	}
}

// BenchmarkTimerArmStop is a timer armed and stopped among as many others, as a request's timeout is.
func BenchmarkTimerArmStop(b *testing.B) {
	for name, c := range map[string]clock.Clock{"real": clock.New(), "fake": fakes.NewClock(noon)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			timers := delay.TimersOn(c)
			for i := range 10 {
				defer timers.After(delay.KindStaleness, time.Duration(i+1)*time.Hour, func() {}).Stop()
			}
			f := func() {}
			for b.Loop() {
				timers.After(delay.KindRequestTimeout, 30*sec, f).Stop()
			}
		})
	}
}
