package requests

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/heed-sdk/heed/delay"
)

// send makes one attempt. Its error is a failure without an answer, or final.
func (e *exchange) send(reason string) (*http.Response, error) {
	e.attempt++
	e.reason, e.told, e.read = reason, nil, false
	out, err := e.outgoing()
	if err != nil {
		return nil, err
	}
	g, err := e.pass(out)
	if err != nil {
		closeBody(out)
		return nil, err
	}
	if !e.t.Hooks.any() {
		return e.through(g, out)
	}
	a := e.described()
	e.started(a)
	began := e.t.timers.Now()
	resp, err := e.through(g, out)
	e.finished(resp, err, a, e.t.timers.Now().Sub(began))
	return resp, err
}

// outgoing is the request of this attempt: the caller's own where nothing has to be added to it, else a copy. Nothing is
// left open when it fails.
func (e *exchange) outgoing() (*http.Request, error) {
	ctx := e.req.Context()
	out := e.req
	if e.trusted || e.strayed || e.key != "" || e.req.Header == nil { // which http.Transport refuses
		out = e.req.WithContext(ctx)
		if out.Header = e.req.Header.Clone(); out.Header == nil {
			out.Header = http.Header{}
		}
	}
	if e.strayed {
		// http.Client keeps Authorization for another port or a subdomain, and its Referer has the query.
		remove(out.Header, "Authorization")
		remove(out.Header, "Referer")
	}
	if e.key != "" && !hasKey(out.Header) {
		if !printable(e.key) {
			closeBody(out)
			return nil, &Error{Code: CodeUsage, Message: "the idempotency key has a character that no header takes"}
		}
		out.Header.Set(idempotencyHeader, e.key)
	}
	out, err := e.withBody(out)
	if err != nil {
		return nil, err
	}
	if e.trusted {
		// Last, so that reading a slow body does not let the token grow old.
		if err := e.authorise(ctx, out.Header); err != nil {
			closeBody(out)
			return nil, err
		}
	}
	return out, nil
}

// remove deletes a field however its name is written: net/http sends names as they are in the map.
func remove(h http.Header, name string) {
	for is := range h {
		if strings.EqualFold(is, name) {
			delete(h, is)
		}
	}
}

// trip sends a request and returns its answer or failure, within the attempt's time.
func (e *exchange) trip(out *http.Request) (*http.Response, error) {
	d := e.t.AttemptTimeout
	if d <= 0 {
		return e.checked(e.roundTrip(out))
	}
	ctx, cancel := context.WithCancelCause(out.Context())
	expired := &attemptTimeout{&delay.TimeoutError{Kind: delay.KindRequestTimeout, After: d}}
	timer := e.t.timers.After(delay.KindRequestTimeout, d, func() { cancel(expired) })
	resp, err := e.checked(e.roundTrip(out.WithContext(ctx)))
	inTime := timer.Stop()
	switch {
	case err != nil:
		if errors.Is(context.Cause(ctx), expired) && !errors.Is(err, expired) {
			err = expired // a RoundTripper that says "cancelled" does not know by whom
		}
		cancel(nil)
		return nil, err
	case !inTime:
		closeResponse(resp)
		cancel(nil)
		return nil, expired
	}
	resp.Body = held(resp.Body, func() { cancel(nil) })
	return resp, nil
}

// attemptTimeout is a TimeoutError by which Health tells a host that does not answer from a caller who does not wait.
type attemptTimeout struct{ *delay.TimeoutError }

func (e *attemptTimeout) Unwrap() error { return e.TimeoutError }

// roundTrip hands a request to the base. An http.Transport neither returns nor ends before its read of the body does, not
// even when the context has ended or the answer is over: what ends a read that waits for its writer is to close the body.
func (e *exchange) roundTrip(out *http.Request) (*http.Response, error) {
	if rewinds(out) {
		return e.t.base().RoundTrip(out)
	}
	body := &onceClosed{ReadCloser: out.Body}
	stop := context.AfterFunc(out.Context(), func() { _ = body.Close() })
	release := func() {
		stop()
		_ = body.Close()
	}
	out = out.WithContext(out.Context())
	out.Body = body
	resp, err := e.t.base().RoundTrip(out)
	if err != nil || resp == nil || resp.Body == nil || resp.Body == http.NoBody {
		release()
		return resp, err
	}
	resp.Body = held(resp.Body, release)
	return resp, nil
}

// onceClosed is a body that is closed by whoever is first.
type onceClosed struct {
	io.ReadCloser
	once sync.Once
	err  error
}

func (b *onceClosed) Close() error {
	b.once.Do(func() { b.err = b.ReadCloser.Close() })
	return b.err
}

// checked makes an outcome of what a RoundTripper returned, whatever it is.
func (e *exchange) checked(resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err != nil:
		closeResponse(resp)
		return nil, withoutURL(err)
	case resp == nil:
		return nil, &Error{Code: CodeUsage, Message: "Transport.Base returned neither an answer nor an error: use another one"}
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	resp.Request = e.req // not the copy that has the credentials
	return resp, nil
}

// withoutURL takes off what would put a URL with its query into the text of an error.
func withoutURL(err error) error {
	for {
		inner, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		if err = inner.Err; err == nil {
			return errors.New("a failure that does not say why")
		}
	}
}

// heldBody releases what an answer needs, such as the attempt's context, when its body has been read or closed.
type heldBody struct {
	io.ReadCloser
	release func()
}

func held(body io.ReadCloser, release func()) io.ReadCloser {
	h := &heldBody{body, release}
	if w, ok := body.(io.Writer); ok { // of a connection that changed its protocol
		return &heldConn{h, w}
	}
	return h
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.release()
	}
	return n, err
}

func (b *heldBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

type heldConn struct {
	*heldBody
	io.Writer
}
