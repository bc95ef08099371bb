package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// authorization is a device authorization response (RFC 8628, section 3.2).
type authorization struct {
	deviceCode string
	userCode   string
	uri        string
	complete   string
	expiresIn  time.Duration
	interval   time.Duration
}

// readAuthorization reads the answer to the device authorization request, and checks what the user is going to see
// before anybody sees it.
func readAuthorization(m members, strict bool) (a authorization, err error) {
	if a.deviceCode, err = m.required("device_code"); err != nil {
		return a, err
	}
	if a.userCode, err = m.required("user_code"); err != nil {
		return a, err
	}
	if !printable(a.userCode) {
		return a, errors.New("user_code holds a space or a control character")
	}
	name := "verification_uri"
	if text, _, err := m.text(name); err == nil && text == "" {
		name = "verification_url" // as some servers spell it
		if !m.has(name) {
			return a, errors.New("verification_uri is missing or empty")
		}
	}
	if a.uri, err = m.required(name); err != nil {
		return a, err
	}
	if problem := addressProblem(a.uri); problem != "" {
		return a, fmt.Errorf("%s %s", name, problem)
	}
	// It is optional, so a bad one is as good as none.
	if text := m.textOr("verification_uri_complete"); addressProblem(text) == "" {
		a.complete = text
	}

	seconds, found, err := m.number("expires_in", maxSeconds, strict)
	switch {
	case err != nil:
		return a, err
	case !found:
		return a, errors.New("expires_in is missing")
	case seconds == 0:
		return a, errors.New("expires_in is 0")
	}
	a.expiresIn = time.Duration(seconds) * time.Second
	a.interval, err = readInterval(m, strict)
	return a, err
}

// readInterval reads the polling interval; without one it is delay.DefaultInterval (RFC 8628, section 3.2).
func readInterval(m members, strict bool) (time.Duration, error) {
	if text, found, err := m.text("interval"); found && err == nil && text == "" && !strict {
		return delay.DefaultInterval, nil
	}
	seconds, found, err := m.number("interval", maxSeconds, strict)
	switch {
	case err != nil:
		return 0, err
	case found && seconds == 0 && strict:
		return 0, errors.New("interval is 0")
	case seconds == 0:
		return delay.DefaultInterval, nil
	}
	return time.Duration(seconds) * time.Second, nil
}
