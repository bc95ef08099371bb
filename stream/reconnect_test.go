package stream_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream"
)

// last ends a test's script: one message, after which the consumer breaks out.
var last = step{messages: []string{"last"}, open: true}

func refused(status int, retryAfter time.Duration) step {
	e := &stream.AttemptError{Class: stream.ClassOfStatus(status), Status: status}
	if retryAfter > 0 {
		e.RetryAfter = delay.Asked(retryAfter)
	}
	return step{err: e}
}

// follow runs a script with the draw pinned to the end of its range, until the consumer has the last message.
func follow(t *testing.T, c watched, d *dialer, more ...func(*stream.Config)) (*log, error) {
	t.Helper()
	l := &log{}
	cfg := stream.Config{Dialer: d, Rand: pinned(1), Clock: c, Trace: l.trace()}
	for _, f := range more {
		f(&cfg)
	}
	var err error
	for m, e := range stream.Reconnect(cfg).Messages(t.Context()) {
		if err = e; string(m.Data) == "last" {
			break
		}
	}
	if d.most > 1 || d.live != 0 {
		t.Errorf("%d connections at once, %d left open", d.most, d.live)
	}
	return l, err
}

func s(n ...float64) []time.Duration {
	list := []time.Duration{}
	for _, x := range n {
		list = append(list, seconds(x))
	}
	return list
}

func TestFirstConnectIsImmediate(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(last)
		began := time.Now()
		l, err := follow(t, c, d)
		want(t, "error", err, nil)
		want(t, "dialled after", d.at[0].Sub(began), 0)
		wantDurations(t, "waits", l.waited(), s())
	})
}

func TestAMessageProvesHealth(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		l, _ := follow(t, c, dials(step{}, step{}, step{}, step{messages: []string{"a"}}, step{}, last))
		wantDurations(t, "waits", l.waited(), s(1, 2, 4, 1, 2))
		want(t, "healthy", l.disconnected[3].Healthy, true)
		want(t, "messages", l.disconnected[3].Messages, 1)
	})
}

func TestLivedLongEnough(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lived time.Duration
		want  []time.Duration // the waits; the one before the connection is 4 s
	}{
		{"exactly the wait", 4 * time.Second, s(1, 2, 4, 1)},
		{"just below", 4*time.Second - 1, s(1, 2, 4, 8)},
		{"longer", time.Hour, s(1, 2, 4, 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c watched) {
				l, _ := follow(t, c, dials(step{}, step{}, step{}, step{alive: tt.lived}, last))
				wantDurations(t, "waits", l.waited(), tt.want)
				want(t, "lived", l.disconnected[3].Lived, tt.lived)
			})
		})
	}
}

func TestLivedAtLeastOneSecond(t *testing.T) {
	for _, tt := range []struct {
		lived time.Duration
		want  []delay.Wait
	}{
		{time.Second, []delay.Wait{{Attempt: 1}, {Attempt: 1}}},
		{time.Second - 1, []delay.Wait{{Attempt: 1}, {Attempt: 2}}},
	} {
		bubble(t, func(t *testing.T, c watched) {
			// The draw is 0, so nothing but the second counts.
			l, _ := follow(t, c, dials(step{}, step{alive: tt.lived}, last), func(c *stream.Config) { c.Rand = pinned(0) })
			for i, w := range l.waits {
				want(t, fmt.Sprintf("lived %v: attempt of wait %d", tt.lived, i+1), w.Attempt, tt.want[i].Attempt)
				want(t, "wait", w.For, 0)
			}
		})
	}
}

func TestTheWaitAsDecidedCounts(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		// A wait of 60 s that TryNow cut short after 1 s still asks for 60 s of life.
		d := dials(refused(503, time.Minute), step{alive: 59 * time.Second}, last)
		l := &log{}
		stm := stream.Reconnect(stream.Config{Dialer: d, Rand: pinned(1), Clock: c, Trace: l.trace()})
		go func() {
			time.Sleep(time.Second)
			stm.TryNow()
		}()
		_, err := collect(t.Context(), stm, 1)
		want(t, "error", err, nil)
		wantDurations(t, "waits", l.waited(), s(60, 2))
		want(t, "dialled after", d.at[1].Sub(d.at[0]), time.Second)
	})
}

