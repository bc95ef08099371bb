package interop_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/interop/streams"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

const channel = "news"

// pingInterval is that of a server whose pings matter to the test. Half of it is the time to answer, which a busy machine
// needs at times; the first ping comes after half to one.
const pingInterval = 2 * time.Second

// follower consumes a stream in the test's own goroutine, with everything that was told of it.
type follower struct {
	t      *testing.T
	server *streams.Server
	minted atomic.Int64 // credentials

	config       stream.Config
	connected    func(attempt int)
	lost         func(n int) // after each connection that the consumer did not end
	waits        []delay.Wait
	failures     []stream.FailedInfo
	disconnected []stream.DisconnectedInfo
	stale        int
}

// follow returns a follower of the server with a new bearer for every attempt. Its waits are those of the defaults.
func follow(t *testing.T, s *streams.Server, dialer stream.Dialer) *follower {
	f := &follower{t: t, server: s}
	f.config = stream.Config{
		Dialer: dialer,
		Credential: func(context.Context, stream.Credential) (stream.Credential, error) {
			token := "bearer-" + strconv.FormatInt(f.minted.Add(1), 10)
			return stream.Credential{Token: &oauth2.Token{AccessToken: token}}, nil
		},
		Staleness: 4 * pingInterval,
		Trace: &stream.Trace{
			Connected: func(i stream.ConnectedInfo) {
				// The server needs a moment to see that the connection before this one is gone.
				f.wantConnections(1)
				if f.connected != nil {
					f.connected(i.Attempt)
				}
			},
			Failed: func(i stream.FailedInfo) { f.failures = append(f.failures, i) },
			Disconnected: func(i stream.DisconnectedInfo) {
				f.disconnected = append(f.disconnected, i)
				if f.lost != nil && i.By != stream.ByConsumer {
					f.lost(len(f.disconnected))
				}
			},
			Waiting: func(w delay.Wait) { f.waits = append(f.waits, w) },
			Stale:   func(stream.StaleInfo) { f.stale++ },
		},
	}
	return f
}

// wantConnections checks how many connections the server has, as soon as it has noticed.
func (f *follower) wantConnections(want int) {
	f.t.Helper()
	var n int
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if n = f.server.Connections(); n == want {
			return
		}
	}
	f.t.Errorf("the server has %d connections, want %d", n, want)
}

// peak counts the server's connections until the function that it returns is called, and checks that there was never more
// than one. It is for tests in which the server has time to see that one is gone before the next one comes.
func peak(t *testing.T, s *streams.Server) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	most := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			n = max(n, s.Connections())
			time.Sleep(5 * time.Millisecond)
		}
		most <- n
	}()
	return func() {
		cancel()
		if n := <-most; n != 1 {
			t.Errorf("there were up to %d connections at once, want 1", n)
		}
	}
}

// wantHandshakes checks how the server has answered handshakes, each with a bearer of its own, and that nobody came back
// earlier than the server had asked for.
func (f *follower) wantHandshakes(want ...int) {
	f.t.Helper()
	got := f.server.Handshakes()
	var statuses []int
	seen := map[string]bool{}
	for i, h := range got {
		statuses = append(statuses, h.Status)
		if !strings.HasPrefix(h.Bearer, "bearer-") || seen[h.Bearer] {
			f.t.Errorf("handshake %d came with the bearer %q", i+1, h.Bearer)
		}
		seen[h.Bearer] = true
		if i > 0 && got[i-1].Status == http.StatusServiceUnavailable {
			if gap := h.At.Sub(got[i-1].At); gap < time.Second {
				f.t.Errorf("handshake %d came %v after a 503 with Retry-After: 1", i+1, gap)
			}
		}
	}
	if fmt.Sprint(statuses) != fmt.Sprint(want) {
		f.t.Errorf("the handshakes were answered with %v, want %v", statuses, want)
	}
}

