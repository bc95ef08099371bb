package websocket

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/stream"
)

// farewell is how long the close frame may take: it goes out, or the server is not taking anything in.
const farewell = 5 * time.Millisecond

// socket is the connection below the library. Whatever comes in is a sign of life, pings, pongs and parts of messages
// included, and costs two stamps for each read of the network, however many messages that brings.
type socket struct {
	io.ReadWriteCloser
	raw     net.Conn // below TLS; nil if the transport did not tell
	plain   bool     // TLS reads ahead by itself
	attempt stream.Attempt
	ahead   ahead
	once    sync.Once
	let     func() bool // lets the network's connection go on without the context of the dial
}

func (s *socket) Read(p []byte) (int, error) {
	if s.plain {
		return s.ahead.read(p, s.network)
	}
	return s.network(p)
}

func (s *socket) network(p []byte) (int, error) {
	s.attempt.Reading()
	n, err := s.ReadWriteCloser.Read(p)
	if n > 0 {
		s.attempt.Alive()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errCut
	}
	return n, err
}

// errCut is the end of a connection that came without a close frame. The library takes io.EOF for the end of the message
// under way, and of a compressed one io.ErrUnexpectedEOF too, so that half of it would pass for the whole.
var errCut = errors.New("the connection ended without a close frame")

// hold notes the network's connection, and ties it to the context of the dial. The transport does that too, but it ends
// TLS in good order, which a server that takes nothing in can hold up; and what follows the headers it leaves alone.
func (s *socket) hold(ctx context.Context, raw net.Conn) {
	s.release()
	s.raw, s.let = raw, context.AfterFunc(ctx, func() { _ = raw.Close() })
}

// release unties the connection, and reports whether it was still whole.
func (s *socket) release() bool {
	let := s.let
	s.let = nil // it holds the context
	return let == nil || let()
}

// hurry lets what is being read fail at once, and what is written yet fail soon. It reports whether it can: without it, the
// library's Close waits for the server.
func (s *socket) hurry() bool {
	if s.raw == nil {
		return false
	}
	// Deadlines are the network's, which knows the real clock alone.
	now := clock.New().Now()
	return s.raw.SetWriteDeadline(now.Add(farewell)) == nil && s.raw.SetReadDeadline(now.Add(-time.Hour)) == nil
}

// Close closes the network's connection first, because the end of TLS writes too and would wait for seconds for a server
// that takes nothing in.
func (s *socket) Close() (err error) {
	s.once.Do(func() {
		if s.raw != nil {
			_ = s.raw.Close()
		}
		err = s.ReadWriteCloser.Close()
	})
	return err
}
