//go:build unix

package nchan_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/heed-sdk/heed/interop/nchan"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

// socket is nchan's protocol on top of a WebSocket: ids stand before the messages, and the address has where to go on.
type socket struct{ websocket.Dialer }

func (d socket) Dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) {
	d.Subprotocols = []string{nchan.SocketProtocol}
	if a.Position != "" {
		d.URL += "?last_event_id=" + url.QueryEscape(a.Position)
	}
	c, err := d.Dialer.Dial(ctx, a)
	if err != nil {
		return nil, err
	}
	return &numbered{Conn: c, position: a.Position}, nil
}

type numbered struct {
	stream.Conn
	position string
}

func (c *numbered) Receive() (stream.Message, error) {
	m, err := c.Conn.Receive()
	if err != nil {
		return m, err
	}
	head, data, ok := bytes.Cut(m.Data, []byte("\n\n"))
	id, found := bytes.CutPrefix(bytes.SplitN(head, []byte("\n"), 2)[0], []byte("id: "))
	if !ok || !found {
		return m, fmt.Errorf("a message without an id: %q", m.Data)
	}
	c.position = string(id)
	m.ID, m.Data = c.position, data
	return m, nil
}

func (c *numbered) Position() string { return c.position }

func (c *numbered) Base() (time.Duration, bool) { return 0, false }

// TestFrozenSocket is TestFrozen over WebSocket.
func TestFrozenSocket(t *testing.T) {
	t.Parallel()
	s := nchan.Start(t, nchan.Config{})
	f := follow(t, s.Stream(channel))
	f.config.Dialer = socket{websocket.Dialer{URL: s.Socket(channel)}}
	f.config.HandshakeDeadline = time.Second
	frozenAndThawed(t, s, f)
}
