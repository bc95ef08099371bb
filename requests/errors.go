package requests

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code is the class of an error: what a program branches on.
type Code string

// The codes.
const (
	CodeUsage         Code = "usage"          // the request could not be sent as it is
	CodeNotFound      Code = "not_found"      // 404
	CodeAuthRequired  Code = "auth_required"  // 401, or no token to send
	CodeForbidden     Code = "forbidden"      // 403
	CodeRateLimit     Code = "rate_limit"     // 429
	CodeNetwork       Code = "network"        // no answer
	CodeAPI           Code = "api_error"      // any other answer
	CodeAmbiguous     Code = "ambiguous"      // more than one thing is meant; no answer is classed so
	CodeValidation    Code = "validation"     // 400, 422
	CodeLimitExceeded Code = "limit_exceeded" // 507
)

// ExitCode is the code as the exit status of a command, from 1.
func (c Code) ExitCode() int {
	switch c {
	case CodeUsage:
		return 1
	case CodeNotFound:
		return 2
	case CodeAuthRequired:
		return 3
	case CodeForbidden:
		return 4
	case CodeRateLimit:
		return 5
	case CodeNetwork:
		return 6
	case CodeAmbiguous:
		return 8
	case CodeValidation:
		return 9
	case CodeLimitExceeded:
		return 10
	}
	return 7
}

// Error is how a request failed. Errors.As finds a *RateLimited in one of a 429, and a *TransportFailed in one without
// an answer.
type Error struct {
	Code        Code
	Message     string
	Hint        string              // what the server adds for the developer, or what to do next; may be empty
	Status      int                 // 0 without an answer
	Retryable   bool                // whether the same request may succeed later; the SDK itself goes by stricter rules
	RetryAfter  time.Duration       // the wait that the server asked for, as it is; 0 when it asked for none
	RequestID   string              // X-Request-Id of the answer
	FieldErrors map[string][]string // of a 400 or 422, by field
	Err         error               // the cause; may be nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("requests: ")
	b.WriteString(e.Message)
	if e.Status > 0 {
		fmt.Fprintf(&b, " (%d)", e.Status)
	}
	if e.Hint != "" {
		b.WriteString(": ")
		b.WriteString(e.Hint)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, "; the server asks to wait %v", e.RetryAfter)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is the exit status for a command that failed so.
func (e *Error) ExitCode() int { return e.Code.ExitCode() }

// ErrInsecure is the cause of an error about a request that would have left the machine without TLS. It was not sent.
var ErrInsecure = errors.New("requests: not https, and not a loopback address")

// RateLimited is the cause of an error about a 429 that was not, or no longer, repeated.
type RateLimited struct {
	RetryAfter time.Duration // the wait that the server asked for, as it is; 0 when it asked for none
	Err        error         // why that wait was not made, such as a *delay.TooLongError; may be nil
}

func (e *RateLimited) Error() string {
	if e.RetryAfter > 0 {
		return fmt.Sprintf("requests: rate limited: the server asks to wait %v", e.RetryAfter)
	}
	return "requests: rate limited"
}

// Unwrap returns why the wait was not made.
func (e *RateLimited) Unwrap() error { return e.Err }

// Is makes errors.Is find any RateLimited by another.
func (e *RateLimited) Is(target error) bool {
	_, ok := target.(*RateLimited)
	return ok
}

// TransportFailed is a failure without an answer; and in the policy RefusedOnly also an answer that is no success and
// no 429: nobody knows what became of the request.
type TransportFailed struct {
	Status int   // 0 without an answer
	Err    error // nil with an answer
}

func (e *TransportFailed) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("requests: failed with status %d", e.Status)
	}
	return "requests: no answer: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *TransportFailed) Unwrap() error { return e.Err }

// Is makes errors.Is find any TransportFailed by another.
func (e *TransportFailed) Is(target error) bool {
	_, ok := target.(*TransportFailed)
	return ok
}

// Timeout reports whether it was a timeout, as a net.Error does.
func (e *TransportFailed) Timeout() bool {
	var timeout interface{ Timeout() bool }
	return errors.As(e.Err, &timeout) && timeout.Timeout()
}
