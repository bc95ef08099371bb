package delay_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
)

var none = delay.RetryAfter{}

// waits runs a loop until it gives up, at most n times.
func waits(run *delay.Retries, n int, after ...delay.RetryAfter) []time.Duration {
	var list []time.Duration
	for i := range n {
		var a delay.RetryAfter
		if i < len(after) {
			a = after[i]
		}
		w, ok := run.Next(a)
		if !ok {
			break
		}
		list = append(list, w.For)
	}
	return list
}

func TestRetriesCountAttemptsInTotal(t *testing.T) {
	for _, loop := range []delay.Loop{delay.GeneratedRetry, delay.Hop, delay.Reconnect, delay.PollRetry} {
		for attempts, want := range map[int]int{math.MinInt: 0, -1: 0, 0: 0, 1: 0, 2: 1, 3: 2, 10: 9} {
			for name, run := range map[string]*delay.Retries{
				"own":    loop.OwnRetries(0, 0, attempts, pinned(0)),
				"linear": loop.Retries(delay.Linear(sec), attempts),
			} {
				for range 2 {
					if got := len(waits(run, 100)); got != want {
						t.Errorf("%v, %s: %d waits for %d attempts, want %d", loop, name, got, attempts, want)
					}
					if w, _ := run.Next(none); w.Of != max(attempts, 1) {
						t.Errorf("%v, %s: %d attempts are said to be %d", loop, name, attempts, w.Of)
					}
					if got := run.Failed(); got != want+2 {
						t.Errorf("%v, %s: %d attempts failed of %d", loop, name, got, attempts)
					}
					run.Reset()
					if run.Failed() != 0 {
						t.Errorf("%v, %s: Reset left the count at %d", loop, name, run.Failed())
					}
				}
			}
		}
	}
}

// TestRetriesGiveUp: the last Wait is not waited, and still carries what the server asked for.
func TestRetriesGiveUp(t *testing.T) {
	run := delay.GeneratedRetry.OwnRetries(0, 0, 2, pinned(0))
	run.Next(none)
	w, ok := run.Next(delay.Asked(7 * sec))
	if want := (delay.Wait{Loop: delay.GeneratedRetry, Reason: delay.OwnDelay, Server: 7 * sec, Attempt: 2, Of: 2}); ok || w != want {
		t.Errorf("after the last attempt: %+v, %v", w, ok)
	}

	run = delay.Hop.Retries(&script{delays: []time.Duration{sec}}, delay.Unlimited)
	run.Next(none)
	w, ok = run.Next(delay.Asked(7 * sec))
	if want := (delay.Wait{Loop: delay.Hop, Reason: delay.OwnDelay, Server: 7 * sec, Attempt: 2}); ok || w != want {
		t.Errorf("after the schedule's end: %+v, %v", w, ok)
	}
}

// TestRetriesCountGoesOn: a wait that the server directed takes its place in the schedule, and does not stick.
func TestRetriesCountGoesOn(t *testing.T) {
	run := delay.GeneratedRetry.OwnRetries(0, 0, delay.Unlimited, pinned(0))
	after := []delay.RetryAfter{none, delay.Asked(90 * sec), none, delay.Asked(-1), none, delay.Asked(1)}
	got := waits(run, 8, after...)
	if want := []time.Duration{1 * sec, 90 * sec, 4 * sec, 8 * sec, 16 * sec, 1, 30 * sec, 30 * sec}; !slices.Equal(got, want) {
		t.Errorf("the waits are %v, want %v", got, want)
	}

	run = delay.Reconnect.OwnRetries(0, 0, delay.Unlimited, pinned(1))
	got = waits(run, 6, delay.Asked(90*sec), none, delay.Asked(sec), delay.Asked(9*sec))
	if want := []time.Duration{90 * sec, 2 * sec, 4 * sec, 9 * sec, 16 * sec, 32 * sec}; !slices.Equal(got, want) {
		t.Errorf("the waits are %v, want %v", got, want)
	}

	for i, want := range []int{7, 8, 9} {
		if w, _ := run.Next(none); w.Attempt != want || w.Of != 0 {
			t.Errorf("wait %d is after attempt %d of %d, want %d", i, w.Attempt, w.Of, want)
		}
	}
	run = delay.PollRetry.OwnRetries(0, 0, 3, nil)
	if w, _ := run.Next(none); w.Attempt != 1 || w.Of != 3 {
		t.Errorf("the first wait is after attempt %d of %d", w.Attempt, w.Of)
	}
}

