package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// The error codes of the device grant (RFC 8628, section 3.5), and what some servers say instead.
const (
	codePending  = "authorization_pending"
	codeSlowDown = "slow_down"
	codeDenied   = "access_denied"
	codeDeclined = "authorization_declined" // Microsoft's
	codeExpired  = "expired_token"
	codeTooMany  = "too_many_requests"
)

// protocolCodes are those that somebody who speaks the protocol sends, and no gateway (RFC 6749, section 5.2; RFC 8628,
// section 3.5).
var protocolCodes = map[string]bool{
	codePending: true, codeSlowDown: true, codeDenied: true, codeDeclined: true, codeExpired: true,
	"invalid_request": true, "invalid_client": true, "invalid_grant": true, "unauthorized_client": true,
	"unsupported_grant_type": true, "invalid_scope": true,
}

// outcome is what a poll came back with, as far as the next step goes.
type outcome int

const (
	granted outcome = iota
	pending
	slowDown
	throttled
	noAnswer
	failed
)

// verdict is what an answer to a poll means.
type verdict struct {
	outcome outcome
	said    string           // for people: "slow_down", "429 too_many_requests", "502"
	token   *oauth2.Token    // granted
	named   time.Duration    // slowDown: the interval that the server named, or 0
	after   delay.RetryAfter // throttled
	err     *DeviceError     // failed
	cause   error            // noAnswer
}

// judge decides what an answer to a poll means. It is a function of the answer alone; now is when it arrived, and texts
// of the server's are cleaned of secrets.
func judge(r *reply, strict bool, now time.Time, hide secrets) verdict {
	if errors.Is(r.bad, errTooLarge) {
		return malformed(r, r.bad)
	}
	m := r.members
	code := errorCode(m)

	// A token that has arrived is kept, whatever comes with it.
	if r.status == http.StatusOK && m.textOr("access_token") != "" {
		token, err := readToken(m, strict, now)
		if err != nil {
			return malformed(r, spent(err))
		}
		return verdict{outcome: granted, said: "granted", token: token}
	}

	// RFC 6749, section 5.2 sends errors with 400; servers send them with any 4xx, and the largest with 200.
	if r.status >= 400 && r.status < 500 || r.status == http.StatusOK && !strict {
		switch code {
		case codePending:
			return verdict{outcome: pending, said: code}
		case codeSlowDown:
			// It can only make the wait longer, so it is read leniently in strict mode too, and one that cannot be read is
			// none: the interval grows by itself.
			named, _, err := m.number("interval", maxSeconds, false)
			if err != nil {
				named = 0
			}
			return verdict{outcome: slowDown, said: code, named: time.Duration(named) * time.Second}
		case codeDenied, codeDeclined:
			return ended(ErrAccessDenied, r, now, hide)
		case codeExpired:
			return ended(ErrExpired, r, now, hide)
		}
	}

	if refusedToServe(r.status, code, strict) {
		v := verdict{outcome: throttled, said: fmt.Sprint(r.status), after: delay.DevicePoll.RetryAfter(r.header, now)}
		if code != "" {
			v.said += " " + hide.code(code)
		}
		return v
	}

	switch {
	case r.status == http.StatusOK && !hasError(m):
		err := r.bad
		if err == nil {
			_, err = m.required("access_token")
		}
		return malformed(r, spent(err))
	case r.status == http.StatusOK && strict:
		return malformed(r, errors.New("it is an error with status 200"))
	case r.cut != nil && r.bad != nil && r.status >= 400 && r.status < 500:
		// What it meant is in the part that did not arrive.
		return verdict{outcome: noAnswer, cause: r.cut}
	}
	return ended(ErrRejected, r, now, hide)
}

// refusedToServe reports whether the server declined to serve a poll, so that it is retried. To the founding document
// that is 429 with too_many_requests alone; a gateway in front of the server says it in other ways.
func refusedToServe(status int, code string, strict bool) bool {
	switch status {
	case http.StatusTooManyRequests:
		return code == codeTooMany || !strict && !protocolCodes[code]
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !strict
	}
	return false
}

// hasError reports whether an answer has an error member, of whatever type. An empty one is none.
func hasError(m members) bool { return m.has("error") && string(m.values["error"]) != `""` }

// errorCode returns the OAuth error code of an answer, or "". One provider puts the codes that say "not yet" in a message
// member.
func errorCode(m members) string {
	if hasError(m) {
		return m.textOr("error")
	}
	if code := m.textOr("message"); code == codePending || code == codeSlowDown {
		return code
	}
	return ""
}

// description returns what the server says about an error: error_description, the message member, or the one of an error
// that is an object.
func description(m members) string {
	if text := m.textOr("error_description"); text != "" {
		return text
	}
	if text := m.textOr("message"); text != "" {
		return text
	}
	var object struct{ Message string }
	if json.Unmarshal(m.values["error"], &object) != nil {
		return ""
	}
	return object.Message
}

// ended is a login that an answer ended.
func ended(why Reason, r *reply, now time.Time, hide secrets) verdict {
	m := r.members
	// An answer that is no token may hold one all the same.
	hide = hide.with(m.textOr("access_token"), m.textOr("refresh_token"), m.textOr("id_token"), m.textOr("device_code"))
	e := &DeviceError{
		Reason: why, Status: r.status, Code: hide.code(errorCode(m)), Description: hide.clean(description(m)),
		RetryAfter: delay.ParseRetryAfter(r.header, now).Duration(),
	}
	said := e.Code
	if said == "" {
		said = fmt.Sprint(r.status)
	}
	return verdict{outcome: failed, said: said, err: e}
}

// malformed is a login that an answer ended which cannot be used.
func malformed(r *reply, why error) verdict {
	return verdict{outcome: failed, said: "malformed", err: &DeviceError{Reason: ErrMalformed, Status: r.status, Err: why}}
}

// spent adds what an unusable 200 means for the user: the server hands out a code's token once.
func spent(err error) error {
	return fmt.Errorf("%w; the approval was probably spent on it", err)
}

// code makes an error code fit for an error or a log.
func (s secrets) code(code string) string {
	if protocolCodes[code] || code == codeTooMany {
		return code
	}
	return s.clean(code)
}
