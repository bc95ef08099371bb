package auth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// guard is the transport on which what a document named is fetched and called.
//
// Where nothing stands between this machine and the server, the policy looks at the address that the name has resolved
// to, as the connection is made: a name that resolves to something else by then (DNS rebinding) gains nothing. With
// net/http's own dialer that is before the first packet; with a dialer of the client's own, after the connection stands
// and before anything is sent on it.
//
// Behind a proxy it is the proxy that resolves the name. Its own address is the user's choice and is not looked at; of
// the target only the spelling can be: a written-out address, and names that are not public by definition. The rest is
// the proxy's to refuse. The same holds for a RoundTripper that is no *http.Transport, whose connections are out of sight.
type guard struct {
	policy *addressPolicy
	base   http.RoundTripper
	proxy  func(*http.Request) (*url.URL, error) // nil when base connects directly
	own    bool                                  // learn where the caller's own server is, refuse nothing
}

// guarded returns a transport like base that keeps to the policy, or teaches it.
func guarded(base http.RoundTripper, policy *addressPolicy, own bool) *guard {
	if base == nil {
		base = http.DefaultTransport
	}
	g := &guard{policy: policy, base: base, own: own}
	std, ok := base.(*http.Transport)
	if !ok {
		return g
	}
	t := std.Clone()
	if std.Proxy != nil {
		g.proxy = std.Proxy
		t.Proxy = func(r *http.Request) (*url.URL, error) { return proxyOf(r.Context()), nil }
	}
	// Dial and DialTLS are deprecated, but a client that has them means them.
	dial, dialTLS := std.DialContext, std.DialTLSContext
	if old := std.Dial; dial == nil && old != nil { //nolint:staticcheck // see above
		dial = func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	if old := std.DialTLS; dialTLS == nil && old != nil { //nolint:staticcheck // see above
		dialTLS = func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	if dial == nil || std == http.DefaultTransport {
		// The dialer of http.DefaultTransport, with the policy where a socket has its address and is not yet connected.
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, ControlContext: g.control}).DialContext
	}
	t.Dial, t.DialTLS = nil, nil //nolint:staticcheck // see above
	if t.MaxResponseHeaderBytes == 0 {
		t.MaxResponseHeaderBytes = maxBody // the default is ten times that
	}
	t.DialContext = g.watched(dial)
	if dialTLS != nil {
		t.DialTLSContext = g.watched(dialTLS)
	}
	g.base = t
	return g
}

type (
	proxyKey struct{} // the proxy that was chosen for a request
	hostKey  struct{} // the host that is being dialled
)

// errProxy leaves the cause out, which may quote a proxy's address with the password in it.
var errProxy = errors.New("auth: the proxy's address cannot be read: check HTTPS_PROXY")

// proxyOf returns the proxy that RoundTrip has chosen for a request, nil for none.
func proxyOf(ctx context.Context) *url.URL {
	via, _ := ctx.Value(proxyKey{}).(*url.URL)
	return via
}

// RoundTrip checks the host's spelling and chooses the proxy; the dialer does the rest.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Hostname()
	if g.own {
		g.policy.learnHost(host)
	} else if err := g.policy.checkHost(host); err != nil {
		return nil, refuse(r, err)
	}
	if g.proxy != nil {
		via, err := g.proxy(r)
		if err != nil {
			return nil, refuse(r, errProxy)
		}
		r = r.WithContext(context.WithValue(r.Context(), proxyKey{}, via))
	}
	return g.base.RoundTrip(r)
}

// refuse closes the body, which is a RoundTripper's duty also when it fails.
func refuse(r *http.Request, err error) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return err
}

// CloseIdleConnections serves http.Client's method of that name.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// control is a net.Dialer's ControlContext: it sees each address that a name has resolved to, before it is connected.
func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if g.own || proxyOf(ctx) != nil {
		return nil
	}
	host, _ := ctx.Value(hostKey{}).(string)
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &AddressError{Host: host, Kind: kindReserved} // a socket file: whoever uses one dials it on purpose
	}
	return g.policy.check(host, to.Addr())
}

// watched is dial with a look at where it has led. A connection that has no IP address (a socket file, a network in
// memory) comes from a dialer of the client's own, which is then trusted to know what it does.
func (g *guard) watched(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(addr)
		c, err := dial(context.WithValue(ctx, hostKey{}, host), network, addr)
		if err != nil || proxyOf(ctx) != nil {
			return c, err
		}
		to, ok := addressOf(c)
		if !ok {
			return c, nil
		}
		if g.own {
			g.policy.learn(to)
		} else if err := g.policy.check(host, to); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
}

// addressOf returns the address at the other end of a connection, where it has one.
func addressOf(c net.Conn) (netip.Addr, bool) {
	to, err := netip.ParseAddrPort(c.RemoteAddr().String())
	return to.Addr(), err == nil
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)
