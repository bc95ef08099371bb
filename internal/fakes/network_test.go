package fakes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

func TestNetworkInBubble(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	fakes.Bubble(t, at, func(t *testing.T) {
		net := fakes.NewNetwork(t)
		net.Serve(t, "as.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/drop" {
				panic(http.ErrAbortHandler)
			}
			io.WriteString(w, time.Now().UTC().String())
		}))
		res, err := net.Client().Get("https://as.test/")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if got := string(b[:19]); got != "2026-11-29 12:00:00" {
			t.Errorf("the server's clock shows %s", b)
		}
		if _, err := net.Client().Get("https://as.test/drop"); err == nil {
			t.Error("a dropped request succeeded")
		}
		if _, err := net.Client().Get("https://nobody.test/"); err == nil {
			t.Error("a closed port answered")
		}
	})
}

func TestBubble(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(*testing.T) {
		if now := time.Now(); !now.Equal(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("a bubble of no instant shows %v", now.UTC())
		}
	})
	fakes.Bubble(t, noon, func(*testing.T) {
		if now := time.Now(); !now.Equal(noon) {
			t.Errorf("a bubble at noon shows %v", now.UTC())
		}
	})
}

func TestNetworkListen(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		l, err := n.Listen("api.test:443")
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr(); got.String() != "api.test:443" || got.Network() != "tcp" {
			t.Errorf("listening on %v %v", got.Network(), got)
		}
		if _, err := n.Listen("api.test:443"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener: %v", err)
		}
		if _, err := n.DialContext(t.Context(), "tcp", "api.test:80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a closed port: %v", err)
		}

		// Nobody accepts: the dial ends with its context, or with the listener.
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		if _, err := n.DialContext(ctx, "tcp", "api.test:443"); !errors.Is(err, stopped) {
			t.Errorf("a cancelled dial: %v", err)
		}
		time.AfterFunc(time.Second, func() { l.Close() })
		if _, err := n.DialContext(t.Context(), "tcp", "api.test:443"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a dial to a listener that closed: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed listener accepts: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("closing twice: %v", err)
		}
		again, err := n.Listen("api.test:443")
		if err != nil {
			t.Fatalf("the address is not free again: %v", err)
		}
		n.Close()
		if _, err := again.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a listener outlives its network: %v", err)
		}
	})
}

// connected returns both ends of a connection.
func connected(t *testing.T) (client, server net.Conn) {
	t.Helper()
	n := fakes.NewNetwork(t)
	l, err := n.Listen("api.test:1")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	client, err = n.DialContext(t.Context(), "tcp", "api.test:1")
	if err != nil {
		t.Fatal(err)
	}
	return client, <-accepted
}

func TestNetworkConn(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		client, server := connected(t)
		if client.RemoteAddr().String() != "api.test:1" || server.LocalAddr().String() != "api.test:1" || client.LocalAddr().String() != server.RemoteAddr().String() {
			t.Errorf("%v to %v, and %v to %v", client.LocalAddr(), client.RemoteAddr(), server.LocalAddr(), server.RemoteAddr())
		}
		write := func(c net.Conn, s string) {
			t.Helper()
			if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("wrote %d of %q: %v", n, s, err)
			}
		}
		read := func(c net.Conn, want string) {
			t.Helper()
			b := make([]byte, len(want))
			if _, err := io.ReadFull(c, b); string(b) != want || err != nil {
				t.Errorf("read %q, %v, want %q", b, err, want)
			}
		}
		// Both write first, and much: a net.Pipe would block for ever.
		large := strings.Repeat("x", 1<<20)
		write(client, large)
		write(server, "hello")
		read(server, large)
		read(client, "hello")

		// A read blocks until something comes, and a deadline ends it, also one that is set meanwhile.
		start := time.Now()
		time.AfterFunc(time.Second, func() { write(client, "late") })
		read(server, "late")
		if time.Since(start) != time.Second {
			t.Errorf("read after %v", time.Since(start))
		}
		late := func(c net.Conn, after time.Duration) {
			t.Helper()
			start := time.Now()
			_, err := c.Read(make([]byte, 1))
			timeout, ok := errors.AsType[net.Error](err)
			if !errors.Is(err, os.ErrDeadlineExceeded) || !ok || !timeout.Timeout() || time.Since(start) != after {
				t.Errorf("a read ended after %v with %v, want the deadline after %v", time.Since(start), err, after)
			}
		}
		server.SetReadDeadline(time.Now().Add(time.Second))
		late(server, time.Second)
		late(server, 0)
		server.SetDeadline(time.Now().Add(time.Hour))
		time.AfterFunc(time.Second, func() { server.SetReadDeadline(time.Now()) })
		late(server, time.Second)
		server.SetDeadline(time.Time{})
		write(client, "again")
		read(server, "again")

		// What was written before the end is read before it.
		write(server, "bye")
		write(client, "unread")
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		read(client, "bye")
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read %v at the end", err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("wrote to nobody: %v", err)
		}
		for _, op := range []func([]byte) (int, error){server.Read, server.Write} {
			if _, err := op(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("used after Close: %v", err)
			}
		}
		if err := server.Close(); err != nil {
			t.Errorf("closing twice: %v", err)
		}

		// Close unblocks one's own read.
		client.Close()
		other, _ := connected(t)
		time.AfterFunc(time.Second, func() { other.Close() })
		if _, err := other.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read whose connection was closed: %v", err)
		}
	})
}

func TestNetworkServe(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		hanging := make(chan struct{})
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/hang":
				close(hanging)
				<-r.Context().Done()
			default:
				io.WriteString(w, r.Host)
			}
		})
		n.ServePlain(t, "plain.test", handler)
		n.ServePlain(t, "plain.test:8080", handler)
		stop := n.Serve(t, "as.test", handler)
		for url, want := range map[string]string{"http://plain.test/": "plain.test", "http://plain.test:8080/": "plain.test:8080", "https://as.test/": "as.test"} {
			res, err := n.Client().Get(url)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			res.Body.Close()
			if string(b) != want || err != nil {
				t.Errorf("%s answered %q, %v", url, b, err)
			}
		}

		// The certificate is the host's own, and trusted by the network's clients alone.
		conn, err := n.DialContext(t.Context(), "tcp", "as.test:443")
		if err != nil {
			t.Fatal(err)
		}
		other := tls.Client(conn, &tls.Config{ServerName: "other.test", RootCAs: n.Transport().TLSClientConfig.RootCAs})
		if err := other.HandshakeContext(t.Context()); err == nil || !strings.Contains(err.Error(), "other.test") {
			t.Errorf("another host's name: %v", err)
		}
		other.Close()
		elsewhere := fakes.NewNetwork(t).Transport()
		elsewhere.DialContext = n.DialContext
		if _, err := (&http.Client{Transport: elsewhere}).Get("https://as.test/"); err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("another network's client: %v", err)
		}

		// stop breaks what is under way.
		failed := make(chan error)
		go func() {
			_, err := n.Client().Get("https://as.test/hang")
			failed <- err
		}()
		<-hanging
		stop()
		stop()
		if err := <-failed; err == nil {
			t.Error("a request outlived its server")
		}
		if _, err := n.Client().Get("https://as.test/"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a stopped server: %v", err)
		}
		synctest.Wait()
	})
}
