package requests

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/heed-sdk/heed/delay"
)

const (
	defaultBufferLimit = 1 << 20
	// drainLimit and drainTime are how much of an answer is read, and for how long, so that its connection can be used
	// again. What is left beyond that would cost more than a new connection.
	drainLimit = 64 << 10
	drainTime  = time.Second
)

// rewinds reports whether the request as it is can be sent again.
func rewinds(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

func (e *exchange) rewinds() bool { return e.again != nil || rewinds(e.req) }

// withBody gives an attempt its body: the first one the caller's own, or its copy where that may be needed again.
func (e *exchange) withBody(out *http.Request) (*http.Request, error) {
	body, again := e.req.Body, e.again
	switch {
	case e.attempt == 1 && !e.keeps():
		return out, nil
	case e.attempt == 1:
		var err error
		if body, again, err = e.buffered(); err != nil {
			return nil, err
		}
		e.again = again
	case body == nil || body == http.NoBody:
		return out, nil
	default:
		if again == nil {
			again = e.req.GetBody
		}
		var err error
		if body, err = again(); err != nil {
			return nil, &Error{Code: CodeUsage, Message: "the request's body cannot be had again: " + err.Error(), Err: err}
		}
	}
	if out == e.req {
		out = e.req.WithContext(e.req.Context())
	}
	out.Body, out.GetBody = body, again
	return out, nil
}

// keeps reports whether the body has to be kept, because the request may be sent again.
func (e *exchange) keeps() bool {
	limit := e.bufferLimit()
	if rewinds(e.req) || limit < 0 || e.req.ContentLength > limit {
		return false
	}
	p := e.plan()
	return p.attempts > 1 && (len(p.statuses) > 0 || p.unanswered || e.refresher() != nil)
}

func (e *exchange) bufferLimit() int64 {
	if e.t.BufferLimit == 0 {
		return defaultBufferLimit
	}
	return e.t.BufferLimit
}

// buffered reads the body up to the limit. again is nil when there is more: it is then sent once, from what was read on.
func (e *exchange) buffered() (body io.ReadCloser, again func() (io.ReadCloser, error), err error) {
	limit := e.bufferLimit()
	ctx := e.req.Context()
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = e.req.Body.Close() // what ends a read that waits for its writer
	})
	data, err := io.ReadAll(io.LimitReader(e.req.Body, limit+1))
	if !stop() {
		<-closed
		return nil, nil, delay.Ended(ctx)
	}
	switch {
	case err != nil:
		closeBody(e.req)
		return nil, nil, &Error{Code: CodeUsage, Message: "the request's body cannot be read: " + err.Error(), Err: err}
	case int64(len(data)) > limit:
		rest := io.MultiReader(bytes.NewReader(data), e.req.Body)
		return struct {
			io.Reader
			io.Closer
		}{rest, e.req.Body}, nil, nil
	}
	closeBody(e.req) // it was read to its end
	again = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	body, _ = again()
	return body, again, nil
}

// drain reads the rest of an answer, within bounds of size and time, and closes it.
func (t *Transport) drain(resp *http.Response) { new(drainer).drain(t, resp) }

// drainer is an answer whose rest is read, until that takes too long.
type drainer struct {
	rest    io.LimitedReader
	body    io.Closer
	timer   delay.Timer
	closing sync.WaitGroup
}

func (d *drainer) drain(t *Transport, resp *http.Response) {
	if resp == nil {
		return
	}
	if resp.Body == http.NoBody || resp.ContentLength == 0 {
		_ = resp.Body.Close()
		return
	}
	d.rest, d.body = io.LimitedReader{R: resp.Body, N: drainLimit}, resp.Body
	d.closing.Add(1)
	t.timers.Arm(&d.timer, delay.KindRequestTimeout, drainTime, d.cut)
	_, _ = io.Copy(io.Discard, &d.rest)
	if d.timer.Stop() {
		d.closing.Done()
		_ = resp.Body.Close()
	}
	d.closing.Wait()
}

func (d *drainer) cut() {
	go func() { // closing may wait, and ends the read
		defer d.closing.Done()
		_ = d.body.Close()
	}()
}

func closeResponse(resp *http.Response) {
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
