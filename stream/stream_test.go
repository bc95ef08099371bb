package stream_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pinned draws that fraction of every range.
func pinned(fraction float64) delay.Rand {
	return func(n int64) int64 { return int64(math.Round(fraction * float64(n))) }
}

// watched is a clock whose registry of timers a test can look into. In a bubble it shows the bubble's time.
type watched struct {
	clock.Clock
	timers *delay.Timers
}

func newWatched() watched {
	c := clock.New()
	return watched{c, delay.TimersOn(c)}
}

func (w watched) Timers() *delay.Timers { return w.timers }

// kinds lists the timers outstanding.
func (w watched) kinds() []delay.Kind {
	armed, _ := w.timers.Outstanding()
	kinds := []delay.Kind{}
	for _, t := range armed {
		kinds = append(kinds, t.Kind())
	}
	return kinds
}

// log collects what a trace is told.
type log struct {
	mu           sync.Mutex
	waits        []delay.Wait
	connecting   int
	connected    int
	failed       []stream.FailedInfo
	stale        []stream.StaleInfo
	disconnected []stream.DisconnectedInfo
	onStale      func()
}

func (l *log) record(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *log) trace() *stream.Trace {
	return &stream.Trace{
		Connecting: func(stream.ConnectingInfo) { l.record(func() { l.connecting++ }) },
		Connected:  func(stream.ConnectedInfo) { l.record(func() { l.connected++ }) },
		Failed:     func(i stream.FailedInfo) { l.record(func() { l.failed = append(l.failed, i) }) },
		Stale: func(i stream.StaleInfo) {
			l.record(func() { l.stale = append(l.stale, i) })
			if l.onStale != nil {
				l.onStale()
			}
		},
		Disconnected: func(i stream.DisconnectedInfo) { l.record(func() { l.disconnected = append(l.disconnected, i) }) },
		Waiting:      func(w delay.Wait) { l.record(func() { l.waits = append(l.waits, w) }) },
	}
}

func (l *log) waited() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []time.Duration{}
	for _, w := range l.waits {
		list = append(list, w.For)
	}
	return list
}

func (l *log) reasons() []delay.Reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []delay.Reason{}
	for _, w := range l.waits {
		list = append(list, w.Reason)
	}
	return list
}

// step is one attempt of a scripted dialer.
type step struct {
	err      error // of the dial
	stall    bool  // the dial never returns by itself
	messages []string
	alive    time.Duration // after the messages
	end      error         // with which the connection ends; nil: it breaks
	open     bool          // it does not end by itself
}

// dialer follows a script over no network at all. Past its end the last step repeats.
type dialer struct {
	mu       sync.Mutex
	script   []step
	attempts []stream.Attempt
	at       []time.Time
	live     int
	most     int
	closed   int
}

func dials(script ...step) *dialer { return &dialer{script: script} }

func (d *dialer) Dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) {
	d.mu.Lock()
	s := d.script[min(len(d.attempts), len(d.script)-1)]
	d.attempts = append(d.attempts, a)
	d.at = append(d.at, time.Now())
	d.mu.Unlock()
	if s.stall {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if s.err != nil {
		return nil, s.err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live++
	d.most = max(d.most, d.live)
	return &conn{dialer: d, step: s, attempt: a, done: make(chan struct{})}, nil
}

func (d *dialer) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.attempts)
}

func (d *dialer) alive() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live
}

type conn struct {
	dialer  *dialer
	step    step
	attempt stream.Attempt
	once    sync.Once
	done    chan struct{}
}

var errBroken = errors.New("connection reset")

func (c *conn) Receive() (stream.Message, error) {
	if len(c.step.messages) > 0 {
		m := c.step.messages[0]
		c.step.messages = c.step.messages[1:]
		return stream.Message{Data: []byte(m)}, nil
	}
	var over <-chan time.Time
	if !c.step.open && c.step.alive > 0 {
		t := time.NewTimer(c.step.alive)
		defer t.Stop()
		over = t.C
	}
	if c.step.open || c.step.alive > 0 {
		select {
		case <-c.done:
			return stream.Message{}, errUsedClosed
		case <-over:
		}
	}
	if c.step.end != nil {
		return stream.Message{}, c.step.end
	}
	return stream.Message{}, errBroken
}

var errUsedClosed = errors.New("use of closed connection")

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.done)
		c.dialer.mu.Lock()
		defer c.dialer.mu.Unlock()
		c.dialer.live--
		c.dialer.closed++
	})
	return nil
}

// collect consumes a stream until it ends, or until the given number of messages came.
func collect(ctx context.Context, s *stream.Stream, most int) (messages []string, err error) {
	messages = []string{}
	for m, e := range s.Messages(ctx) {
		if e != nil {
			err = e
			continue
		}
		if messages = append(messages, string(m.Data)); len(messages) == most {
			break
		}
	}
	return messages, err
}

func wantDurations(t *testing.T, what string, got, want []time.Duration) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range got {
		ok = ok && (got[i]-want[i]).Abs() <= time.Microsecond
	}
	if !ok {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func wantList[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// bubble runs a test in virtual time and checks that nothing outlives it.
func bubble(t *testing.T, f func(t *testing.T, c watched)) {
	t.Helper()
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		c := newWatched()
		f(t, c)
		if left := c.kinds(); len(left) > 0 {
			t.Errorf("timers left: %v", left)
		}
	})
}

// scripted is a stream server that ends with the test.
func scripted(t *testing.T, script ...fakes.StreamStep) *fakes.StreamServer {
	t.Helper()
	s := fakes.NewStreamServer(script...)
	t.Cleanup(func() { _ = s.Close() })
	return s
}
