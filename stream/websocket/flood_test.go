package websocket_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream/websocket"
)

// However a flood is cut into pieces, it arrives as it was sent, with what follows it.
func TestFlood(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	var frames []byte
	var sent [][]byte
	for range 500 {
		size := rng.IntN(1 << (1 + rng.IntN(16)))
		data := bytes.Repeat([]byte{byte(rng.Uint32())}, size)
		if size < 126 {
			frames = append(frames, 0x82, byte(size))
		} else {
			frames = binary.BigEndian.AppendUint16(append(frames, 0x82, 126), uint16(size))
		}
		frames, sent = append(frames, data...), append(sent, data)
	}
	frames = append(frames, 0x88, 0x02, 0x03, 0xe8) // 1000
	encrypted := &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, MinVersion: tls.VersionTLS12}
	for _, tt := range []struct {
		name, address string
		wrap          func(net.Conn) net.Conn
		piece         int
	}{
		{"in one piece", "ws://localhost/", func(c net.Conn) net.Conn { return c }, len(frames)},
		{"in many", "ws://localhost/", func(c net.Conn) net.Conn { return c }, 40_000},
		{"encrypted", "wss://localhost/", func(c net.Conn) net.Conn { return tls.Server(c, encrypted) }, 40_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				client := pipes(t, func(c net.Conn) {
					c = tt.wrap(c)
					upgrade(c, accepted)
					for rest := frames; len(rest) > 0; {
						n := min(1+rng.IntN(tt.piece), len(rest))
						if tt.piece == len(frames) {
							n = len(frames)
						}
						if _, err := c.Write(rest[:n]); err != nil {
							return
						}
						rest = rest[n:]
					}
					_, _ = io.Copy(io.Discard, c)
				})
				conn := dial(t, websocket.Dialer{URL: tt.address, Client: client, ReuseBuffer: true})
				for i, data := range sent {
					m, err := conn.Receive()
					if err != nil || !bytes.Equal(m.Data, data) {
						t.Fatalf("message %d: %d bytes, %v; want %d", i, len(m.Data), err, len(data))
					}
				}
				_, err := conn.Receive()
				want(t, "after the last", err, io.EOF)
			})
		})
	}
}
