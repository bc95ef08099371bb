package websocket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// serve runs a test in a bubble in which wss://ws.test hands each accepted connection to f.
func serve(t *testing.T, accept *ws.AcceptOptions, f func(c *ws.Conn, r *http.Request), test func(t *testing.T, d websocket.Dialer)) {
	t.Helper()
	handle(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := ws.Accept(w, r, accept)
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		c.SetReadLimit(-1)
		f(c, r)
	}, test)
}

// handle runs a test in a bubble in which https://ws.test answers with f.
func handle(t *testing.T, f http.HandlerFunc, test func(t *testing.T, d websocket.Dialer)) {
	t.Helper()
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		net := fakes.NewNetwork(t)
		net.Serve(t, "ws.test", f)
		test(t, websocket.Dialer{URL: "wss://ws.test/stream", Client: net.Client()})
	})
}

func dial(t *testing.T, d websocket.Dialer) *websocket.Conn {
	t.Helper()
	c, err := d.Dial(t.Context(), stream.Attempt{Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*websocket.Conn)
}

// linger waits until the client is gone.
func linger(c *ws.Conn) { <-c.CloseRead(context.Background()).Done() }

func TestTextAndBinary(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 1<<20)
	serve(t, nil, func(c *ws.Conn, _ *http.Request) {
		_ = c.Write(context.Background(), ws.MessageText, []byte("text"))
		_ = c.Write(context.Background(), ws.MessageBinary, []byte{0, 1})
		_ = c.Write(context.Background(), ws.MessageText, nil)
		_ = c.Write(context.Background(), ws.MessageText, big)
		w, _ := c.Writer(context.Background(), ws.MessageText) // in fragments
		for i := range 3 {
			fmt.Fprint(w, i)
		}
		_ = w.Close()
		linger(c)
	}, func(t *testing.T, d websocket.Dialer) {
		for _, reuse := range []bool{false, true} {
			d.ReuseBuffer = reuse
			c := dial(t, d)
			var first []byte
			for i, m := range []stream.Message{{Data: []byte("text")}, {Data: []byte{0, 1}, Binary: true}, {}, {Data: big}, {Data: []byte("012")}} {
				got, err := c.Receive()
				if err != nil || !bytes.Equal(got.Data, m.Data) || got.Binary != m.Binary {
					t.Errorf("message %d: %.20q %v, %v", i, got.Data, got.Binary, err)
				}
				if i == 0 {
					first = got.Data
				}
			}
			want(t, "reuse: the first message is intact", string(first) == "text", !reuse)
		}
	})
}

func TestReadLimit(t *testing.T) {
	const limit = 1 << 20
	closed := make(chan error, 4)
	serve(t, nil, func(c *ws.Conn, r *http.Request) {
		n := limit
		if r.Header.Get("Over") != "" {
			n++
		}
		_ = c.Write(context.Background(), ws.MessageText, make([]byte, n))
		_, _, err := c.Read(context.Background())
		closed <- err
	}, func(t *testing.T, d websocket.Dialer) {
		m, err := dial(t, d).Receive()
		want(t, "at the limit", len(m.Data), limit)
		want(t, "error", err, nil)

		d.Header = http.Header{"Over": {"1"}}
		c := dial(t, d)
		_, err = c.Receive()
		e, ok := errors.AsType[*stream.DisconnectError](err)
		if !ok || !errors.Is(err, websocket.ErrTooLarge) || e.Class != stream.Transient || e.Code != 0 {
			t.Errorf("over the limit: %#v", err)
		}
		if _, err := c.Receive(); err == nil {
			t.Error("a message after the limit")
		}
		_ = c.Close()
		want(t, "the server is told", ws.CloseStatus(<-closed), ws.StatusMessageTooBig)

		d.ReadLimit = -1
		m, err = dial(t, d).Receive()
		want(t, "without a limit", len(m.Data), limit+1)
		want(t, "error", err, nil)
		d.ReadLimit = 10
		_, err = dial(t, d).Receive()
		want(t, "a limit of 10", errors.Is(err, websocket.ErrTooLarge), true)
	})
}

