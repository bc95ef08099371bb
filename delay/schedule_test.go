package delay_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/heed-sdk/heed/delay"
)

// seeded returns a source of chance, and prints its seed for when the test fails.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// pinned draws the given fraction of any range, both ends included.
func pinned(fraction float64) delay.Rand {
	return func(n int64) int64 { return int64(float64(n) * fraction) }
}

// term is the exponential term by arithmetic that cannot overflow.
func term(base, ceiling time.Duration, n int) time.Duration {
	if n > 200 { // no shift by MaxInt bits: 1 ns doubled 199 times is more than any Duration
		n = 200
	}
	exact := new(big.Int).Lsh(big.NewInt(int64(base)), uint(n-1))
	if limit := big.NewInt(int64(ceiling)); exact.Cmp(limit) > 0 {
		return ceiling
	}
	return time.Duration(exact.Int64())
}

func TestTermLiterally(t *testing.T) {
	local := delay.Local{Base: sec, Ceiling: 60 * sec}
	for i, want := range []int64{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if got := local.Term(i + 1); got != seconds(want) {
			t.Errorf("term %d is %v, want %v", i+1, got, seconds(want))
		}
	}
	for _, n := range []int{0, -1, math.MinInt} {
		if got := local.Term(n); got != sec {
			t.Errorf("term %d is %v, want the first", n, got)
		}
	}
}

// bases goes from 1 ns to beyond the ceiling, with the neighbours of every power of two and of the ceiling's halves.
func bases(r *rand.Rand, ceiling time.Duration) []time.Duration {
	var list []time.Duration
	for bit := range 63 {
		at := time.Duration(1) << bit
		list = append(list, at-1, at, at+1, ceiling>>bit-1, ceiling>>bit, ceiling>>bit+1, 1+time.Duration(r.Int64N(int64(at))))
	}
	list = append(list, ms, sec, 500*ms, time.Minute, time.Hour, math.MaxInt64)
	kept := list[:0]
	for _, base := range list {
		if base > 0 {
			kept = append(kept, base)
		}
	}
	return kept
}

func TestTermSaturates(t *testing.T) {
	r := seeded(t)
	for _, ceiling := range []time.Duration{1, 2, 3, 1000, 30 * sec, 60 * sec, 60*sec + 1, 1<<53 + 1, delay.MaxWait, math.MaxInt64 - 1, math.MaxInt64} {
		for _, base := range bases(r, ceiling) {
			local := delay.Local{Base: base, Ceiling: ceiling}
			check := func(n int) {
				if got, want := local.Term(n), term(base, ceiling, n); got != want {
					t.Errorf("term %d of base %d, ceiling %d, is %d, want %d", n, base, ceiling, got, want)
				}
			}
			for n := 1; n <= 70; n++ {
				check(n)
			}
			for _, n := range []int{127, 128, 129, 255, 256, 257, 1 << 16, math.MaxInt32, math.MaxInt32 + 1, math.MaxInt - 1, math.MaxInt, 71 + r.IntN(math.MaxInt-71)} {
				check(n)
			}
		}
	}
}

// TestExponentialIsTerm compares the library's schedule with the exact term, call by call and through saturation.
func TestExponentialIsTerm(t *testing.T) {
	r := seeded(t)
	for _, ceiling := range []time.Duration{1, 2, 3, 1000, 30 * sec, 60 * sec, 60*sec + 1, 24 * time.Hour, 1<<53 - 1, 1 << 53} {
		for _, base := range bases(r, ceiling) {
			b := delay.Exponential(base, ceiling)
			for _, run := range []string{"fresh", "reset"} {
				for n := 1; n <= 66; n++ {
					if got, want := b.NextBackOff(), term(base, ceiling, n); got != want {
						t.Fatalf("%s, delay %d of base %d, ceiling %d, is %d, want %d", run, n, base, ceiling, got, want)
					}
				}
				b.Reset()
			}
		}
	}
	b := delay.Exponential(1, 60*sec)
	for n := 1; n <= 100_000; n++ {
		if got := b.NextBackOff(); n > 40 && got != 60*sec {
			t.Fatalf("delay %d is %v", n, got)
		}
	}
}

