package delay_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// TestTable spells every field of every row: whoever changes the table says so here too.
func TestTable(t *testing.T) {
	want := []struct {
		row                                      delay.Row
		name, local, composition, forms, clamped string
	}{
		{
			delay.Row{
				Loop:        1,
				Local:       delay.Local{Base: 1_000_000_000, Ceiling: 30_000_000_000, Jitter: delay.AddJitter, Extra: 100_000_000},
				Composition: delay.Replace,
				Forms:       delay.Digits | delay.Date,
				Clamp:       delay.Unclamped,
			},
			"generated-retry", "min(30s, 1s·2^(n-1)) + uniform(0, 100ms)", "R replaces the local delay, exactly", "seconds, HTTP-date", "nothing",
		},
		{
			delay.Row{
				Loop:        2,
				Local:       delay.Local{Base: 1_000_000_000, Ceiling: 30_000_000_000, Jitter: delay.AddJitter, Extra: 100_000_000},
				Composition: delay.Replace,
				Forms:       delay.Digits | delay.Date,
				Clamp:       delay.Unclamped,
			},
			"hop", "min(30s, 1s·2^(n-1)) + uniform(0, 100ms)", "R replaces the local delay, exactly", "seconds, HTTP-date", "nothing",
		},
		{
			delay.Row{
				Loop:        3,
				Local:       delay.Local{Base: 5_000_000_000, Ceiling: 60_000_000_000, Jitter: delay.PollCadence, Extra: 0},
				Composition: delay.Max,
				Forms:       delay.Digits,
				Clamp:       delay.Lifetime,
			},
			"device-poll", "max(interval, timeout backoff), interval 5s unless the server names one, backoff doubling to 60s", "max(local, R)", "seconds", "the code's remaining lifetime",
		},
		{
			delay.Row{
				Loop:        4,
				Local:       delay.Local{Base: 1_000_000_000, Ceiling: 60_000_000_000, Jitter: delay.FullDraw, Extra: 0},
				Composition: delay.Max,
				Forms:       delay.Digits | delay.Date,
				Clamp:       delay.Unclamped,
			},
			"reconnect", "uniform(0, min(60s, 1s·2^(n-1)))", "max(local, R)", "seconds, HTTP-date", "nothing",
		},
		{
			delay.Row{
				Loop:        5,
				Local:       delay.Local{Base: 1_000_000_000, Ceiling: 60_000_000_000, Jitter: delay.FullDraw, Extra: 0},
				Composition: delay.Replace,
				Forms:       delay.Digits | delay.Date,
				Clamp:       delay.Unclamped,
			},
			"poll-retry", "uniform(0, min(60s, 1s·2^(n-1)))", "R replaces the local delay, exactly", "seconds, HTTP-date", "nothing",
		},
	}
	rows := delay.Table()
	if len(rows) != len(want) {
		t.Fatalf("the table has %d rows, want %d", len(rows), len(want))
	}
	for i, w := range want {
		got := rows[i]
		if got != w.row {
			t.Errorf("row %s is\n%+v, want\n%+v", w.name, got, w.row)
		}
		if got.Loop.Row() != got {
			t.Errorf("%s: Loop.Row returns another row: %+v", w.name, got.Loop.Row())
		}
		if got.Loop.String() != w.name || got.Local.String() != w.local || got.Composition.String() != w.composition || got.Forms.String() != w.forms || got.Clamp.String() != w.clamped {
			t.Errorf("row %s prints as %q, %q, %q, %q, %q", w.name, got.Loop, got.Local, got.Composition, got.Forms, got.Clamp)
		}
		if text, err := got.Loop.MarshalText(); string(text) != w.name || err != nil {
			t.Errorf("%s.MarshalText() = %q, %v", w.name, text, err)
		}
		if loop, ok := delay.LoopNamed(w.name); loop != got.Loop || !ok {
			t.Errorf("LoopNamed(%q) = %v, %v", w.name, loop, ok)
		}
	}
	if loops := []delay.Loop{delay.GeneratedRetry, delay.Hop, delay.DevicePoll, delay.Reconnect, delay.PollRetry}; loops[0] != 1 || loops[4] != 5 {
		t.Errorf("the loops are %v", loops)
	}
	rows[0].Composition = delay.Max
	if delay.GeneratedRetry.Row().Composition != delay.Replace || delay.Table()[0].Composition != delay.Replace {
		t.Error("Table handed out the table itself, not a copy")
	}
}

