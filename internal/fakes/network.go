package fakes

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Bubble runs a test in a testing/synctest bubble whose clock shows the given instant; the zero time leaves the bubble's
// own, midnight UTC 2000-01-01.
func Bubble(t *testing.T, at time.Time, run func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if !at.IsZero() {
			time.Sleep(time.Until(at))
		}
		run(t)
	})
}

// Network is an in-memory network of hosts. Connections are buffered, so that both sides may write first, and block
// durably, so that it works in a bubble.
type Network struct {
	ca   *authority
	mu   sync.Mutex
	open map[string]*listener
}

// NewNetwork returns a network that ends with the test.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	n := &Network{ca: ca, open: map[string]*listener{}}
	t.Cleanup(n.Close)
	return n
}

// Close closes every listener.
func (n *Network) Close() {
	n.mu.Lock()
	var all []*listener
	for _, l := range n.open {
		all = append(all, l)
	}
	n.mu.Unlock()
	for _, l := range all {
		l.Close()
	}
}

// Listen opens host:port. A second listener on the same address fails as on a real network.
func (n *Network) Listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	l := &listener{network: n, addr: address(addr), accept: make(chan net.Conn), closed: make(chan struct{})}
	n.open[addr] = l
	return l, nil
}

// DialContext connects to a listener, or is refused as by a closed port.
func (n *Network) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.open[addr]
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: address(addr), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	if l == nil {
		return nil, refused
	}
	client, server := pipe("client.test:1", addr)
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(addr), Err: context.Cause(ctx)}
	}
}

// Transport returns a transport of the network that trusts its hosts. It keeps no connections, so that each request is
// one connection and net/http has nothing to replay by itself.
func (n *Network) Transport() *http.Transport {
	return &http.Transport{
		DialContext:       n.DialContext,
		TLSClientConfig:   &tls.Config{RootCAs: n.ca.pool, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
}

// Client returns a client on Transport.
func (n *Network) Client() *http.Client { return &http.Client{Transport: n.Transport()} }

// Serve serves https://host (port 443) until the test ends or stop is called. stop breaks what is under way.
func (n *Network) Serve(t testing.TB, host string, h http.Handler) (stop func()) {
	t.Helper()
	l, err := n.Listen(net.JoinHostPort(host, "443"))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := n.ca.issue(host)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}), h)
}

// ServePlain serves http://host (port 80, or the one in host).
func (n *Network) ServePlain(t testing.TB, host string, h http.Handler) (stop func()) {
	t.Helper()
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "80")
	}
	l, err := n.Listen(host)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, h)
}

func serve(t testing.TB, l net.Listener, h http.Handler) (stop func()) {
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_ = srv.Close()
			<-done
		})
	}
	t.Cleanup(stop)
	return stop
}

type listener struct {
	network *Network
	addr    address
	accept  chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.open, string(l.addr))
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// pipe returns the two ends of a buffered connection.
func pipe(a, b string) (net.Conn, net.Conn) {
	there, back := newHalf(), newHalf()
	return &conn{in: back, out: there, local: address(a), remote: address(b)},
		&conn{in: there, out: back, local: address(b), remote: address(a)}
}

// half is one direction of a connection.
type half struct {
	mu       sync.Mutex
	cond     *sync.Cond
	data     bytes.Buffer
	ended    bool // by the writer: what is buffered can still be read
	closed   bool // by the reader
	deadline time.Time
	timer    *time.Timer
}

func newHalf() *half {
	h := &half{}
	h.cond = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.closed:
			return 0, net.ErrClosed
		case !h.deadline.IsZero() && !time.Now().Before(h.deadline):
			return 0, os.ErrDeadlineExceeded
		case h.data.Len() > 0:
			return h.data.Read(p)
		case h.ended:
			return 0, io.EOF
		}
		h.cond.Wait()
	}
}

func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
		return 0, net.ErrClosed
	case h.closed:
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
	}
	h.cond.Broadcast()
	return h.data.Write(p)
}

func (h *half) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	h.cond.Broadcast()
}

func (h *half) setDeadline(t time.Time) {
	h.set(func() {
		h.deadline = t
		if h.timer != nil {
			h.timer.Stop()
			h.timer = nil
		}
		// One that has passed needs no timer, and in a bubble under the race detector two that fire at once crash Go 1.26.
		if left := time.Until(t); !t.IsZero() && left > 0 {
			h.timer = time.AfterFunc(left, func() { h.set(func() {}) })
		}
	})
}

type conn struct {
	in, out       *half
	local, remote address
}

func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }

func (c *conn) Close() error {
	// First this side, so that whoever is woken by the end of the other side finds nobody to answer.
	c.in.set(func() {
		c.in.closed = true
		if c.in.timer != nil {
			c.in.timer.Stop()
		}
	})
	c.out.set(func() { c.out.ended = true })
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error      { return c.SetReadDeadline(t) }
func (c *conn) SetReadDeadline(t time.Time) error  { c.in.setDeadline(t); return nil }
func (c *conn) SetWriteDeadline(_ time.Time) error { return nil } // a write never blocks

// authority issues the certificates of a network's hosts.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	a.cert = template("fakes", true)
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pool.AddCert(a.cert)
	return a, nil
}

func (a *authority) issue(host string) (tls.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template(host, false), a.cert, a.key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}, err
}

// template is valid in a bubble's year 2000 as in any test's.
func template(host string, ca bool) *x509.Certificate {
	c := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: host},
		NotBefore:             time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:                  ca,
		BasicConstraintsValid: true,
	}
	if !ca {
		c.DNSNames = []string{host}
	}
	return c
}