func TestLongest(t *testing.T) {
	tests := []struct {
		loop   delay.Loop
		first  time.Duration
		second time.Duration
		last   time.Duration
	}{
		{delay.GeneratedRetry, 1100 * ms, 2100 * ms, 30100 * ms},
		{delay.Hop, 1100 * ms, 2100 * ms, 30100 * ms},
		{delay.DevicePoll, 5 * sec, 5 * sec, 5 * sec},
		{delay.Reconnect, sec, 2 * sec, 60 * sec},
		{delay.PollRetry, sec, 2 * sec, 60 * sec},
	}
	for _, tt := range tests {
		local := tt.loop.Row().Local
		if a, b, z := local.Longest(1), local.Longest(2), local.Longest(math.MaxInt); a != tt.first || b != tt.second || z != tt.last {
			t.Errorf("%v: the longest delays are %v, %v, ..., %v, want %v, %v, ..., %v", tt.loop, a, b, z, tt.first, tt.second, tt.last)
		}
	}
	if got := (delay.Local{Base: sec, Ceiling: math.MaxInt64, Jitter: delay.AddJitter, Extra: sec}).Longest(100); got != math.MaxInt64 {
		t.Errorf("the longest delay of an endless ceiling is %v", got)
	}
}

// TestOwnSchedules pins each row's own schedule at both ends of its draws.
func TestOwnSchedules(t *testing.T) {
	tests := []struct {
		loop      delay.Loop
		low, high []int64 // in ms
	}{
		{delay.GeneratedRetry, []int64{1000, 2000, 4000, 8000, 16000, 30000, 30000}, []int64{1100, 2100, 4100, 8100, 16100, 30100, 30100}},
		{delay.Hop, []int64{1000, 2000, 4000, 8000, 16000, 30000, 30000}, []int64{1100, 2100, 4100, 8100, 16100, 30100, 30100}},
		{delay.DevicePoll, []int64{5000, 10000, 20000, 40000, 60000, 60000}, []int64{5000, 10000, 20000, 40000, 60000, 60000}},
		{delay.Reconnect, []int64{0, 0, 0, 0, 0, 0, 0, 0}, []int64{1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000}},
		{delay.PollRetry, []int64{0, 0, 0, 0, 0, 0, 0, 0}, []int64{1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000}},
	}
	for _, tt := range tests {
		for end, delays := range [][]int64{tt.low, tt.high} {
			b := tt.loop.Row().Local.Schedule(pinned(float64(end)))
			for n, want := range delays {
				if got := b.NextBackOff().Milliseconds(); got != want {
					t.Errorf("%v, draws pinned to %d: delay %d is %d ms, want %d", tt.loop, end, n+1, got, want)
				}
			}
		}
	}
}

// TestDrawIsUniform is a chi-square test with a fixed seed, for full jitter at its ceiling and for added jitter.
func TestDrawIsUniform(t *testing.T) {
	const (
		draws   = 40_000
		buckets = 40
		// The 0.999 quantile of the chi-square distribution with 39 degrees of freedom.
		critical = 72.06
	)
	r := delay.Rand(rand.New(rand.NewPCG(6, 28)).Int64N)
	for _, tt := range []struct {
		loop        delay.Loop
		from, width time.Duration
	}{
		{delay.Reconnect, 0, 60 * sec},
		{delay.PollRetry, 0, 60 * sec},
		{delay.GeneratedRetry, 30 * sec, 100 * ms},
		{delay.Hop, 30 * sec, 100 * ms},
	} {
		run := tt.loop.OwnRetries(0, 0, delay.Unlimited, r)
		for range 10 { // the ceiling is reached after 7
			run.Next(delay.RetryAfter{})
		}
		var count [buckets]int
		ends := 0
		for range draws {
			w, ok := run.Next(delay.RetryAfter{})
			d := w.For - tt.from
			if !ok || d < 0 || d > tt.width {
				t.Fatalf("%v draws %v, %v", tt.loop, w.For, ok)
			}
			if d == 0 || d == tt.width {
				ends++
			}
			count[min(int(d*buckets/tt.width), buckets-1)]++
		}
		expected := float64(draws) / buckets
		chi := 0.0
		for _, n := range count {
			chi += (float64(n) - expected) * (float64(n) - expected) / expected
		}
		if chi > critical {
			t.Errorf("%v: chi-square %.1f over %d buckets: %v", tt.loop, chi, buckets, count)
		}
		// A draw that is cut to the cap, or that jitters around it, has mass there.
		if ends > 1 {
			t.Errorf("%v: %d draws of %d are at an end of the range", tt.loop, ends, draws)
		}
	}
}

