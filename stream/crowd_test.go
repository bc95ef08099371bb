package stream_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

// A deploy drops a thousand clients at once. They come back spread out, and none before its wait is over.
func TestAThousandClientsDroppedAtOnce(t *testing.T) {
	const clients = 1000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		net := fakes.NewNetwork(t)
		server := fakes.NewEventServer(nil)
		defer server.Close()
		var mu sync.Mutex
		var handshakes []time.Time
		net.ServePlain(t, "localhost", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			handshakes = append(handshakes, time.Now())
			mu.Unlock()
			server.ServeHTTP(w, r)
		}))
		http := net.Client()
		var all sync.WaitGroup
		early := make(chan time.Duration, clients)
		var streams []*stream.Stream
		for i := range clients {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			var due time.Time
			stm := stream.Reconnect(stream.Config{
				Dialer: websocket.Dialer{URL: "ws://localhost/", Client: http},
				Rand:   r.Int64N,
				Trace: &stream.Trace{
					Waiting: func(w delay.Wait) { due = w.Until },
					Connecting: func(stream.ConnectingInfo) {
						if by := time.Until(due); by > 0 {
							early <- by
						}
					},
				},
			})
			streams = append(streams, stm)
			time.Sleep(time.Millisecond) // they have not come all at once
			all.Go(func() {
				for _, err := range stm.Messages(context.Background()) {
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		synctest.Wait()
		want(t, "connected", server.Alive(), clients)
		server.Publish("proves them healthy")
		synctest.Wait()
		time.Sleep(time.Minute)
		dropped := time.Now()
		server.Restart(1012, 0, 0)
		time.Sleep(time.Minute)
		want(t, "connected again", server.Alive(), clients)
		want(t, "handshakes", len(handshakes), 2*clients)
		buckets := map[int]int{}
		for _, at := range handshakes[clients:] {
			buckets[int(at.Sub(dropped)/(100*time.Millisecond))]++
		}
		for b, n := range buckets {
			if n > clients*15/100 {
				t.Errorf("%d of %d came back between %d00 and %d00 ms", n, clients, b, b+1)
			}
		}
		if len(buckets) < 40 {
			t.Errorf("they came back within %d00 ms", len(buckets))
		}
		want(t, "early", len(early), 0)
		for _, stm := range streams {
			_ = stm.Close()
		}
		all.Wait()
	})
}

// unruly is a dialer that fails in every way, at random, and checks that the loop keeps its rules.
type unruly struct {
	t        *testing.T
	r        *rand.Rand
	live     int
	attempts int
	outcomes map[string]int
	due      time.Time // no attempt before
	refusals int       // of credentials, in a row
}

func (u *unruly) Dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) {
	u.attempts++
	if u.live != 0 {
		u.t.Fatal("a dial beside a connection")
	}
	if now := time.Now(); now.Before(u.due) {
		u.t.Fatalf("attempt %d came %v early", a.Number, u.due.Sub(now))
	}
	switch n := u.r.IntN(100); {
	case n < 20:
		u.outcomes["refused"]++
		return nil, &stream.AttemptError{Status: 503}
	case n < 30:
		after := time.Duration(1+u.r.IntN(300)) * time.Second
		u.due = time.Now().Add(after)
		u.outcomes["throttled"]++
		return nil, &stream.AttemptError{Class: stream.Throttled, Status: 429, RetryAfter: delay.Asked(after)}
	case n < 40:
		u.outcomes["no answer"]++
		return nil, errBroken
	case n < 45:
		u.outcomes["stalled"]++
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case n < 55 && u.refusals < stream.DefaultAuthorizationThreshold-1:
		u.refusals++
		u.outcomes["unauthorized"]++
		return nil, &stream.AttemptError{Class: stream.Unauthorized, Status: 401, RetryAfter: delay.Asked(time.Hour)}
	}
	u.live++
	s := step{alive: time.Duration(u.r.Int64N(int64(20 * time.Minute)))}
	if u.r.IntN(4) == 0 {
		s.alive = 0
	}
	if u.r.IntN(2) == 0 {
		s.messages = make([]string, 1+u.r.IntN(20))
	}
	switch u.r.IntN(6) {
	case 0:
		s.open = true // until it is stale
	case 1:
		s.end = &stream.DisconnectError{Code: 1012, Everyone: true}
	}
	u.outcomes["connected"]++
	return &unrulyConn{unruly: u, Conn: (&conn{dialer: &dialer{}, step: s, attempt: a, done: make(chan struct{})})}, nil
}

type unrulyConn struct {
	stream.Conn
	*unruly
	once sync.Once
}

func (c *unrulyConn) Close() error {
	c.once.Do(func() { c.live-- })
	return c.Conn.Close()
}

// A week, with a failure every few minutes.
func TestAWeek(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	bubble(t, func(t *testing.T, c watched) {
		const week = 7 * 24 * time.Hour
		u := &unruly{t: t, r: rand.New(rand.NewPCG(seed, 1)), outcomes: map[string]int{}}
		refusals := 0
		cfg := stream.Config{
			Dialer: u, Rand: u.r.Int64N, Clock: c, Staleness: 10 * time.Minute,
			Trace: &stream.Trace{
				Waiting: func(w delay.Wait) {
					if limit := max(time.Minute, w.Server); w.For > limit || w.For < w.Server {
						t.Errorf("a wait out of bounds: %v", w)
					}
					kinds := c.kinds()
					wantList(t, "timers before a wait", kinds, []delay.Kind{})
				},
				Failed:       func(i stream.FailedInfo) { refusals = i.Unauthorized },
				Disconnected: func(i stream.DisconnectedInfo) { refusals, u.refusals = i.Unauthorized, i.Unauthorized },
			},
		}
		stm := stream.Reconnect(cfg)
		time.AfterFunc(week, func() { _ = stm.Close() })
		messages := 0
		for _, err := range stm.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if messages++; messages%100 == 0 {
				time.Sleep(time.Duration(u.r.Int64N(int64(time.Hour)))) // a consumer that takes its time
			}
		}
		want(t, "connections left", u.live, 0)
		want(t, "refusals", refusals, u.refusals)
		t.Logf("%d attempts, %d messages, %v", u.attempts, messages, u.outcomes)
		if u.attempts < 500 {
			t.Errorf("only %d attempts", u.attempts)
		}
	})
}
