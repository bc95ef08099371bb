package stream

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// Message is what a connection delivers.
type Message struct {
	Data   []byte
	Binary bool   // a binary message of a WebSocket; else Data is text
	ID     string // the id of the event, on transports that have one
	Type   string // the type of the event, on transports that have one
}

// Dialer makes connections. Implementations keep these rules:
//
//   - Dial makes one attempt: it does not retry, wait, or follow a redirect.
//   - It sends the credential of the attempt and no other, and keeps none for later.
//   - It returns promptly when ctx ends, and leaves nothing behind. ctx covers the dial alone: its end after Dial has
//     returned must not end the Conn.
//   - An error that is an [*AttemptError], or wraps one, says what the failure means; [Attempt.Refused] makes it from an
//     answer. Any other error is transient. [ErrEnd] ends the stream without an error.
//   - No error text has a token, a ticket or the query of an address.
//
// A Dialer may be used by several streams at once.
type Dialer interface {
	Dial(ctx context.Context, a Attempt) (Conn, error)
}

// Conn is one connection. Implementations keep these rules:
//
//   - Receive blocks until there is a message. It is called by one goroutine at a time, the consumer's own, so a consumer
//     that takes its time holds the server back.
//   - What is no message (pings, comments, acknowledgements) is handled inside Receive, which calls [Attempt.Alive] for
//     it. If it can tell each read of the network, it calls [Attempt.Reading] before and Attempt.Alive after it instead.
//   - Receive returns io.EOF when the server ended the stream in good order, a [*DisconnectError] when there is more to
//     say, [ErrEnd] when there will never be more, and any other error when the connection broke.
//   - Close ends the connection and a pending Receive, at once and without waiting for the server. It may be called from
//     any goroutine, more than once, and also after Receive has failed.
//
// A Conn may also be a [Sender] and a [Resumer].
type Conn interface {
	Receive() (Message, error)
	Close() error
}

// Sender is a Conn that can send. Send may be called from any goroutine.
type Sender interface {
	Send(ctx context.Context, m Message) error
}

// Resumer is a Conn that tells what the server wants of the next attempt. It is asked by the goroutine that calls Receive.
type Resumer interface {
	// Position returns the position of the stream as the last message left it: the Position of the next attempt. It is
	// asked before each Receive, and once more when the connection has ended, so that a message which arrives just as the
	// connection is given up is sent again.
	Position() string
	// Base returns the base of the reconnect schedule that the server asked for, if it did. It is clamped to [100 ms,
	// ceiling], stays until another is asked for, and does not reset the count of failed cycles.
	Base() (base time.Duration, ok bool)
}

// ErrEnd ends a stream without an error: a [Dialer] or a [Conn] returns it when the server has said that there is nothing
// more to come.
var ErrEnd = errors.New("stream: the server ended the stream for good")

// Attempt is what one attempt to connect, or one poll, goes out with.
type Attempt struct {
	Number     int        // from 1, since the loop began
	Credential Credential // obtained for this attempt
	// Position is where to go on: the last event id of a stream, the cursor of a poll; "" at the beginning.
	Position string

	now  func() time.Time
	dog  *watchdog // nil without one
	tell func()    // the trace of a sign of life, or nil
}

// Now returns the time of the loop's clock.
func (a Attempt) Now() time.Time {
	if a.now == nil {
		return clock.New().Now()
	}
	return a.now()
}

// Alive tells the loop's watchdog that something came from the server. Messages need no call.
func (a Attempt) Alive() {
	if a.tell != nil {
		a.tell()
	}
	if a.dog != nil {
		a.dog.alive()
	}
}

// Reading tells the loop's watchdog that a read of the network begins. Of a transport that says so, before each one and from
// one goroutine at a time, the reads are watched and not the messages, of which many may come in one.
func (a Attempt) Reading() {
	if a.dog != nil {
		a.dog.reading()
	}
}

// Refused makes the error of an attempt from the answer that refused it: class and Retry-After are read, the body is not.
func (a Attempt) Refused(res *http.Response) *AttemptError {
	return &AttemptError{
		Class:      ClassOfStatus(res.StatusCode),
		Status:     res.StatusCode,
		RetryAfter: delay.ParseRetryAfter(res.Header, a.Now()),
	}
}

// DisconnectError is how a [Conn] says why the connection ended.
type DisconnectError struct {
	Class Class // Throttled counts as Transient: no header comes with a disconnect
	// Everyone says that the server dropped all its clients at once, as when it restarts: the first draw is widened.
	Everyone bool
	Code     int    // the close code, on transports that have one
	Text     string // what the server said with it
	Err      error  // the cause, if there is more to say
}

// Error returns the code, the text and the cause.
func (e *DisconnectError) Error() string {
	s := "disconnected"
	if e.Code != 0 {
		s = "closed by the server with code " + strconv.Itoa(e.Code)
	}
	if e.Text != "" {
		s += " " + strconv.Quote(e.Text)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *DisconnectError) Unwrap() error { return e.Err }
