package auth_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// tunnel serves a proxy on the network, which connects to any of its hosts, and returns the targets it was asked for.
func (p *published) tunnel(t *testing.T, host string) (targets func() []string) {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	p.net.ServePlain(t, host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Host)
		mu.Unlock()
		there, err := p.net.DialContext(r.Context(), "tcp", r.Host)
		if err != nil || r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		joinTunnel(t, w, there)
	}))
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		got := asked
		asked = nil
		return got
	}
}

// joinTunnel answers a CONNECT and carries bytes both ways until both ends have closed.
func joinTunnel(t *testing.T, w http.ResponseWriter, there net.Conn) {
	here, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	// Only now, so that the server has read nothing of what the client sends next.
	io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{here, there}, {there, here}} {
		both.Go(func() {
			io.Copy(pair[0], pair[1])
			pair[0].Close()
		})
	}
	both.Wait()
}

func TestBehindAProxy(t *testing.T) {
	tests := []struct {
		endpoint string // the token endpoint that the document names
		spelling string // what its spelling is refused as
		reached  bool
	}{
		{"https://token.test/token", "", true}, // whose address only the proxy knows
		{"https://10.0.0.1/token", "private", false},
		{"https://169.254.169.254/token", "cloud metadata", false},
		{"https://metadata.google.internal/token", "cloud metadata", false},
		{"https://localhost/token", "loopback", false},
		{"https://[::1]/token", "loopback", false},
		{"https://vault/token", "private", false},
		{"https://direct.test/token", "", false}, // not through the proxy, and at a private address
	}
	for _, tt := range tests {
		t.Run(tt.endpoint, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				p := newPublished(t)
				for _, host := range []string{"token.test", "direct.test", "10.0.0.1", "vault"} {
					p.serve(t, host, documents{"/token": map[string]any{}})
				}
				p.serve(t, "as.test", documents{serverPath: metadataOf("https://as.test", map[string]any{"token_endpoint": tt.endpoint})})
				targets := p.tunnel(t, "proxy.test:3128")
				p.at("proxy.test", "10.9.9.9") // on the user's own network, as proxies are
				p.at("direct.test", "10.0.0.1")
				client := p.client()
				client.Transport.(*http.Transport).Proxy = func(r *http.Request) (*url.URL, error) {
					if r.URL.Hostname() == "direct.test" {
						return nil, nil
					}
					return url.Parse("http://user:canary-password@proxy.test:3128")
				}
				d := auth.Discovery{HTTPClient: client}
				m, err := d.Issuer(t.Context(), "https://as.test")
				if got := targets(); fmt.Sprint(got) != "[as.test:443]" {
					t.Errorf("through the proxy went %v", got)
				}
				if tt.spelling != "" {
					e, ok := errors.AsType[*auth.AddressError](err)
					if !ok || e.Kind != tt.spelling {
						t.Errorf("%v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				// What is learned behind a proxy is the proxy's address, and that is nobody's excuse.
				p.asked()
				res, err := m.HTTPClient().PostForm(m.TokenEndpoint, nil)
				if err == nil {
					res.Body.Close()
					m.HTTPClient().CloseIdleConnections()
				}
				if reached := err == nil && len(p.asked()) == 1; reached != tt.reached {
					t.Errorf("reached %v: %v", reached, err)
				}
				if err != nil && !errors.Is(err, auth.ErrUnavailable) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestProxyFailures(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		p.serve(t, "as.test", documents{serverPath: metadataOf("https://as.test")})
		client := p.client()
		tr := client.Transport.(*http.Transport)
		d := auth.Discovery{HTTPClient: client}
		for _, proxy := range []func(*http.Request) (*url.URL, error){
			func(*http.Request) (*url.URL, error) {
				return nil, errors.New(`invalid proxy address "http://user:canary-password@:x"`)
			},
			func(*http.Request) (*url.URL, error) {
				return url.Parse("http://user:canary-password@nobody.test:3128")
			},
		} {
			tr.Proxy = proxy
			_, err := d.Issuer(t.Context(), "https://as.test")
			if !errors.Is(err, auth.ErrUnreachable) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v", err)
			}
		}

		broken := false
		tr.Proxy = func(*http.Request) (*url.URL, error) {
			if broken {
				return nil, errors.New(`invalid proxy address "http://user:canary-password@:x"`)
			}
			return nil, nil
		}
		m, err := d.Issuer(t.Context(), "https://as.test")
		if err != nil {
			t.Fatal(err)
		}
		broken = true
		if _, err := m.HTTPClient().PostForm(m.TokenEndpoint, nil); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "HTTPS_PROXY") {
			t.Errorf("%v", err)
		}
		if _, err := d.Issuer(t.Context(), "https://as.test"); !errors.Is(err, auth.ErrUnreachable) || !strings.Contains(err.Error(), "HTTPS_PROXY") {
			t.Errorf("%v", err)
		}
	})
}

// names is a resolver of its own, for the tests of the one thing that an in-memory network cannot show: that net/http's own
// dialer, on real sockets, is stopped before it connects.
type names struct {
	mu    sync.Mutex
	hosts map[string][][]string // the addresses of each look-up, the last one stays
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(server, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(server, query); err != nil {
					return
				}
				answer := n.answer(query)
				if _, err := server.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

// answer answers a query for an A record (RFC 1035, section 4.1).
func (n *names) answer(query []byte) []byte {
	end := 12 + bytes.IndexByte(query[12:], 0) + 1
	var labels []string
	for at := 12; query[at] != 0; at += 1 + int(query[at]) {
		labels = append(labels, string(query[at+1:at+1+int(query[at])]))
	}
	var found []string
	if kind := binary.BigEndian.Uint16(query[end:]); kind == 1 {
		found = n.lookUp(strings.Join(labels, "."))
	}
	reply := bytes.Clone(query[:end+4])
	copy(reply[2:], []byte{0x81, 0x80, 0, 1, 0, byte(len(found)), 0, 0, 0, 0})
	for _, ip := range found {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, netip.MustParseAddr(ip).AsSlice()...)
	}
	return reply
}

func (n *names) lookUp(host string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.hosts[host]
	if len(list) == 0 {
		return nil
	}
	if len(list) > 1 {
		n.hosts[host] = list[1:]
	}
	return list[0]
}

// TestRebindingOnRealSockets resolves names anew for each connection, on real sockets.
func TestRebindingOnRealSockets(t *testing.T) {
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		_, port, _ := net.SplitHostPort(r.Host)
		as := "http://as.localhost:" + port
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q,"revocation_endpoint":%q}`, as, as+"/token", "http://several.localhost:"+port+"/revoke")
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	resolver, transport := net.DefaultResolver, http.DefaultTransport
	defer func() { net.DefaultResolver, http.DefaultTransport = resolver, transport }()
	// A default transport with a dialer of its own, as the real one has, and without the machine's proxy.
	http.DefaultTransport = &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}

	for _, client := range []*http.Client{nil, {}, {Transport: http.DefaultTransport}, {Transport: &http.Transport{DisableKeepAlives: true}}} {
		posts.Store(0)
		n := &names{hosts: map[string][][]string{
			// 0.0.0.0 leads to this machine, where a look at the connection would find nothing amiss.
			"as.localhost": {{"127.0.0.1"}, {"127.0.0.1"}, {"10.255.255.1"}, {"169.254.169.254"}, {"0.0.0.0"}},
			// Of several addresses the one that is allowed is taken.
			"several.localhost": {{"10.255.255.1", "127.0.0.1"}, {"10.255.255.1", "10.255.255.2"}},
		}}
		net.DefaultResolver = n.resolver()
		d := auth.Discovery{HTTPClient: client}
		m, err := d.Issuer(t.Context(), "http://as.localhost:"+port)
		if err != nil {
			t.Fatal(err)
		}
		for i, step := range []struct{ endpoint, kind string }{
			{m.TokenEndpoint, ""},
			{m.TokenEndpoint, "private"},
			{m.TokenEndpoint, "cloud metadata"},
			{m.TokenEndpoint, "unspecified"},
			{m.RevocationEndpoint, ""},
			{m.RevocationEndpoint, "private"},
		} {
			res, err := m.HTTPClient().PostForm(step.endpoint, nil)
			if err == nil {
				res.Body.Close()
			}
			kind := ""
			if e, ok := errors.AsType[*auth.AddressError](err); ok {
				kind = e.Kind
				if !strings.HasSuffix(e.Host, ".localhost") {
					t.Errorf("step %d names the host %q", i+1, e.Host)
				}
			}
			if kind != step.kind || (err == nil) != (kind == "") {
				t.Errorf("step %d: refused as %q (%v), want %q", i+1, kind, err, step.kind)
			}
		}
		if posts.Load() != 2 {
			t.Errorf("%d posts arrived", posts.Load())
		}
	}
}

// TestProxyOnThisMachine dials a proxy at an address that no document could name.
func TestProxyOnThisMachine(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"issuer":"https://example.com","token_endpoint":"https://example.com/token"}`)
	}))
	defer server.Close()
	var tunnels atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnels.Add(1)
		there, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil || r.Host != "example.com:443" {
			t.Errorf("asked for %q: %v", r.Host, err)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		joinTunnel(t, w, there)
	}))
	defer proxy.Close()
	to, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	pool := server.Client().Transport.(*http.Transport).TLSClientConfig
	d := auth.Discovery{HTTPClient: &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(to), TLSClientConfig: pool, DisableKeepAlives: true,
	}}}
	m, err := d.Issuer(t.Context(), "https://example.com")
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.HTTPClient().PostForm(m.TokenEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if tunnels.Load() != 2 {
		t.Errorf("%d tunnels", tunnels.Load())
	}
}
