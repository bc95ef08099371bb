// Package badline is a bad line to a server: toxiproxy, without its interface.
package badline

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Line is a line to one server.
type Line struct {
	t  testing.TB
	p  *toxiproxy.Proxy
	to string
}

// New returns a line, which is good and lasts until the test ends, to a host and port.
func New(t testing.TB, to string) *Line {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Line{t: t, p: toxiproxy.NewProxy(server, "line", "127.0.0.1:0", to), to: to}
	l.Up()
	t.Cleanup(l.p.Stop)
	return l
}

// Through is an address of the server by way of the line.
func (l *Line) Through(address string) string { return strings.Replace(address, l.to, l.p.Listen, 1) }

// Cut ends all connections and refuses others until Up is called.
func (l *Line) Cut() { l.p.Stop() }

// Up ends Cut.
func (l *Line) Up() {
	l.t.Helper()
	if err := l.p.Start(); err != nil {
		l.t.Fatal(err)
	}
}

// Add has something wrong with what comes from the server, for all connections, those that are there included.
func (l *Line) Add(kind string, attributes map[string]any) {
	l.t.Helper()
	j, err := json.Marshal(map[string]any{
		"name": kind, "type": kind, "stream": "downstream", "toxicity": 1, "attributes": attributes,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.p.Toxics.AddToxicJson(bytes.NewReader(j)); err != nil {
		l.t.Fatal(err)
	}
}

// Remove takes it away again. It can wait for data, so it is not for the goroutine that reads.
func (l *Line) Remove(kind string) {
	if err := l.p.Toxics.RemoveToxic(context.Background(), kind); err != nil {
		l.t.Error(err)
	}
}
