//go:build unix

package nchan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/heed-sdk/heed/interop/nchan"
)

// proxy is a bad line to a server: toxiproxy, without its interface.
type proxy struct {
	t  *testing.T
	p  *toxiproxy.Proxy
	to string
}

func newProxy(t *testing.T, s *nchan.Server) *proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &proxy{t: t, p: toxiproxy.NewProxy(server, "line", "127.0.0.1:0", s.Addr()), to: s.Addr()}
	p.up()
	t.Cleanup(p.p.Stop)
	return p
}

// through is an address of the server by way of the proxy.
func (p *proxy) through(address string) string { return strings.Replace(address, p.to, p.p.Listen, 1) }

func (p *proxy) up() {
	p.t.Helper()
	if err := p.p.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// cut ends all connections and refuses others until up is called.
func (p *proxy) cut() { p.p.Stop() }

// add has something wrong with what comes from the server, for all connections, those that are there included.
func (p *proxy) add(kind string, attributes map[string]any) {
	p.t.Helper()
	j, err := json.Marshal(map[string]any{
		"name": kind, "type": kind, "stream": "downstream", "toxicity": 1, "attributes": attributes,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.p.Toxics.AddToxicJson(bytes.NewReader(j)); err != nil {
		p.t.Fatal(err)
	}
}

// remove takes it away again. It can wait for data, so it is not for the goroutine that reads.
func (p *proxy) remove(kind string) {
	if err := p.p.Toxics.RemoveToxic(context.Background(), kind); err != nil {
		p.t.Error(err)
	}
}
