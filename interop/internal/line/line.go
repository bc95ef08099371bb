// Package line is a bad line to a server: toxiproxy, without its interface.
package line

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

// Line is a line that connections to a server can be made through.
type Line struct {
	t  testing.TB
	p  *toxiproxy.Proxy
	to string
}

// New returns a line to an address, host and port, which is good until something is added, and ends with the test.
func New(t testing.TB, to string) *Line {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Line{t: t, p: toxiproxy.NewProxy(server, "line", "127.0.0.1:0", to), to: to}
	l.Up()
	t.Cleanup(l.p.Stop)
	return l
}

// Addr is the near end of the line, host and port.
func (l *Line) Addr() string { return l.p.Listen }

// Through is an address of the server by way of the line.
func (l *Line) Through(address string) string { return strings.Replace(address, l.to, l.p.Listen, 1) }

// Up ends Cut.
func (l *Line) Up() {
	l.t.Helper()
	if err := l.p.Start(); err != nil {
		l.t.Fatal(err)
	}
}

// Cut ends all connections and refuses others until Up is called.
func (l *Line) Cut() { l.p.Stop() }

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

// Leftovers are the goroutines that toxiproxy does not end when a connection ends while something is added to its line or
// removed, or when limit_data ends it.
func Leftovers() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	}
}
