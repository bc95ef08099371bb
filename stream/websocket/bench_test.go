package websocket_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

const benchSize = 512

// flood is a server on loopback that sends for as long as somebody reads.
func flood(b *testing.B) string {
	b.Helper()
	data := make([]byte, benchSize)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := ws.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		for c.Write(context.Background(), ws.MessageBinary, data) == nil {
		}
	}))
	b.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// BenchmarkReceive compares what the transport and the loop on top of it cost with the library itself, read in its two
// usual ways. Compare the lines of one run with each other.
func BenchmarkReceive(b *testing.B) {
	b.Run("library, Read(Background)", func(b *testing.B) { benchLibrary(b, context.Background()) })
	b.Run("library, Read(ctx)", func(b *testing.B) {
		ctx := b.Context()
		benchLibrary(b, ctx)
	})
	b.Run("transport", func(b *testing.B) { benchTransport(b, websocket.Dialer{}) })
	b.Run("transport, ReuseBuffer", func(b *testing.B) { benchTransport(b, websocket.Dialer{ReuseBuffer: true}) })
	b.Run("stream", func(b *testing.B) { benchStream(b, websocket.Dialer{ReuseBuffer: true}, 0) })
	b.Run("stream, Staleness", func(b *testing.B) { benchStream(b, websocket.Dialer{ReuseBuffer: true}, time.Minute) })
}

func benchLibrary(b *testing.B, ctx context.Context) {
	c, _, err := ws.Dial(ctx, flood(b), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }()
	b.SetBytes(benchSize)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.Read(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func benchTransport(b *testing.B, d websocket.Dialer) {
	d.URL = flood(b)
	c, err := d.Dial(b.Context(), stream.Attempt{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	b.SetBytes(benchSize)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Receive(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchStream(b *testing.B, d websocket.Dialer, staleness time.Duration) {
	d.URL = flood(b)
	b.SetBytes(benchSize)
	b.ReportAllocs()
	for m, err := range stream.Reconnect(stream.Config{Dialer: d, Staleness: staleness}).Messages(b.Context()) {
		if err != nil || len(m.Data) != benchSize {
			b.Fatal(err)
		}
		if !b.Loop() {
			break
		}
	}
}
