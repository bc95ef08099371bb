package bench

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"net"
	"net/http"
	"sync"
	"testing"
)

// server is one that costs next to nothing: what is measured is the client. It answers each connection's one request
// with the beginning of a stream, and leaves the connection to the test.
type server struct {
	listener net.Listener
	accepted sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// serve answers with what answer returns, and then calls then, if there is one, until the connection ends.
func serve(tb testing.TB, answer func(*http.Request) string, then func(net.Conn)) *server {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &server{listener: l}
	p.accepted.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns = append(p.conns, c)
			p.mu.Unlock()
			p.accepted.Go(func() {
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				if _, err := c.Write([]byte(answer(r))); err == nil && then != nil {
					then(c)
				}
			})
		}
	})
	return p
}

func (p *server) addr() string { return p.listener.Addr().String() }

func (p *server) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.accepted.Wait()
}

// upgraded is the answer to a WebSocket handshake (RFC 6455, section 4.2.2), with more bytes after it.
func upgraded(more string) func(*http.Request) string {
	return func(r *http.Request) string {
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
			base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n" + more
	}
}
