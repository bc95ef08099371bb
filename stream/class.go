package stream

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream/internal/redact"
)

// Class says what a failed attempt means for the next one. The zero value is Transient.
type Class uint8

// The classes.
const (
	// Transient got no answer, or one that says nothing about the next attempt: it is repeated, and its Retry-After is
	// heeded.
	Transient Class = iota
	// Throttled was refused because of its rate: it is repeated, and its Retry-After is heeded.
	Throttled
	// Unauthorized was refused because of its credential: it is repeated with a fresh one, a few times, and its
	// Retry-After is not read.
	Unauthorized
	// Permanent is not repeated.
	Permanent
)

// String returns the class in a word.
func (c Class) String() string {
	switch c {
	case Transient:
		return "transient"
	case Throttled:
		return "throttled"
	case Unauthorized:
		return "unauthorized"
	case Permanent:
		return "permanent"
	}
	return "class " + strconv.Itoa(int(c))
}

// ClassOfStatus classes the status of an answer that is not the one hoped for: 429 is throttled; 401 and 403 are
// unauthorized; 408, 425 and the 5xx are transient, but for 501 and 505, which no time heals; everything else,
// redirects and 404 and 410 included, is permanent.
func ClassOfStatus(status int) Class {
	switch status {
	case http.StatusTooManyRequests:
		return Throttled
	case http.StatusUnauthorized, http.StatusForbidden:
		return Unauthorized
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return Transient
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return Permanent
	}
	if status >= 500 && status <= 599 {
		return Transient
	}
	return Permanent
}

// AttemptError is how a [Dialer], a [CredentialFunc] or a [PollFunc] says why an attempt failed. An error that is none,
// and has none in its chain, is Transient. It never holds an answer's body, nor an address with its query.
type AttemptError struct {
	Class      Class
	Status     int              // of the answer; 0 when there was none
	RetryAfter delay.RetryAfter // of the answer; not read when Unauthorized or Permanent
	Err        error            // the cause, if there is more to say
}

// Error returns the status and the cause.
func (e *AttemptError) Error() string {
	var parts []string
	if e.Status != 0 {
		parts = append(parts, strings.TrimSpace("refused with "+strconv.Itoa(e.Status)+" "+http.StatusText(e.Status)))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	if len(parts) == 0 {
		return "the attempt failed (" + e.Class.String() + ")"
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *AttemptError) Unwrap() error { return e.Err }

// cause names the failure in a word, for [delay.Wait].
func (e *AttemptError) cause() string {
	if e.Status != 0 {
		return strconv.Itoa(e.Status)
	}
	if t, ok := errors.AsType[*delay.TimeoutError](e.Err); ok {
		return string(t.Kind)
	}
	return "no answer"
}

// asAttempt classes the error of a dial or a poll. Those who wrote it should have kept its secrets; it is looked through
// all the same.
func asAttempt(a Attempt, err error) *AttemptError {
	if e, ok := errors.AsType[*AttemptError](err); ok {
		clean := *e
		clean.Err = a.clean(e.Err)
		return &clean
	}
	return &AttemptError{Err: a.clean(err)}
}

// asDisconnect does the same for the error that ended a connection. io.EOF and ErrEnd stay as they are.
func asDisconnect(a Attempt, err error) error {
	if e, ok := errors.AsType[*DisconnectError](err); ok {
		clean := *e
		clean.Text, clean.Err = redact.Text(e.Text, a.Credential.secrets()), a.clean(e.Err)
		return &clean
	}
	return a.clean(err)
}

func (a Attempt) clean(err error) error { return redact.Error(err, a.Credential.secrets()) }

// asCredential classes the error of a CredentialFunc. A token endpoint that refuses the grant refuses a credential, so it
// counts as unauthorized; where it is only out of order, the attempt is repeated. Where there is no login, nothing is.
func asCredential(ctx context.Context, a Attempt, err error) *AttemptError {
	if _, ok := errors.AsType[*AttemptError](err); ok {
		return asAttempt(a, err)
	}
	if l, ok := errors.AsType[interface {
		error
		LoginRequired() bool
	}](err); ok && l.LoginRequired() {
		return &AttemptError{Class: Permanent, Err: a.clean(err)} // only a person can help
	}
	r, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || ctx.Err() != nil {
		return &AttemptError{Err: a.clean(err)}
	}
	e := &AttemptError{Class: Unauthorized, Err: &endpointError{code: r.ErrorCode, err: err}}
	if r.Response != nil {
		e.Status = r.Response.StatusCode
		e.RetryAfter = delay.ParseRetryAfter(r.Response.Header, a.Now())
		switch class := ClassOfStatus(e.Status); {
		case class != Permanent:
			e.Class = class
		case e.Status != http.StatusBadRequest && r.ErrorCode == "": // some refuse a grant with 200
			e.Class = Permanent
		}
	}
	switch r.ErrorCode { // RFC 6749, section 5.2, and what section 4.1.2.1 lends it
	case "temporarily_unavailable", "server_error":
		e.Class = Transient
	case "slow_down":
		e.Class = Throttled
	}
	return e
}

// endpointError stands for an oauth2.RetrieveError, whose own text quotes the answer's body.
type endpointError struct {
	code string
	err  error
}

func (e *endpointError) Error() string {
	if e.code == "" {
		return "the token endpoint refused to issue a token"
	}
	return "the token endpoint refused to issue a token (" + e.code + ")"
}

func (e *endpointError) Unwrap() error { return e.err }
