package auth

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// Event is a step of a device login: one of [CodeIssued], [CodeShown], [Browser], [Polled], [Slowed], [Throttled],
// [Unreachable], [Waiting], [AlmostExpired] and [Granted]; or of a token source: one of [Refreshed], [RefreshFailed],
// [StoreTrouble] and [Waiting]; or of the façade: [StoreChosen] and [RevokeFailed]. More kinds may come, so a switch over
// them needs a default.
//
// Events go to one function rather than to a struct of callbacks: whoever follows a login is a single sink (a progress
// line, a log, a channel), the order of unlike events is what it wants to know, and a new kind breaks nobody.
//
// No event holds a device code, a token or a body.
type Event interface {
	// Name is the event's name in machine-readable output, such as "code_issued".
	Name() string
	// String tells the event in one line.
	String() string
	// record is the event for a log. The user code is left out: whoever reads the log could approve the login.
	record() (slog.Level, []slog.Attr)
}

// CodeIssued says that the server has issued a code; nothing has been shown yet.
type CodeIssued struct {
	UserCode                string
	VerificationURI         string
	VerificationURIComplete string // "" when there is none
	ExpiresAt               time.Time
	Interval                time.Duration
}

// CodeShown says that the Prompter has shown the code.
type CodeShown struct {
	Left time.Duration // of the code's life
}

// Browser says whether the flow's Browser has opened the address.
type Browser struct {
	Opened bool
	Cause  string // why not
}

// Polled says that a poll has ended. One of Slowed, Throttled and Unreachable may follow, and then Waiting, which has the
// instant of the next poll.
type Polled struct {
	Count   int    // from 1
	Status  int    // 0 when there was no answer
	Outcome string // such as "authorization_pending", "429 too_many_requests" or "no answer: connection refused"
}

// Slowed says that slow_down has lengthened the interval for good.
type Slowed struct {
	From, To time.Duration
}

// Throttled says that the server refused to serve a poll.
type Throttled struct {
	Status     int
	RetryAfter delay.RetryAfter
}

// Unreachable says that a poll got no answer.
type Unreachable struct {
	Failures int    // in a row
	Cause    string // such as "connection refused"
}

// Waiting says that a wait begins, how long it is and why.
type Waiting struct {
	Wait delay.Wait
}

// AlmostExpired says, once, that the code's life is nearly over: a minute is left of it, or a fifth of all of it if that
// is less. It is told later only when a poll or the Prompter is at work at that moment, and never of a code that dies
// meanwhile.
type AlmostExpired struct {
	Left time.Duration // of the code's life
}

// Granted says that the token has arrived.
type Granted struct {
	Scopes     []string // what was granted
	NotGranted []string // what was asked for and not granted
	ExpiresAt  time.Time
}

// Name returns "code_issued".
func (CodeIssued) Name() string { return "code_issued" }

// Name returns "code_shown".
func (CodeShown) Name() string { return "code_shown" }

// Name returns "browser".
func (Browser) Name() string { return "browser" }

// Name returns "polled".
func (Polled) Name() string { return "polled" }

// Name returns "slowed".
func (Slowed) Name() string { return "slowed" }

// Name returns "throttled".
func (Throttled) Name() string { return "throttled" }

// Name returns "unreachable".
func (Unreachable) Name() string { return "unreachable" }

// Name returns "waiting".
func (Waiting) Name() string { return "waiting" }

// Name returns "almost_expired".
func (AlmostExpired) Name() string { return "almost_expired" }

// Name returns "granted".
func (Granted) Name() string { return "granted" }

func (e CodeIssued) String() string {
	return fmt.Sprintf("code %s issued for %s, polling every %v", e.UserCode, e.VerificationURI, e.Interval)
}

func (e CodeShown) String() string { return fmt.Sprintf("code shown, %v left", e.Left) }

func (e Browser) String() string {
	if e.Opened {
		return "a browser was asked to open the address"
	}
	return "no browser could be opened: " + e.Cause
}

func (e Polled) String() string { return fmt.Sprintf("poll %d: %s", e.Count, e.Outcome) }

func (e Slowed) String() string {
	return fmt.Sprintf("the server slowed the polling down from %v to %v", e.From, e.To)
}

func (e Throttled) String() string {
	return fmt.Sprintf("the server refused to serve the poll (status %d), Retry-After %v", e.Status, e.RetryAfter)
}

func (e Unreachable) String() string {
	if e.Failures == 1 {
		return "the server gave no answer: " + e.Cause
	}
	return fmt.Sprintf("the server gave no answer, %d times in a row: %s", e.Failures, e.Cause)
}

func (e Waiting) String() string { return e.Wait.String() }

func (e AlmostExpired) String() string {
	return fmt.Sprintf("the code expires in %v", e.Left.Round(time.Second))
}

func (e Granted) String() string {
	s := "login granted"
	if len(e.Scopes) > 0 {
		s += " with " + strings.Join(e.Scopes, " ")
	}
	if len(e.NotGranted) > 0 {
		s += ", but not " + strings.Join(e.NotGranted, " ")
	}
	return oneLine(s) // the scopes are as the server has written them
}

func (e CodeIssued) record() (slog.Level, []slog.Attr) {
	return slog.LevelInfo, []slog.Attr{
		slog.String("verification_uri", withoutQuery(e.VerificationURI)),
		slog.Time("expires_at", e.ExpiresAt), slog.Duration("interval", e.Interval),
	}
}

func (e CodeShown) record() (slog.Level, []slog.Attr) {
	return slog.LevelDebug, []slog.Attr{slog.Duration("left", e.Left)}
}

func (e Browser) record() (slog.Level, []slog.Attr) {
	attrs := []slog.Attr{slog.Bool("opened", e.Opened)}
	if e.Cause != "" {
		attrs = append(attrs, slog.String("cause", e.Cause))
	}
	return slog.LevelInfo, attrs
}

func (e Polled) record() (slog.Level, []slog.Attr) {
	return slog.LevelDebug, []slog.Attr{
		slog.Int("count", e.Count), slog.Int("status", e.Status), slog.String("outcome", e.Outcome),
	}
}

func (e Slowed) record() (slog.Level, []slog.Attr) {
	return slog.LevelInfo, []slog.Attr{slog.Duration("from", e.From), slog.Duration("to", e.To)}
}

func (e Throttled) record() (slog.Level, []slog.Attr) {
	return slog.LevelInfo, []slog.Attr{
		slog.Int("status", e.Status), slog.String("retry_after", e.RetryAfter.String()),
	}
}

func (e Unreachable) record() (slog.Level, []slog.Attr) {
	return slog.LevelWarn, []slog.Attr{slog.Int("failures", e.Failures), slog.String("cause", e.Cause)}
}

func (e Waiting) record() (slog.Level, []slog.Attr) {
	w := e.Wait
	return slog.LevelDebug, []slog.Attr{
		slog.String("loop", w.Loop.String()), slog.String("cause", w.Cause), slog.Duration("wait", w.For),
		slog.Duration("local", w.Local), slog.Duration("server", w.Server), slog.String("reason", w.Explain()),
		slog.Time("until", w.Until),
	}
}

func (e AlmostExpired) record() (slog.Level, []slog.Attr) {
	return slog.LevelWarn, []slog.Attr{slog.Duration("left", e.Left)}
}

func (e Granted) record() (slog.Level, []slog.Attr) {
	return slog.LevelInfo, []slog.Attr{
		slog.Any("scopes", e.Scopes), slog.Any("not_granted", e.NotGranted), slog.Time("expires_at", e.ExpiresAt),
	}
}
