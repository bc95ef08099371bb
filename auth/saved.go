package auth

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"golang.org/x/oauth2"
)

// savedVersion is the version of the form in which a login is saved. Whatever changes the meaning of a member, or adds
// one, makes it another.
const savedVersion = 1

// maxInterval bounds an interval, in seconds: what the largest one that a server can name may come to by slow_down.
const maxInterval = 1<<31 - 1

// authStyles are the names of the ways to authenticate.
var authStyles = map[string]oauth2.AuthStyle{
	"auto": oauth2.AuthStyleAutoDetect, "params": oauth2.AuthStyleInParams, "header": oauth2.AuthStyleInHeader,
}

func styleName(style oauth2.AuthStyle) string {
	for name, s := range authStyles {
		if s == style {
			return name
		}
	}
	return ""
}

// saved is a login as it is written down. Instants are of the wall clock. SavedAt is there for the case that the clock is
// set back: no more time is left of anything than was left then.
type saved struct {
	Version                 int                 `json:"version"`
	UserCode                string              `json:"user_code"`
	VerificationURI         string              `json:"verification_uri"`
	VerificationURIComplete string              `json:"verification_uri_complete,omitempty"`
	IssuedAt                time.Time           `json:"issued_at"`
	ExpiresAt               time.Time           `json:"expires_at"`
	NextPollAt              time.Time           `json:"next_poll_at"`
	SavedAt                 time.Time           `json:"saved_at"`
	Interval                int64               `json:"interval"`   // in seconds, with every slow_down so far
	Polls                   int                 `json:"polls"`      // sent so far
	Unanswered              int                 `json:"unanswered"` // the last of them that got no answer, in a row
	ClientID                string              `json:"client_id"`
	TokenEndpoint           string              `json:"token_endpoint"`
	AuthStyle               string              `json:"auth_style"`
	Scopes                  []string            `json:"scopes,omitempty"`
	TokenParams             map[string][]string `json:"token_params,omitempty"`
	DeviceCode              string              `json:"device_code"`
}

// readSaved reads a saved login and checks all of it, as if a server had sent it: it comes from a file. The error is a
// *ResumeError.
func readSaved(data []byte) (saved, error) {
	var version struct {
		Version *int `json:"version"`
	}
	if len(data) > maxBody || json.Unmarshal(data, &version) != nil || version.Version == nil {
		return saved{}, &ResumeError{Err: ErrSavedMalformed}
	}
	if *version.Version != savedVersion {
		return saved{}, &ResumeError{Err: ErrSavedVersion}
	}
	var s saved
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields() // a member that is not known may be one that matters
	if err := d.Decode(&s); err != nil {
		return saved{}, &ResumeError{Err: ErrSavedMalformed} // err may quote a member
	}
	if _, err := d.Token(); err != io.EOF {
		return saved{}, &ResumeError{Err: ErrSavedMalformed}
	}
	if problems := s.check(); len(problems) > 0 {
		return saved{}, &ResumeError{Err: ErrSavedMalformed, Problems: problems}
	}
	return s, nil
}

// check lists what is wrong with a saved login.
func (s *saved) check() []Problem {
	var problems []Problem
	check := func(ok bool, member, text string) {
		if !ok {
			problems = append(problems, Problem{member, text})
		}
	}
	address := func(member, raw string) {
		if p := addressProblem(raw); p != "" {
			check(false, member, p)
		}
	}
	check(s.UserCode != "" && printable(s.UserCode), "user_code", "is missing, or holds a space or a control character")
	address("verification_uri", s.VerificationURI)
	if s.VerificationURIComplete != "" {
		address("verification_uri_complete", s.VerificationURIComplete)
	}
	if p := endpointProblem(s.TokenEndpoint); p != "" {
		check(false, "token_endpoint", p)
	}
	check(s.ClientID != "", "client_id", "is missing")
	check(s.DeviceCode != "", "device_code", "is missing")

	life, passed := s.ExpiresAt.Sub(s.IssuedAt), s.SavedAt.Sub(s.IssuedAt)
	check(life > 0 && life <= maxSeconds*time.Second, "expires_at", "is not after issued_at, or is too long after it")
	check(passed >= 0 && passed < life, "saved_at", "is not between issued_at and expires_at")
	check(!s.NextPollAt.Before(s.IssuedAt), "next_poll_at", "is before issued_at")
	check(s.Interval > 0 && s.Interval <= maxInterval, "interval", "is out of range")
	check(s.Polls >= 0 && s.Unanswered >= 0 && s.Unanswered <= s.Polls, "polls", "or unanswered is out of range")

	_, known := authStyles[s.AuthStyle]
	check(known, "auth_style", "is unknown")
	for _, scope := range s.Scopes {
		check(scope != "" && printable(scope), "scopes", "holds one that is empty or holds a space or a control character")
	}
	for _, name := range ownParams {
		check(s.TokenParams[name] == nil, "token_params", "holds "+name)
	}
	return problems
}
