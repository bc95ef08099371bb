package bench

import (
	"context"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/sse"
	"github.com/heed-sdk/heed/stream/websocket"
)

// idleStreams is how many streams are open at once, each on a connection of its own.
const idleStreams = 2000

// The one message that each stream has received before it is idle: its buffers are there.
const (
	helloFrame = "\x81\x05hello"
	helloEvent = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n14\r\nid: 1:1\ndata: hello\n\r\n1\r\n\n\r\n"
)

// idle is one stream: it calls received after the first message, reads on, and returns when ctx has ended or the server is
// gone.
type idle func(ctx context.Context, addr string, client *http.Client, received func()) error

func heedIdle(config func(addr string, client *http.Client) stream.Config) idle {
	return func(ctx context.Context, addr string, client *http.Client, received func()) error {
		for _, err := range stream.Reconnect(config(addr, client)).Messages(ctx) {
			if err != nil {
				return err
			}
			received()
		}
		return nil
	}
}

func heedWebSocket(staleness time.Duration) idle {
	return heedIdle(func(addr string, client *http.Client) stream.Config {
		return stream.Config{Dialer: websocket.Dialer{URL: "ws://" + addr, Client: client}, Staleness: staleness}
	})
}

func heedSSE(staleness time.Duration) idle {
	return heedIdle(func(addr string, client *http.Client) stream.Config {
		return stream.Config{Dialer: sse.Dialer{URL: "http://" + addr, Client: client}, Staleness: staleness}
	})
}

func coderIdle(ctx context.Context, addr string, client *http.Client, received func()) error {
	c, _, err := ws.Dial(ctx, "ws://"+addr, &ws.DialOptions{HTTPClient: client})
	if err != nil {
		return err
	}
	defer c.CloseNow()
	if _, _, err = c.Read(context.Background()); err != nil {
		return err
	}
	received()
	_, _, _ = c.Read(context.Background())
	return nil
}

// httpIdle has no more than a body and some bytes to read it into.
func httpIdle(ctx context.Context, addr string, client *http.Client, received func()) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	buf := make([]byte, 512)
	if _, err := res.Body.Read(buf); err != nil {
		return err
	}
	received()
	for err == nil {
		_, err = res.Body.Read(buf)
	}
	return nil
}

// cost returns how many bytes of heap and stack a stream holds on to while it is idle.
func cost(t *testing.T, answer func(*http.Request) string, open idle) float64 {
	t.Helper()
	p := serve(t, answer, nil)
	transport := &http.Transport{}
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(t.Context())
	before := inUse()
	var all, ready sync.WaitGroup
	ready.Add(idleStreams)
	// Not all at once: the listener's queue is shorter.
	gate := make(chan struct{}, 64)
	for range idleStreams {
		gate <- struct{}{}
		all.Go(func() {
			var once sync.Once
			first := func() {
				once.Do(func() {
					<-gate
					ready.Done()
				})
			}
			defer first()
			if err := open(ctx, p.addr(), client, first); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	ready.Wait()
	time.Sleep(100 * time.Millisecond) // they all wait for a second message
	after := inUse()
	cancel()
	p.close()
	all.Wait()
	transport.CloseIdleConnections()
	return float64(after-before) / idleStreams
}

// inUse is the live heap and the stacks.
func inUse() int64 {
	for range 3 { // stacks shrink by half at a time, and pools keep things for a collection
		runtime.GC()
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestIdleMemory opens two thousand streams and compares what each holds on to, while nothing comes, with the least that
// could be there in its place. The server is in the same process, and the same for both.
func TestIdleMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	tests := []struct {
		name        string
		answer      func(*http.Request) string
		bare        idle
		heed, timed idle
		goal        float64 // more than the bare one
	}{
		{"websocket", upgraded(helloFrame), coderIdle, heedWebSocket(0), heedWebSocket(time.Minute), 4 << 10},
		{"sse", func(*http.Request) string { return helloEvent }, httpIdle, heedSSE(0), heedSSE(time.Minute), 6 << 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cost(t, tt.answer, tt.bare) // whatever is there once and for all
			bare := cost(t, tt.answer, tt.bare)
			heed := cost(t, tt.answer, tt.heed)
			timed := cost(t, tt.answer, tt.timed)
			t.Logf("%d idle streams, KiB each: bare %.1f; heed %.1f (%+.1f); with Staleness %.1f (%+.1f)", idleStreams,
				bare/1024, heed/1024, (heed-bare)/1024, timed/1024, (timed-bare)/1024)
			if more := max(heed, timed) - bare; more > tt.goal {
				t.Errorf("%.1f KiB more than the bare one, want at most %.1f", more/1024, tt.goal/1024)
			}
		})
	}
}
