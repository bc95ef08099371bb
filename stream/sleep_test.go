package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream"
)

// The first wait after a sleep is short, whatever the stream was doing meanwhile, unless the server has answered.
func TestSleepDuringAnAttempt(t *testing.T) {
	answered := &stream.AttemptError{Status: 503, RetryAfter: delay.Asked(20 * time.Second)}
	for _, tt := range []struct {
		name  string
		mint  bool  // else the dial
		fails error // after a second; nil: not until its context ends
		woken bool
		wait  time.Duration
		why   delay.Reason
		after time.Duration // the attempt began
	}{
		{"a credential that cannot be had", true, errBroken, false, 2 * time.Second, delay.Woken, time.Second},
		{"a dial that breaks", false, errBroken, false, 2 * time.Second, delay.Woken, time.Second},
		{"a dial that hangs", false, nil, false, 2 * time.Second, delay.Woken, 10 * time.Second},
		{"a dial that hangs, told", false, nil, true, 2 * time.Second, delay.Woken, time.Second},
		{"an answer", false, answered, false, 20 * time.Second, delay.Floored, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			drowsy(t, func(t *testing.T, clock *sleepy) {
				l, n := &log{}, 0
				var stm *stream.Stream
				var began time.Time
				attempt := func(ctx context.Context) error {
					if n++; n < 5 { // four failures: the next draw is from 16 s
						return errBroken
					}
					began = time.Now()
					time.Sleep(time.Second)
					clock.sleep(time.Hour)
					if tt.woken {
						stm.Woken()
					}
					if tt.fails == nil {
						<-ctx.Done()
						return errors.New("cancelled")
					}
					return tt.fails
				}
				cfg := stream.Config{Rand: pinned(1), Clock: clock, Trace: l.trace()}
				cfg.Trace.Failed = func(stream.FailedInfo) {
					if n == 5 {
						want(t, "failed after", time.Since(began), tt.after)
					}
				}
				note := cfg.Trace.Waiting
				cfg.Trace.Waiting = func(w delay.Wait) {
					if note(w); n == 5 {
						_ = stm.Close()
					}
				}
				cfg.Dialer = dialFunc(func(ctx context.Context, _ stream.Attempt) (stream.Conn, error) { return nil, attempt(ctx) })
				if tt.mint {
					cfg.Credential = func(ctx context.Context, _ stream.Credential) (stream.Credential, error) {
						return stream.Credential{}, attempt(ctx)
					}
				}
				stm = stream.Reconnect(cfg)
				_, err := collect(t.Context(), stm, -1)
				want(t, "error", err, nil)
				wantDurations(t, "waits", l.waited(), append(s(1, 2, 4, 8), tt.wait))
				want(t, "reason", l.reasons()[4], tt.why)
			})
		})
	}
}

// A connection that broke while the machine was asleep was silent for that long.
func TestSleepBreaksTheConnection(t *testing.T) {
	drowsy(t, func(t *testing.T, clock *sleepy) {
		d := dialFunc(func(context.Context, stream.Attempt) (stream.Conn, error) { return overnight{clock}, nil })
		l := &log{}
		cfg := stream.Config{Dialer: d, Rand: pinned(1), Clock: clock, Trace: l.trace(), Staleness: 10 * time.Second}
		var stm *stream.Stream
		note := cfg.Trace.Waiting
		cfg.Trace.Waiting = func(w delay.Wait) { note(w); _ = stm.Close() }
		stm = stream.Reconnect(cfg)
		_, err := collect(t.Context(), stm, -1)
		want(t, "error", err, nil)
		want(t, "stale", len(l.stale), 1)
		wantList(t, "reasons", l.reasons(), []delay.Reason{delay.Woken})
	})
}

// overnight is a connection that breaks while the machine is asleep.
type overnight struct{ clock *sleepy }

func (o overnight) Receive() (stream.Message, error) {
	o.clock.sleep(time.Hour)
	return stream.Message{}, errBroken
}

func (overnight) Close() error { return nil }
