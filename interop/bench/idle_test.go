package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
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

// idle is one stream: it calls received after the first message, and reads on until the server is gone.
type idle func(addr string, client *http.Client, received func()) error

// idles are the streams that are compared, and the least that could be there in their place.
var idles = map[string]idle{
	"coder": func(addr string, client *http.Client, received func()) error {
		c, _, err := ws.Dial(context.Background(), "ws://"+addr, &ws.DialOptions{HTTPClient: client})
		if err != nil {
			return err
		}
		defer func() { _ = c.CloseNow() }()
		if _, _, err = c.Read(context.Background()); err != nil {
			return err
		}
		received()
		_, _, _ = c.Read(context.Background())
		return nil
	},
	"net/http": func(addr string, client *http.Client, received func()) error {
		res, err := client.Get("http://" + addr)
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
	},
	"websocket":        heedWebSocket(0),
	"websocket, timed": heedWebSocket(time.Minute),
	"sse":              heedSSE(0),
	"sse, timed":       heedSSE(time.Minute),
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

func heedIdle(config func(addr string, client *http.Client) stream.Config) idle {
	return func(addr string, client *http.Client, received func()) error {
		for _, err := range stream.Reconnect(config(addr, client)).Messages(context.Background()) {
			if err != nil {
				return err
			}
			received()
		}
		return nil
	}
}

// The environment of a process that only holds streams.
const (
	idleName = "HEED_BENCH_IDLE"
	idleAddr = "HEED_BENCH_ADDR"
)

// TestIdleMemory opens two thousand streams and compares what each holds on to, while nothing comes, with the least that
// could be there in its place. Each kind has a process of its own, without the server: stacks that one leaves behind would
// be there for the next one to use.
func TestIdleMemory(t *testing.T) {
	if name := os.Getenv(idleName); name != "" {
		fmt.Printf("%d bytes\n", hold(t, idles[name], os.Getenv(idleAddr)))
		os.Exit(0) // with all the streams
	}
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	for _, tt := range []struct {
		bare   string
		answer func(*http.Request) string
		heed   []string
		most   int // more than the bare one
	}{
		{"coder", upgraded(helloFrame), []string{"websocket", "websocket, timed"}, 4 << 10},
		{"net/http", func(*http.Request) string { return helloEvent }, []string{"sse", "sse, timed"}, 6 << 10},
	} {
		bare := cost(t, tt.bare, tt.answer)
		t.Logf("%s: %d bytes for each of %d", tt.bare, bare, idleStreams)
		for _, name := range tt.heed {
			more := cost(t, name, tt.answer) - bare
			t.Logf("%s: %d more", name, more)
			if more > tt.most {
				t.Errorf("%s: an idle stream holds %d bytes more than %s, want at most %d", name, more, tt.bare, tt.most)
			}
		}
	}
}

// cost returns what another process measured for one kind.
func cost(t *testing.T, name string, answer func(*http.Request) string) (each int) {
	t.Helper()
	p := serve(t, answer, nil)
	defer p.close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestIdleMemory$")
	cmd.Env = append(os.Environ(), idleName+"="+name, idleAddr+"="+p.addr())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		_, err = fmt.Sscanf(string(out), "%d bytes", &each)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return each
}

// hold opens the streams, and returns how many bytes of heap and stack each holds on to.
func hold(t *testing.T, open idle, addr string) int {
	client := &http.Client{Transport: &http.Transport{}}
	before := inUse()
	var ready sync.WaitGroup
	ready.Add(idleStreams)
	gate := make(chan struct{}, 64) // not all at once: the listener's queue is shorter
	for range idleStreams {
		gate <- struct{}{}
		go func() {
			err := open(addr, client, func() {
				<-gate
				ready.Done()
			})
			t.Errorf("a stream ended: %v", err)
			panic("a stream ended")
		}()
	}
	ready.Wait()
	time.Sleep(100 * time.Millisecond) // they all wait for a second message
	return (inUse() - before) / idleStreams
}

// inUse is the live heap and the stacks.
func inUse() int {
	for range 3 { // stacks shrink by half at a time, and pools keep things for a collection
		runtime.GC()
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