func TestLoopNamed(t *testing.T) {
	for _, name := range []string{"", "Hop", "hop ", "no loop", "retry"} {
		if loop, ok := delay.LoopNamed(name); loop != 0 || ok {
			t.Errorf("LoopNamed(%q) = %v, %v", name, loop, ok)
		}
	}
}

// TestNoDefault holds the promise that there is no default row.
func TestNoDefault(t *testing.T) {
	panics := func(name string, f func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s does not panic", name)
			}
		}()
		f()
	}
	for _, loop := range []delay.Loop{0, 6, 255} {
		panics("composing for an unknown loop", func() { loop.Compose(sec, delay.RetryAfter{}) })
		if got := loop.String(); got != "no loop" {
			t.Errorf("Loop(%d).String() = %q", uint8(loop), got)
		}
	}
	panics("the zero Composition", func() { delay.Composition(0).Apply(1, 2) })
	for _, got := range []string{delay.Composition(0).String(), delay.Clamp(0).String()} {
		if got != "none" {
			t.Errorf("a zero value prints as %q", got)
		}
	}
	if got := delay.Reason(0).String(); got != "no reason" {
		t.Errorf("Reason(0).String() = %q", got)
	}
	if got := (delay.Local{Base: sec, Ceiling: 1500 * ms}).String(); got != "min(1.5s, 1s·2^(n-1))" {
		t.Errorf("Local without jitter prints as %q", got)
	}
}

func TestCompose(t *testing.T) {
	absent, malformed := delay.RetryAfter{}, delay.Asked(0)
	asked := func(d time.Duration) delay.RetryAfter { return delay.Asked(d) }
	replacing := []delay.Loop{delay.GeneratedRetry, delay.Hop, delay.PollRetry}
	longest := []delay.Loop{delay.DevicePoll, delay.Reconnect}
	tests := []struct {
		name   string
		loops  []delay.Loop
		local  time.Duration
		after  delay.RetryAfter
		want   time.Duration
		server time.Duration
		reason delay.Reason
	}{
		{"absent", replacing, 50 * sec, absent, 50 * sec, 0, delay.OwnDelay},
		{"malformed", replacing, 50 * sec, malformed, 50 * sec, 0, delay.MalformedHeader},
		{"shorter", replacing, 50 * sec, asked(sec), sec, sec, delay.Replaced},
		{"equal", replacing, 50 * sec, asked(50 * sec), 50 * sec, 50 * sec, delay.Replaced},
		{"longer", replacing, 50 * sec, asked(3600 * sec), 3600 * sec, 3600 * sec, delay.Replaced},
		{"saturated", replacing, 50 * sec, asked(math.MaxInt64), 2147483647 * sec, 2147483647 * sec, delay.Replaced},
		{"over no delay", replacing, 0, asked(sec), sec, sec, delay.Replaced},
		{"negative local", replacing, -1, absent, 0, 0, delay.OwnDelay},

		{"absent", longest, 50 * sec, absent, 50 * sec, 0, delay.OwnDelay},
		{"malformed", longest, 50 * sec, malformed, 50 * sec, 0, delay.MalformedHeader},
		{"shorter", longest, 50 * sec, asked(sec), 50 * sec, sec, delay.LocalLonger},
		{"equal", longest, 50 * sec, asked(50 * sec), 50 * sec, 50 * sec, delay.LocalLonger},
		{"a little longer", longest, 50 * sec, asked(50*sec + 1), 50*sec + 1, 50*sec + 1, delay.Floored},
		{"longer", longest, 50 * sec, asked(3600 * sec), 3600 * sec, 3600 * sec, delay.Floored},
		{"saturated", longest, 50 * sec, asked(math.MaxInt64), 2147483647 * sec, 2147483647 * sec, delay.Floored},
		{"over no delay", longest, 0, asked(sec), sec, sec, delay.Floored},
		{"negative local", longest, math.MinInt64, absent, 0, 0, delay.OwnDelay},
	}
	covered := map[delay.Loop]bool{}
	for _, tt := range tests {
		for _, loop := range tt.loops {
			covered[loop] = true
			want := delay.Wait{Loop: loop, Reason: tt.reason, Local: max(tt.local, 0), Server: tt.server, For: tt.want}
			if got := loop.Compose(tt.local, tt.after); got != want {
				t.Errorf("%v, %s: %+v, want %+v", loop, tt.name, got, want)
			}
		}
	}
	if len(covered) != len(delay.Table()) {
		t.Errorf("covered %v only", covered)
	}
}