func TestCloseCodes(t *testing.T) {
	for _, tt := range []struct {
		code     int
		reason   string
		class    stream.Class
		everyone bool
	}{
		{1001, "", stream.Transient, true},
		{1002, "", stream.Permanent, false},
		{1003, "", stream.Permanent, false},
		{1007, "", stream.Permanent, false},
		{1008, "", stream.Transient, false},
		{1008, "Not authorized", stream.Unauthorized, false},
		{1009, "", stream.Permanent, false},
		{1010, "", stream.Permanent, false},
		{1011, "", stream.Transient, false},
		{1012, "restart", stream.Transient, true},
		{1013, "", stream.Transient, false},
		{1014, "", stream.Transient, false},
		{3000, "", stream.Unauthorized, false},
		{3500, "bad request", stream.Transient, false},
		{4000, "", stream.Transient, false},
		{4401, "", stream.Unauthorized, false},
		{4999, "token expired", stream.Unauthorized, false},
	} {
		serve(t, nil, func(c *ws.Conn, _ *http.Request) {
			_ = c.Close(ws.StatusCode(tt.code), tt.reason)
		}, func(t *testing.T, d websocket.Dialer) {
			_, err := dial(t, d).Receive()
			e, ok := errors.AsType[*stream.DisconnectError](err)
			if !ok || e.Code != tt.code || e.Text != tt.reason || e.Class != tt.class || e.Everyone != tt.everyone {
				t.Errorf("%d %q: %#v", tt.code, tt.reason, err)
			}
		})
	}
}

func TestOrdinaryEnds(t *testing.T) {
	serve(t, nil, func(c *ws.Conn, r *http.Request) {
		if r.URL.Query().Has("clean") {
			_ = c.Close(ws.StatusNormalClosure, "")
		}
		if r.URL.Query().Has("mute") {
			_ = c.Close(ws.StatusNoStatusRcvd, "")
		}
	}, func(t *testing.T, d websocket.Dialer) {
		_, err := dial(t, d).Receive()
		e, ok := errors.AsType[*stream.DisconnectError](err)
		want(t, "1006", ok && e.Class == stream.Transient && e.Code == 0, true)
		d.URL = "wss://ws.test/?clean"
		_, err = dial(t, d).Receive()
		want(t, "1000", err, io.EOF)
		d.URL = "wss://ws.test/?mute"
		_, err = dial(t, d).Receive()
		e, ok = errors.AsType[*stream.DisconnectError](err)
		want(t, "1005", ok && e.Class == stream.Transient && e.Code == 1005, true)
	})
}

func TestCloseClassIsTheCallers(t *testing.T) {
	asked := 0
	own := func(code int, reason string) stream.Class {
		asked++
		return stream.Permanent
	}
	for code, want := range map[int]stream.Class{
		1000: stream.Transient, 1002: stream.Permanent, 1008: stream.Permanent, 1011: stream.Transient, 2999: stream.Transient,
		3000: stream.Permanent, 3999: stream.Permanent, 4000: stream.Permanent, 4999: stream.Permanent, 5000: stream.Transient,
	} {
		if got := websocket.ClassOfClose(code, "", own); got != want {
			t.Errorf("%d: %v, want %v", code, got, want)
		}
	}
	want(t, "asked", asked, 5)
	serve(t, nil, func(c *ws.Conn, _ *http.Request) { _ = c.Close(4401, "") }, func(t *testing.T, d websocket.Dialer) {
		d.CloseClass = own
		_, err := dial(t, d).Receive()
		e, _ := errors.AsType[*stream.DisconnectError](err)
		want(t, "class", e.Class, stream.Permanent)
	})
}

func TestDefaultCloseClass(t *testing.T) {
	for reason, want := range map[string]stream.Class{
		"":                          stream.Transient,
		"Unauthorized":              stream.Unauthorized,
		"unauthenticated":           stream.Unauthorized,
		"authentication failed":     stream.Unauthorized,
		"Forbidden":                 stream.Unauthorized,
		"invalid credentials":       stream.Unauthorized,
		"Token expired":             stream.Unauthorized,
		"session expired":           stream.Unauthorized,
		"token bucket is empty":     stream.Transient,
		"too many sessions":         stream.Transient,
		"policy violation":          stream.Transient,
		"unexpected data message":   stream.Transient,
		"slow consumer":             stream.Transient,
		"the author has left":       stream.Transient,
		"rate limit, try again":     stream.Transient,
		"jwt is not yet valid":      stream.Unauthorized,
		"connection limit exceeded": stream.Transient,
	} {
		if got := websocket.DefaultCloseClass(1008, reason); got != want {
			t.Errorf("%q: %v, want %v", reason, got, want)
		}
	}
}

