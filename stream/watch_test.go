package stream_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
)

// hand is a dialer whose connections a test moves by hand.
type hand struct {
	mu    sync.Mutex
	conns []*handConn
	at    []time.Time
}

func (h *hand) Dial(_ context.Context, a stream.Attempt) (stream.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &handConn{Attempt: a, in: make(chan stream.Message, 16), done: make(chan struct{})}
	h.conns, h.at = append(h.conns, c), append(h.at, time.Now())
	return c, nil
}

// last returns the latest connection.
func (h *hand) last() *handConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conns[len(h.conns)-1]
}

type handConn struct {
	stream.Attempt
	in   chan stream.Message
	done chan struct{}
}

func (c *handConn) Receive() (stream.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.done:
		return stream.Message{}, errUsedClosed
	}
}

func (c *handConn) Close() error {
	close(c.done) // panics if the loop closes twice
	return nil
}

func text(s string) stream.Message { return stream.Message{Data: []byte(s)} }

func TestStaleness(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		h, l := &hand{}, &log{}
		stm := stream.Reconnect(stream.Config{Dialer: h, Rand: pinned(1), Clock: c, Trace: l.trace(), Staleness: 10 * time.Second})
		go func() {
			time.Sleep(9 * time.Second)
			h.last().Alive() // any frame counts
			time.Sleep(9 * time.Second)
			h.last().in <- text("a")
			time.Sleep(15 * time.Second)
			h.last().in <- text("last")
		}()
		_, err := collect(t.Context(), stm, 2)
		want(t, "error", err, nil)
		want(t, "connected again after", h.at[1].Sub(h.at[0]), 29*time.Second) // 10 s of silence and a wait later
		want(t, "silence", l.stale[0].Silence, 10*time.Second)
		want(t, "slept", l.stale[0].Slept, false)
		want(t, "ended by", l.disconnected[0].By, stream.ByWatchdog)
		want(t, "cause", l.waits[0].Cause, "stale")
	})
}

func TestStalenessNeverStartedByTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(step{open: true}, last)
		l, err := follow(t, c, d, func(c *stream.Config) { c.Staleness = 7500 * time.Millisecond })
		want(t, "error", err, nil)
		want(t, "connected again after", d.at[1].Sub(d.at[0]), 8500*time.Millisecond)
		want(t, "healthy, having lived", l.disconnected[0].Healthy, true)
	})
}

// Trace.Alive is told of each sign of life, with a watchdog or without, on the goroutine of the loop alone: what a transport
// reads while it is being closed is none.
func TestAlive(t *testing.T) {
	for _, staleness := range []time.Duration{0, 10 * time.Second} {
		bubble(t, func(t *testing.T, c watched) {
			d := &chatty{hand: &hand{}}
			began := time.Now()
			var at []time.Duration // no lock: the race detector would see another goroutine
			trace := &stream.Trace{Alive: func() { at = append(at, time.Since(began)) }}
			stm := stream.Reconnect(stream.Config{Dialer: d, Clock: c, Trace: trace, Staleness: staleness, Rand: pinned(0)})
			go func() {
				for _, m := range []string{"ping", "ping", "a", "break", "ping"} {
					time.Sleep(4 * time.Second)
					d.last().in <- text(m)
				}
				time.Sleep(4 * time.Second)
				_ = stm.Close()
			}()
			_, err := collect(t.Context(), stm, -1)
			want(t, "error", err, nil)
			wantDurations(t, "signs of life", at, s(4, 8, 12, 20))
			want(t, "connections", len(d.conns), 2)
		})
	}
}

// chatty is a transport that has pings, and reads one more while it is being closed.
type chatty struct{ *hand }

func (d *chatty) Dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) {
	c, err := d.hand.Dial(ctx, a)
	return &chattyConn{c.(*handConn)}, err
}

type chattyConn struct{ *handConn }

func (c *chattyConn) Receive() (stream.Message, error) {
	for {
		m, err := c.handConn.Receive()
		switch string(m.Data) {
		case "ping":
			c.Alive()
		case "break":
			return stream.Message{}, errBroken
		default:
			return m, err
		}
	}
}

func (c *chattyConn) Close() error {
	c.Alive()
	return c.handConn.Close()
}

// While the consumer has a message in hand nothing is read, and the server is not to blame.
func TestSlowConsumerIsNotStale(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		h, l := &hand{}, &log{}
		stm := stream.Reconnect(stream.Config{Dialer: h, Rand: pinned(1), Clock: c, Trace: l.trace(), Staleness: 10 * time.Second})
		go func() {
			synctest.Wait()
			for _, m := range []string{"a", "b", "c"} {
				h.last().in <- text(m)
			}
		}()
		n := 0
		var silent time.Time
		for _, err := range stm.Messages(t.Context()) {
			want(t, "error", err, nil)
			if n++; n == 3 {
				silent = time.Now().Add(time.Hour)
				time.AfterFunc(time.Hour+15*time.Second, func() { h.last().in <- text("last") })
			}
			if n == 4 {
				break
			}
			time.Sleep(time.Hour) // far beyond the limit, three times
		}
		want(t, "connections lost", len(l.disconnected), 2)
		want(t, "silence", l.stale[0].Silence, 10*time.Second)
		want(t, "connected again, of silence and wait", h.at[1].Sub(silent), 11*time.Second)
	})
}

