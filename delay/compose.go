package delay

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Loop is a kind of loop that waits: a row of the composition table.
type Loop uint8

// The loops of Heed. There is no default: the zero Loop composes nothing and panics.
const (
	// GeneratedRetry repeats an API request whose operation declares the status retryable, or that got no answer.
	GeneratedRetry Loop = iota + 1
	// Hop repeats the first, authenticated hop of a download.
	Hop
	// DevicePoll asks the token endpoint again during a device login (RFC 8628, section 3.5).
	DevicePoll
	// Reconnect dials a stream again.
	Reconnect
	// PollRetry repeats a catch-up poll.
	PollRetry
)

const loopCount = int(PollRetry)

// Composition says how a valid Retry-After combines with the local delay.
type Composition uint8

// The two functions that serve every loop.
const (
	// Replace waits exactly what the server asked for.
	Replace Composition = iota + 1
	// Max waits the longer of the local delay and what the server asked for.
	Max
)

// Apply composes a local delay with what the server asked for.
func (c Composition) Apply(local, server time.Duration) time.Duration {
	switch c {
	case Replace:
		return server
	case Max:
		return max(local, server)
	}
	panic("delay: a row without a composition")
}

// String returns the function as the table prints it.
func (c Composition) String() string {
	switch c {
	case Replace:
		return "R replaces the local delay, exactly"
	case Max:
		return "max(local, R)"
	}
	return "none"
}

// Clamp says what bounds a wait after it was composed.
type Clamp uint8

// The clamps of the table.
const (
	// Unclamped leaves the composed wait as it is.
	Unclamped Clamp = iota + 1
	// Lifetime cuts the wait at the end of the device code's life.
	Lifetime
)

// String returns the clamp as the table prints it.
func (c Clamp) String() string {
	switch c {
	case Unclamped:
		return "nothing"
	case Lifetime:
		return "the code's remaining lifetime"
	}
	return "none"
}

// Row is one line of the composition table: what makes a loop wait as it does.
type Row struct {
	Loop        Loop
	Local       Local       // the delay the loop would take on its own
	Composition Composition // how a valid Retry-After combines with it
	Forms       Forms       // the written forms of the header that the loop reads
	Clamp       Clamp       // what bounds the result
}

// The literals have no field names on purpose: a row that leaves one of its four fields out does not compile.
var table = [...]Row{
	{GeneratedRetry, Local{time.Second, 30 * time.Second, AddJitter, 100 * time.Millisecond}, Replace, Digits | Date, Unclamped},
	{Hop, Local{time.Second, 30 * time.Second, AddJitter, 100 * time.Millisecond}, Replace, Digits | Date, Unclamped},
	{DevicePoll, Local{DefaultInterval, time.Minute, PollCadence, 0}, Max, Digits, Lifetime},
	{Reconnect, Local{time.Second, time.Minute, FullDraw, 0}, Max, Digits | Date, Unclamped},
	{PollRetry, Local{time.Second, time.Minute, FullDraw, 0}, Replace, Digits | Date, Unclamped},
}

// A loop without a row, or a row without a loop, does not compile either.
var _ [loopCount]Row = table

// Table returns the composition table, a copy.
func Table() []Row {
	return append([]Row(nil), table[:]...)
}

// Row returns the loop's row of the table.
func (l Loop) Row() Row {
	return table[l-1]
}

// String returns the loop's name in the table.
func (l Loop) String() string {
	switch l {
	case GeneratedRetry:
		return "generated-retry"
	case Hop:
		return "hop"
	case DevicePoll:
		return "device-poll"
	case Reconnect:
		return "reconnect"
	case PollRetry:
		return "poll-retry"
	}
	return "no loop"
}

// MarshalText returns the loop's name.
func (l Loop) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// LoopNamed finds a loop by its name in the table.
func LoopNamed(name string) (Loop, bool) {
	for _, row := range table {
		if row.Loop.String() == name {
			return row.Loop, true
		}
	}
	return 0, false
}

// Compose decides one wait of the loop: the local delay, and the Retry-After of the answer that is being retried. It is
// pure: neither the answer's status nor any earlier wait has a part in it. A negative local delay counts as 0.
func (l Loop) Compose(local time.Duration, after RetryAfter) Wait {
	local = max(local, 0)
	w := Wait{Loop: l, Local: local, For: local, Reason: OwnDelay}
	row := &table[l-1]
	switch {
	case after.malformed:
		w.Reason = MalformedHeader
	case after.asked > 0:
		w.Server = after.asked
		w.For = row.Composition.Apply(local, after.asked)
		switch {
		case row.Composition == Replace:
			w.Reason = Replaced
		case after.asked > local:
			w.Reason = Floored
		default:
			w.Reason = LocalLonger
		}
	}
	return w
}

// Reason says why a wait is as long as it is.
type Reason uint8

// The reasons of a wait.
const (
	// OwnDelay is the loop's own delay, because the server asked for nothing.
	OwnDelay Reason = iota + 1
	// MalformedHeader is the loop's own delay, because the header could not be used.
	MalformedHeader
	// Replaced is what the server asked for, in place of the local delay.
	Replaced
	// Floored is what the server asked for, because it is longer than the local delay.
	Floored
	// LocalLonger is the local delay, because the server asked for less.
	LocalLonger
	// Interval is the polling interval after an answer that said "not yet": a poll, not a retry.
	Interval
	// SlowedDown is the interval that slow_down has just lengthened for good (RFC 8628, section 3.5).
	SlowedDown
	// Unreachable is the backoff after a poll that got no answer, hence no header.
	Unreachable
	// Unheeded is the loop's own delay after a refusal whose header is not read, such as a refused credential.
	Unheeded
	// Spread is a first draw widened because the server dropped everybody at once.
	Spread
	// Woken is the short draw after the machine was asleep.
	Woken
	// Resumed is the rest of a wait that began elsewhere, in a process that has ended.
	Resumed
	// Held is a wait that the server asked another request for.
	Held
	// InTurn is the distance to the one before, of many that were held until the same moment.
	InTurn
)

