package sse

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/internal/redact"
)

// Conn is one connection to an event stream; it is a [stream.Conn] and a [stream.Resumer].
type Conn struct {
	dec     *Decoder
	body    io.Closer
	end     context.CancelCauseFunc
	reuse   bool
	secrets []string
	once    sync.Once
}

var (
	_ stream.Conn    = (*Conn)(nil)
	_ stream.Resumer = (*Conn)(nil)
)

// Receive returns the next event. Its ID is the position after it, also if that came with an earlier one. A stream that
// ends in the middle of an event ends as it would between two: the event is sent again to whoever comes back.
func (c *Conn) Receive() (stream.Message, error) {
	var m stream.Message
	for {
		err := c.take(&m)
		if err != errMore { //nolint:errorlint // Next returns it bare
			return m, err
		}
		if err = c.dec.fill(); err != nil {
			return m, c.disconnect(err)
		}
	}
}

// errMore is what Next returns in place of reading. A stream that is idle holds on to what is on its stack, and decoding
// takes more of that than reading.
var errMore = errors.New("sse: more is to be read")

// take makes a message of what has been read.
func (c *Conn) take(m *stream.Message) error {
	ev, err := c.dec.Next()
	switch {
	case err == errMore: //nolint:errorlint // as above
		return err
	case err != nil:
		return c.disconnect(err)
	}
	*m = stream.Message{Data: ev.Data, ID: c.dec.LastEventID(), Type: ev.Type}
	if !c.reuse {
		m.Data = bytes.Clone(ev.Data)
	}
	return nil
}

// disconnect says why the connection ended. An event over the limit is as large next time.
func (c *Conn) disconnect(err error) error {
	if tooLong, ok := errors.AsType[*TooLongError](err); ok {
		return &stream.DisconnectError{Class: stream.Permanent, Err: tooLong}
	}
	if err == io.EOF { //nolint:errorlint // Next returns it bare
		return err
	}
	return redact.Error(err, c.secrets)
}

// Position returns the last event id.
func (c *Conn) Position() string { return c.dec.LastEventID() }

// Base returns the last reconnection time that the server sent on this connection.
func (c *Conn) Base() (time.Duration, bool) { return c.dec.Retry() }

// errClosed is why a request ended that Close ended.
var errClosed = errors.New("closed")

// Close ends the connection at once.
func (c *Conn) Close() error {
	c.once.Do(func() {
		c.end(errClosed)
		_ = c.body.Close()
	})
	return nil
}
