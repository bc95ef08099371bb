package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// documents are what a host publishes, by path: a JSON value, or a handler.
type documents map[string]any

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func body(contentType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, text)
	}
}

// hangs never answers.
var hangs http.HandlerFunc = func(_ http.ResponseWriter, r *http.Request) { lasts(r, time.Hour) }

// lasts waits while the client is there. Once it has gone nothing is answered any more: not even the end of a body, which
// a connection that is just being closed may still carry.
func lasts(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// published is a network on which hosts publish documents, and what they were asked for. Dialled hosts have the addresses
// that are listed, and 203.0.113.1 otherwise.
type published struct {
	net *fakes.Network

	mu        sync.Mutex
	addresses map[string][]string // the next first; the last stays
	paths     []string            // "host/path"
	dialled   []string            // "host:port"
}

func newPublished(t *testing.T) *published {
	t.Helper()
	return &published{net: fakes.NewNetwork(t), addresses: map[string][]string{}}
}

// at makes a host have addresses, one for each connection.
func (p *published) at(host string, addresses ...string) { p.addresses[host] = addresses }

func (p *published) serve(t *testing.T, host string, docs documents) {
	t.Helper()
	p.net.Serve(t, host, p.handler(host, docs))
}

func (p *published) handler(host string, docs documents) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.paths = append(p.paths, host+r.URL.EscapedPath())
		p.mu.Unlock()
		switch doc := docs[r.URL.EscapedPath()].(type) {
		case nil:
			http.NotFound(w, r)
		case http.HandlerFunc:
			doc(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(doc); err != nil {
				panic(err) // no JSON value, but a mistake in the test
			}
		}
	})
}

// client reaches the hosts of the network.
func (p *published) client() *http.Client {
	t := p.net.Transport()
	t.DialContext = p.dial
	return &http.Client{Transport: t}
}

func (p *published) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	p.mu.Lock()
	p.dialled = append(p.dialled, addr)
	host, _, _ := net.SplitHostPort(addr)
	ip := "203.0.113.1"
	if list := p.addresses[host]; len(list) > 0 {
		ip = list[0]
		if len(list) > 1 {
			p.addresses[host] = list[1:]
		}
	}
	p.mu.Unlock()
	c, err := p.net.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return addressedConn{c, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 443))}, nil
}

// addressedConn is a connection to an address.
type addressedConn struct {
	net.Conn
	to net.Addr
}

func (c addressedConn) RemoteAddr() net.Addr { return c.to }

// asked returns what has been asked for since the last call.
func (p *published) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	paths := p.paths
	p.paths = nil
	return paths
}

// hosts returns the hosts that were dialled since the last call.
func (p *published) hosts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	hosts := slices.Compact(p.dialled)
	p.dialled = nil
	return hosts
}

const (
	serverPath   = "/.well-known/oauth-authorization-server"
	openIDPath   = "/.well-known/openid-configuration"
	resourcePath = "/.well-known/oauth-protected-resource"
)

// metadataOf is the metadata of an ordinary server, with some members changed; nil takes a member out.
func metadataOf(issuer string, changes ...map[string]any) map[string]any {
	doc := map[string]any{
		"issuer": issuer, "token_endpoint": issuer + "/token", "device_authorization_endpoint": issuer + "/device",
		"revocation_endpoint": issuer + "/revoke",
	}
	for _, change := range changes {
		for name, value := range change {
			if doc[name] = value; value == nil {
				delete(doc, name)
			}
		}
	}
	return doc
}

// discoveryFailure is a DiscoveryError as a test compares it.
type discoveryFailure struct {
	reason   auth.DiscoveryReason
	hop      auth.Hop
	endpoint string
	status   int
}

// failureOf reads an error; the zero failure is success.
func failureOf(t *testing.T, err error) discoveryFailure {
	t.Helper()
	if err == nil {
		return discoveryFailure{}
	}
	e, ok := errors.AsType[*auth.DiscoveryError](err)
	if !ok {
		t.Fatalf("the error is %T: %v", err, err)
	}
	if !errors.Is(err, e.Reason) {
		t.Errorf("the error is not the one of its reason %s", e.Reason)
	}
	return discoveryFailure{e.Reason, e.Hop, e.Endpoint, e.Status}
}