func TestWithin(t *testing.T) {
	tests := []struct {
		name  string
		loop  delay.Loop
		wait  time.Duration
		left  time.Duration
		want  time.Duration
		bound delay.Bound
	}{
		{"device-poll, shorter", delay.DevicePoll, 5 * sec, 6 * sec, 5 * sec, delay.Unbounded},
		{"device-poll, equal", delay.DevicePoll, 5 * sec, 5 * sec, 5 * sec, delay.Unbounded},
		{"device-poll, longer", delay.DevicePoll, 5 * sec, 5*sec - 1, 5*sec - 1, delay.ByLifetime},
		{"device-poll, nothing left", delay.DevicePoll, 5 * sec, 0, 0, delay.ByLifetime},
		{"device-poll, overdue", delay.DevicePoll, 5 * sec, -sec, 0, delay.ByLifetime},
		{"generated-retry", delay.GeneratedRetry, 5 * sec, sec, 5 * sec, delay.Unbounded},
		{"hop", delay.Hop, 5 * sec, sec, 5 * sec, delay.Unbounded},
		{"reconnect", delay.Reconnect, 5 * sec, sec, 5 * sec, delay.Unbounded},
		{"poll-retry", delay.PollRetry, 5 * sec, sec, 5 * sec, delay.Unbounded},
	}
	for _, tt := range tests {
		w := tt.loop.Compose(tt.wait, delay.RetryAfter{}).Within(tt.left)
		if w.For != tt.want || w.Bound != tt.bound || w.Local != tt.wait {
			t.Errorf("%s: %+v, want %v, %q", tt.name, w, tt.want, tt.bound)
		}
	}
}

func TestBounded(t *testing.T) {
	tests := []struct {
		name        string
		wait        time.Duration
		upTo, limit time.Duration
		want        time.Duration
		bound       delay.Bound
	}{
		{"neither", 5 * sec, 0, 0, 5 * sec, delay.Unbounded},
		{"negative ones are none", 5 * sec, -1, -1, 5 * sec, delay.Unbounded},
		{"at the cap", 5 * sec, 5 * sec, 0, 5 * sec, delay.Unbounded},
		{"over the cap", 5*sec + 1, 5 * sec, 0, 5 * sec, delay.ByCap},
		{"at the limit", 5 * sec, 0, 5 * sec, 5 * sec, delay.Unbounded},
		{"over the limit", 5*sec + 1, 0, 5 * sec, 5*sec + 1, delay.OverLimit},
		{"cut below the limit", 9 * sec, 5 * sec, 7 * sec, 5 * sec, delay.ByCap},
		{"cut, and over the limit still", 9 * sec, 7 * sec, 5 * sec, 7 * sec, delay.OverLimit},
	}
	for _, tt := range tests {
		w := delay.Hop.Compose(0, delay.Asked(tt.wait)).Bounded(tt.upTo, tt.limit)
		if w.For != tt.want || w.Bound != tt.bound || w.Server != tt.wait {
			t.Errorf("%s: %+v, want %v, %q", tt.name, w, tt.want, tt.bound)
		}
	}
}

