package streams_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/heed-sdk/heed/interop/streams"
)

const channel = "news"

// client is a raw connection that answers pings.
type client struct {
	t        *testing.T
	ctx      context.Context
	ws       *websocket.Conn
	received []streams.Message
	frames   int
	pings    int
}

func dial(t *testing.T, s *streams.Server, bearer string) (*client, *http.Response) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	header := http.Header{}
	if bearer != "" {
		header.Set("Authorization", "Bearer "+bearer)
	}
	ws, resp, err := websocket.Dial(ctx, s.URL(), &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		return nil, resp
	}
	t.Cleanup(func() { ws.CloseNow() })
	return &client{t: t, ctx: ctx, ws: ws}, resp
}

func mustDial(t *testing.T, s *streams.Server, bearer string) *client {
	t.Helper()
	c, resp := dial(t, s, bearer)
	if c == nil {
		t.Fatalf("no connection: %v", resp)
	}
	return c
}

func (c *client) send(commands ...[]byte) {
	c.t.Helper()
	if err := c.ws.Write(c.ctx, websocket.MessageText, streams.Frame(commands...)); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next message that is no ping.
func (c *client) next() (streams.Message, error) {
	for {
		for len(c.received) > 0 {
			m := c.received[0]
			c.received = c.received[1:]
			if !m.IsPing() {
				return m, nil
			}
			c.pings++
			c.send(streams.Pong)
		}
		kind, frame, err := c.ws.Read(c.ctx)
		if err != nil {
			return streams.Message{}, err
		}
		if kind != websocket.MessageText {
			c.t.Fatalf("a frame of kind %v", kind)
		}
		c.frames++
		if c.received, err = streams.Parse(frame); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *client) mustNext() streams.Message {
	c.t.Helper()
	m, err := c.next()
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// subscribe connects and subscribes in one frame.
func (c *client) subscribe(command []byte) *streams.SubscribeResult {
	c.t.Helper()
	c.send(streams.Connect(1), command)
	if m := c.mustNext(); m.ID != 1 || m.Connect == nil || !m.Connect.Pong {
		c.t.Fatalf("connect was answered by %+v", m)
	}
	m := c.mustNext()
	if m.ID != 2 || m.Subscribe == nil {
		c.t.Fatalf("subscribe was answered by %+v", m)
	}
	return m.Subscribe
}

func (c *client) wantPublication(data string, offset uint64) {
	c.t.Helper()
	m := c.mustNext()
	if m.Push == nil || m.Push.Channel != channel || string(m.Push.Pub.Data) != data || m.Push.Pub.Offset != offset {
		c.t.Fatalf("want %s at %d, got %+v", data, offset, m)
	}
}

func (c *client) wantClose(code websocket.StatusCode) {
	c.t.Helper()
	m, err := c.next()
	if err == nil {
		c.t.Fatalf("still open: %+v", m)
	}
	if got := websocket.CloseStatus(err); got != code {
		c.t.Fatalf("close code %d, want %d: %v", got, code, err)
	}
}

// noCode is what CloseStatus says of a connection that ended without a close frame.
const noCode = websocket.StatusCode(-1)

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	s := streams.Start(t, streams.Config{})
	c := mustDial(t, s, "")
	if r := c.subscribe(streams.Subscribe(2, channel)); r.WasRecovering || len(r.Publications) != 0 {
		t.Fatalf("a first subscription: %+v", r)
	}
	seen := s.Publish(channel, map[string]int{"n": 1})
	c.wantPublication(`{"n":1}`, 1)

	s.Kill()
	c.wantClose(noCode)
	if c, resp := dial(t, s, ""); c != nil || resp != nil {
		t.Fatalf("a killed server answered: %v", resp)
	}
	s.Publish(channel, map[string]int{"n": 2})
	s.Restart()

	c = mustDial(t, s, "")
	r := c.subscribe(streams.SubscribeFrom(2, channel, seen))
	if !r.WasRecovering || !r.Recovered || len(r.Publications) != 1 || string(r.Publications[0].Data) != `{"n":2}` {
		t.Fatalf("after a restart: %+v", r)
	}
	s.Publish(channel, map[string]int{"n": 3})
	c.wantPublication(`{"n":3}`, 3)

	s.RestartEmpty()
	c.wantClose(noCode)
	c = mustDial(t, s, "")
	r = c.subscribe(streams.SubscribeFrom(2, channel, seen))
	if !r.WasRecovering || r.Recovered || r.Epoch == seen.Epoch {
		t.Fatalf("after a restart with nothing remembered: %+v", r)
	}
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	s := streams.Start(t, streams.Config{
		Authorize:          func(bearer string) bool { return bearer == "good" },
		RefuseAfterRestart: 1,
	})
	if _, resp := dial(t, s, "bad"); resp == nil || resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") == "" {
		t.Fatalf("a bad token: %v", resp)
	}
	mustDial(t, s, "good")
	s.Restart()
	if _, resp := dial(t, s, "good"); resp == nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Fatalf("the first handshake after a restart: %v", resp)
	}
	mustDial(t, s, "good")
	ws, _, err := websocket.Dial(t.Context(), s.URL()+"?access_token=good", nil)
	if err != nil {
		t.Fatalf("with a ticket in the address: %v", err)
	}
	ws.CloseNow()

	want := []streams.Handshake{
		{Bearer: "bad", Status: 401}, {Bearer: "good", Status: 101}, {Bearer: "good", Status: 503},
		{Bearer: "good", Status: 101}, {Bearer: "good", Status: 101},
	}
	got := s.Handshakes()
	if len(got) != len(want) {
		t.Fatalf("handshakes: %+v", got)
	}
	for i := range want {
		if got[i].Bearer != want[i].Bearer || got[i].Status != want[i].Status || got[i].At.IsZero() {
			t.Errorf("handshake %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestSeveralMessagesInAFrame(t *testing.T) {
	t.Parallel()
	s := streams.Start(t, streams.Config{})
	c := mustDial(t, s, "")
	c.subscribe(streams.Subscribe(2, channel))
	const n = 200
	for i := range n {
		s.Publish(channel, i)
	}
	for i := range n {
		if m := c.mustNext(); m.Push == nil || m.Push.Pub.Offset != uint64(i+1) {
			t.Fatalf("publication %d: %+v", i, m)
		}
	}
	t.Logf("%d publications in %d frames", n, c.frames)
}

func TestPings(t *testing.T) {
	t.Parallel()
	s := streams.Start(t, streams.Config{PingInterval: 200 * time.Millisecond})
	c := mustDial(t, s, "")
	c.subscribe(streams.Subscribe(2, channel))
	time.AfterFunc(700*time.Millisecond, func() { s.Publish(channel, "late") })
	c.wantPublication(`"late"`, 1)
	if c.pings < 2 {
		t.Errorf("%d pings in 700 ms", c.pings)
	}

	silent := mustDial(t, s, "")
	silent.send(streams.Connect(1))
	for {
		_, _, err := silent.ws.Read(silent.ctx) // a ping is read and not answered
		if err != nil {
			if code := websocket.CloseStatus(err); code != 3012 {
				t.Errorf("close code %d, want 3012: %v", code, err)
			}
			return
		}
	}
}

func TestErrorsAndCloseCodes(t *testing.T) {
	t.Parallel()
	s := streams.Start(t, streams.Config{})
	c := mustDial(t, s, "")
	c.subscribe(streams.Subscribe(2, channel))
	c.send(streams.Subscribe(3, channel))
	if m := c.mustNext(); m.ID != 3 || m.Error == nil || m.Error.Code != 105 {
		t.Errorf("a second subscription: %+v", m)
	}
	s.Disconnect(4000, "because")
	c.wantClose(4000)

	c = mustDial(t, s, "")
	c.send(streams.Subscribe(2, channel))
	c.wantClose(3501)

	c = mustDial(t, s, "")
	c.send([]byte("not JSON"))
	c.wantClose(3501)
}
