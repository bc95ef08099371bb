package requests

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// Transport is an [http.RoundTripper] that repeats what may be repeated, waits as long as the server asked for, and
// attaches credentials to each attempt anew. The zero value is ready to use, and any number of goroutines may use it at
// once; do not copy or change it after its first request.
//
// A request is repeated if three gates let it through: its method, or its operation, or its idempotency key says that it
// may be repeated; the policy's set has the answer's status, or nothing was answered; and there is an attempt left. When
// they are used up, RoundTrip returns the last answer with its body unread, or the last failure as *TransportFailed.
//
// Transport sends https only, except to loopback addresses: the error is then ErrInsecure.
type Transport struct {
	// Base sends the attempts. If it is nil, it is http.DefaultTransport. It must not attach credentials of its own.
	//
	// An http.Transport repeats by itself, once and unseen, a request that found its kept-alive connection closed; set
	// DisableKeepAlives where even that matters.
	// Over HTTP/2 it repeats what the server refused unprocessed as well, up to seven times, with waits of its own that add
	// up to a minute.
	Base http.RoundTripper

	// Tokens, if set, gives each attempt its Authorization, in place of one that the request already has. If it is a
	// ContextTokenSource, it is asked with the request's context; if it is a Refresher, a 401 leads to one refresh and one replay.
	Tokens oauth2.TokenSource

	// Origin, if set, is the only origin that is given credentials, such as "https://api.example.com". If it is empty,
	// every origin is that a request was made for; a request redirected away from there has none.
	Origin string

	// Policy decides what is repeated. If it is nil, it is Declared{}.
	Policy Policy

	// Operations has what the API declares about its operations. A request that calls none of them, and every request
	// if it is nil, is repeated as its method allows: 3 attempts, from 1 s, on 429, 503 and failures without an answer.
	Operations *Operations

	// MaxAttempts, if not zero, caps the attempts of every request, the first included; 1 or less is exactly one.
	MaxAttempts int

	// Limit, if positive, is the longest wait that the caller is willing to make. Instead of a longer one, the answer is returned
	// at once.
	Limit time.Duration

	// BufferLimit is how much of a body without GetBody is kept to be sent again; a longer one is sent once. If it is
	// zero, it is 1 MiB. If it is negative, nothing is kept: choose that for bodies that are written as the answer is read.
	BufferLimit int64

	// AttemptTimeout, if positive, bounds the time from sending an attempt to the head of its answer. It does not bound
	// the reading of the body, nor any wait.
	AttemptTimeout time.Duration

	// ReadWait, if set, reads what a server asks for by other headers than Retry-After, such as ReadMilliseconds. Where it
	// finds no wait, Retry-After is read.
	ReadWait WaitReader

	// Throttle is what becomes of a request whose host has just told another one, with the same credential, to wait. If it is
	// zero, it is ThrottleWait.
	Throttle Throttle
	// ThrottleBy, if set, names whom a request is counted for, such as an account: requests for the same host wait for each
	// other if their names are equal. If it is nil, they do if all is equal that may be a credential: in particular a
	// token, so that a refreshed one is told by itself.
	ThrottleBy func(*http.Request) string

	// Clock is the clock of waits and timeouts. If it is nil, it is the real one.
	Clock clock.Clock
	// Rand draws the jitter. If it is nil, it is math/rand/v2.
	Rand delay.Rand
	// Hooks are told what happens.
	Hooks Hooks
	// Logger, if set, is told of waits, and of hooks that panic.
	Logger *slog.Logger

	once   sync.Once
	gates  gates
	timers *delay.Timers
	bare   bool     // it adds nothing to a first attempt, and nobody is told of one
	origin *url.URL // Origin, parsed
	fault  error    // what is wrong with the fields above
}

// RoundTrip sends the request, and again as the policy allows. The request itself is never changed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.direct(req) {
		return t.roundTrip(req, nil)
	}
	resp, err := t.base().RoundTrip(req)
	if err == nil && resp != nil && resp.StatusCode < 400 {
		if resp.Request != req {
			resp.Request = req
		}
		return resp, nil
	}
	e := t.exchange(req, nil)
	e.attempt = 1
	resp, err = e.checked(resp, err)
	e.learn(req, resp)
	return e.goOn(resp, err)
}

