package stream

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// run is one consumption of a stream. It belongs to the consumer's goroutine.
type run struct {
	*Stream
	observe  observer
	ledger   ledger
	attempts int
	position string
	outset   time.Time  // of the attempt
	refused  Credential // the credential that was refused last, until there is another
	closing  atomic.Bool
}

// cycle is one attempt and, if it succeeds, the life of its connection. It returns nil when the loop is to stop without an
// error.
//
// Streams are idle most of the time, and then what is on the stack between Messages and the network is what they hold: so
// whatever is over by then, or comes after it, has a function of its own.
func (r *run) cycle(ctx context.Context, yield func(Message, error) bool) *outcome {
	p, o := r.connect(ctx)
	if p == nil {
		return o
	}
	o = p.live(ctx, yield)
	p.settle(o)
	return o
}

// connect makes one attempt. Without a connection it returns its outcome, or nil when the loop is to stop without an error.
func (r *run) connect(ctx context.Context) (*pump, *outcome) {
	r.attempts++
	r.observe.connecting(ConnectingInfo{Attempt: r.attempts})
	if delay.Ended(ctx) != nil { // the trace may have closed the stream
		return nil, nil
	}
	dog := &watchdog{timers: r.timers, limit: r.config.Staleness}
	r.closing.Store(false)
	r.outset = r.timers.Now()
	a := Attempt{Number: r.attempts, Position: r.position, now: r.timers.Now, tell: r.observe.alive(&r.closing)}
	if dog.limit > 0 {
		a.dog = dog
	}
	err := r.mint(ctx, &a)
	switch {
	case delay.Ended(ctx) != nil || errors.Is(err, ErrEnd):
		return nil, nil
	case err != nil:
		return nil, r.failed("credential", MintFailed, asCredential(ctx, a, err))
	}
	started := r.timers.Now()
	conn, err := r.dial(ctx, a)
	switch {
	case err != nil && delay.Ended(ctx) != nil || errors.Is(err, ErrEnd):
		return nil, nil
	case err != nil:
		e := asAttempt(a, err)
		if e.Class == Unauthorized {
			r.refused = a.Credential
		}
		return nil, r.failed("dial", DialFailed, e)
	}
	now := r.timers.Now()
	return &pump{run: r, conn: conn, dog: dog, attempt: a, took: now.Sub(started), began: now}, nil
}

// mint obtains the credential of an attempt.
func (r *run) mint(ctx context.Context, a *Attempt) error {
	if r.config.Credential == nil {
		return nil
	}
	c, err := r.config.Credential(ctx, r.refused)
	if err != nil {
		return err
	}
	a.Credential, r.refused = c, Credential{}
	return nil
}

// dial makes the attempt, within the handshake deadline.
func (r *run) dial(ctx context.Context, a Attempt) (Conn, error) {
	within := ctx
	if d := r.config.HandshakeDeadline; d > 0 {
		bounded, cancel := r.timers.WithTimeout(ctx, delay.KindHandshakeDeadline, d)
		defer cancel() // also when the dialer panics
		var expire context.CancelCauseFunc
		within, expire = context.WithCancelCause(bounded)
		defer expire(nil)
		r.bound(&handshake{until: r.timers.Now().Add(d), expire: func() {
			expire(&delay.TimeoutError{Kind: delay.KindHandshakeDeadline, After: d})
		}})
		defer r.bound(nil)
	}
	conn, err := r.config.Dialer.Dial(within, a)
	late, timedOut := errors.AsType[*delay.TimeoutError](context.Cause(within))
	if err != nil {
		if e, ok := errors.AsType[*AttemptError](err); timedOut && (!ok || e.Status == 0) {
			return nil, &AttemptError{Err: late} // what the transport says of a cancelled dial says less
		}
		return nil, err
	}
	if conn == nil { // else it would be a goroutine of the loop that panics, which nobody can recover
		return nil, &AttemptError{Class: Permanent, Err: errors.New("the dialer returned no connection and no error")}
	}
	return conn, nil
}

// failed is the outcome of an attempt that made no connection.
func (r *run) failed(step string, reason Reason, e *AttemptError) *outcome {
	o := afterFailure(reason, e)
	if now := r.timers.Now(); e.Status == 0 && e.RetryAfter.Duration() == 0 { // else it was answered
		o.slept = wallGap(r.outset, now)-now.Sub(r.outset) > sleepMargin
	}
	r.observe.failed(FailedInfo{Attempt: r.attempts, Step: step, Err: e, Unauthorized: r.ledger.count(o)})
	return &o
}