// String explains the reason in a few words.
func (r Reason) String() string {
	switch r {
	case OwnDelay:
		return "the loop's own delay: no Retry-After"
	case MalformedHeader:
		return "the loop's own delay: the Retry-After header was malformed"
	case Replaced:
		return "Retry-After replaces the local delay"
	case Floored:
		return "Retry-After is longer than the local delay"
	case LocalLonger:
		return "the local delay is at least as long as Retry-After"
	case Interval:
		return "a poll: the server's interval"
	case SlowedDown:
		return "a poll: slow_down lengthened the interval for good"
	case Unreachable:
		return "no answer, so no header: the timeout backoff"
	case Unheeded:
		return "the loop's own delay: no header is read here"
	case Spread:
		return "the server dropped everybody: a wider first draw"
	case Woken:
		return "awake again: a short draw"
	case Resumed:
		return "the rest of a wait that began elsewhere"
	case Held:
		return "another request of the same host and credential was told to wait"
	case InTurn:
		return "many waited for the same moment: one after the other"
	}
	return "no reason"
}

// Bound says what cut a wait short after it was composed.
type Bound uint8

// The bounds. The zero value is none.
const (
	// Unbounded waits what was composed.
	Unbounded Bound = iota
	// ByLifetime is cut at the end of the device code's life.
	ByLifetime
	// ByCap is cut at the cap that the caller opted into.
	ByCap
	// OverLimit is longer than the limit that the caller opted into: it is not waited at all.
	OverLimit
)

// String explains the bound.
func (b Bound) String() string {
	switch b {
	case ByLifetime:
		return "cut to the code's remaining lifetime"
	case ByCap:
		return "cut to the caller's cap"
	case OverLimit:
		return "longer than the caller's limit, so not waited"
	}
	return ""
}

// Wait is a decided wait and its explanation. It is a plain value: deciding allocates nothing, only explaining does.
type Wait struct {
	Loop   Loop
	Reason Reason
	Bound  Bound

	Local  time.Duration // what the loop would have waited on its own
	Server time.Duration // what the server asked for; 0 when it asked for nothing usable
	For    time.Duration // what is waited

	Attempt int       // the attempt that has just ended, from 1
	Of      int       // how many attempts there may be in all; 0 when there is no bound
	Cause   string    // what that attempt came back with, such as "503" or "slow_down"; optional
	Until   time.Time // the instant the wait ends; set when it begins
}

// Within cuts the wait to what is left, in loops whose row clamps to a lifetime; in others it changes nothing.
func (w Wait) Within(left time.Duration) Wait {
	if w.Loop.Row().Clamp == Lifetime && w.For > left {
		w.For, w.Bound = max(left, 0), ByLifetime
	}
	return w
}

// Bounded applies what a caller opted into, each only if positive: a cap, to which the wait is cut, and a limit, over
// which it is not to be waited at all.
func (w Wait) Bounded(upTo, limit time.Duration) Wait {
	if upTo > 0 && w.For > upTo {
		w.For, w.Bound = upTo, ByCap
	}
	if limit > 0 && w.For > limit {
		w.Bound = OverLimit
	}
	return w
}

// Explain says why the wait is as long as it is, without the figures.
func (w Wait) Explain() string {
	if w.Bound != Unbounded {
		return w.Reason.String() + ", " + w.Bound.String()
	}
	return w.Reason.String()
}

// String explains the wait in one line.
func (w Wait) String() string {
	var b strings.Builder
	b.WriteString(w.Loop.String())
	switch {
	case w.Attempt > 0 && w.Of > 0:
		fmt.Fprintf(&b, " attempt %d of %d", w.Attempt, w.Of)
	case w.Attempt > 0:
		fmt.Fprintf(&b, " attempt %d", w.Attempt)
	}
	if w.Cause != "" {
		fmt.Fprintf(&b, " (%s)", w.Cause)
	}
	fmt.Fprintf(&b, ": wait %v, local %v", legible(w.For), legible(w.Local))
	if w.Server > 0 {
		fmt.Fprintf(&b, ", server %v", legible(w.Server))
	}
	b.WriteString(": ")
	b.WriteString(w.Explain())
	return b.String()
}

// legible rounds what nobody reads: a draw has nanoseconds.
func legible(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d
	}
	return d.Round(time.Millisecond)
}

// MarshalJSON writes the wait with its durations in seconds; "server" is null when nothing usable was asked for.
func (w Wait) MarshalJSON() ([]byte, error) {
	out := struct {
		Loop    string     `json:"loop"`
		Reason  string     `json:"reason"`
		Local   float64    `json:"local"`
		Server  *float64   `json:"server"`
		Wait    float64    `json:"wait"`
		Attempt int        `json:"attempt,omitempty"`
		Of      int        `json:"of,omitempty"`
		Cause   string     `json:"cause,omitempty"`
		Until   *time.Time `json:"until,omitempty"`
	}{
		Loop: w.Loop.String(), Reason: w.Explain(), Local: inSeconds(w.Local), Wait: inSeconds(w.For),
		Attempt: w.Attempt, Of: w.Of, Cause: w.Cause,
	}
	if w.Server > 0 {
		s := inSeconds(w.Server)
		out.Server = &s
	}
	if !w.Until.IsZero() {
		out.Until = &w.Until
	}
	return json.Marshal(out)
}

// inSeconds is the float that prints as d does; Duration.Seconds adds two floats and prints 1.23456789 s with a stray 1
// at the end.
func inSeconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