// TestDrawStaysInRange holds for a Rand that does not, and for none at all.
func TestDrawStaysInRange(t *testing.T) {
	for name, r := range map[string]delay.Rand{
		"nil":       nil,
		"too large": func(int64) int64 { return math.MaxInt64 },
		"the end":   func(n int64) int64 { return n },
		"negative":  func(int64) int64 { return -7 },
	} {
		for _, width := range []time.Duration{1, 2, 1000, 60 * sec, math.MaxInt64} {
			if d := delay.FullJitter(constant(width), r).NextBackOff(); d < 0 || d > width {
				t.Errorf("%s: full jitter over %v draws %v", name, width, d)
			}
			if d := delay.AddedJitter(constant(sec), width, r).NextBackOff(); d < sec || width < time.Hour && d > sec+width {
				t.Errorf("%s: %v added to 1s draws %v", name, width, d)
			}
		}
	}
	never := delay.Rand(func(n int64) int64 {
		t.Errorf("asked for a draw from [0, %d)", n)
		return 0
	})
	for _, width := range []time.Duration{0, -7} {
		if d := delay.FullJitter(constant(width), never).NextBackOff(); d != 0 {
			t.Errorf("full jitter over %v draws %v", width, d)
		}
		if d := delay.AddedJitter(constant(sec), width, never).NextBackOff(); d != sec {
			t.Errorf("%v added to 1s draws %v", width, d)
		}
	}
	if d := delay.AddedJitter(constant(math.MaxInt64-5), 10, pinned(1)).NextBackOff(); d != math.MaxInt64 {
		t.Errorf("added jitter does not saturate: %v", d)
	}
}

type constant time.Duration

func (c constant) NextBackOff() time.Duration { return time.Duration(c) }
func (constant) Reset()                       {}

// script is a schedule of literal delays, then Stop.
type script struct {
	delays []time.Duration
	next   int
}

func (s *script) NextBackOff() time.Duration {
	if s.next == len(s.delays) {
		return backoff.Stop
	}
	s.next++
	return s.delays[s.next-1]
}

func (s *script) Reset() { s.next = 0 }

func TestDecoratorsForward(t *testing.T) {
	for name, decorate := range map[string]func(backoff.BackOff) backoff.BackOff{
		"full jitter":  func(b backoff.BackOff) backoff.BackOff { return delay.FullJitter(b, pinned(1)) },
		"added jitter": func(b backoff.BackOff) backoff.BackOff { return delay.AddedJitter(b, 0, pinned(1)) },
	} {
		b := decorate(&script{delays: []time.Duration{3 * sec, sec}})
		for _, run := range []string{"fresh", "reset"} {
			for i, want := range []time.Duration{3 * sec, sec, backoff.Stop, backoff.Stop} {
				if got := b.NextBackOff(); got != want {
					t.Errorf("%s, %s, delay %d is %v, want %v", name, run, i+1, got, want)
				}
			}
			b.Reset()
		}
	}
}

func TestLinear(t *testing.T) {
	tests := []struct {
		step time.Duration
		want []time.Duration
	}{
		{1500 * ms, []time.Duration{1500 * ms, 3 * sec, 4500 * ms, 6 * sec}},
		{0, []time.Duration{0, 0}},
		{-sec, []time.Duration{0, 0}},
		{math.MaxInt64/2 - 3, []time.Duration{math.MaxInt64/2 - 3, math.MaxInt64 - 7, math.MaxInt64, math.MaxInt64}},
		{math.MaxInt64, []time.Duration{math.MaxInt64, math.MaxInt64, math.MaxInt64}},
	}
	for _, tt := range tests {
		b := delay.Linear(tt.step)
		for _, run := range []string{"fresh", "reset"} {
			for i, want := range tt.want {
				if got := b.NextBackOff(); got != want {
					t.Errorf("%s, delay %d of step %v is %v, want %v", run, i+1, tt.step, got, want)
				}
			}
			b.Reset()
		}
	}
}