func TestCompressionWhenAskedFor(t *testing.T) {
	serve(t, &ws.AcceptOptions{CompressionMode: ws.CompressionContextTakeover}, func(c *ws.Conn, r *http.Request) {
		want(t, "offered", strings.Contains(r.Header.Get("Sec-WebSocket-Extensions"), "permessage-deflate"), true)
		_ = c.Write(context.Background(), ws.MessageText, bytes.Repeat([]byte("ab"), 10_000))
		_ = c.Write(context.Background(), ws.MessageText, make([]byte, 2<<20)) // small on the wire, too large unpacked
		linger(c)
	}, func(t *testing.T, d websocket.Dialer) {
		d.Compression = true
		c := dial(t, d)
		m, err := c.Receive()
		want(t, "error", err, nil)
		want(t, "message", string(m.Data), strings.Repeat("ab", 10_000))
		_, err = c.Receive()
		want(t, "the limit counts what is unpacked", errors.Is(err, websocket.ErrTooLarge), true)
	})
}

// TestSendOnceConnected sends what a protocol begins with from inside Trace.Connected, on every connection.
func TestSendOnceConnected(t *testing.T) {
	got := make(chan string, 2)
	serve(t, nil, func(c *ws.Conn, _ *http.Request) {
		_, b, err := c.Read(context.Background())
		got <- fmt.Sprintf("%s %v", b, err)
	}, func(t *testing.T, d websocket.Dialer) {
		var stm *stream.Stream
		stm = stream.Reconnect(stream.Config{Dialer: d, Trace: &stream.Trace{
			Connected: func(i stream.ConnectedInfo) {
				want(t, "hello", stm.Send(t.Context(), stream.Message{Data: fmt.Appendf(nil, "hello %d", i.Attempt)}), nil)
				if i.Attempt == 2 {
					_ = stm.Close()
				}
			},
		}})
		for range stm.Messages(t.Context()) {
		}
		want(t, "first", <-got, "hello 1 <nil>")
		want(t, "second", <-got, "hello 2 <nil>")
	})
}

func TestSend(t *testing.T) {
	type frame struct {
		kind ws.MessageType
		text string
	}
	got := make(chan frame, 3)
	serve(t, nil, func(c *ws.Conn, _ *http.Request) {
		for range 3 {
			kind, b, err := c.Read(context.Background())
			if err != nil {
				return
			}
			got <- frame{kind, string(b)}
		}
		linger(c)
	}, func(t *testing.T, d websocket.Dialer) {
		stm := stream.Reconnect(stream.Config{Dialer: d})
		want(t, "before", errors.Is(stm.Send(t.Context(), stream.Message{}), stream.ErrNotConnected), true)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range stm.Messages(context.Background()) {
			}
		}()
		synctest.Wait()
		want(t, "text", stm.Send(t.Context(), stream.Message{Data: []byte("hello")}), nil)
		want(t, "binary", stm.Send(t.Context(), stream.Message{Data: []byte{7}, Binary: true}), nil)
		want(t, "text", <-got, frame{ws.MessageText, "hello"})
		want(t, "binary", <-got, frame{ws.MessageBinary, "\a"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		want(t, "ended", errors.Is(stm.Send(ctx, stream.Message{}), context.Canceled), true)
		want(t, "which costs nothing", stm.Send(t.Context(), stream.Message{Data: []byte("more")}), nil)
		want(t, "more", <-got, frame{ws.MessageText, "more"})
		_ = stm.Close()
		<-ended
		want(t, "after", errors.Is(stm.Send(t.Context(), stream.Message{}), stream.ErrNotConnected), true)
	})
}
