package stream_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
)

// parcels is a connection that tells its reads. Each brings some messages.
type parcels struct {
	stream.Attempt
	in   chan []string
	rest []string
	done chan struct{}
}

func (p *parcels) Dial(_ context.Context, a stream.Attempt) (stream.Conn, error) {
	return &parcels{Attempt: a, in: p.in, done: make(chan struct{})}, nil
}

func (p *parcels) Receive() (stream.Message, error) {
	for len(p.rest) == 0 {
		p.Reading()
		select {
		case p.rest = <-p.in:
			p.Alive()
		case <-p.done:
			return stream.Message{}, errUsedClosed
		}
	}
	m := text(p.rest[0])
	p.rest = p.rest[1:]
	return m, nil
}

func (p *parcels) Close() error {
	close(p.done)
	return nil
}

// With a transport that tells its reads, silence begins when it reads, not when the consumer has taken some of what it read.
func TestStalenessOfReads(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		p, l := &parcels{in: make(chan []string, 4)}, &log{}
		stm := stream.Reconnect(stream.Config{Dialer: p, Rand: pinned(1), Clock: c, Trace: l.trace(), Staleness: 10 * time.Second})
		began := time.Now()
		p.in <- []string{"a", "b"}
		time.AfterFunc(2*time.Hour+9*time.Second, func() { p.in <- nil }) // a ping
		time.AfterFunc(2*time.Hour+18*time.Second, func() { p.in <- []string{"c"} })
		var stale time.Time
		l.onStale = func() { stale = time.Now(); p.in <- []string{"last"} }
		var got []string
		for m, err := range stm.Messages(t.Context()) {
			want(t, "error", err, nil)
			if got = append(got, string(m.Data)); string(m.Data) == "last" {
				break
			}
			time.Sleep(time.Hour)
		}
		wantList(t, "messages", got, []string{"a", "b", "c", "last"})
		want(t, "stale after", stale.Sub(began), 3*time.Hour+28*time.Second)
		want(t, "silence", l.stale[0].Silence, 10*time.Second)
	})
}

// sleepy is the clock of a machine that can be put to sleep: the wall clock runs on without the monotonic one.
type sleepy struct {
	clock.Clock
	epoch time.Time // from outside of the bubble, where there is no monotonic clock
	began time.Time
	slept atomic.Int64
}

// drowsy runs a test in a bubble on such a clock.
func drowsy(t *testing.T, f func(t *testing.T, c *sleepy)) {
	t.Helper()
	epoch := time.Now()
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		f(t, &sleepy{Clock: clock.New(), epoch: epoch, began: time.Now()})
	})
}

func (s *sleepy) sleep(d time.Duration) { s.slept.Add(int64(d)) }

func (s *sleepy) Now() time.Time {
	slept := s.slept.Load()
	t := s.epoch.Add(s.Clock.Now().Sub(s.began) + time.Duration(slept))
	(*struct { // what a time.Time is made of
		_         uint64
		monotonic int64
	})(unsafe.Pointer(&t)).monotonic -= slept
	return t
}

// A machine that was asleep while the consumer had one message of several that came together does not deliver the others,
// also not when the stream is told. Only of a flood are some on their way.
func TestSleepBetweenMessagesOfOneRead(t *testing.T) {
	for _, tt := range []struct {
		name        string
		count, at   int
		told        bool
		least, most int // delivered after the sleep
	}{
		{"few", 3, 2, false, 0, 0},
		{"told", 3, 1, true, 0, 0},
		{"a flood", 1000, 500, false, 1, 63},
		{"a flood, told", 1000, 500, true, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			drowsy(t, func(t *testing.T, clock *sleepy) {
				p, l := &parcels{in: make(chan []string, 1)}, &log{}
				stm := stream.Reconnect(stream.Config{Dialer: p, Clock: clock, Trace: l.trace(), Staleness: 10 * time.Second})
				l.onStale = func() { _ = stm.Close() }
				p.in <- make([]string, tt.count)
				n := 0
				for _, err := range stm.Messages(t.Context()) {
					want(t, "error", err, nil)
					if n++; n == tt.at {
						clock.sleep(time.Hour)
						if tt.told {
							stm.Woken()
						}
					}
				}
				if after := n - tt.at; after < tt.least || after > tt.most {
					t.Errorf("%d were delivered after the sleep", after)
				}
				want(t, "slept", l.stale[0].Slept, true)
				want(t, "for", l.stale[0].Silence, time.Hour)
			})
		})
	}
}

// After a flood that is over, each message is checked again.
func TestSleepAfterAFlood(t *testing.T) {
	drowsy(t, func(t *testing.T, clock *sleepy) {
		p, l := &parcels{in: make(chan []string, 1)}, &log{}
		stm := stream.Reconnect(stream.Config{Dialer: p, Clock: clock, Trace: l.trace(), Staleness: 10 * time.Second})
		l.onStale = func() { _ = stm.Close() }
		const flood = 1000
		p.in <- make([]string, flood)
		n := 0
		for _, err := range stm.Messages(t.Context()) {
			want(t, "error", err, nil)
			switch n++; n {
			case flood:
				time.Sleep(time.Second)
				p.in <- make([]string, 2)
			case flood + 1:
				clock.sleep(time.Hour)
			}
		}
		want(t, "messages", n, flood+1)
	})
}

// ahead is a connection that reads whether or not somebody wants its messages.
type ahead struct{ parcels }

func (a *ahead) Dial(_ context.Context, at stream.Attempt) (stream.Conn, error) {
	c := &ahead{parcels{Attempt: at, in: a.in, done: make(chan struct{})}}
	c.Reading()
	return c, nil
}

func (a *ahead) Receive() (stream.Message, error) {
	select {
	case <-a.in:
		a.Reading()
		return text("a"), nil
	case <-a.done:
		return stream.Message{}, errUsedClosed
	}
}

// What reads ahead waits for the server, however slow the consumer is.
func TestStalenessOfWhatReadsAhead(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		a, l := &ahead{parcels{in: make(chan []string, 1)}}, &log{}
		stm := stream.Reconnect(stream.Config{Dialer: a, Clock: c, Trace: l.trace(), Staleness: 10 * time.Second})
		l.onStale = func() { _ = stm.Close() }
		a.in <- nil
		for _, err := range stm.Messages(t.Context()) {
			want(t, "error", err, nil)
			time.Sleep(time.Hour)
		}
		want(t, "silence", l.stale[0].Silence, 10*time.Second)
	})
}

// The same with a transport that does not tell its reads.
func TestSleepBetweenMessages(t *testing.T) {
	drowsy(t, func(t *testing.T, clock *sleepy) {
		h, l := &hand{}, &log{}
		stm := stream.Reconnect(stream.Config{Dialer: h, Clock: clock, Trace: l.trace(), Staleness: 10 * time.Second})
		l.onStale = func() { _ = stm.Close() }
		go func() {
			synctest.Wait()
			h.last().in <- text("a")
			h.last().in <- text("b")
		}()
		var got []string
		for m, err := range stm.Messages(t.Context()) {
			want(t, "error", err, nil)
			got = append(got, string(m.Data))
			clock.sleep(time.Hour)
		}
		wantList(t, "messages", got, []string{"a"})
	})
}
