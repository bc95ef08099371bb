package interop_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/heed-sdk/heed/interop/streams"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

// centrifuge is what a user writes to speak a protocol on top of a transport: a stream.Dialer around another one, whose
// connections are subscribed when Dial returns, answer pings, and know where to go on.
type centrifuge struct {
	websocket.Dialer
	channel string
}

var _ stream.Dialer = centrifuge{}

func (d centrifuge) Dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) {
	inner, err := d.Dialer.Dial(ctx, a)
	if err != nil {
		return nil, err
	}
	c := &subscription{conn: inner}
	// Receive knows no context: what ends it is Close.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	if err := c.subscribe(ctx, d.channel, a.Position); err != nil {
		stop()
		_ = c.Close()
		return nil, err
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return c, nil
}

// subscription is a connection that is subscribed to one channel.
type subscription struct {
	conn     stream.Conn
	frame    []streams.Message // what is left of the last frame
	waiting  []streams.Publication
	position streams.Position
}

var (
	_ stream.Conn    = (*subscription)(nil)
	_ stream.Resumer = (*subscription)(nil)
)

// subscribe is the handshake. A position of the same epoch brings what was published since.
func (c *subscription) subscribe(ctx context.Context, channel, position string) error {
	command := streams.Subscribe(2, channel)
	if position != "" {
		from, err := parsePosition(position)
		if err != nil {
			return &stream.AttemptError{Class: stream.Permanent, Err: err}
		}
		c.position = from
		command = streams.SubscribeFrom(2, channel, from)
	}
	if err := c.send(ctx, streams.Frame(streams.Connect(1), command)); err != nil {
		return err
	}
	for {
		m, err := c.next()
		switch {
		case err != nil:
			return err
		case m.Error != nil:
			return fmt.Errorf("command %d: error %d %s", m.ID, m.Error.Code, m.Error.Message)
		case m.Subscribe == nil:
			continue // connect was answered
		case m.Subscribe.WasRecovering && !m.Subscribe.Recovered:
			return &stream.AttemptError{Class: stream.Permanent, Err: errGap}
		}
		c.waiting = m.Subscribe.Publications
		if len(c.waiting) == 0 {
			c.position = m.Subscribe.Position
		}
		c.position.Epoch = m.Subscribe.Epoch
		return nil
	}
}

// errGap says that the server does not have any more what was published meanwhile.
var errGap = errors.New("there is a gap")

// Receive returns the next publication.
func (c *subscription) Receive() (stream.Message, error) {
	for len(c.waiting) == 0 {
		m, err := c.next()
		if err != nil {
			return stream.Message{}, err
		}
		if m.Push != nil {
			c.waiting = append(c.waiting, m.Push.Pub)
		}
	}
	p := c.waiting[0]
	c.waiting = c.waiting[1:]
	c.position.Offset = p.Offset
	return stream.Message{Data: p.Data, ID: c.Position()}, nil
}

// next returns the next message that is no ping.
func (c *subscription) next() (streams.Message, error) {
	for {
		for len(c.frame) == 0 {
			m, err := c.conn.Receive()
			if err != nil {
				return streams.Message{}, err
			}
			if c.frame, err = streams.Parse(m.Data); err != nil {
				return streams.Message{}, err
			}
		}
		m := c.frame[0]
		c.frame = c.frame[1:]
		if !m.IsPing() {
			return m, nil
		}
		if err := c.send(context.Background(), streams.Pong); err != nil {
			return streams.Message{}, err
		}
	}
}

func (c *subscription) send(ctx context.Context, frame []byte) error {
	return c.conn.(stream.Sender).Send(ctx, stream.Message{Data: frame})
}

func (c *subscription) Close() error { return c.conn.Close() }

// Position is the place of the last publication that was received.
func (c *subscription) Position() string {
	return strconv.FormatUint(c.position.Offset, 10) + "@" + c.position.Epoch
}

func (c *subscription) Base() (base time.Duration, ok bool) { return 0, false }

func parsePosition(s string) (p streams.Position, err error) {
	offset, epoch, _ := strings.Cut(s, "@")
	p.Epoch = epoch
	p.Offset, err = strconv.ParseUint(offset, 10, 64)
	return p, err
}
