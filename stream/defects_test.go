package stream_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
)

// TestDefects has what clients that reconnect get wrong, each by its name.
func TestDefects(t *testing.T) {
	t.Run("retry of 9223372036854775807: no panic, no burst", hugeRetry)
	t.Run("200 and an immediate end, for ever: waits grow", endlessEnds)
	t.Run("503 with Retry-After 2 after a drop: at least 2 s", refusedAfterADrop)
	t.Run("an id is kept across an empty connection", idAcrossAnEmptyConnection)
	t.Run("no second connection, however often try now is pressed", tryNowPressedOften)
	t.Run("no goroutine is left of 20 streams closed with unread events", closedWithUnreadEvents)
	t.Run("a stalled dial does not hold up Close", stalledDial)
	t.Run("a frozen peer is noticed in time, and before any buffered delivery", frozenPeer)
	t.Run("draws have no mass at the cap", noMassAtTheCap)
}

var transports = map[string]func(*http.Client) stream.Dialer{"websocket": webSocket, "sse": eventStream}

// overScript runs a stream against a scripted server until it has the text "last", and returns what both have seen.
func overScript(t *testing.T, transport func(*http.Client) stream.Dialer, draws delay.Rand, script ...fakes.StreamStep) (l *log, server *fakes.StreamServer) {
	t.Helper()
	network, clk := fakes.NewNetwork(t), newWatched()
	l, server = &log{}, scripted(t, append(script, fakes.StreamStep{Messages: []string{"last"}, Then: fakes.Stop})...)
	network.Serve(t, "stream.test", server)
	stm := stream.Reconnect(stream.Config{Dialer: transport(network.Client()), Rand: draws, Clock: clk, Trace: l.trace()})
	for m, err := range stm.Messages(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		if string(m.Data) == "last" {
			break
		}
	}
	synctest.Wait()
	wantDurations(t, "waits, as the server saw them", fakes.Waited(server.Attempts()), l.waited())
	wantList(t, "violations", server.Violations(), nil)
	wantList(t, "timers left", clk.kinds(), []delay.Kind{})
	want(t, "connections at once", server.MostAlive(), 1)
	return l, server
}

func hugeRetry(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, ms := range []string{"9223372036854775807", "18446744073709551617", "1" + strings.Repeat("0", 99)} {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			const times = 30
			step := fakes.StreamStep{Raw: "retry: " + ms + "\n\n", Then: fakes.Drop}
			l, _ := overScript(t, eventStream, rand.New(rand.NewPCG(seed, 0)).Int64N, slices.Repeat([]fakes.StreamStep{step}, times)...)
			sum := time.Duration(0)
			for _, w := range l.waited() {
				if sum += w; w < 0 || w > time.Minute {
					t.Errorf("%s: a wait of %v", ms, w)
				}
			}
			// All are drawn from a whole minute, 30 s each in the mean, the first too: a base that had gone to the other end
			// would grow to that in time. Once in a hundred million times six of them are less than 7 s.
			first := time.Duration(0)
			for _, w := range l.waited()[:6] {
				first += w
			}
			if len(l.waits) != times || first < 7*time.Second || sum < times*14*time.Second {
				t.Errorf("%s: %d waits of %v in all, %v the first six", ms, len(l.waits), sum, first)
			}
		})
	}
}

func endlessEnds(t *testing.T) {
	for name, transport := range transports {
		for _, end := range []fakes.Then{fakes.End, fakes.Drop} {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				const times = 12
				l, _ := overScript(t, transport, pinned(1), slices.Repeat([]fakes.StreamStep{{Then: end}}, times)...)
				grown := slices.Concat(s(1, 2, 4, 8, 16, 32), slices.Repeat(s(60), times-6))
				wantDurations(t, name+", "+string(end), l.waited(), grown)
				for _, i := range l.disconnected[:times] {
					want(t, "healthy", i.Healthy, false)
				}
			})
		}
	}
}

