package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// Stream keeps one connection alive, for one consumer. Its methods may be called from any goroutine, and from inside the
// loop over Messages too.
type Stream struct {
	config Config
	timers *delay.Timers

	mu        sync.Mutex
	consumed  bool
	closed    bool
	cancel    context.CancelCauseFunc // of the run under way
	conn      Conn                    // the live connection
	watchdog  *watchdog               // its watchdog
	respite   *respite                // the wait under way
	handshake *handshake              // the deadline of the dial under way
}

// Reconnect returns a stream. Nothing is sent before Messages is ranged over, and mistakes in the configuration are
// reported there; [Config.Validate] reports them earlier.
func Reconnect(c Config) *Stream {
	return &Stream{config: c.withDefaults(), timers: delay.TimersOn(c.Clock)}
}

// Format writes the name of the type: in its configuration there may be secrets.
func (*Stream) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "stream.Stream") }

// errClosed is why a run ended that Close ended.
var errClosed = errors.New("stream: closed")

// Messages connects, at once, and delivers what comes, connecting again whenever the connection ends. Everything but what
// the transport does by itself happens on the goroutine that ranges, and nothing is read while the loop's body runs.
//
// The loop ends without an error when it is broken, when ctx ends, when the stream is closed, and when the server says that
// there is nothing more to come. Otherwise it ends with one [*Error], yielded last with an empty Message.
//
// A stream is consumed once: a second Messages yields a [Usage] error.
func (s *Stream) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if err := s.consume(ctx, yield); err != nil {
			yield(Message{}, err)
		}
	}
}

// consume runs the stream, and returns the error that is yielded last, or nil.
func (s *Stream) consume(ctx context.Context, yield func(Message, error) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errClosed)
	switch err := s.begin(cancel); {
	case errors.Is(err, errClosed):
		return nil
	case err != nil:
		return err
	}
	wake := s.watchWake()
	defer wake.stop()
	if err := s.run(ctx, yield); err != nil && delay.Ended(ctx) == nil {
		return err
	}
	return nil
}

func (s *Stream) watchWake() *wakeCheck {
	wake := &wakeCheck{timers: s.timers, every: s.config.WakeCheck, woken: s.Woken}
	wake.start()
	return wake
}

// begin starts the one run that a stream has.
func (s *Stream) begin(cancel context.CancelCauseFunc) error {
	err := s.config.Validate()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case s.consumed:
		return &Error{Reason: Usage, Err: errors.New("a stream is consumed once: make another with Reconnect")}
	case err != nil:
		return &Error{Reason: Usage, Err: err}
	}
	s.consumed, s.cancel = true, cancel
	return nil
}

// run is the loop: a cycle, the verdict on it, a wait. It returns nil after a clean stop; once ctx has ended, what it
// returns is of no interest.
func (s *Stream) run(ctx context.Context, yield func(Message, error) bool) error {
	r := s.start()
	for delay.Ended(ctx) == nil {
		o := r.cycle(ctx, yield)
		if o == nil {
			break
		}
		if end := r.next(ctx, o); end != nil {
			return end
		}
	}
	return nil
}

func (s *Stream) start() *run {
	c := &s.config
	return &run{
		Stream:  s,
		observe: observe(c.Trace, c.Logger),
		ledger: ledger{
			retries:       delay.Reconnect.OwnRetries(c.Base, c.Ceiling, delay.Unlimited, c.Rand),
			authorization: &authorization{threshold: c.AuthorizationThreshold},
			spread:        c.Spread,
		},
		position: c.Position,
	}
}

// next is the verdict on a cycle, and the wait for the one after it.
func (r *run) next(ctx context.Context, o *outcome) error {
	w, end := r.ledger.verdict(*o)
	if end != nil {
		return end
	}
	if err := r.wait(ctx, w); err != nil {
		return &Error{Reason: DeadlinePassed, Err: err}
	}
	return nil
}