// pump delivers the messages of one connection.
type pump struct {
	*run
	conn     Conn
	dog      *watchdog
	attempt  Attempt
	took     time.Duration // to connect
	began    time.Time
	messages int
	undone   bool          // a message was received and not delivered
	before   string        // the position before it
	closed   chan struct{} // once conn.Close has returned
}

// reached is the position after the last message that the consumer was given.
func (p *pump) reached(r Resumer) string {
	if p.undone {
		return p.before
	}
	return r.Position()
}

// errDone is why a connection was ended that had ended by itself, or that nobody wants any more.
var errDone = errors.New("stream: done")

// live is the life of a connection. Whoever on this side ends it says so by the cause of its context, and that decides,
// whatever the transport then returns.
func (p *pump) live(ctx context.Context, yield func(Message, error) bool) *outcome {
	connCtx, end := context.WithCancelCause(ctx)
	p.closed = make(chan struct{})
	context.AfterFunc(connCtx, func() {
		defer close(p.closed)
		p.closing.Store(true)
		_ = p.conn.Close() // what ends the connection has been said already
	})
	defer p.teardown(end) // also when the loop's body panics
	if delay.Ended(connCtx) != nil {
		return nil
	}
	p.begin(end)
	broke, err := p.deliver(connCtx, yield)
	lived := p.timers.Now().Sub(p.began)
	p.teardown(end)
	return p.ended(ctx, lived, broke, err)
}

// begin has the connection watched, and tells of it.
func (p *pump) begin(end context.CancelCauseFunc) {
	if p.dog.limit > 0 {
		p.dog.start(func(s *silence) { end(s) })
	}
	p.attach(p.conn, p.dog) // before anybody hears of it, so that Trace.Connected can send
	p.observe.connected(ConnectedInfo{Attempt: p.attempt.Number, Took: p.took})
}

// ended tells that a connection has ended, and returns what becomes of that.
func (p *pump) ended(ctx context.Context, lived time.Duration, broke bool, err error) *outcome {
	info := DisconnectedInfo{Attempt: p.attempt.Number, Lived: lived, Messages: p.messages}
	info.Healthy = p.ledger.proves(p.messages, lived)
	var quiet *silence
	switch {
	case broke || delay.Ended(ctx) != nil:
		info.By = ByConsumer
		p.observe.disconnected(info)
		return nil
	case errors.As(err, &quiet):
		info.By, info.Err = ByWatchdog, err
		p.observe.stale(StaleInfo{Attempt: p.attempt.Number, Silence: quiet.lasted, Slept: quiet.slept})
		p.observe.disconnected(info)
		return &outcome{class: Transient, cause: "stale", slept: quiet.slept, err: err}
	case errors.Is(err, ErrEnd):
		info.By, info.Err = ByServer, err
		p.observe.disconnected(info)
		return nil
	}
	err = asDisconnect(p.attempt, err)
	o := afterDisconnect(err)
	info.By, info.Err, info.Unauthorized = ByServer, err, p.ledger.count(o)
	p.observe.disconnected(info)
	return &o
}

// settle notes what the connection leaves to the next one.
func (p *pump) settle(o *outcome) {
	if resumer, ok := p.conn.(Resumer); ok {
		p.position = p.reached(resumer)
		if base, ok := resumer.Base(); ok {
			p.ledger.retries.Rebase(base)
		}
	}
	if o != nil && o.class == Unauthorized {
		p.refused = p.attempt.Credential
	}
}

// deliver hands message after message to the consumer until the connection ends, and returns why it did, or true if the
// consumer broke out of the loop.
func (p *pump) deliver(connCtx context.Context, yield func(Message, error) bool) (broke bool, err error) {
	watched, tell := p.dog.limit > 0, p.observe.trace.Alive
	resumer, _ := p.conn.(Resumer)
	for {
		if resumer != nil {
			p.before = resumer.Position()
		}
		m, err := p.conn.Receive()
		switch {
		case !watched:
		case err == nil:
			p.dog.deliver()
		default: // it may have broken while the machine was asleep
			p.dog.check()
		}
		if connCtx.Err() != nil {
			p.undone = err == nil // the server has to send it again
			return false, context.Cause(connCtx)
		}
		if err != nil {
			return false, err
		}
		p.messages++
		if tell != nil {
			tell()
		}
		if !yield(m, nil) {
			return true, nil
		}
		if watched {
			p.dog.resume()
		}
		if connCtx.Err() != nil {
			return false, context.Cause(connCtx)
		}
	}
}

// teardown ends the connection, and returns when it has ended.
func (p *pump) teardown(end context.CancelCauseFunc) {
	p.attach(nil, nil)
	p.dog.stop()
	end(errDone)
	<-p.closed
}

// attach makes a connection the live one, or none.
func (s *Stream) attach(c Conn, w *watchdog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.watchdog = c, w
}