// TestKilled kills the server under a client, abruptly, starts it again, and has it refuse the first two handshakes with a
// Retry-After. The client goes on from the last message that it has received.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := streams.Start(t, streams.Config{RefuseAfterRestart: 2, PingInterval: pingInterval})
	f := follow(t, s, centrifuge{websocket.Dialer{URL: s.URL(), Client: newClient(t)}, channel})
	f.connected = func(attempt int) {
		if attempt == 1 {
			s.Publish(channel, 1)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	defer peak(t, s)()
	want := 1
	for m, err := range stream.Reconnect(f.config).Messages(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Data) != strconv.Itoa(want) {
			t.Fatalf("received %s, want %d", m.Data, want)
		}
		switch want {
		case 1:
			// Until then a ping has come: the server closes with 3012 if it is not answered in time.
			time.AfterFunc(2*pingInterval, func() { s.Publish(channel, 2) })
		case 2:
			s.Kill()
			s.Publish(channel, 3) // nobody hears it
			s.Publish(channel, 4)
			s.Restart()
		case 4:
			s.Publish(channel, 5)
		}
		if want == 5 {
			break
		}
		want++
	}
	if want != 5 {
		t.Fatalf("the stream ended before message %d: %v", want, ctx.Err())
	}
	f.wantConnections(0)
	f.wantHandshakes(101, 503, 503, 101)

	if len(f.disconnected) != 2 || f.disconnected[0].By != stream.ByServer || !f.disconnected[0].Healthy ||
		f.disconnected[1].By != stream.ByConsumer || f.stale != 0 {
		t.Errorf("stale %d times; disconnected: %+v", f.stale, f.disconnected)
	}
	if len(f.failures) != 2 {
		t.Fatalf("%d failed attempts, want 2: %+v", len(f.failures), f.failures)
	}
	for _, failed := range f.failures {
		if e := failed.Err; e.Status != 503 || e.Class != stream.Transient || e.RetryAfter.Duration() != time.Second {
			t.Errorf("attempt %d: %v", failed.Attempt, e)
		}
	}
	if len(f.waits) != 3 {
		t.Fatalf("the waits were %v", f.waits)
	}
	// The connection was healthy, so the count starts at its end: draws of up to 1, 2 and 4 s.
	for i, w := range f.waits {
		server := time.Second
		if i == 0 {
			server = 0
		}
		longest := delay.Reconnect.Row().Local.Longest(i + 1)
		if w.Local > longest || w.Server != server || w.For != max(w.Local, w.Server) {
			t.Errorf("wait %d: %v", i+1, w)
		}
	}
}

// TestEmptied starts the server again with nothing remembered: the client is told that there is a gap, and what it makes of
// that is its protocol's decision. This one gives up.
func TestEmptied(t *testing.T) {
	t.Parallel()
	s := streams.Start(t, streams.Config{})
	f := follow(t, s, centrifuge{websocket.Dialer{URL: s.URL(), Client: newClient(t)}, channel})
	f.connected = func(int) { s.Publish(channel, 1) }
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var end error
	for _, err := range stream.Reconnect(f.config).Messages(ctx) {
		if end = err; err == nil {
			s.RestartEmpty()
		}
	}
	if !errors.Is(end, stream.DialFailed) || !errors.Is(end, errGap) {
		t.Errorf("the stream ended with %v", end)
	}
	f.wantHandshakes(101, 101)
	f.wantConnections(0)
}

