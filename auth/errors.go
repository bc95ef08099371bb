package auth

import (
	"fmt"
	"strings"
	"time"
)

// Reason is why a device login ended without a token. Its values are errors themselves, so that errors.Is tells them
// apart, and machine-readable words, so that string(r) can be printed and compared.
type Reason string

// The reasons of a [DeviceError].
const (
	// ErrAccessDenied is the user's "no".
	ErrAccessDenied Reason = "access_denied"
	// ErrExpired is a code that nobody approved in time.
	ErrExpired Reason = "expired"
	// ErrTransport is an authorization server that could not be reached before a code was shown. Later failures to
	// reach it do not end a login.
	ErrTransport Reason = "transport"
	// ErrUnavailable is a server that this client must not talk to: its certificate does not verify, or a policy refuses
	// it. An HTTPClient whose transport fails with an error that is ErrUnavailable (errors.Is) ends the login with it.
	ErrUnavailable Reason = "unavailable"
	// ErrRejected is an answer that ends the login: an OAuth error other than those of the device grant, or a status that
	// nobody declared retryable.
	ErrRejected Reason = "rejected"
	// ErrMalformed is an answer that cannot be used.
	ErrMalformed Reason = "malformed"
)

// Error describes the reason in a few words.
func (r Reason) Error() string {
	switch r {
	case ErrAccessDenied:
		return "auth: the login was declined"
	case ErrExpired:
		return "auth: the code expired before the login was approved"
	case ErrTransport:
		return "auth: the authorization server could not be reached"
	case ErrUnavailable:
		return "auth: the authorization server is not to be trusted or used"
	case ErrRejected:
		return "auth: the authorization server rejected the login"
	case ErrMalformed:
		return "auth: the authorization server's answer cannot be used"
	}
	return "auth: the login failed"
}

// DeviceError is how a device login ends that ends without a token. A login that its context ended is not one: that is
// the context's own error.
//
// No field holds a device code, a token or a body: what the server wrote is cut to one printable line, and the login's
// secrets are taken out of it.
type DeviceError struct {
	Reason Reason
	// Status is the HTTP status of the answer, 0 when there was none.
	Status int
	// Code is the OAuth error code of the answer (RFC 6749, section 5.2; RFC 8628, section 3.5), "" when there was none.
	Code string
	// Description is the server's own explanation, cleaned.
	Description string
	// RetryAfter is how long the server asked to be left alone, 0 when it did not. Nothing has waited for it.
	RetryAfter time.Duration
	// Err is the cause, where there is one: what is malformed, or why the server could not be reached. After
	// ErrExpired it is the failure of the last poll, if that got no answer.
	Err error
}

// Error says what happened and what to do next.
func (e *DeviceError) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.Error())
	switch {
	case e.Status != 0 && e.Code != "":
		fmt.Fprintf(&b, " (%d %s)", e.Status, e.Code)
	case e.Status != 0:
		fmt.Fprintf(&b, " (status %d)", e.Status)
	case e.Code != "":
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if e.Description != "" {
		fmt.Fprintf(&b, ": %q", e.Description)
	}
	if e.Err != nil {
		if e.Reason == ErrExpired {
			b.WriteString("; the last poll got no answer")
		}
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	b.WriteString("; ")
	b.WriteString(e.advice())
	return b.String()
}

// advice is the next step for whoever reads the error.
func (e *DeviceError) advice() string {
	switch e.Reason {
	case ErrAccessDenied:
		return "start again to be asked once more"
	case ErrExpired:
		return "start a new login"
	case ErrTransport:
		return "check the connection and try again"
	case ErrUnavailable:
		return "check the endpoint's address and the certificates that this machine trusts"
	case ErrMalformed:
		return "start a new login, and tell the server's operator if it happens again"
	}
	switch e.Code {
	case "invalid_client", "unauthorized_client":
		return "check the client id and secret, and that the device grant is enabled for the client"
	case "invalid_scope":
		return "check the scopes asked for"
	case "unsupported_grant_type":
		return "the server does not offer the device grant"
	case "invalid_grant":
		return "start a new login"
	}
	switch {
	case e.RetryAfter > 0:
		return fmt.Sprintf("try again in %v", e.RetryAfter)
	case e.Status >= 300 && e.Status < 400:
		return "redirects are not followed: check the endpoint's address"
	case e.Status == 404 || e.Status == 405:
		return "check the endpoint's address"
	case e.Status >= 500 || e.Status == 429:
		return "try again later"
	}
	return "check the client's registration at the server"
}

// Is makes the error the one of its reason.
func (e *DeviceError) Is(target error) bool { return target == e.Reason }

// Unwrap returns the cause.
func (e *DeviceError) Unwrap() error { return e.Err }

// ConfigError lists everything that is wrong with a configuration. It is returned before anything is sent.
type ConfigError struct {
	Problems []Problem
}

// Problem is one mistake in a configuration.
type Problem struct {
	Field string // such as "Config.ClientID"
	Text  string // what is wrong with it, without its value
}

// String says what is wrong and where.
func (p Problem) String() string { return p.Field + " " + p.Text }

// Error lists the problems.
func (e *ConfigError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return "auth: mistakes in the configuration: " + strings.Join(texts, "; ")
}
