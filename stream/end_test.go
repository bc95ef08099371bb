package stream_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream"
)

// A running consumer of a stream, to be ended from outside.
type consumer struct {
	stream *stream.Stream
	dialer *dialer
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	inBody chan struct{} // what the loop's body waits for
}

// states are what a stream can be doing when it is ended.
var states = map[string]func(cfg *stream.Config, d *dialer, c *consumer){
	"obtaining a credential": func(cfg *stream.Config, _ *dialer, _ *consumer) {
		cfg.Credential = func(ctx context.Context, _ stream.Credential) (stream.Credential, error) {
			<-ctx.Done()
			return stream.Credential{}, context.Cause(ctx)
		}
	},
	"dialling":  func(_ *stream.Config, d *dialer, _ *consumer) { d.script = []step{{stall: true}} },
	"waiting":   func(_ *stream.Config, d *dialer, _ *consumer) { d.script = []step{refused(503, time.Hour)} },
	"connected": func(_ *stream.Config, d *dialer, _ *consumer) { d.script = []step{{open: true}} },
	"connected, watching": func(cfg *stream.Config, d *dialer, _ *consumer) {
		d.script, cfg.Staleness = []step{{open: true}}, time.Hour
	},
	"delivering": func(_ *stream.Config, d *dialer, c *consumer) {
		d.script, c.inBody = []step{{messages: []string{"a", "b"}, open: true}}, make(chan struct{})
	},
}

func consume(c watched, state string) *consumer {
	run := &consumer{dialer: dials(step{open: true}), ended: make(chan struct{})}
	cfg := stream.Config{Dialer: run.dialer, Rand: pinned(1), Clock: c, HandshakeDeadline: time.Hour, WakeCheck: time.Minute}
	states[state](&cfg, run.dialer, run)
	run.stream = stream.Reconnect(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	run.cancel = cancel
	go func() {
		defer close(run.ended)
		for m, err := range run.stream.Messages(ctx) {
			run.err = err
			if string(m.Data) == "b" {
				run.err = errors.New("a message after the end")
			}
			if run.inBody != nil {
				<-run.inBody
			}
		}
	}()
	synctest.Wait()
	return run
}

// over checks that the loop ended without an error, a request or a rest.
func (run *consumer) over(t *testing.T, c watched, attempts int) {
	t.Helper()
	if run.inBody != nil {
		close(run.inBody)
	}
	began := time.Now()
	<-run.ended
	want(t, "the loop ended after", time.Since(began), 0)
	want(t, "error", run.err, nil)
	wantList(t, "timers at once", c.kinds(), []delay.Kind{})
	run.stream.TryNow()
	run.stream.Woken()
	time.Sleep(24 * time.Hour)
	want(t, "attempts", run.dialer.count(), attempts)
	want(t, "connections", run.dialer.live, 0)
	want(t, "closed", run.dialer.closed, run.dialer.most)
	wantList(t, "timers", c.kinds(), []delay.Kind{})
	want(t, "send", errors.Is(run.stream.Send(context.Background(), stream.Message{}), stream.ErrNotConnected), true)
}

func TestCloseInEveryState(t *testing.T) {
	for state := range states {
		t.Run(state, func(t *testing.T) {
			bubble(t, func(t *testing.T, c watched) {
				run := consume(c, state)
				attempts := run.dialer.count()
				began := time.Now()
				var all sync.WaitGroup
				for range 10 { // idempotent, and from any goroutine
					all.Go(func() { want(t, "Close", run.stream.Close(), nil) })
				}
				all.Wait()
				want(t, "Close took", time.Since(began), 0)
				run.over(t, c, attempts)
				run.cancel()
			})
		})
	}
}

func TestContextEndsInEveryState(t *testing.T) {
	for state := range states {
		t.Run(state, func(t *testing.T) {
			bubble(t, func(t *testing.T, c watched) {
				run := consume(c, state)
				attempts := run.dialer.count()
				run.cancel()
				run.over(t, c, attempts)
			})
		})
	}
}

func TestCloseBeforeMessages(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(last)
		stm := stream.Reconnect(stream.Config{Dialer: d, Clock: c})
		_ = stm.Close()
		messages, err := collect(t.Context(), stm, 1)
		want(t, "messages", len(messages), 0)
		want(t, "error", err, nil)
		want(t, "attempts", d.count(), 0)
	})
}

func TestEndedContextSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := dials(last)
		_, err := collect(ctx, stream.Reconnect(stream.Config{Dialer: d, Clock: c}), 1)
		want(t, "error", err, nil)
		want(t, "attempts", d.count(), 0)
	})
}

func TestCloseFromInsideTheLoop(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		stm := stream.Reconnect(stream.Config{Dialer: dials(step{messages: []string{"a", "b"}, open: true}), Clock: c, Staleness: time.Minute})
		n := 0
		for _, err := range stm.Messages(t.Context()) {
			want(t, "error", err, nil)
			n++
			_ = stm.Close()
			want(t, "send", errors.Is(stm.Send(t.Context(), text("b")), stream.ErrNotConnected), true)
		}
		want(t, "messages", n, 1)
	})
}

