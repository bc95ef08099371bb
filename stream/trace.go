package stream

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// Trace is a set of callbacks that a loop calls as things happen; any of them may be nil. They are called on the
// consumer's own goroutine, never two at a time, and decide nothing. They must not block. No argument has a secret in it.
type Trace struct {
	// Connecting is called before an attempt goes out.
	Connecting func(ConnectingInfo)
	// Connected is called once a connection is made. That proves little: see DisconnectedInfo.Healthy.
	Connected func(ConnectedInfo)
	// Failed is called after an attempt, or a poll, that failed.
	Failed func(FailedInfo)
	// Alive is called for each sign of life: a message, a ping or a pong, a comment, a part of a message. What comes at
	// once may be told as one, and a message that came in parts as several.
	Alive func()
	// Stale is called when nothing came from the server for too long, before Disconnected.
	Stale func(StaleInfo)
	// Disconnected is called after a connection ended, also when the consumer ended it.
	Disconnected func(DisconnectedInfo)
	// Waiting is called before each wait, with its explanation and the instant it ends.
	Waiting func(delay.Wait)
	// Served is called after each page of a walk.
	Served func(ServedInfo)
}

// ConnectingInfo describes an attempt that is about to go out.
type ConnectingInfo struct {
	Attempt int // from 1
}

// ConnectedInfo describes a connection that was made.
type ConnectedInfo struct {
	Attempt int
	Took    time.Duration // from the start of the dial
}

// FailedInfo describes an attempt, or a poll, that failed.
type FailedInfo struct {
	Attempt      int
	Step         string // "credential", "dial" or "poll"
	Err          *AttemptError
	Unauthorized int // how many times in a row a credential was refused so far
}

// StaleInfo describes a silence.
type StaleInfo struct {
	Attempt int
	Silence time.Duration
	Slept   bool // the machine was asleep meanwhile
}

// DisconnectedInfo describes a connection that ended.
type DisconnectedInfo struct {
	Attempt  int
	By       Side
	Lived    time.Duration
	Messages int
	// Healthy says that the connection proved itself: it delivered a message, or lived long enough. The count of failed
	// cycles starts anew.
	Healthy      bool
	Unauthorized int   // how many times in a row a credential was refused so far
	Err          error // what Receive returned: io.EOF, a *DisconnectError, or what broke the connection
}

// ServedInfo describes a page that was served.
type ServedInfo struct {
	Attempt int
	Events  int
	More    bool // another page follows
}

// Side says who ended a connection.
type Side uint8

// The sides.
const (
	// ByServer: the server, or what lies between.
	ByServer Side = iota + 1
	// ByWatchdog: this side, because the server was silent for too long.
	ByWatchdog
	// ByConsumer: this side, because the consumer broke out of the loop, its context ended, or the stream was closed.
	ByConsumer
)

// String returns the side in a word.
func (s Side) String() string {
	switch s {
	case ByServer:
		return "server"
	case ByWatchdog:
		return "watchdog"
	case ByConsumer:
		return "consumer"
	}
	return "nobody"
}

// observer hands what happens to the trace and to the log.
type observer struct {
	trace *Trace
	log   *slog.Logger
}

func observe(t *Trace, log *slog.Logger) observer {
	if t == nil {
		t = &Trace{}
	}
	return observer{t, log}
}

func (o observer) write(level slog.Level, msg string, attrs ...slog.Attr) {
	if o.log != nil {
		o.log.LogAttrs(context.Background(), level, msg, attrs...)
	}
}

func (o observer) connecting(i ConnectingInfo) {
	if o.trace.Connecting != nil {
		o.trace.Connecting(i)
	}
	o.write(slog.LevelDebug, "stream connecting", slog.Int("attempt", i.Attempt))
}

func (o observer) connected(i ConnectedInfo) {
	if o.trace.Connected != nil {
		o.trace.Connected(i)
	}
	o.write(slog.LevelInfo, "stream connected", slog.Int("attempt", i.Attempt), slog.Duration("took", i.Took))
}

func (o observer) failed(i FailedInfo) {
	if o.trace.Failed != nil {
		o.trace.Failed(i)
	}
	o.write(slog.LevelWarn, "stream attempt failed", slog.Int("attempt", i.Attempt), slog.String("step", i.Step),
		slog.String("class", i.Err.Class.String()), slog.Int("status", i.Err.Status), slog.Int("unauthorized", i.Unauthorized),
		slog.String("error", i.Err.Error()))
}

// alive returns what tells the trace of a sign of life, or nil. Nobody tells it what comes once the connection is closing,
// because it does not come on the consumer's goroutine.
func (o observer) alive(closing *atomic.Bool) func() {
	tell := o.trace.Alive
	if tell == nil {
		return nil
	}
	return func() {
		if !closing.Load() {
			tell()
		}
	}
}

func (o observer) stale(i StaleInfo) {
	if o.trace.Stale != nil {
		o.trace.Stale(i)
	}
	o.write(slog.LevelWarn, "stream stale", slog.Int("attempt", i.Attempt), slog.Duration("silence", i.Silence), slog.Bool("slept", i.Slept))
}

func (o observer) disconnected(i DisconnectedInfo) {
	if o.trace.Disconnected != nil {
		o.trace.Disconnected(i)
	}
	attrs := []slog.Attr{
		slog.Int("attempt", i.Attempt), slog.String("by", i.By.String()), slog.Duration("lived", i.Lived),
		slog.Int("messages", i.Messages), slog.Bool("healthy", i.Healthy), slog.Int("unauthorized", i.Unauthorized),
	}
	if i.Err != nil {
		attrs = append(attrs, slog.String("error", i.Err.Error()))
	}
	o.write(slog.LevelInfo, "stream disconnected", attrs...)
}

func (o observer) waiting(w delay.Wait) {
	if o.trace.Waiting != nil {
		o.trace.Waiting(w)
	}
	o.write(slog.LevelInfo, "stream waiting", slog.String("loop", w.Loop.String()), slog.Int("attempt", w.Attempt),
		slog.String("cause", w.Cause), slog.Duration("wait", w.For), slog.Duration("local", w.Local),
		slog.Duration("server", w.Server), slog.String("reason", w.Explain()), slog.Time("until", w.Until))
}

func (o observer) served(i ServedInfo) {
	if o.trace.Served != nil {
		o.trace.Served(i)
	}
	o.write(slog.LevelDebug, "stream page served", slog.Int("attempt", i.Attempt), slog.Int("events", i.Events), slog.Bool("more", i.More))
}
