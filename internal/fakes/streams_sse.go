package fakes

import (
	"context"
	"io"
	"net/http"
	"strings"
)

const eventStream = "text/event-stream"

// eventConn is an event stream, whose end is its handler's.
type eventConn struct{ end context.CancelFunc }

func (c *eventConn) CloseNow() error {
	c.end()
	return nil
}

// serveEvents plays a step as an event stream.
func (s *StreamServer) serveEvents(w http.ResponseWriter, r *http.Request, i int, step StreamStep) {
	timers := s.on(s.Clock)
	ctx, end := context.WithCancel(r.Context())
	defer end()
	c := &eventConn{end}
	s.accepted(i, c)
	kind := step.ContentType
	if kind == "" {
		kind = eventStream
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	for _, m := range step.Messages {
		_, _ = io.WriteString(w, "data: "+strings.ReplaceAll(m, "\n", "\ndata: ")+"\n\n")
	}
	_, _ = io.WriteString(w, step.Raw) // to a client that is gone, it is of no interest
	_ = http.NewResponseController(w).Flush()
	if step.Then == Stop {
		<-ctx.Done()
	} else {
		_ = pass(ctx, timers, step.Alive) // or until the client is gone
	}
	s.live.remove(c) // before the client can know, as with a WebSocket
	s.ended(i, timers.Now())
	if step.Then != End || ctx.Err() != nil {
		panic(http.ErrAbortHandler) // breaks the connection
	}
}