func TestConsumerBreaks(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(step{messages: []string{"a", "b", "c"}, open: true})
		l := &log{}
		messages, err := collect(t.Context(), stream.Reconnect(stream.Config{Dialer: d, Clock: c, Staleness: time.Minute, Trace: l.trace()}), 2)
		wantList(t, "messages", messages, []string{"a", "b"})
		want(t, "error", err, nil)
		want(t, "live", d.live, 0)
		want(t, "ended by", l.disconnected[0].By, stream.ByConsumer)
		want(t, "waits", len(l.waits), 0)
	})
}

func TestConsumerPanics(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(step{messages: []string{"a"}, open: true})
		stm := stream.Reconnect(stream.Config{Dialer: d, Clock: c, Staleness: time.Minute, WakeCheck: time.Second})
		func() {
			defer func() { want(t, "recovered", recover(), any("boom")) }()
			for range stm.Messages(t.Context()) {
				panic("boom")
			}
		}()
		want(t, "live", d.live, 0)
	})
}

// A loop that was given a deadline does not sleep into it.
func TestDeadlineBeforeTheNextAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		ctx, cancel := c.timers.WithTimeout(t.Context(), "test", time.Minute)
		defer cancel()
		d := dials(refused(503, time.Hour))
		began := time.Now()
		_, err := collect(ctx, stream.Reconnect(stream.Config{Dialer: d, Clock: c}), 1)
		want(t, "returned after", time.Since(began), 0)
		want(t, "reason", errors.Is(err, stream.DeadlinePassed), true)
		want(t, "is deadline exceeded", errors.Is(err, context.DeadlineExceeded), true)
		long, ok := errors.AsType[*delay.TooLongError](err)
		want(t, "the wait asked for", ok && long.Wait.For == time.Hour, true)
	})
}

// A token source without a context is left to itself.
func TestStuckTokenSourceHoldsNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		stuck := make(chan struct{})
		source := tokenFunc(func() (*oauth2.Token, error) { <-stuck; return nil, errors.New("late") })
		d := dials(last)
		stm := stream.Reconnect(stream.Config{Dialer: d, Clock: c, Credential: stream.Tokens(source)})
		ended := make(chan error)
		go func() {
			_, err := collect(context.Background(), stm, 1)
			ended <- err
		}()
		synctest.Wait()
		_ = stm.Close()
		want(t, "error", <-ended, nil)
		want(t, "attempts", d.count(), 0)
		close(stuck)
	})
}

type tokenFunc func() (*oauth2.Token, error)

func (f tokenFunc) Token() (*oauth2.Token, error) { return f() }

// Whatever callback closes the stream, nothing is asked for afterwards.
func TestCloseFromInsideTheTrace(t *testing.T) {
	for name, tt := range map[string]struct {
		at       func(trace *stream.Trace, end func())
		attempts int // that went out
	}{
		"Connecting": {func(tr *stream.Trace, end func()) { tr.Connecting = func(stream.ConnectingInfo) { end() } }, 0},
		"Connected":  {func(tr *stream.Trace, end func()) { tr.Connected = func(stream.ConnectedInfo) { end() } }, 1},
		"Alive":      {func(tr *stream.Trace, end func()) { tr.Alive = end }, 1},
		"Disconnected": {func(tr *stream.Trace, end func()) {
			tr.Disconnected = func(stream.DisconnectedInfo) { end() }
		}, 1},
		"Waiting": {func(tr *stream.Trace, end func()) { tr.Waiting = func(delay.Wait) { end() } }, 1},
		"Failed":  {func(tr *stream.Trace, end func()) { tr.Failed = func(stream.FailedInfo) { end() } }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c watched) {
				d, trace, minted := dials(step{messages: []string{"a"}}, refused(404, 0)), &stream.Trace{}, 0
				stm := stream.Reconnect(stream.Config{Dialer: d, Clock: c, Trace: trace, Credential: func(context.Context, stream.Credential) (stream.Credential, error) {
					minted++
					return stream.Credential{}, nil
				}})
				tt.at(trace, func() { _ = stm.Close() })
				_, err := collect(t.Context(), stm, -1)
				want(t, "error", err, nil)
				want(t, "attempts", d.count(), tt.attempts)
				want(t, "credentials", minted, tt.attempts)
				want(t, "connections left", d.live, 0)
			})
		})
	}
}

type dialFunc func(ctx context.Context, a stream.Attempt) (stream.Conn, error)

func (f dialFunc) Dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) { return f(ctx, a) }

// A dialer that panics leaves no timer behind.
func TestDialerPanics(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dialFunc(func(context.Context, stream.Attempt) (stream.Conn, error) { panic("boom") })
		defer func() { want(t, "recovered", recover(), any("boom")) }()
		_, _ = collect(t.Context(), stream.Reconnect(stream.Config{Dialer: d, Clock: c, WakeCheck: time.Second}), 1)
	})
}

func TestDialerWithoutAConnection(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dialFunc(func(context.Context, stream.Attempt) (stream.Conn, error) { return nil, nil })
		_, err := collect(t.Context(), stream.Reconnect(stream.Config{Dialer: d, Clock: c}), 1)
		want(t, "reason", errors.Is(err, stream.DialFailed), true)
	})
}
