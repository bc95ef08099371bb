package auth

import (
	"fmt"
	"strings"
)

// SessionReason is why a session ended, so that only another login helps. Its values are errors themselves, so that
// errors.Is tells them apart, and machine-readable words.
type SessionReason string

// The reasons of a [SessionExpired].
const (
	// ErrSessionRefused is a refresh token that the server does not take any more.
	ErrSessionRefused SessionReason = "refused"
	// ErrSessionReplyLost is a refresh token that was presented and never answered, as when the machine stopped just then:
	// the server may have spent it, and may take its being presented again for a theft.
	ErrSessionReplyLost SessionReason = "reply_lost"
	// ErrSessionLoggedOut is a login that is not in its store any more.
	ErrSessionLoggedOut SessionReason = "logged_out"
	// ErrSessionNotRefreshable is an expired token without a refresh token, or without a server to refresh it at.
	ErrSessionNotRefreshable SessionReason = "not_refreshable"
)

// Error describes the reason in a few words.
func (r SessionReason) Error() string {
	switch r {
	case ErrSessionRefused:
		return "auth: the authorization server does not take the refresh token any more"
	case ErrSessionReplyLost:
		return "auth: the answer to an earlier refresh was lost, and its token may be spent"
	case ErrSessionLoggedOut:
		return "auth: this login was logged out"
	case ErrSessionNotRefreshable:
		return "auth: the token has expired and cannot be refreshed"
	}
	return "auth: the session has ended"
}

// SessionExpired reports that a session is over. The next step is always to log in again.
type SessionExpired struct {
	Reason SessionReason
	Err    error // the cause, where there is one
}

// Error says why the session ended and what to do.
func (e *SessionExpired) Error() string {
	text := e.Reason.Error()
	if e.Err != nil {
		text += ": " + strings.TrimPrefix(e.Err.Error(), "auth: ")
	}
	if strings.HasSuffix(text, "log in again") {
		return text
	}
	return fmt.Sprintf("%s; log in again", text)
}

// Is makes the error the one of its reason, and any SessionExpired by another.
func (e *SessionExpired) Is(target error) bool {
	if _, ok := target.(*SessionExpired); ok {
		return true
	}
	return target == e.Reason
}

// LoginRequired reports true: package stream asks it, which does not know this type.
func (e *SessionExpired) LoginRequired() bool { return true }

// Unwrap returns the cause.
func (e *SessionExpired) Unwrap() error { return e.Err }