func TestRetryAfterFloorsTheDraw(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		l, _ := follow(t, c, dials(refused(429, 30*time.Second), refused(503, time.Second), refused(502, 0), refused(500, 10*time.Minute), last))
		wantDurations(t, "waits", l.waited(), s(30, 2, 4, 600))
		wantList(t, "reasons", l.reasons(), []delay.Reason{delay.Floored, delay.LocalLonger, delay.OwnDelay, delay.Floored})
		want(t, "cause", l.waits[0].Cause, "429")
		want(t, "class", l.failed[0].Err.Class, stream.Throttled)
		want(t, "class", l.failed[1].Err.Class, stream.Transient)
	})
}

func TestPermanentRefusals(t *testing.T) {
	for _, status := range []int{200, 204, 300, 301, 307, 400, 404, 405, 410, 426, 501} {
		bubble(t, func(t *testing.T, c watched) {
			d := dials(refused(status, time.Minute))
			l, err := follow(t, c, d)
			e, ok := errors.AsType[*stream.Error](err)
			if !ok || e.Reason != stream.DialFailed || d.count() != 1 || len(l.waits) != 0 {
				t.Errorf("%d: %v after %d attempts and waits %v", status, err, d.count(), l.waits)
			}
		})
	}
}

func TestPermanentDisconnect(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		fatal := &stream.DisconnectError{Class: stream.Permanent, Code: 1002, Text: "what?"}
		d := dials(step{messages: []string{"a"}, end: fatal})
		var messages, errs int
		for m, err := range stream.Reconnect(stream.Config{Dialer: d, Clock: c}).Messages(t.Context()) {
			if err == nil {
				messages++
				continue
			}
			errs++
			want(t, "message beside the error", string(m.Data), "")
			want(t, "reason", errors.Is(err, stream.ProtocolFatal), true)
			got, _ := errors.AsType[*stream.DisconnectError](err)
			want(t, "code", got.Code, 1002)
		}
		want(t, "messages", messages, 1)
		want(t, "errors", errs, 1)
	})
}

func TestTheServerEndsItForGood(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		for _, d := range []*dialer{dials(step{err: fmt.Errorf("204: %w", stream.ErrEnd)}), dials(step{messages: []string{"a"}, end: stream.ErrEnd})} {
			_, err := follow(t, c, d)
			want(t, "error", err, nil)
			want(t, "attempts", d.count(), 1)
		}
	})
}

func TestSpread(t *testing.T) {
	everyone := &stream.DisconnectError{Everyone: true, Code: 1012}
	for _, tt := range []struct {
		name   string
		script []step
		spread time.Duration
		waits  []time.Duration
	}{
		{"the first draw is wide", []step{{messages: []string{"a"}, end: everyone}, last}, 0, s(5)},
		{"later draws are their own", []step{{messages: []string{"a"}, end: everyone}, {}, {end: everyone}, last}, 0, s(5, 2, 4)},
		{"a width of the caller's", []step{{messages: []string{"a"}, end: everyone}, last}, 20 * time.Second, s(20)},
		{"never narrower than without", []step{{messages: []string{"a"}, end: everyone}, last}, time.Millisecond, s(1)},
		{"off", []step{{messages: []string{"a"}, end: everyone}, last}, -1, s(1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c watched) {
				l, _ := follow(t, c, dials(tt.script...), func(c *stream.Config) { c.Spread = tt.spread })
				wantDurations(t, "waits", l.waited(), tt.waits)
			})
		})
	}
}

func TestHandshakeDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(step{stall: true}, last)
		began := time.Now()
		l, err := follow(t, c, d)
		want(t, "error", err, nil)
		want(t, "second attempt after", d.at[1].Sub(began), 11*time.Second)
		want(t, "cause", l.waits[0].Cause, "handshake-deadline")
		late, ok := errors.AsType[*delay.TimeoutError](l.failed[0].Err)
		want(t, "timeout", ok && late.Kind == delay.KindHandshakeDeadline, true)
	})
}