// TestPlain uses the transport as it is: the frames are sent by hand when the connection is there, and whatever comes is a
// message. What is published meanwhile is lost, because nobody asks for it.
func TestPlain(t *testing.T) {
	t.Parallel()
	s := streams.Start(t, streams.Config{RefuseAfterRestart: 1, PingInterval: pingInterval})
	f := follow(t, s, websocket.Dialer{URL: s.URL(), Client: newClient(t)})
	live := stream.Reconnect(f.config)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	send := func(frame []byte) {
		if err := live.Send(ctx, stream.Message{Data: frame}); err != nil {
			t.Fatalf("not sent: %v", err)
		}
	}
	// The server counts a connection only once it has spoken, so that there is nothing to count before this.
	f.config.Trace.Connected = func(stream.ConnectedInfo) {
		send(streams.Frame(streams.Connect(1), streams.Subscribe(2, channel)))
	}
	var received []string
	subscribed, pings, killed := 0, 0, false
	for frame, err := range live.Messages(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		messages, err := streams.Parse(frame.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			switch {
			case m.IsPing():
				pings++
				send(streams.Pong)
			case m.Subscribe != nil:
				subscribed++
				s.Publish(channel, 2*subscribed-1)
			case m.Push != nil:
				received = append(received, string(m.Push.Pub.Data))
			}
		}
		if len(received) == 2 {
			break
		}
		if len(received) == 1 && pings > 0 && !killed {
			killed = true
			s.Kill()
			s.Publish(channel, 2)
			s.Restart()
		}
	}
	if got := strings.Join(received, " "); got != "1 3" {
		t.Errorf("received %s, want 1 3", got)
	}
	f.wantHandshakes(101, 503, 101)
	f.wantConnections(0)
}

// TestEnded ends a stream in every way that a consumer has. The server, which pings too seldom to find out by itself, sees
// the connection go, and hears no more of the client.
func TestEnded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(live *stream.Stream, cancel context.CancelFunc) (more bool)
	}{
		{"break", func(*stream.Stream, context.CancelFunc) bool { return false }},
		{"close", func(live *stream.Stream, _ context.CancelFunc) bool { return live.Close() == nil }},
		{"close from elsewhere", func(live *stream.Stream, _ context.CancelFunc) bool {
			time.AfterFunc(50*time.Millisecond, func() { _ = live.Close() })
			return true
		}},
		{"cancelled", func(_ *stream.Stream, cancel context.CancelFunc) bool { cancel(); return true }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := streams.Start(t, streams.Config{})
			f := follow(t, s, centrifuge{websocket.Dialer{URL: s.URL(), Client: newClient(t)}, channel})
			f.connected = func(int) { s.Publish(channel, 1) }
			f.config.Staleness = 0
			live := stream.Reconnect(f.config)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			n := 0
			for _, err := range live.Messages(ctx) {
				if n++; err != nil {
					t.Errorf("an error after the end: %v", err)
				}
				if !tt.end(live, cancel) {
					break
				}
			}
			f.wantConnections(0)
			f.wantHandshakes(101)
			if n != 1 || len(f.disconnected) != 1 || f.disconnected[0].By != stream.ByConsumer || len(f.waits) != 0 {
				t.Errorf("%d messages, disconnected %+v, waits %v", n, f.disconnected, f.waits)
			}
		})
	}
}

// TestBadBearer has every bearer refused: the stream asks for a fresh one each time, and ends after the third.
func TestBadBearer(t *testing.T) {
	t.Parallel()
	s := streams.Start(t, streams.Config{Authorize: func(string) bool { return false }})
	f := follow(t, s, centrifuge{websocket.Dialer{URL: s.URL(), Client: newClient(t)}, channel})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	n := 0
	var end error
	for _, err := range stream.Reconnect(f.config).Messages(ctx) {
		n++
		end = err
	}
	refused, _ := errors.AsType[*stream.AttemptError](end)
	if n != 1 || !errors.Is(end, stream.AuthorizationFailed) || refused == nil || refused.Status != 401 {
		t.Errorf("the stream yielded %d times, and last %v", n, end)
	}
	f.wantHandshakes(401, 401, 401)
	for _, w := range f.waits {
		if w.Reason != delay.Unheeded {
			t.Errorf("a wait after a refused credential: %v", w)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", end, end, end); strings.Contains(text, "bearer-") {
		t.Errorf("the error has the bearer in it: %s", text)
	}
	f.wantConnections(0)
}
