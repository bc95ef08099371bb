package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"github.com/heed-sdk/heed/delay"
)

// RefreshReason is why a refresh brought no token, as far as it matters for the refresh token: whether it may have been
// spent. Its values are errors themselves, so that errors.Is tells them apart, and machine-readable words.
type RefreshReason string

// The reasons of a [RefreshError].
const (
	// ErrNotSent is a request that was never written: the server's name was not found, no connection came about, its
	// certificate did not verify, or a policy refused it. The refresh token is as good as before.
	ErrNotSent RefreshReason = "not_sent"
	// ErrReplyLost is a request that may have reached the server, and whose answer did not arrive. A server that rotates
	// refresh tokens may have spent this one, and may take its being presented again for a theft.
	ErrReplyLost RefreshReason = "reply_lost"
	// ErrRefused is an answer without a token: an OAuth error, or another status.
	ErrRefused RefreshReason = "refused"
	// ErrUnusableToken is a successful answer that cannot be used. The refresh token was probably spent on it.
	ErrUnusableToken RefreshReason = "unusable_token"
)

// Error describes the reason in a few words.
func (r RefreshReason) Error() string {
	switch r {
	case ErrNotSent:
		return "auth: the refresh could not be sent"
	case ErrReplyLost:
		return "auth: the answer to the refresh was lost"
	case ErrRefused:
		return "auth: the authorization server refused the refresh"
	case ErrUnusableToken:
		return "auth: the authorization server's answer to the refresh cannot be used"
	}
	return "auth: the refresh failed"
}

// RefreshError is an exchange that brought no token. No field holds a token or a body: what the server wrote is cut to one
// printable line, and the secrets of the exchange are taken out of it.
type RefreshError struct {
	Reason RefreshReason
	// Status is the HTTP status of the answer, 0 when there was none.
	Status int
	// Code is the OAuth error code of the answer (RFC 6749, section 5.2), "" when there was none.
	Code string
	// Description is the server's own explanation, cleaned.
	Description string
	// RetryAfter is how long the server asked to be left alone. Nothing has waited for it.
	RetryAfter delay.RetryAfter
	// Err is the cause, where there is one. If the caller's context ended the exchange, it is that context's error.
	Err error
}

// Error says what happened and what to do next.
func (e *RefreshError) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.Error())
	switch {
	case e.Status != 0 && e.Code != "":
		fmt.Fprintf(&b, " (%d %s)", e.Status, e.Code)
	case e.Status != 0:
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.Description != "" {
		fmt.Fprintf(&b, ": %q", e.Description)
	}
	if e.Err != nil {
		b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "auth: "))
	}
	return b.String() + "; " + e.advice()
}

// advice is the next step for whoever reads the error.
func (e *RefreshError) advice() string {
	switch {
	case e.Repeatable():
		return "try again later"
	case e.Reason == ErrReplyLost, e.Reason == ErrUnusableToken:
		return "log in again if the next refresh is refused: the refresh token may have been spent"
	case e.Code == "invalid_client", e.Code == "unauthorized_client":
		return "check the client id and secret"
	case e.Reason == ErrRefused && e.Err != nil, e.Status >= 500:
		return "try again later, and log in again if that is refused"
	case e.Status >= 300 && e.Status < 400:
		return "redirects are not followed: check the endpoint's address"
	}
	return "log in again"
}

// Repeatable reports whether the server has certainly not processed the request, so that the same refresh token may be
// presented again: it was not sent, or was refused before it was looked at (429, or 503 with Retry-After).
func (e *RefreshError) Repeatable() bool {
	switch {
	case e.Reason == ErrNotSent:
		return true
	case e.Reason != ErrRefused:
		return false
	}
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable && e.RetryAfter.Duration() > 0
}

// Is makes the error the one of its reason.
func (e *RefreshError) Is(target error) bool { return target == e.Reason }

// Unwrap returns the cause.
func (e *RefreshError) Unwrap() error { return e.Err }

// sending follows a request far enough to say whether any of it can have left.
type sending struct {
	asked     atomic.Bool // the transport reports, and has looked for a connection
	connected atomic.Bool // and has one
}

func (s *sending) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.connected.Store(true) },
	})
}

// failure is the end of an exchange that got no answer. In doubt the request has left.
func (s *sending) failure(ctx context.Context, err error) *RefreshError {
	e := &RefreshError{Reason: ErrReplyLost, Err: err}
	switch {
	case s.asked.Load():
		if !s.connected.Load() {
			e.Reason = ErrNotSent
		}
	case neverConnected(err): // a transport that reports nothing
		e.Reason = ErrNotSent
	}
	if ended := delay.Ended(ctx); ended != nil {
		e.Err = ended
	}
	return e
}

func neverConnected(err error) bool {
	if errors.Is(err, ErrUnavailable) || errors.Is(err, errProxy) || distrust(err) != "" {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
