package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

// flood is a server that sends text messages of a size, as fast as they are read.
func flood(b *testing.B, size int) *server {
	b.Helper()
	var frame []byte
	switch {
	case size < 126:
		frame = []byte{0x81, byte(size)}
	case size < 1<<16:
		frame = binary.BigEndian.AppendUint16([]byte{0x81, 126}, uint16(size))
	default:
		frame = binary.BigEndian.AppendUint64([]byte{0x81, 127}, uint64(size))
	}
	frame = append(frame, bytes.Repeat([]byte{'x'}, size)...)
	block := bytes.Repeat(frame, max(1, 1<<18/len(frame)))
	p := serve(b, upgraded(""), func(c net.Conn) {
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	})
	b.Cleanup(p.close)
	return p
}

// receiver reads n messages.
type receiver func(n int)

// receivers are the libraries, each read in two forms: into a buffer that is reused, and with a message of its own each
// time. The stream is what a user has, with its watchdog on.
var receivers = []struct {
	form, lib string
	open      func(b *testing.B, addr string) receiver
}{
	{"reused", "heed", func(b *testing.B, addr string) receiver { return openHeed(b, addr, true) }},
	{"reused", "coder", func(b *testing.B, addr string) receiver {
		c := dialCoder(b, addr)
		var buf bytes.Buffer
		return func(n int) {
			for range n {
				_, r, err := c.Reader(context.Background())
				if err == nil {
					buf.Reset()
					_, err = buf.ReadFrom(r)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	}},
	{"own", "heed", func(b *testing.B, addr string) receiver { return openHeed(b, addr, false) }},
	{"own", "coder", func(b *testing.B, addr string) receiver {
		c := dialCoder(b, addr)
		return func(n int) {
			for range n {
				if _, _, err := c.Read(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		}
	}},
}

func dialCoder(b *testing.B, addr string) *ws.Conn {
	c, _, err := ws.Dial(b.Context(), "ws://"+addr, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// heedConfig is what a user has, with the watchdog on.
func heedConfig(addr string, reuse bool) stream.Config {
	return stream.Config{
		Dialer:    websocket.Dialer{URL: "ws://" + addr, ReuseBuffer: reuse},
		Staleness: time.Minute,
	}
}

// openHeed is a loop whose body is given back after n messages: the iterator is one that is pulled by its own goroutine.
func openHeed(b *testing.B, addr string, reuse bool) receiver {
	s := stream.Reconnect(heedConfig(addr, reuse))
	turns, done, ended := make(chan int), make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		left := 0
		for _, err := range s.Messages(context.Background()) {
			if err != nil {
				done <- err
				return
			}
			if left == 0 {
				n, more := <-turns
				if !more {
					return
				}
				left = n
			}
			if left--; left == 0 {
				done <- nil
			}
		}
	}()
	b.Cleanup(func() {
		close(turns)
		<-ended
	})
	return func(n int) {
		turns <- n
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWebSocket receives messages with the SDK and with github.com/coder/websocket, which is below it.
func BenchmarkWebSocket(b *testing.B) {
	for _, size := range []int{64, 512, 16 << 10} {
		for _, r := range receivers {
			b.Run("size="+strconv.Itoa(size)+"/form="+r.form+"/lib="+r.lib, func(b *testing.B) {
				receive := r.open(b, flood(b, size).addr())
				receive(1000)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				receive(b.N)
			})
		}
	}
}

// BenchmarkWebSocketRatio lets the two take turns in short laps, on several connections each, and reports how fast the SDK is
// in relation to the library, read in the same form. The quartile of each is compared: of the slower laps most were
// disturbed, and the very fastest had luck. The goal is 0.95 or more.
func BenchmarkWebSocketRatio(b *testing.B) {
	const pairs, rounds = 6, 25
	for _, size := range []int{64, 512, 16 << 10} {
		for i := 0; i < len(receivers); i += 2 {
			b.Run("size="+strconv.Itoa(size)+"/form="+receivers[i].form, func(b *testing.B) {
				for b.Loop() {
					var ours, theirs []time.Duration
					for range pairs {
						o, t := race(b, size, receivers[i].form == "reused", receivers[i+1].open, rounds)
						ours, theirs = append(ours, o...), append(theirs, t...)
					}
					slices.Sort(ours)
					slices.Sort(theirs)
					b.ReportMetric(float64(theirs[len(theirs)/4])/float64(ours[len(ours)/4]), "of-coder")
				}
			})
		}
	}
}

// race returns how long each lap of one connection took. The library's turn is in the body of our loop, so that no turn has
// to wait for a goroutine to be woken.
func race(b *testing.B, size int, reuse bool, open func(*testing.B, string) receiver, rounds int) (ours, theirs []time.Duration) {
	const lap = 4 * time.Millisecond
	s1, s2 := flood(b, size), flood(b, size)
	defer s1.close()
	defer s2.close()
	other := open(b, s2.addr())
	n := 100
	for best := time.Duration(0); best < lap; n += n / 2 {
		best = time.Hour
		for range 3 {
			began := time.Now()
			other(n)
			best = min(best, time.Since(began))
		}
	}
	left := n
	began := time.Now()
	for _, err := range stream.Reconnect(heedConfig(s1.addr(), reuse)).Messages(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		if left--; left > 0 {
			continue
		}
		ours = append(ours, time.Since(began))
		began = time.Now()
		other(n)
		theirs = append(theirs, time.Since(began))
		if len(theirs) > rounds {
			break
		}
		left, began = n, time.Now()
	}
	return ours[1:], theirs[1:] // the first had to connect
}
