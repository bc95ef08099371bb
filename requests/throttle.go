package requests

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/heed-sdk/heed/delay"
)

// Throttle is what becomes of a request whose host has told another one with the same credential to wait, by a 429 or
// 503 with a Retry-After that the same Transport received. It is not sent to be told the same.
type Throttle uint8

const (
	// ThrottleWait lets it wait for the same moment, and then for its turn among those that waited, the oldest first. It
	// spends no attempt. The wait ends with the caller's context; one that is longer than Transport.Limit, or would end
	// after the caller's deadline, is not begun, and the request is refused as by ThrottleRefuse.
	ThrottleWait Throttle = iota
	// ThrottleRefuse refuses it at once, with a *RateLimited that has the wait, and ErrThrottled as its cause.
	ThrottleRefuse
	// ThrottleOff sends it, and lets it learn from its own answer.
	ThrottleOff
)

// ErrThrottled is the cause of a *RateLimited about a request that was not sent, because its host had told another one to
// wait.
var ErrThrottled = errors.New("requests: not sent, as the host has told another request to wait")

// learn notes what a host asks for, before anybody else is let through to it.
func (e *exchange) learn(sent *http.Request, resp *http.Response) {
	if resp == nil || !refusal(resp.StatusCode) || e.t.Throttle == ThrottleOff {
		return
	}
	if asked := e.asked(resp); asked.Duration() > 0 {
		e.t.gates.told(e, e.t.gateOf(sent), asked)
	}
}

func refusal(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// through sends an attempt that a gate has let pass, if there is one.
func (e *exchange) through(g *gate, out *http.Request) (*http.Response, error) {
	served := false
	if g != nil {
		defer func() { e.t.gates.answered(g, served) }() // even if Base panics
	}
	resp, err := e.trip(out)
	e.learn(out, resp)
	served = resp != nil && !refusal(resp.StatusCode)
	return resp, err
}

// pass waits until an attempt may be sent, and returns the gate that is to be told of its answer, or nil.
func (e *exchange) pass(out *http.Request) (*gate, error) {
	if e.t.Throttle == ThrottleOff || !e.t.gates.any() {
		return nil, nil
	}
	for {
		id := e.t.gateOf(out)
		g, waited, err := e.line(id)
		if err != nil || !waited || !e.trusted {
			return g, err
		}
		// A token may have been refreshed meanwhile.
		if err := e.authorise(e.req.Context(), out.Header); err != nil {
			e.t.gates.answered(g, false)
			return nil, err
		}
		if e.t.gateOf(out) == id {
			return g, nil
		}
		e.t.gates.answered(g, false)
	}
}

// line waits in the line of a gate, from joining it to leaving it.
func (e *exchange) line(id gateID) (g *gate, waited bool, err error) {
	s := &e.t.gates
	g, w := s.join(e, id)
	if g == nil {
		return nil, false, nil
	}
	for {
		next, first := s.next(e.t.timers.Now(), g, w)
		switch {
		case first && next.For == 0:
			return g, waited, nil
		case next.Reason == delay.Held:
			err = e.held(next)
		case first:
			err = e.inTurn(next, w)
		default:
			err = w.wait(e.req.Context())
		}
		if err != nil {
			s.leave(g, w)
			return nil, waited, err
		}
		waited = true
	}
}

// held waits for the moment that the host named, if the caller may wait so long.
func (e *exchange) held(next delay.Wait) error {
	asked := next.For
	refused := func(why error) error { return &RateLimited{RetryAfter: asked, Err: why} }
	if e.t.Throttle == ThrottleRefuse {
		return refused(ErrThrottled)
	}
	next = next.Bounded(0, e.t.Limit)
	if next.Bound == delay.OverLimit {
		return refused(fmt.Errorf("%w, and the wait of %v is longer than the limit of %v", ErrThrottled, next.For, e.t.Limit))
	}
	err := e.paused(nil).Sleep(e.req.Context(), next)
	if tooLong, ok := errors.AsType[*delay.TooLongError](err); ok && e.req.Context().Err() == nil {
		return refused(fmt.Errorf("%w: %w", ErrThrottled, tooLong))
	}
	return err
}

// inTurn waits, at the head of the line, for the distance to the one before or for its answer.
func (e *exchange) inTurn(next delay.Wait, w *waiter) error {
	ctx := e.req.Context()
	err := e.paused(w.news).Sleep(ctx, next)
	if is[*delay.TooLongError](err) && ctx.Err() == nil {
		return w.wait(ctx) // it may be sooner
	}
	return err
}

func (e *exchange) paused(cut <-chan struct{}) delay.Pause {
	return delay.Pause{Timers: e.t.timers, Kind: delay.KindThrottle, Cut: cut, OnWait: func(w delay.Wait) {
		if w.Reason == delay.Held {
			e.logged(w) // the distances would fill a log
		}
		e.waiting(w)
	}}
}

// wait waits for news.
func (w *waiter) wait(ctx context.Context) error {
	select {
	case <-w.news:
	case <-ctx.Done():
	}
	return delay.Ended(ctx)
}