// TestRetriesSeparateTheLastTwoRows is the case for which the table has two rows.
func TestRetriesSeparateTheLastTwoRows(t *testing.T) {
	for loop, want := range map[delay.Loop]time.Duration{delay.Reconnect: 50 * sec, delay.PollRetry: sec} {
		run := loop.Retries(constant(50*sec), delay.Unlimited)
		if w, ok := run.Next(delay.ParseRetryAfter(lines("1"), noon)); w.For != want || !ok {
			t.Errorf("%v waits %v, want %v", loop, w.For, want)
		}
	}
}

func TestOwnRetriesOverrides(t *testing.T) {
	tests := []struct {
		name          string
		base, ceiling time.Duration
		want          []time.Duration
	}{
		{"neither", 0, 0, []time.Duration{1 * sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec, 30 * sec, 30 * sec}},
		{"negative ones are neither", -1, -1, []time.Duration{1 * sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec, 30 * sec, 30 * sec}},
		{"a base", 2 * sec, 0, []time.Duration{2 * sec, 4 * sec, 8 * sec, 16 * sec, 30 * sec, 30 * sec}},
		{"a ceiling", 0, 3 * sec, []time.Duration{1 * sec, 2 * sec, 3 * sec, 3 * sec}},
		{"a base beyond the ceiling", 90 * sec, 0, []time.Duration{30 * sec, 30 * sec}},
		{"a tiny base", 1, 5, []time.Duration{1, 2, 4, 5, 5}},
	}
	for _, tt := range tests {
		run := delay.Hop.OwnRetries(tt.base, tt.ceiling, delay.Unlimited, pinned(0))
		if got := waits(run, len(tt.want)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: the waits are %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestOwnRetriesAddJitter pins the draw's range as well as its place.
func TestOwnRetriesAddJitter(t *testing.T) {
	var ranges []int64
	run := delay.GeneratedRetry.OwnRetries(0, 0, delay.Unlimited, func(n int64) int64 {
		ranges = append(ranges, n)
		return 25_000_000
	})
	if got, want := waits(run, 2), []time.Duration{1025 * ms, 2025 * ms}; !slices.Equal(got, want) {
		t.Errorf("the waits are %v, want %v", got, want)
	}
	if want := []int64{100_000_000, 100_000_000}; !slices.Equal(ranges, want) {
		t.Errorf("drawn from %v, want %v", ranges, want)
	}
}

func TestNegativeSchedule(t *testing.T) {
	run := delay.Reconnect.Retries(constant(-7), delay.Unlimited) // -1 is backoff.Stop, anything else is no delay
	if w, ok := run.Next(none); w.For != 0 || w.Local != 0 || !ok {
		t.Errorf("a schedule of -7 waits %v, %v", w, ok)
	}
}

func TestCapAndLimit(t *testing.T) {
	run := delay.GeneratedRetry.Retries(constant(3*sec), delay.Unlimited)
	run.Cap = 5 * sec
	for _, tt := range []struct {
		after delay.RetryAfter
		want  time.Duration
		bound delay.Bound
	}{{none, 3 * sec, delay.Unbounded}, {delay.Asked(5 * sec), 5 * sec, delay.Unbounded}, {delay.Asked(9 * sec), 5 * sec, delay.ByCap}, {delay.Asked(sec), sec, delay.Unbounded}} {
		if w, ok := run.Next(tt.after); !ok || w.For != tt.want || w.Bound != tt.bound || w.Server != tt.after.Duration() {
			t.Errorf("capped at 5s, asked for %v: %v, %v", tt.after, w, ok)
		}
	}
	run = delay.GeneratedRetry.Retries(constant(9*sec), delay.Unlimited)
	run.Cap = 5 * sec
	if w, ok := run.Next(none); !ok || w.For != 5*sec || w.Bound != delay.ByCap {
		t.Errorf("a local delay over the cap: %v, %v", w, ok)
	}

	run = delay.GeneratedRetry.Retries(constant(3*sec), delay.Unlimited)
	run.Limit = 5 * sec
	for _, tt := range []struct {
		after delay.RetryAfter
		ok    bool
		bound delay.Bound
	}{{none, true, delay.Unbounded}, {delay.Asked(5 * sec), true, delay.Unbounded}, {delay.Asked(5*sec + 1), false, delay.OverLimit}} {
		w, ok := run.Next(tt.after)
		if ok != tt.ok || w.Bound != tt.bound || w.Server != tt.after.Duration() {
			t.Errorf("limited to 5s, asked for %v: %v, %v", tt.after, w, ok)
		}
	}
	run = delay.GeneratedRetry.Retries(constant(9*sec), delay.Unlimited)
	run.Limit = 5 * sec
	if w, ok := run.Next(none); ok || w.For != 9*sec || w.Bound != delay.OverLimit {
		t.Errorf("a local delay over the limit: %v, %v", w, ok)
	}
}

// TestThrottledPreset is the arithmetic of the founding policy that caps: 500 ms doubled, and everything cut at 5 s.
func TestThrottledPreset(t *testing.T) {
	run := delay.GeneratedRetry.Retries(delay.Exponential(500*ms, time.Hour), 7)
	run.Cap = 5 * sec
	got := waits(run, 10, none, none, delay.Asked(370*ms), none, none, delay.Asked(6*sec))
	if want := []time.Duration{500 * ms, sec, 370 * ms, 4 * sec, 5 * sec, 5 * sec}; !slices.Equal(got, want) {
		t.Errorf("the waits are %v, want %v", got, want)
	}
}

func TestRebase(t *testing.T) {
	tests := []struct {
		name   string
		failed int
		base   time.Duration
		want   []time.Duration
	}{
		{"before the first", 0, 3 * sec, []time.Duration{3 * sec, 6 * sec, 12 * sec, 24 * sec, 48 * sec, 60 * sec}},
		{"keeps the count", 3, 3 * sec, []time.Duration{24 * sec, 48 * sec, 60 * sec, 60 * sec}},
		{"at least 100 ms", 0, 1, []time.Duration{100 * ms, 200 * ms, 400 * ms}},
		{"zero", 0, 0, []time.Duration{100 * ms, 200 * ms}},
		{"negative", 0, -sec, []time.Duration{100 * ms, 200 * ms}},
		{"just 100 ms", 1, 100 * ms, []time.Duration{200 * ms, 400 * ms}},
		{"at most the ceiling", 0, math.MaxInt64, []time.Duration{60 * sec, 60 * sec}},
		{"at the ceiling already", 300, 100 * ms, []time.Duration{60 * sec, 60 * sec}},
	}
	for _, tt := range tests {
		run := delay.Reconnect.OwnRetries(0, 0, delay.Unlimited, pinned(1))
		waits(run, tt.failed)
		run.Rebase(tt.base)
		if run.Failed() != tt.failed {
			t.Errorf("%s: the count is %d, want %d", tt.name, run.Failed(), tt.failed)
		}
		if got := waits(run, len(tt.want)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: the waits are %v, want %v", tt.name, got, tt.want)
		}
		run.Reset()
		first := min(max(tt.base, 100*ms), 60*sec)
		if w, _ := run.Next(none); w.For != first {
			t.Errorf("%s: the first wait of the next run is %v, want the base to persist: %v", tt.name, w.For, first)
		}
	}

	run := delay.Reconnect.OwnRetries(0, 50*ms, delay.Unlimited, pinned(1))
	run.Rebase(10 * ms)
	if got := waits(run, 1); got[0] != 50*ms {
		t.Errorf("a ceiling below 100 ms: %v", got)
	}
	run = delay.Reconnect.Retries(delay.Linear(sec), delay.Unlimited)
	run.Rebase(30 * sec)
	if got, want := waits(run, 2), []time.Duration{sec, 2 * sec}; !slices.Equal(got, want) {
		t.Errorf("Rebase changed a schedule of the caller's: %v", got)
	}
}

// TestRebaseIsTerm: wherever the base is changed, and however often, what follows is the exact term.
func TestRebaseIsTerm(t *testing.T) {
	r := seeded(t)
	for range 200 {
		run := delay.PollRetry.OwnRetries(0, 0, delay.Unlimited, pinned(1))
		base := sec
		for n := 1; n <= 30; n++ {
			if r.IntN(4) == 0 {
				base = 100*ms + time.Duration(r.Int64N(int64(60*sec)))
				run.Rebase(base)
				base = min(base, 60*sec)
			}
			if w, _ := run.Next(none); w.For != term(base, 60*sec, n) {
				t.Fatalf("wait %d on base %v is %v, want %v", n, base, w.For, term(base, 60*sec, n))
			}
		}
	}
}

func TestNextSpread(t *testing.T) {
	run := delay.Reconnect.OwnRetries(0, 0, delay.Unlimited, pinned(1))
	for _, tt := range []struct {
		width  time.Duration
		want   time.Duration
		reason delay.Reason
	}{
		{5 * sec, 5 * sec, delay.Spread}, // the first of a run
		{5 * sec, 2 * sec, delay.OwnDelay},
		{90 * sec, 4 * sec, delay.OwnDelay}, // later ones go by the schedule
	} {
		w, ok := run.NextSpread(tt.width)
		if !ok || w.For != tt.want || w.Local != tt.want || w.Reason != tt.reason || w.Server != 0 {
			t.Errorf("attempt %d, width %v: %v, want %v", w.Attempt, tt.width, w, tt.want)
		}
	}
	run.Reset()
	if w, _ := run.NextSpread(5 * sec); w.For != 5*sec || w.Attempt != 1 {
		t.Errorf("the first of the next run: %v", w)
	}

	for width, want := range map[time.Duration]time.Duration{0: sec, -1: sec, 999 * ms: sec, sec: sec, sec + 1: sec + 1} {
		run := delay.Reconnect.OwnRetries(0, 0, delay.Unlimited, pinned(1))
		if w, _ := run.NextSpread(width); w.For != want {
			t.Errorf("width %v: %v, want the wider of it and the first draw's: %v", width, w, want)
		}
		if w, _ := run.Next(none); w.For != 2*sec {
			t.Errorf("after a width of %v: %v", width, w)
		}
	}
	run = delay.Reconnect.OwnRetries(0, 0, delay.Unlimited, pinned(0.5))
	if w, _ := run.NextSpread(5 * sec); w.For != 2500*ms {
		t.Errorf("half of 5s: %v", w)
	}
}

func TestNextWoken(t *testing.T) {
	for _, failed := range []int{0, 1, 5, 100} {
		run := delay.Reconnect.OwnRetries(0, 0, delay.Unlimited, pinned(1))
		waits(run, failed)
		w, ok := run.NextWoken()
		if !ok || w.For != 2*sec || w.Local != 2*sec || w.Reason != delay.Woken || w.Attempt != failed+1 {
			t.Errorf("after %d failures: %v, %v", failed, w, ok)
		}
		if w, _ := run.Next(none); w.For != term(sec, 60*sec, failed+2) {
			t.Errorf("the count did not go on: %v", w)
		}
	}
	run := delay.Reconnect.OwnRetries(0, 0, delay.Unlimited, pinned(0.25))
	if w, _ := run.NextWoken(); w.For != 500*ms {
		t.Errorf("a quarter of 2s: %v", w)
	}
}

func TestNextUnheeded(t *testing.T) {
	run := delay.Reconnect.OwnRetries(0, 0, delay.Unlimited, pinned(1))
	for _, want := range []time.Duration{sec, 2 * sec, 4 * sec} {
		if w, ok := run.NextUnheeded(); !ok || w.For != want || w.Reason != delay.Unheeded || w.Server != 0 {
			t.Errorf("attempt %d: %v, want %v", w.Attempt, w, want)
		}
	}
}

// TestEveryNextStops: no way to ask for a wait goes past the attempts, the schedule's end or the limit.
func TestEveryNextStops(t *testing.T) {
	nexts := map[string]func(*delay.Retries) (delay.Wait, bool){
		"Next":         func(r *delay.Retries) (delay.Wait, bool) { return r.Next(none) },
		"NextUnheeded": (*delay.Retries).NextUnheeded,
		"NextSpread":   func(r *delay.Retries) (delay.Wait, bool) { return r.NextSpread(9 * sec) },
		"NextWoken":    (*delay.Retries).NextWoken,
	}
	for name, next := range nexts {
		if w, ok := next(delay.Reconnect.OwnRetries(0, 0, 1, nil)); ok || w.For != 0 || w.Attempt != 1 {
			t.Errorf("%s after the last attempt: %v, %v", name, w, ok)
		}
		if w, ok := next(delay.Reconnect.Retries(&script{}, delay.Unlimited)); ok || w.For != 0 || w.Attempt != 1 {
			t.Errorf("%s after the schedule's end: %v, %v", name, w, ok)
		}
		run := delay.Reconnect.OwnRetries(sec, 0, delay.Unlimited, pinned(1))
		run.Limit = 999 * ms
		if w, ok := next(run); ok || w.Bound != delay.OverLimit {
			t.Errorf("%s over the limit: %v, %v", name, w, ok)
		}
	}
}

// TestNeverEarly is the promise of the package over its whole input space: no wait is shorter than a valid Retry-After,
// unless the caller capped it or the code's life ends; and none but a server's own is longer than the loop's longest.
func TestNeverEarly(t *testing.T) {
	r := seeded(t)
	magnitude := func() time.Duration { return time.Duration(r.Int64() >> r.IntN(63)) }
	for range 5000 {
		row := delay.Table()[r.IntN(5)]
		base, ceiling := magnitude(), min(magnitude(), 1<<53)
		attempts := 2 + r.IntN(80)
		run := row.Loop.OwnRetries(base, ceiling, attempts, rand.New(rand.NewPCG(r.Uint64(), 0)).Int64N)
		local := row.Local
		if base > 0 {
			local.Base = base
		}
		if ceiling > 0 {
			local.Ceiling = ceiling
		}
		for n := 1; n < attempts; n++ {
			after := delay.RetryAfter{}
			if r.IntN(2) == 0 {
				after = delay.Asked(magnitude() - 5)
			}
			run.Cap = 0
			if r.IntN(4) == 0 {
				run.Cap = 1 + magnitude()
			}
			w, ok := run.Next(after)
			longest := term(local.Base, local.Ceiling, n) + local.Extra
			switch asked := after.Duration(); {
			case !ok:
				t.Fatalf("%v gave up at attempt %d of %d", row.Loop, n, attempts)
			case run.Cap == 0 && w.For < asked:
				t.Fatalf("early: %v, asked for %v", w, asked)
			case run.Cap > 0 && w.For < min(asked, run.Cap):
				t.Fatalf("early, and not by the cap of %v: %v", run.Cap, w)
			case run.Cap > 0 && w.For > run.Cap:
				t.Fatalf("over the cap of %v: %v", run.Cap, w)
			case w.For < 0 || w.Local < 0 || w.Local > longest:
				t.Fatalf("out of range, up to %v: %v", longest, w)
			case asked == 0 && run.Cap == 0 && w.For != w.Local:
				t.Fatalf("neither the server's nor the loop's own: %v", w)
			case asked > 0 && row.Composition == delay.Replace && run.Cap == 0 && w.For != asked:
				t.Fatalf("not exactly %v: %v", asked, w)
			case asked > 0 && row.Composition == delay.Max && run.Cap == 0 && w.For != max(w.Local, asked):
				t.Fatalf("not the longer one: %v", w)
			}
			left := magnitude()
			switch cut := w.Within(left); {
			case row.Clamp == delay.Unclamped && cut != w:
				t.Fatalf("%v was cut to a lifetime: %v", row.Loop, cut)
			case row.Clamp == delay.Lifetime && cut.For != max(min(w.For, left), 0):
				t.Fatalf("%v within %v is %v", w, left, cut)
			}
		}
	}
}

// TestCompositionHasNoMemory: the same local delay and the same Retry-After make the same wait, whatever came before.
func TestCompositionHasNoMemory(t *testing.T) {
	r := seeded(t)
	for range 500 {
		loop := delay.Table()[r.IntN(5)].Loop
		history := loop.Retries(constant(7*sec), delay.Unlimited)
		for range r.IntN(20) {
			history.Next(delay.Asked(time.Duration(r.Int64() >> r.IntN(63))))
		}
		after := delay.Asked(time.Duration(r.Int64N(int64(14 * sec))))
		got, _ := history.Next(after)
		fresh, _ := loop.Retries(constant(7*sec), delay.Unlimited).Next(after)
		got.Attempt = fresh.Attempt
		if want := loop.Compose(7*sec, after); fresh.For != want.For || got != fresh {
			t.Fatalf("%+v with a history, %+v without, composed %+v", got, fresh, want)
		}
	}
}