func refusedAfterADrop(t *testing.T) {
	for name, transport := range transports {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			// The draw is nothing, so the server's word stands alone.
			l, _ := overScript(t, transport, pinned(0),
				fakes.StreamStep{Messages: []string{"a"}, Alive: time.Minute, Then: fakes.Drop},
				fakes.StreamStep{Refuse: 503, RetryAfter: "2"},
				fakes.StreamStep{Refuse: 503, RetryAfter: "2"},
			)
			wantDurations(t, name, l.waited(), s(0, 2, 2))
		})
	}
}

func idAcrossAnEmptyConnection(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		_, server := overScript(t, eventStream, pinned(1),
			fakes.StreamStep{Raw: "id: 1\ndata: a\n\n", Then: fakes.End},
			fakes.StreamStep{Then: fakes.End},
			fakes.StreamStep{Then: fakes.Drop},
			fakes.StreamStep{Refuse: 503},
			fakes.StreamStep{Raw: ": hb\n\ndata: b\n\n", Then: fakes.Drop},
		)
		sent := []string{}
		for _, a := range server.Attempts() {
			sent = append(sent, a.LastEventID)
		}
		wantList(t, "Last-Event-ID", sent, []string{"", "1", "1", "1", "1", "1"})
	})
}

func tryNowPressedOften(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(refused(503, time.Hour), step{messages: []string{"a"}, alive: 10 * time.Second}, last)
		l := &log{}
		var stm *stream.Stream
		press := func() {
			for range 100 {
				stm.TryNow()
			}
		}
		trace := l.trace()
		trace.Connecting = func(stream.ConnectingInfo) { press() }
		stm = stream.Reconnect(stream.Config{Dialer: d, Rand: pinned(1), Clock: c, Trace: trace})
		press() // nothing is waiting yet
		go func() {
			time.Sleep(2 * time.Second)
			press() // in the wait
			synctest.Wait()
			press() // connected
			want(t, "alive", d.alive(), 1)
		}()
		_, err := collect(t.Context(), stm, 2)
		want(t, "error", err, nil)
		want(t, "attempts", d.count(), 3)
		want(t, "connections at once", d.most, 1)
		want(t, "the first wait was cut after", d.at[1].Sub(d.at[0]), 2*time.Second)
		want(t, "the second was not", d.at[2].Sub(d.at[1]), 11*time.Second)
		want(t, "the count goes on", l.waits[0].Attempt, 1)
	})
}

func closedWithUnreadEvents(t *testing.T) {
	const streams = 20
	for name, transport := range transports {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			unread := slices.Repeat([]string{strings.Repeat("x", 1<<10)}, 100)
			network := fakes.NewNetwork(t)
			server := scripted(t, slices.Repeat([]fakes.StreamStep{{Messages: unread, Then: fakes.Stop}}, streams)...)
			network.Serve(t, "stream.test", server)
			client := network.Client()
			synctest.Wait()
			before := inBubbles()

			var all []*stream.Stream
			var consumers sync.WaitGroup
			closed := make(chan struct{})
			got := make(chan int, streams)
			for range streams {
				stm := stream.Reconnect(stream.Config{Dialer: transport(client), Staleness: time.Minute, WakeCheck: time.Second})
				all = append(all, stm)
				consumers.Go(func() {
					n := 0
					for range stm.Messages(context.Background()) {
						if n++; n == 10 {
							<-closed
						}
					}
					got <- n
				})
			}
			synctest.Wait()
			want(t, name+": alive", server.Alive(), streams)
			if n := inBubbles() - before; n < streams {
				t.Errorf("%s: only %d goroutines", name, n)
			}
			for _, stm := range all {
				_ = stm.Close()
			}
			close(closed)
			consumers.Wait()
			synctest.Wait()
			for range streams {
				want(t, name+": messages", <-got, 10)
			}
			want(t, name+": alive at the end", server.Alive(), 0)
			if n := inBubbles() - before; n > 0 {
				t.Errorf("%s: %d goroutines left", name, n)
			}
		})
	}
}

// inBubbles counts the goroutines in bubbles: there may be others, of the runtime's.
func inBubbles() int {
	stacks := make([]byte, 4<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(", synctest bubble "))
}

