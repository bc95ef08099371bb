package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream"
)

// tailStatus is what the line at the bottom tells of a stream.
type tailStatus struct {
	since time.Time  // when the connection was made; zero without one
	last  time.Time  // when something came over it last, pings and comments included
	wait  delay.Wait // the one under way; its Until is zero without one
	why   string     // more about its cause
	keys  bool       // r is listened to
}

// line is the line at an instant, for a window of so many columns. The last column stays free: in some terminals a
// character there moves the cursor on.
func (s tailStatus) line(now time.Time, columns int) string {
	var ways []string // the best first
	switch {
	case !s.since.IsZero():
		connected := "connected since " + s.since.Local().Format(time.TimeOnly)
		last := "no frame yet"
		if !s.last.IsZero() {
			last = "last frame " + ago(now.Sub(s.last))
		}
		ways = []string{connected + ", " + last, connected, "connected"}
	case !s.wait.Until.IsZero():
		left := "waiting " + passed(s.wait.Until.Sub(now)+time.Second-1) // rounded up: as long as something is left
		hint := ""
		if s.keys {
			hint = "; press r to try now"
		}
		cause, causes := "", ""
		if s.wait.Cause != "" {
			cause = " (" + s.wait.Cause + ")"
			causes = " (" + s.wait.Cause + s.why + ")"
		}
		why := ": " + s.wait.Explain()
		ways = []string{left + causes + why + hint, left + causes + hint, left + cause + why + hint, left + cause + hint, left + hint, left}
	default:
		ways = []string{"connecting"}
	}
	room := columns - 1
	if columns <= 0 {
		room = 79
	}
	for _, way := range ways {
		if way = plainText(way); utf8.RuneCountInString(way) <= room {
			return way
		}
	}
	return ""
}

// plainText leaves what takes one column each.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, oneLine(s))
}

// passed writes a duration as 1:02:03 or 2:03.
func passed(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// ago writes how long ago something was.
func ago(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s ago", max(d, 0)/time.Second)
	}
	return passed(d) + " ago"
}

// board draws the status of a stream at the bottom of a console, at each change and each second. Its goroutine draws, so
// that the stream does not wait for a terminal.
type board struct {
	out     *output
	columns func() int
	timers  *delay.Timers
	inbox   chan struct{} // holds one nudge

	mu     sync.Mutex
	status tailStatus
}

func newBoard(out *output, c *console) *board {
	return &board{out: out, columns: c.columns, timers: delay.TimersOn(nil), inbox: make(chan struct{}, 1)}
}

func (b *board) nudge() {
	select {
	case b.inbox <- struct{}{}:
	default: // one is there already
	}
}

// change changes the status.
func (b *board) change(f func(s *tailStatus, now time.Time)) {
	if b == nil {
		return
	}
	b.mu.Lock()
	f(&b.status, b.timers.Now())
	b.mu.Unlock()
	b.nudge()
}

// frame notes that something came. The next second shows it: a line for each would slow a fast stream down.
func (b *board) frame() {
	b.mu.Lock()
	first := b.status.last.IsZero()
	b.status.last = b.timers.Now()
	b.mu.Unlock()
	if first {
		b.nudge()
	}
}

// run draws until ctx ends.
func (b *board) run(ctx context.Context) {
	for ctx.Err() == nil {
		now := b.timers.Now()
		b.mu.Lock()
		s := b.status
		b.mu.Unlock()
		b.out.repin(s.line(now, b.columns()))
		t := b.timers.After(delay.KindStatus, s.tick(now), b.nudge)
		select {
		case <-b.inbox:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// tick is how long the line stays as it is, at most: until the second that it counts is over.
func (s tailStatus) tick(now time.Time) time.Duration {
	switch {
	case !s.last.IsZero():
		return time.Second - now.Sub(s.last)%time.Second
	case !s.wait.Until.IsZero():
		if left := s.wait.Until.Sub(now); left > 0 {
			return (left-1)%time.Second + 1
		}
	}
	return time.Second
}

// watch has the board know what the trace tells.
func (b *board) watch(t *stream.Trace) {
	connected, failed, waiting := t.Connected, t.Failed, t.Waiting
	t.Alive = b.frame
	t.Connecting = func(stream.ConnectingInfo) {
		b.change(func(s *tailStatus, _ time.Time) { *s = tailStatus{keys: s.keys} })
	}
	t.Connected = func(i stream.ConnectedInfo) {
		b.change(func(s *tailStatus, now time.Time) { *s = tailStatus{since: now, keys: s.keys} })
		connected(i)
	}
	t.Failed = func(i stream.FailedInfo) {
		b.change(func(s *tailStatus, _ time.Time) { s.why = innermost(i.Err) })
		failed(i)
	}
	t.Waiting = func(w delay.Wait) {
		b.change(func(s *tailStatus, _ time.Time) { *s = tailStatus{wait: w, why: s.why, keys: s.keys} })
		waiting(w)
	}
}

// innermost is what is behind a failure that no status tells of, such as ", connection refused".
func innermost(e *stream.AttemptError) string {
	if e.Status != 0 {
		return ""
	}
	text := e.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+len(": "):]
	}
	return ", " + text
}