func TestWaitExplainsItself(t *testing.T) {
	with := func(w delay.Wait, change func(*delay.Wait)) delay.Wait {
		change(&w)
		return w
	}
	tests := []struct {
		name       string
		wait       delay.Wait
		line, json string
	}{
		{
			"own delay", delay.Hop.Compose(1050*ms, delay.RetryAfter{}),
			"hop: wait 1.05s, local 1.05s: the loop's own delay: no Retry-After",
			`{"loop":"hop","reason":"the loop's own delay: no Retry-After","local":1.05,"server":null,"wait":1.05}`,
		},
		{
			"malformed", delay.Reconnect.Compose(sec, delay.Asked(-1)),
			"reconnect: wait 1s, local 1s: the loop's own delay: the Retry-After header was malformed",
			`{"loop":"reconnect","reason":"the loop's own delay: the Retry-After header was malformed","local":1,"server":null,"wait":1}`,
		},
		{
			"replaced", with(delay.GeneratedRetry.Compose(sec, delay.Asked(90*sec)), func(w *delay.Wait) { w.Attempt, w.Of, w.Cause = 1, 3, "503" }),
			"generated-retry attempt 1 of 3 (503): wait 1m30s, local 1s, server 1m30s: Retry-After replaces the local delay",
			`{"loop":"generated-retry","reason":"Retry-After replaces the local delay","local":1,"server":90,"wait":90,"attempt":1,"of":3,"cause":"503"}`,
		},
		{
			"floored", with(delay.Reconnect.Compose(sec, delay.Asked(90*sec)), func(w *delay.Wait) { w.Attempt, w.Until = 7, noon }),
			"reconnect attempt 7: wait 1m30s, local 1s, server 1m30s: Retry-After is longer than the local delay",
			`{"loop":"reconnect","reason":"Retry-After is longer than the local delay","local":1,"server":90,"wait":90,"attempt":7,"until":"2026-11-29T12:00:00Z"}`,
		},
		{
			"local longer, cut by the lifetime", delay.DevicePoll.Compose(5*sec, delay.Asked(sec)).Within(1500 * ms),
			"device-poll: wait 1.5s, local 5s, server 1s: the local delay is at least as long as Retry-After, cut to the code's remaining lifetime",
			`{"loop":"device-poll","reason":"the local delay is at least as long as Retry-After, cut to the code's remaining lifetime","local":5,"server":1,"wait":1.5}`,
		},
		{
			"cut by the cap, without an attempt to be of", with(delay.PollRetry.Compose(2*sec, delay.Asked(9*sec)).Bounded(5*sec, 0), func(w *delay.Wait) { w.Of = 3 }),
			"poll-retry: wait 5s, local 2s, server 9s: Retry-After replaces the local delay, cut to the caller's cap",
			`{"loop":"poll-retry","reason":"Retry-After replaces the local delay, cut to the caller's cap","local":2,"server":9,"wait":5,"of":3}`,
		},
		{
			"over the limit", delay.PollRetry.Compose(2*sec, delay.Asked(9*sec)).Bounded(0, 5*sec),
			"poll-retry: wait 9s, local 2s, server 9s: Retry-After replaces the local delay, longer than the caller's limit, so not waited",
			`{"loop":"poll-retry","reason":"Retry-After replaces the local delay, longer than the caller's limit, so not waited","local":2,"server":9,"wait":9}`,
		},
		{
			"a draw is read to the millisecond", delay.Reconnect.Compose(1234567890, delay.RetryAfter{}),
			"reconnect: wait 1.235s, local 1.235s: the loop's own delay: no Retry-After",
			`{"loop":"reconnect","reason":"the loop's own delay: no Retry-After","local":1.23456789,"server":null,"wait":1.23456789}`,
		},
		{
			"and a short one as it is", delay.Reconnect.Compose(999999, delay.RetryAfter{}),
			"reconnect: wait 999.999µs, local 999.999µs: the loop's own delay: no Retry-After",
			`{"loop":"reconnect","reason":"the loop's own delay: no Retry-After","local":0.000999999,"server":null,"wait":0.000999999}`,
		},
	}
	for _, tt := range tests {
		if got := tt.wait.String(); got != tt.line {
			t.Errorf("%s prints as\n%s, want\n%s", tt.name, got, tt.line)
		}
		if got, err := json.Marshal(tt.wait); string(got) != tt.json || err != nil {
			t.Errorf("%s is, in JSON (%v),\n%s, want\n%s", tt.name, err, got, tt.json)
		}
	}
}

// TestReasons: every reason and bound says something, and none says what another says.
func TestReasons(t *testing.T) {
	want := map[delay.Reason]string{
		delay.OwnDelay:        "the loop's own delay: no Retry-After",
		delay.MalformedHeader: "the loop's own delay: the Retry-After header was malformed",
		delay.Replaced:        "Retry-After replaces the local delay",
		delay.Floored:         "Retry-After is longer than the local delay",
		delay.LocalLonger:     "the local delay is at least as long as Retry-After",
		delay.Interval:        "a poll: the server's interval",
		delay.SlowedDown:      "a poll: slow_down lengthened the interval for good",
		delay.Unreachable:     "no answer, so no header: the timeout backoff",
		delay.Unheeded:        "the loop's own delay: no header is read here",
		delay.Spread:          "the server dropped everybody: a wider first draw",
		delay.Woken:           "awake again: a short draw",
	}
	for r, text := range want {
		if r.String() != text {
			t.Errorf("reason %d says %q, want %q", r, r, text)
		}
	}
	for b, text := range map[delay.Bound]string{
		delay.Unbounded:  "",
		delay.ByLifetime: "cut to the code's remaining lifetime",
		delay.ByCap:      "cut to the caller's cap",
		delay.OverLimit:  "longer than the caller's limit, so not waited",
	} {
		if b.String() != text {
			t.Errorf("bound %d says %q, want %q", b, b, text)
		}
	}
}