// direct reports whether a first attempt is the request as it is, with nobody to tell of it: success costs then no more
// than without Transport.
func (t *Transport) direct(req *http.Request) bool {
	t.once.Do(t.prepare)
	return t.bare && !t.gates.any() && req.Response == nil && req.Header != nil && rewinds(req) &&
		req.URL != nil && req.URL.Host != "" && (req.URL.Scheme == "https" || secure(req.URL) == nil) &&
		keyOf(req.Context()) == ""
}

func (t *Transport) roundTrip(req *http.Request, c *call) (*http.Response, error) {
	if err := t.admit(req); err != nil {
		closeBody(req)
		return nil, err
	}
	return t.exchange(req, c).run("")
}

// prepare does once what all requests share.
func (t *Transport) prepare() {
	t.timers = delay.TimersOn(t.Clock)
	if t.Origin != "" {
		t.origin, t.fault = parseOrigin(t.Origin)
	}
	t.bare = t.fault == nil && t.Tokens == nil && t.AttemptTimeout <= 0 && !t.Hooks.any()
}

func (t *Transport) ready() error {
	t.once.Do(t.prepare)
	return t.fault
}

// CloseIdleConnections closes those of Base, if it can; http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

// call is what a Client and a Transport tell each other about one request, besides what a RoundTripper can.
type call struct {
	origin   *url.URL // given credentials in place of Transport.Origin
	unwaited error    // why the last answer was not waited for, once it is known
}

// exchange is one request of a caller's, with all its attempts.
type exchange struct {
	t       *Transport
	req     *http.Request // the caller's, never changed
	call    *call
	decided plan // once planned, see plan
	planned bool
	trusted bool   // whether the request is for an origin that is given credentials
	strayed bool   // whether a redirect led it away from where it was sent first
	read    bool   // whether wanted is of the last answer
	key     string // the idempotency key to add
	ticket  uint64 // its place among those that wait for a host, once it has one
	told    *gate  // of the last attempt's host, if it asked to wait
	again   func() (io.ReadCloser, error)

	attempt int              // the number of the last one sent
	reason  string           // why it was sent
	wanted  delay.RetryAfter // by its answer, see asked
	token   *oauth2.Token    // what it carried
	renewed *oauth2.Token    // what the next one carries, after a 401
	replays int              // after a 401
	repeats *repeats         // made when the first attempt failed
}

// repeats is what an exchange needs once an attempt has failed.
type repeats struct {
	retries delay.Retries
	drainer drainer
}

// exchange begins one with a request.
func (t *Transport) exchange(req *http.Request, c *call) *exchange {
	e := &exchange{t: t, req: req, call: c, strayed: strayed(req)}
	if !e.strayed {
		e.key = keyOf(req.Context())
		e.trusted = t.Tokens != nil && t.gives(c, req.URL)
	}
	return e
}

// plan applies the policy and the first two gates, once it is needed: a request that succeeds looks nothing up.
func (e *exchange) plan() *plan {
	if !e.planned {
		// A request that calls no operation of the table has the zero one: what its method allows, and the defaults.
		op, _ := e.t.Operations.find(e.req)
		repeatable := safe(e.req.Method) || op.Idempotent || e.key != "" || hasKey(e.req.Header)
		e.decide(e.t.policy().plan(repeatable, op))
	}
	return &e.decided
}

// decide makes a plan the exchange's, under the caller's cap.
func (e *exchange) decide(p plan) {
	e.decided, e.planned = p, true
	attempts := &e.decided.attempts
	if n := e.t.MaxAttempts; n != 0 {
		*attempts = min(*attempts, n)
	}
	if n := maxAttempts(e.req.Context()); n != 0 {
		*attempts = min(*attempts, n)
	}
	*attempts = max(*attempts, 1)
}

// safe is the first gate: whether the method may be repeated (RFC 9110, section 9.2.2). Of methods that it does not know
// it says no.
func safe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// run makes all attempts; reason is why the first one is made.
func (e *exchange) run(reason string) (*http.Response, error) {
	resp, err := e.send(reason)
	return e.goOn(resp, err)
}

// goOn takes an exchange from the outcome of its first attempt to its end.
func (e *exchange) goOn(resp *http.Response, err error) (*http.Response, error) {
	for {
		var reason string
		switch {
		case err == nil && resp.StatusCode < 400:
			return resp, nil
		case e.mayReplay(resp):
			if err := e.renew(resp); err != nil {
				return nil, err
			}
			reason = "401, and the token was renewed"
		case e.mayRetry(resp, err):
			reason = cause(resp, err)
			switch waited, ended := e.wait(resp, err, reason); {
			case ended != nil:
				closeResponse(resp)
				return nil, ended
			case !waited:
				return e.deliver(resp, err)
			}
		default:
			return e.deliver(resp, err)
		}
		resp, err = e.send(reason)
	}
}