// sleeper is a stream on a clock whose wall can be moved on without its timers, in a bubble that tells when all is settled.
type sleeper struct {
	*testing.T
	clock    *fakes.Clock
	stream   *stream.Stream
	log      *log
	messages []string
}

func asleep(t *testing.T, d stream.Dialer, wakeCheck time.Duration, rand delay.Rand, f func(s *sleeper)) {
	t.Helper()
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s := &sleeper{T: t, log: &log{}, clock: fakes.NewClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))}
		s.stream = stream.Reconnect(stream.Config{
			Dialer: d, Rand: rand, Clock: s.clock, Trace: s.log.trace(), Staleness: 10 * time.Second, HandshakeDeadline: -1, WakeCheck: wakeCheck,
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for m, err := range s.stream.Messages(context.Background()) {
				if err != nil {
					t.Error(err)
				}
				s.messages = append(s.messages, string(m.Data))
			}
		}()
		f(s)
		_ = s.stream.Close()
		<-done
		wantList(t, "timers", s.clock.Armed(), []delay.Kind{})
	})
}

// waits checks that the stream is in a wait, and how long that is.
func (s *sleeper) waits(what string, d time.Duration) {
	s.Helper()
	synctest.Wait()
	armed, err := s.clock.Await(s.Context(), delay.KindBackoff)
	if err != nil {
		s.Fatal(err)
	}
	want(s.T, what, armed[0].Delay(), d)
}

func TestWokenWhileConnected(t *testing.T) {
	h := &hand{}
	asleep(t, h, 0, pinned(1), func(s *sleeper) {
		synctest.Wait()
		s.stream.Woken() // and the connection is fine
		h.last().in <- text("a")
		synctest.Wait()
		wantList(t, "delivered", s.messages, []string{"a"})
		s.clock.StepWall(9 * time.Second)
		s.stream.Woken()
		synctest.Wait()
		want(t, "stale too early", len(s.log.stale), 0)
		s.clock.StepWall(2 * time.Second)
		s.stream.Woken()
		s.waits("the wait after a sleep", 2*time.Second)
		want(t, "silence", s.log.stale[0].Silence, 11*time.Second)
	})
}

// A watchdog that a test fires by name finds that nothing came since it was armed.
func TestStalenessByName(t *testing.T) {
	h := &hand{}
	asleep(t, h, 0, pinned(1), func(s *sleeper) {
		synctest.Wait()
		h.last().Alive()
		s.clock.FireNext(delay.KindStaleness)
		synctest.Wait()
		wantList(t, "after a sign of life", s.clock.Armed(), []delay.Kind{delay.KindStaleness})
		s.clock.FireNext(delay.KindStaleness)
		s.waits("the wait", time.Second)
	})
}

func TestWokenWhileWaiting(t *testing.T) {
	d := dials(refused(503, 0), refused(503, 0), refused(503, 0), refused(503, 0), refused(503, 10*time.Minute), step{open: true})
	asleep(t, d, 0, pinned(1), func(s *sleeper) {
		for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			s.waits("as ever", wait)
			s.clock.Advance(wait)
		}
		s.waits("as ever", 8*time.Second)
		s.clock.StepWall(time.Hour)
		s.stream.Woken()
		s.waits("in place of 8 s", 2*time.Second)
		s.stream.Woken() // it is short already
		s.clock.Advance(2 * time.Second)

		s.waits("what the server asked for", 10*time.Minute)
		s.clock.StepWall(4 * time.Minute)
		s.stream.Woken()
		s.waits("what is left of it", 6*time.Minute)
		s.clock.StepWall(7 * time.Minute)
		s.stream.Woken()
		s.waits("when nothing is left", 2*time.Second)
		s.clock.Advance(2 * time.Second)
		synctest.Wait()
		wantList(t, "connected", s.clock.Armed(), []delay.Kind{delay.KindStaleness})
		want(t, "attempts", d.count(), 6)
		want(t, "the count", s.log.waits[len(s.log.waits)-1].Attempt, 5)
	})
}

// The check notices by itself.
func TestWakeCheck(t *testing.T) {
	slow := func(n int64) int64 { return min(n, int64(700*time.Millisecond)) }
	asleep(t, dials(refused(503, 0), step{open: true}), 200*time.Millisecond, slow, func(s *sleeper) {
		synctest.Wait()
		wantList(t, "timers", s.clock.Armed(), []delay.Kind{"wake-check", delay.KindBackoff})
		s.clock.Advance(200 * time.Millisecond) // a look, and nothing is wrong
		synctest.Wait()
		want(t, "waits", len(s.log.waits), 1)
		s.clock.StepWall(time.Hour)
		s.clock.Advance(200 * time.Millisecond)
		synctest.Wait()
		wantList(t, "reasons", s.log.reasons(), []delay.Reason{delay.OwnDelay, delay.Woken})
	})
}

func TestSendWhileConnected(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		h := &hand{}
		stm := stream.Reconnect(stream.Config{Dialer: h, Clock: c})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range stm.Messages(context.Background()) {
			}
		}()
		synctest.Wait()
		err := stm.Send(t.Context(), text("a"))
		if err == nil || errors.Is(err, stream.ErrNotConnected) {
			t.Errorf("a transport that only receives: %v", err)
		}
		_ = stm.Close()
		<-ended
		want(t, "not connected", errors.Is(stm.Send(t.Context(), text("a")), stream.ErrNotConnected), true)
	})
}
