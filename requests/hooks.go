package requests

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// Hooks are called as a request goes on; each may be nil. They run on the request's own goroutine, one at a time for one
// request. A hook that panics does not take the request down with it. What hooks are told has no query, no header and
// no body in it.
type Hooks struct {
	// OnRequestStart is called before an attempt is sent.
	OnRequestStart func(context.Context, Attempt)
	// OnRequestEnd is called when an attempt has an answer, whose body is not read yet, or has failed.
	OnRequestEnd func(context.Context, Result)
	// OnRetry is called when an attempt is going to be repeated, before the wait.
	OnRetry func(context.Context, Retry)
	// OnWait is called before every wait, those of a Throttle included. The other packages of Heed have the same hook.
	OnWait func(delay.Wait)
}

// Attempt is one request on the wire.
type Attempt struct {
	Method string
	URL    string // scheme, host and path
	Number int    // from 1
	Of     int    // how many there may be in all
	Reason string // why it is sent: empty for the first, else what the attempt before came back with, such as "503"
}

// Result is how an attempt ended.
type Result struct {
	Attempt
	Status int   // 0 without an answer
	Err    error // nil with an answer
	Took   time.Duration
}

// Retry is an attempt that failed and is going to be repeated.
type Retry struct {
	Attempt       // the one that failed
	Next    int   // the number of the one to come
	Status  int   // 0 without an answer
	Err     error // nil with an answer
	Wait    delay.Wait
}

func (h *Hooks) any() bool {
	return h.OnRequestStart != nil || h.OnRequestEnd != nil || h.OnRetry != nil || h.OnWait != nil
}

// tell calls a hook, and goes on when it panics.
func (t *Transport) tell(ctx context.Context, name string, hook func()) {
	defer func() {
		if r := recover(); r != nil && t.Logger != nil {
			t.Logger.LogAttrs(ctx, slog.LevelError, "requests: a hook panicked, the request goes on",
				slog.String("hook", name), slog.String("panic", fmt.Sprint(r)))
		}
	}()
	hook()
}

// described is the attempt under way, for hooks.
func (e *exchange) described() Attempt {
	method := e.req.Method
	if method == "" {
		method = http.MethodGet
	}
	return Attempt{Method: method, URL: bare(e.req.URL), Number: e.attempt, Of: e.most(), Reason: e.reason}
}

// most is how many attempts there may be in all: a request that is never repeated may be replayed, after a 401.
func (e *exchange) most() int {
	p := e.plan()
	switch {
	case !e.rewinds():
		return e.attempt
	case len(p.statuses) > 0 || p.unanswered:
		return p.attempts
	case e.refresher() != nil:
		return min(p.attempts, 2)
	}
	return 1
}

func (e *exchange) started(a Attempt) {
	if hook := e.t.Hooks.OnRequestStart; hook != nil {
		ctx := e.req.Context()
		e.t.tell(ctx, "OnRequestStart", func() { hook(ctx, a) })
	}
}

func (e *exchange) finished(resp *http.Response, err error, a Attempt, took time.Duration) {
	if hook := e.t.Hooks.OnRequestEnd; hook != nil {
		ctx := e.req.Context()
		e.t.tell(ctx, "OnRequestEnd", func() { hook(ctx, Result{Attempt: a, Status: status(resp), Err: err, Took: took}) })
	}
}

// announce says that a wait begins, and what for.
func (e *exchange) announce(resp *http.Response, err error, w delay.Wait) {
	t, ctx := e.t, e.req.Context()
	e.logged(w)
	if hook := t.Hooks.OnRetry; hook != nil {
		r := Retry{Attempt: e.described(), Next: e.attempt + 1, Status: status(resp), Err: err, Wait: w}
		t.tell(ctx, "OnRetry", func() { hook(ctx, r) })
	}
	e.waiting(w)
}

func (e *exchange) logged(w delay.Wait) {
	if e.t.Logger != nil {
		e.t.Logger.LogAttrs(e.req.Context(), slog.LevelInfo, "requests: waiting", slog.String("method", e.req.Method),
			slog.String("url", bare(e.req.URL)), slog.Duration("for", w.For), slog.String("why", w.String()))
	}
}

func (e *exchange) waiting(w delay.Wait) {
	if hook := e.t.Hooks.OnWait; hook != nil {
		e.t.tell(e.req.Context(), "OnWait", func() { hook(w) })
	}
}

func status(resp *http.Response) int {
	if resp == nil {
		return 0
	}
	return resp.StatusCode
}

// bare is a URL as it may be shown: a query may be a signature, and userinfo is a password.
func bare(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// watched reports whether anybody is told of waits.
func (t *Transport) watched() bool { return t.Hooks.any() || t.Logger != nil }
