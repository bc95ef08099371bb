package interop_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heed-sdk/heed/interop/internal/line"
	"github.com/heed-sdk/heed/interop/streams"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

// TestBadLine reads WebSockets over lines that are bad in all ways, while messages are published. The protocol on top asks
// for what was missed, so all of them arrive, once and in order.
func TestBadLine(t *testing.T) {
	t.Parallel()
	const messages = 100
	tests := []struct {
		name string
		// spoil makes the line bad and says what happens after each message.
		spoil func(l *line.Line, f *follower) func(n int)
		// cuts is how many connections are lost at least.
		cuts int
	}{
		{"delay", func(l *line.Line, _ *follower) func(int) {
			l.Add("latency", map[string]any{"latency": 300, "jitter": 200})
			return nil
		}, 0},
		{"throttle", func(l *line.Line, _ *follower) func(int) {
			l.Add("bandwidth", map[string]any{"rate": 2})
			return nil
		}, 0},
		{"slices", func(l *line.Line, _ *follower) func(int) {
			l.Add("slicer", map[string]any{"average_size": 7, "size_variation": 5, "delay": 2000})
			return nil
		}, 0},
		{"cut", func(l *line.Line, _ *follower) func(int) {
			return func(n int) {
				if n%20 == 0 && n < messages {
					l.Cut()
					time.AfterFunc(100*time.Millisecond, l.Up)
				}
			}
		}, 4},
		// Connections end in the middle of a frame. What was missed comes in one, which has to fit.
		{"cut short", func(l *line.Line, f *follower) func(int) {
			l.Add("limit_data", map[string]any{"bytes": 1511})
			f.lost = func(n int) {
				if n == 3 {
					l.Remove("limit_data")
				}
			}
			return nil
		}, 3},
		{"reset_peer", func(l *line.Line, f *follower) func(int) {
			f.lost = func(int) { l.Remove("reset_peer") }
			return func(n int) {
				if n == 30 || n == 60 {
					l.Add("reset_peer", map[string]any{"timeout": 0})
				}
			}
		}, 2},
		{"blackhole", func(l *line.Line, f *follower) func(int) {
			f.lost = func(int) { l.Remove("timeout") }
			return func(n int) {
				if n == 30 {
					l.Add("timeout", map[string]any{"timeout": 0})
				}
			}
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := streams.Start(t, streams.Config{PingInterval: pingInterval})
			l := line.New(t, strings.Split(s.URL(), "/")[2])
			f := follow(t, s, centrifuge{websocket.Dialer{URL: l.Through(s.URL()), Client: newClient(t)}, channel})
			f.config.Base, f.config.Ceiling = 50*time.Millisecond, 200*time.Millisecond
			f.config.HandshakeDeadline = 5 * time.Second
			f.config.Staleness = 5 * pingInterval / 2
			each := tt.spoil(l, f)

			var all sync.WaitGroup
			defer all.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			n := 0
			// Unlike elsewhere the server's connections are not counted: nobody tells it that the line was cut.
			var begin sync.Once
			f.config.Trace.Connected = func(stream.ConnectedInfo) {
				begin.Do(func() {
					all.Go(func() {
						for i := range messages {
							s.Publish(channel, i+1)
							time.Sleep(20 * time.Millisecond)
						}
					})
				})
			}
			for m, err := range stream.Reconnect(f.config).Messages(ctx) {
				if err != nil {
					t.Fatalf("after %d messages: %v", n, err)
				}
				if n++; string(m.Data) != strconv.Itoa(n) {
					t.Fatalf("received %s, want %d", m.Data, n)
				}
				if each != nil {
					each(n)
				}
				if n == messages {
					break
				}
			}
			if n != messages {
				t.Fatalf("received %d messages; disconnected: %+v; failures: %+v", n, f.disconnected, f.failures)
			}
			if cuts := len(f.disconnected) - 1; cuts < tt.cuts {
				t.Errorf("%d connections were lost, want at least %d", cuts, tt.cuts)
			}
			if want := tt.name == "blackhole"; want != (f.stale == 1) || !want && f.stale != 0 {
				t.Errorf("stale %d times", f.stale)
			}
			t.Logf("%d connections lost, %d failed attempts", len(f.disconnected)-1, len(f.failures))
		})
	}
}