// mayRetry is the third gate, and the budget.
func (e *exchange) mayRetry(resp *http.Response, err error) bool {
	p := e.plan()
	switch {
	case e.attempt >= p.attempts || !e.rewinds():
		return false
	case err != nil:
		return p.unanswered && e.req.Context().Err() == nil && passing(e.req, err)
	}
	return p.repeats(resp.StatusCode)
}

// counted returns the count of this exchange's attempts; every attempt that another one follows is told to it.
func (e *exchange) counted() *delay.Retries {
	if e.repeats == nil {
		e.repeats = &repeats{retries: e.plan().retries(e.t.Limit, e.t.Rand)}
	}
	return &e.repeats.retries
}

// wait waits for the next attempt and reports whether the wait was made. It is not when it is over the limit or would
// end after the caller's deadline: the answer in hand is then the last one. The error is that the caller's context ended.
func (e *exchange) wait(resp *http.Response, failure error, reason string) (waited bool, ended error) {
	ctx := e.req.Context()
	w, ok := e.counted().Next(e.asked(resp))
	w.Cause = reason
	if !ok {
		if w.Bound == delay.OverLimit {
			e.unwaited(fmt.Errorf("the wait of %v is longer than the limit of %v", w.For, e.t.Limit))
		}
		return false, nil
	}
	if w.For <= 0 && !e.t.watched() { // then there is no instant to name
		e.repeats.drainer.drain(e.t, resp)
		ended = delay.Ended(ctx)
		return ended == nil, ended
	}
	g := e.told
	e.t.gates.comes(g, 1)
	defer e.t.gates.comes(g, -1)
	pause := delay.Pause{Timers: e.t.timers, Kind: delay.KindRetry, OnWait: func(w delay.Wait) {
		// Here, and no sooner: an answer that is not waited for is handed to the caller unread.
		e.repeats.drainer.drain(e.t, resp)
		e.announce(resp, failure, w)
	}}
	err := pause.Sleep(ctx, w)
	if tooLong, ok := errors.AsType[*delay.TooLongError](err); ok && ctx.Err() == nil {
		e.unwaited(tooLong)
		return false, nil
	}
	return err == nil, err
}

// asked reads what the server asked for, once for each answer: a date counts from the moment that it came. A failure
// without an answer has no header.
func (e *exchange) asked(resp *http.Response) delay.RetryAfter {
	if resp == nil {
		return delay.RetryAfter{}
	}
	if !e.read {
		e.wanted, e.read = e.t.asked(e.plan(), resp.Header), true
	}
	return e.wanted
}

func (t *Transport) asked(p *plan, h http.Header) delay.RetryAfter {
	switch {
	case t.ReadWait != nil:
		return FirstOf(t.ReadWait, p.asked)(h, t.timers.Now())
	case len(h["Retry-After"]) == 0:
		return delay.RetryAfter{} // without asking the clock, which takes longer than all else here
	}
	return p.asked(h, t.timers.Now())
}

func (e *exchange) unwaited(why error) {
	if e.call != nil {
		e.call.unwaited = why
	}
}

// deliver hands over the last answer, or the last failure.
func (e *exchange) deliver(resp *http.Response, err error) (*http.Response, error) {
	if err == nil {
		return resp, nil
	}
	ctx := e.req.Context()
	if ended := delay.Ended(ctx); ended != nil {
		if errors.Is(err, ctx.Err()) {
			return nil, err
		}
		return nil, ended // cancellation wins ties
	}
	if final(err) {
		return nil, err
	}
	if !wellFormed(e.req) {
		return nil, &Error{Code: CodeUsage, Message: "the request cannot be sent as it is: " + err.Error(), Err: err}
	}
	return nil, &TransportFailed{Err: err}
}

// cause says in a word what an attempt came back with.
func cause(resp *http.Response, err error) string {
	switch {
	case err == nil && resp.StatusCode == http.StatusTooManyRequests:
		return "429" // Itoa would allocate it
	case err == nil && resp.StatusCode == http.StatusServiceUnavailable:
		return "503"
	case err == nil:
		return strconv.Itoa(resp.StatusCode)
	case timeout(err):
		return "timeout"
	}
	return "no answer"
}