// wait sleeps through a wait, which TryNow ends and Woken replaces.
func (r *run) wait(ctx context.Context, w delay.Wait) error {
	for {
		rest := r.rest(w)
		p := delay.Pause{Timers: r.timers, Kind: delay.KindBackoff, OnWait: r.observe.waiting, Cut: rest.cut}
		err := p.Sleep(ctx, w)
		if woken := r.rested(); err != nil || !woken {
			return err
		}
		w = r.woken(w, rest.servers)
	}
}

// woken is the wait that takes the place of one during which the machine was asleep: a short draw, but not before the
// moment that the server named.
func (r *run) woken(w delay.Wait, servers time.Time) delay.Wait {
	short, _ := delay.Reconnect.OwnRetries(r.config.Base, r.config.Ceiling, delay.Unlimited, r.config.Rand).NextWoken()
	if left := wallGap(r.timers.Now(), servers); w.Server > 0 && left > short.For {
		short = delay.Reconnect.Compose(short.For, delay.Asked(left))
	}
	short.Attempt, short.Cause = w.Attempt, w.Cause
	return short
}

// rest says that a wait begins.
func (s *Stream) rest(w delay.Wait) *respite {
	r := &respite{cut: make(chan struct{}), short: w.Reason == delay.Woken, servers: s.timers.Now().Add(w.Server)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respite = r
	return r
}

// rested says that the wait is over, and reports whether that is because the machine was asleep.
func (s *Stream) rested() (woken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	woken = s.respite.woken
	s.respite = nil
	return woken
}

// TryNow ends the wait under way, if there is one, also one that the server asked for: for a button, or a network that is
// back. While an attempt or a connection is under way it does nothing, so it never makes a second connection, however often
// it is called; and it leaves the count of failed cycles as it is.
func (s *Stream) TryNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.respite != nil {
		s.respite.end(false)
	}
}

// Woken tells the stream that the machine was asleep. A wait under way becomes uniform(0, 2 s), but no earlier than the
// server asked for; a dial past its deadline by the wall clock is given up, and so is a connection that was silent for longer
// than Config.Staleness by it, before anything more is delivered. It need not be called when Config.WakeCheck is set.
func (s *Stream) Woken() {
	s.mu.Lock()
	if s.respite != nil && !s.respite.short {
		s.respite.end(true)
	}
	if s.handshake != nil && wallGap(s.handshake.until, s.timers.Now()) >= 0 {
		s.handshake.expire()
	}
	w := s.watchdog
	s.mu.Unlock()
	if w != nil {
		w.check()
	}
}

// Send sends a message on the live connection, and waits no longer for the server to take it in than ctx lives and
// Config.SendDeadline allows. Without a connection, and once the stream is closed, it returns [ErrNotConnected], and nothing is
// kept to be sent later. On a WebSocket, a wait that ends while the message is half written costs the connection.
func (s *Stream) Send(ctx context.Context, m Message) error {
	s.mu.Lock()
	conn, closed := s.conn, s.closed
	s.mu.Unlock()
	if conn == nil || closed {
		return ErrNotConnected
	}
	sender, ok := conn.(Sender)
	if !ok {
		return errCannotSend
	}
	d := s.config.SendDeadline
	if d <= 0 {
		return sender.Send(ctx, m)
	}
	within, cancel := s.timers.WithTimeout(ctx, delay.KindSendDeadline, d)
	defer cancel()
	err := sender.Send(within, m)
	if late, ok := errors.AsType[*delay.TimeoutError](context.Cause(within)); ok && err != nil && ctx.Err() == nil {
		return fmt.Errorf("stream: not sent, or in part: %w", late) // what the transport says of it says less
	}
	return err
}

// Close ends the stream: the wait, the attempt or the connection under way is given up, the loop over Messages ends
// without an error, and no request goes out any more. It returns at once, in every state, and may be called again. The
// error is always nil.
func (s *Stream) Close() error {
	s.mu.Lock()
	s.closed = true
	cancel := s.cancel
	s.mu.Unlock()
	if cancel != nil {
		cancel(errClosed)
	}
	return nil
}
