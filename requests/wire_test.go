package requests_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// wire is a base whose servers are scripts of bytes. It counts what a request has opened, to see that all is closed.
type wire struct {
	t      *testing.T
	net    *fakes.Network
	base   *http.Transport
	timers *delay.Timers

	mu      sync.Mutex
	sent    int // attempts that came to the base
	dialled int
	bodies  int // of answers, not closed
	lines   int // connections that the client has not closed

	breaks atomic.Bool // the end of a connection is a reset
}

func wired(t *testing.T, run func(t *testing.T, w *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{t: t, net: fakes.NewNetwork(t), timers: delay.TimersOn(clock.New())}
		w.base = &http.Transport{
			DialContext: w.dial, ExpectContinueTimeout: time.Second, TLSHandshakeTimeout: time.Second,
			MaxResponseHeaderBytes: 64 << 10, Protocols: &http.Protocols{},
		}
		w.base.Protocols.SetHTTP1(true)
		run(t, w)
		w.clean()
	})
}

// watched is the real clock with a registry of timers that the test can see into.
type watched struct {
	clock.Clock
	timers *delay.Timers
}

func (c watched) Timers() *delay.Timers { return c.timers }

func (w *wire) transport() *requests.Transport {
	return &requests.Transport{Base: w, Rand: noJitter, Clock: watched{clock.New(), w.timers}}
}

// variants are what makes a Transport take other ways through its code.
var variants = map[string]func(*requests.Transport){
	"bare": func(*requests.Transport) {},
	"with all": func(tr *requests.Transport) {
		tr.Tokens, tr.AttemptTimeout = fixed{}, time.Minute
		tr.Hooks.OnRetry = func(context.Context, requests.Retry) {}
	},
}

// clean reports what was left over. Goroutines are the bubble's to report.
func (w *wire) clean() {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	if w.bodies != 0 {
		w.t.Errorf("%d bodies of answers were not closed", w.bodies)
	}
	w.mu.Unlock()
	w.base.CloseIdleConnections()
	synctest.Wait()
	w.mu.Lock()
	if w.lines != 0 {
		w.t.Errorf("%d connections are neither closed nor idle", w.lines)
	}
	w.mu.Unlock()
	if armed, _ := w.timers.Outstanding(); len(armed) > 0 {
		w.t.Errorf("%d timers are armed, the first for %s", len(armed), armed[0].Kind())
	}
	time.Sleep(2 * time.Hour) // until the slowest server has noticed
}

func (w *wire) count(n *int, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n += by
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.count(&w.sent, 1)
	resp, err := w.base.RoundTrip(req)
	if err == nil {
		w.count(&w.bodies, 1)
		resp.Body = &closes{ReadCloser: resp.Body, f: func() { w.count(&w.bodies, -1) }}
	}
	return resp, err
}

// closes tells of the first Close.
type closes struct {
	io.ReadCloser
	once sync.Once
	f    func()
}

func (c *closes) Close() error {
	c.once.Do(c.f)
	return c.ReadCloser.Close()
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.count(&w.dialled, 1)
	c, err := w.net.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.count(&w.lines, 1)
	w.breaks.Store(false)
	return &line{Conn: c, w: w}, nil
}

// line is the client's end of a connection.
type line struct {
	net.Conn
	w    *wire
	once sync.Once
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if errors.Is(err, io.EOF) && l.w.breaks.Load() {
		err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
	return n, err
}

func (l *line) Close() error {
	l.once.Do(func() { l.w.count(&l.w.lines, -1) })
	return l.Conn.Close()
}

// peer is a server's end of a connection. All that it does ends when the client closes its own.
type peer struct {
	net.Conn
	w *wire
	r *bufio.Reader
}

// serve gives each connection to an address the next script, and the last one to all that follow. What a script leaves
// open stays so until the client closes it.
func (w *wire) serve(addr string, scripts ...func(*peer)) {
	w.t.Helper()
	l, err := w.net.Listen(addr)
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				p := &peer{c, w, bufio.NewReader(c)}
				scripts[min(n, len(scripts)-1)](p)
				_, _ = io.Copy(io.Discard, p.r)
			}()
		}
	}()
}

// head reads the head of a request; there is none when the client has left.
func (p *peer) head() *http.Request {
	req, err := http.ReadRequest(p.r)
	if err != nil {
		return &http.Request{Body: http.NoBody}
	}
	return req
}

// request reads a whole request.
func (p *peer) request() {
	_, _ = io.Copy(io.Discard, p.head().Body)
}

func (p *peer) say(s ...string) { _, _ = io.WriteString(p, strings.Join(s, "\r\n")) }

// reset breaks the connection.
func (p *peer) reset() {
	p.w.breaks.Store(true)
	_ = p.Close()
}

// pour writes the same again and again, until the client has left.
func (p *peer) pour(s string, every time.Duration) {
	for {
		if _, err := io.WriteString(p, s); err != nil {
			return
		}
		time.Sleep(every)
	}
}

// answers is a script that answers one request after the other, and keeps the connection.
func answers(statuses ...int) func(*peer) {
	return func(p *peer) {
		for _, s := range statuses {
			p.request()
			p.say("HTTP/1.1 "+strconv.Itoa(s)+" X", "Content-Length: 5", "", "hello")
		}
	}
}

func (w *wire) request(ctx context.Context, method, body string) *http.Request {
	req := request(ctx, method, "/", body)
	req.URL.Scheme, req.URL.Host, req.Host = "http", "localhost", ""
	return req
}

// fate is what came of a request, whose answer it reads up to 1 MiB and closes.
func fate(resp *http.Response, err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, &requests.TransportFailed{}):
		return "too late"
	case errors.Is(err, &requests.TransportFailed{}):
		return "no answer"
	case err != nil:
		return err.Error()
	}
	defer resp.Body.Close()
	if _, err := io.CopyN(io.Discard, resp.Body, 1<<20); err != nil && !errors.Is(err, io.EOF) {
		return strconv.Itoa(resp.StatusCode) + ", broken off"
	}
	return strconv.Itoa(resp.StatusCode)
}
