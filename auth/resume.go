package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// What a [ResumeError] is, by errors.Is.
var (
	// ErrSavedMalformed is a saved login that cannot be read.
	ErrSavedMalformed = errors.New("auth: the saved login cannot be read: start a new one")
	// ErrSavedVersion is a saved login of a version that this one does not know.
	ErrSavedVersion = errors.New("auth: the saved login is of another version: resume it with the program that saved it, or start a new one")
	// ErrSavedElsewhere is a saved login of another client or another server than the flow's.
	ErrSavedElsewhere = errors.New("auth: the saved login is not this flow's: resume it with the client and the endpoint that started it")
)

// ResumeError says why a saved login cannot be resumed. Its text holds nothing of what was saved.
type ResumeError struct {
	Err      error     // ErrSavedMalformed, ErrSavedVersion or ErrSavedElsewhere
	Problems []Problem // which members are to blame, where some are
}

// Error says what is wrong and what to do.
func (e *ResumeError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	if len(texts) == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Err, strings.Join(texts, "; "))
}

// Unwrap returns the kind of the error.
func (e *ResumeError) Unwrap() error { return e.Err }

// Save writes down a login that was started, for [DeviceFlow.Resume] in this process or in another. What it returns holds
// the device code, the flow's TokenParams and its proof key: whoever reads it can take the token, so keep it as you would
// keep the token. The client's secret is not in it.
//
// Its times are absolute, on the wall clock: neither the life of the code nor the time until the next poll starts anew
// where it is loaded. Save may be called before and after Poll, and in OnEvent while Poll runs. A login that is over is
// not saved: the error is the one that Poll returns.
func (p *Pending) Save() ([]byte, error) {
	l := p.login
	now := l.timers.Now()
	left := l.deadline.Sub(now)
	switch {
	case l.ended != nil:
		return nil, l.ended
	case left <= 0:
		return nil, &DeviceError{Reason: ErrExpired, Err: l.unanswered}
	}
	at := func(t time.Time) time.Time { return now.Round(0).Add(t.Sub(now)).UTC() } // on the wall clock as it stands now
	s := saved{
		Version: savedVersion, SavedAt: at(now), IssuedAt: at(l.issued), ExpiresAt: at(l.deadline), NextPollAt: at(l.due),
		Interval: int64(l.cadence.Interval() / time.Second), Polls: l.polls, Unanswered: l.failures,
		UserCode: p.UserCode, VerificationURI: p.VerificationURI, VerificationURIComplete: p.VerificationURIComplete,
		DeviceCode: l.deviceCode, TokenEndpoint: l.tokenURL, ClientID: l.id, AuthStyle: styleName(l.style),
		TokenParams: l.tokenParams, Scopes: l.asked,
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("auth: the login cannot be saved: %w", err)
	}
	return append(data, '\n'), nil
}

// Resume reads a login that [Pending.Save] has written down, for Finish or Poll to finish it. It sends nothing.
//
// The client id and the token endpoint have to be the flow's; where the flow leaves one of them empty and has no client
// secret, the saved one is taken. The scopes asked for and the parameters of each poll are the saved ones, the secret is
// the flow's, and so is the AuthStyle, unless it is AuthStyleAutoDetect.
//
// The code lives until its time is over, and the first poll comes when the next one was due, at once if that is in the
// past. A wall clock that was set back since cannot lengthen either. The error is a *ConfigError, a *ResumeError, or a
// *DeviceError that is ErrExpired.
func (f *DeviceFlow) Resume(data []byte) (*Pending, error) {
	saved, err := readSaved(data)
	if err != nil {
		return nil, err
	}
	own := *f
	if err := own.adopt(saved); err != nil {
		return nil, err
	}
	s, err := own.settings(toResume)
	if err != nil {
		return nil, err
	}

	now := s.timers.Now()
	since := max(now.Round(0).Sub(saved.SavedAt), 0)
	left := saved.ExpiresAt.Sub(saved.SavedAt) - since
	if left <= 0 {
		return nil, &DeviceError{Reason: ErrExpired}
	}
	l := &login{
		settings: s, deviceCode: saved.DeviceCode, hide: s.secrets.with(saved.DeviceCode),
		issued: now.Add(left - saved.ExpiresAt.Sub(saved.IssuedAt)), deadline: now.Add(left),
		cadence: delay.ResumeCadence(time.Duration(saved.Interval)*time.Second, saved.Polls, saved.Unanswered),
		due:     now.Add(max(saved.NextPollAt.Sub(saved.SavedAt)-since, 0)), resumed: true,
		polls: saved.Polls, failures: saved.Unanswered,
	}
	return &Pending{
		UserCode: saved.UserCode, VerificationURI: saved.VerificationURI, VerificationURIComplete: saved.VerificationURIComplete,
		ExpiresAt: l.deadline, Interval: l.cadence.Interval(), login: l,
	}, nil
}

// adopt takes over what a poll needs from a saved login, and says in which ways that is not the flow's own.
func (f *DeviceFlow) adopt(s saved) error {
	var problems []Problem
	for _, x := range []struct {
		field, saved string
		own          *string
	}{
		{"client_id", s.ClientID, &f.Config.ClientID},
		{"token_endpoint", s.TokenEndpoint, &f.Config.Endpoint.TokenURL},
	} {
		switch {
		// A secret is not sent where a file says, nor for whom.
		case *x.own == "" && f.Config.ClientSecret == "":
			*x.own = x.saved
		case *x.own != x.saved:
			problems = append(problems, Problem{x.field, "is not the flow's"})
		}
	}
	if len(problems) > 0 {
		return &ResumeError{Err: ErrSavedElsewhere, Problems: problems}
	}
	if f.Config.Endpoint.AuthStyle == oauth2.AuthStyleAutoDetect {
		f.Config.Endpoint.AuthStyle = authStyles[s.AuthStyle]
	}
	// Of the device request nothing is left but its proof key, which is among the parameters of each poll.
	f.Params, f.PKCE, f.asked = nil, false, nil
	f.Config.Scopes, f.TokenParams = s.Scopes, url.Values(s.TokenParams)
	return nil
}