func TestPositionAndBaseAreCarriedOver(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := &resuming{dialer: dials(step{messages: []string{"1", "2"}}, refused(503, 0), refused(503, 0), step{}, last)}
		l := &log{}
		_, err := collect(t.Context(), stream.Reconnect(stream.Config{Dialer: d, Position: "start", Rand: pinned(1), Clock: c, Trace: l.trace()}), 3)
		want(t, "error", err, nil)
		positions := []string{}
		for _, a := range d.attempts {
			positions = append(positions, a.Position)
		}
		wantList(t, "positions", positions, []string{"start", "2", "2", "2", "2"})
		wantDurations(t, "waits", l.waited(), s(4, 8, 16, 32))
	})
}

// resuming is a transport that has positions, and asks for a base of 4 s with its first message.
type resuming struct{ *dialer }

func (r *resuming) Dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) {
	c, err := r.dialer.Dial(ctx, a)
	if err != nil {
		return nil, err
	}
	return &resumable{Conn: c, position: a.Position}, nil
}

type resumable struct {
	stream.Conn
	position string
	base     time.Duration
}

func (r *resumable) Receive() (stream.Message, error) {
	m, err := r.Conn.Receive()
	if err == nil {
		r.position, r.base = string(m.Data), 4*time.Second
	}
	return m, err
}

func (r *resumable) Position() string            { return r.position }
func (r *resumable) Base() (time.Duration, bool) { return r.base, r.base > 0 }

// TestNothingSkipped has a message arrive at the very instant at which the watchdog gives the connection up. Whichever of
// the two is first, the next attempt goes on behind the last message that was delivered.
func TestNothingSkipped(t *testing.T) {
	given := 0
	for range 200 {
		bubble(t, func(t *testing.T, c watched) {
			d := &tied{staleness: 4 * time.Second}
			delivered := ""
			for m, err := range stream.Reconnect(stream.Config{Dialer: d, Clock: c, Staleness: d.staleness}).Messages(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if len(d.positions) == 2 {
					want(t, "position of the second attempt", d.positions[1], delivered)
					break
				}
				delivered = string(m.Data)
				if delivered == "2" {
					given++
				}
			}
		})
	}
	if given == 0 || given == 200 {
		t.Logf("the tie always went one way: %d of 200", given)
	}
}

// tied makes connections on which the second message comes when the staleness time is over.
type tied struct {
	staleness time.Duration
	positions []string
}

func (d *tied) Dial(_ context.Context, a stream.Attempt) (stream.Conn, error) {
	d.positions = append(d.positions, a.Position)
	return &tiedConn{dialer: d, closed: make(chan struct{})}, nil
}

type tiedConn struct {
	dialer *tied
	sent   int
	once   sync.Once
	closed chan struct{}
}

func (c *tiedConn) Receive() (stream.Message, error) {
	if c.sent > 0 {
		select {
		case <-time.After(c.dialer.staleness):
		case <-c.closed:
			if c.sent > 1 {
				return stream.Message{}, errUsedClosed
			}
		}
	}
	if c.sent > 1 {
		<-c.closed
		return stream.Message{}, errUsedClosed
	}
	c.sent++
	return stream.Message{Data: strconv.AppendInt(nil, int64(c.sent), 10)}, nil
}

func (c *tiedConn) Position() string            { return strconv.Itoa(c.sent) }
func (c *tiedConn) Base() (time.Duration, bool) { return 0, false }

func (c *tiedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func TestUsage(t *testing.T) {
	var errs []error
	for _, err := range stream.Reconnect(stream.Config{Base: -1, Staleness: -1, WakeCheck: -1, AuthorizationThreshold: -1}).Messages(t.Context()) {
		errs = append(errs, err)
	}
	want(t, "errors", len(errs), 1)
	want(t, "reason", errors.Is(errs[0], stream.Usage), true)
	var mistakes []string
	for _, e := range errors.Unwrap(errs[0]).(interface{ Unwrap() []error }).Unwrap() {
		m, _ := errors.AsType[*stream.ConfigError](e)
		mistakes = append(mistakes, m.Field)
	}
	wantList(t, "mistakes", mistakes, []string{"Dialer", "Base", "Staleness", "WakeCheck", "AuthorizationThreshold"})
}

func TestConsumedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(last)
		stm := stream.Reconnect(stream.Config{Dialer: d, Clock: c})
		_, err := collect(t.Context(), stm, 1)
		want(t, "first", err, nil)
		_, err = collect(t.Context(), stm, 1)
		want(t, "second is usage", errors.Is(err, stream.Usage), true)
		want(t, "attempts", d.count(), 1)
	})
}
