package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/coder/websocket"

	"github.com/heed-sdk/heed/stream"
)

// ErrTooLarge is the cause of a disconnect after a message over the limit. The disconnect is transient; that the server finds
// a message of ours too large, its code 1009, is permanent.
var ErrTooLarge = errors.New("websocket: a message is larger than ReadLimit")

// Conn is one WebSocket connection; it is a [stream.Conn] and a [stream.Sender].
type Conn struct {
	ws     *websocket.Conn
	socket *socket
	reuse  bool
	buf    []byte
	class  func(code int, reason string) stream.Class
	redact func(string) string
	once   sync.Once
}

var (
	_ stream.Conn   = (*Conn)(nil)
	_ stream.Sender = (*Conn)(nil)
)

// Subprotocol returns the subprotocol that the server chose, or "".
func (c *Conn) Subprotocol() string { return c.ws.Subprotocol() }

// Receive returns the next message. What ends it is Close, never a context: one for each read costs more than the read.
func (c *Conn) Receive() (stream.Message, error) {
	kind, r, err := c.ws.Reader(context.Background())
	var data []byte
	if err == nil {
		data, err = c.read(r)
	}
	if err != nil {
		return stream.Message{}, c.disconnect(err)
	}
	if !c.reuse {
		data = append(make([]byte, 0, len(data)), data...)
	}
	return stream.Message{Data: data, Binary: kind == websocket.MessageBinary}, nil
}

// firstBuffer is the size that the buffer starts with: an idle stream holds on to it.
const firstBuffer = 128

// read reads a message into the connection's buffer.
func (c *Conn) read(r io.Reader) ([]byte, error) {
	if c.buf == nil {
		c.buf = make([]byte, 0, firstBuffer)
	}
	data := c.buf
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
			c.buf = data[:0]
		}
	}
}

// Send sends a message. If ctx ends while it is being written, the connection is lost: half a message cannot be taken back.
func (c *Conn) Send(ctx context.Context, m stream.Message) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("websocket: not sent: %w", err)
	}
	kind := websocket.MessageText
	if m.Binary {
		kind = websocket.MessageBinary
	}
	if err := c.ws.Write(ctx, kind, m.Data); err != nil {
		return fmt.Errorf("websocket: not sent: %w", err)
	}
	return nil
}

// Close ends the connection at once. A close frame is sent if that takes no time; the server's is not waited for.
func (c *Conn) Close() error {
	c.once.Do(func() {
		if c.socket.hurry() {
			_ = c.ws.Close(websocket.StatusNormalClosure, "") // fails as soon as it would wait
		}
		_ = c.ws.CloseNow()
	})
	return nil
}