func stalledDial(t *testing.T) {
	for name, transport := range transports {
		for stall, dial := range map[string]func(ctx context.Context, network *fakes.Network, end <-chan struct{}) (net.Conn, error){
			// net/http lets a dial go on, because another request may want the connection, so these two do not hear of
			// the end.
			"no connection": func(_ context.Context, _ *fakes.Network, end <-chan struct{}) (net.Conn, error) {
				<-end
				return nil, net.ErrClosed
			},
			"no hello": func(_ context.Context, _ *fakes.Network, end <-chan struct{}) (net.Conn, error) {
				here, there := net.Pipe()
				go func() {
					<-end
					_ = there.Close()
				}()
				return here, nil
			},
			"no answer": func(ctx context.Context, network *fakes.Network, _ <-chan struct{}) (net.Conn, error) {
				return network.DialContext(ctx, "tcp", "stream.test:443")
			},
		} {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				network, end, dialled := fakes.NewNetwork(t), make(chan struct{}), atomic.Int32{}
				network.Serve(t, "stream.test", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
				client := network.Client()
				client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
					dialled.Add(1)
					return dial(ctx, network, end)
				}
				stm := stream.Reconnect(stream.Config{Dialer: transport(client), HandshakeDeadline: -1})
				over := make(chan error)
				go func() {
					_, err := collect(context.Background(), stm, -1)
					over <- err
				}()
				time.Sleep(time.Hour)
				began := time.Now()
				_ = stm.Close()
				want(t, fmt.Sprintf("%s, %s: Close took", name, stall), time.Since(began), 0)
				want(t, "error", <-over, nil)
				want(t, fmt.Sprintf("%s, %s: the loop ended after", name, stall), time.Since(began), 0)
				time.Sleep(time.Hour)
				want(t, fmt.Sprintf("%s, %s: dialled", name, stall), dialled.Load(), 1)
				close(end)
				synctest.Wait()
			})
		}
	}
}

// A frame that comes only after the machine was asleep may have waited in a buffer since before: it proves nothing.
func frozenPeer(t *testing.T) {
	h := &hand{}
	asleep(t, h, 0, pinned(1), func(s *sleeper) {
		synctest.Wait()
		s.clock.StepWall(time.Hour)
		h.last().in <- text("from before")
		s.waits("the wait after a sleep", 2*time.Second)
		s.clock.Advance(2 * time.Second)
		synctest.Wait()
		h.last().in <- text("fresh")
		synctest.Wait()
		wantList(t, "delivered", s.messages, []string{"fresh"})
		want(t, "slept", s.log.stale[0].Slept, true)
		want(t, "silence", s.log.stale[0].Silence, time.Hour)
		wantList(t, "reasons", s.log.reasons(), []delay.Reason{delay.Woken})

		s.clock.Advance(10*time.Second - 1)
		synctest.Wait()
		want(t, "noticed too early", len(s.log.stale), 1)
		s.clock.Advance(1)
		s.waits("the wait after a silence", time.Second)
		want(t, "silence", s.log.stale[1].Silence, 10*time.Second)
		want(t, "slept", s.log.stale[1].Slept, false)
	})
}

func noMassAtTheCap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	bubble(t, func(t *testing.T, c watched) {
		const draws = 12_000
		d := dials(append(slices.Repeat([]step{refused(503, 0)}, draws+10), last)...)
		l, err := follow(t, c, d, func(c *stream.Config) { c.Rand = rand.New(rand.NewPCG(seed, 0)).Int64N })
		want(t, "error", err, nil)
		atTheCap, seconds := 0, [60]int{}
		for _, w := range l.waited()[10:] { // the cap is reached after seven
			if w >= time.Minute {
				atTheCap++
			}
			seconds[min(w/time.Second, 59)]++
		}
		if atTheCap > 1 {
			t.Errorf("%d draws at the cap", atTheCap)
		}
		for at, n := range seconds { // 200 in the mean, with a deviation of 14
			if n < 100 || n > 300 {
				t.Errorf("%d draws of %d between %d and %d s", n, draws, at, at+1)
			}
		}
	})
}
