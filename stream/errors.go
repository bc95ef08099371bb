package stream

import (
	"errors"
	"strings"
)

// Reason says why a stream or a walk ended for good. It is an error, so that errors.Is(err, stream.DialFailed) asks for it.
type Reason string

// The reasons.
const (
	// DialFailed: the server refused the connection in a way that waiting does not heal, or the address is not one that
	// may be dialled.
	DialFailed Reason = "dial_failed"
	// AuthorizationFailed: the credential was refused several times in a row.
	AuthorizationFailed Reason = "authorization_failed"
	// MintFailed: the credential of an attempt could not be obtained, in a way that waiting does not heal.
	MintFailed Reason = "mint_failed"
	// ProtocolFatal: the server ended the connection in a way that says not to come back.
	ProtocolFatal Reason = "protocol_fatal"
	// PollFailed: a poll was answered in a way that waiting does not heal.
	PollFailed Reason = "poll_failed"
	// DeadlinePassed: the caller's deadline falls before the end of the next wait. It is a context.DeadlineExceeded too.
	DeadlinePassed Reason = "deadline_passed"
	// Usage: the stream is configured or used in a way that cannot work. Nothing was sent.
	Usage Reason = "usage"
)

// Error returns the reason.
func (r Reason) Error() string { return string(r) }

// advice says what to do next.
func (r Reason) advice() string {
	switch r {
	case DialFailed:
		return "check the address, and that it is a stream of this kind"
	case AuthorizationFailed:
		return "log in again, and check that the account may read this stream"
	case MintFailed:
		return "check the source of the credential"
	case ProtocolFatal:
		return "check what client and server expect of each other"
	case PollFailed:
		return "check the address and the position of the poll"
	}
	return ""
}

// Error is the one error with which a stream or a walk ends.
type Error struct {
	Reason Reason
	// Err is the cause: an [*AttemptError], a [*DisconnectError], a *delay.TooLongError, or the mistakes of a configuration.
	Err error
}

// Error returns the reason, the cause, and what to do next.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("stream: ")
	b.WriteString(string(e.Reason))
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	if next := e.Reason.advice(); next != "" {
		b.WriteString("; ")
		b.WriteString(next)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the error's reason.
func (e *Error) Is(target error) bool {
	r, ok := target.(Reason)
	return ok && r == e.Reason
}

// ErrNotConnected is returned by [Stream.Send] while there is no connection. Nothing was sent, and nothing is kept to be
// sent later.
var ErrNotConnected = errors.New("stream: not connected: send again once Trace.Connected was called")

// errCannotSend is for transports of one direction.
var errCannotSend = errors.New("stream: this transport only receives")
