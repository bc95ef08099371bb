package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// defaultRevokeBound is how long somebody who logs out waits for a server.
const defaultRevokeBound = 10 * time.Second

// Revoker tells an authorization server that tokens are not needed any more (RFC 7009). It is configuration only.
type Revoker struct {
	// Config has ClientID and ClientSecret. The client authenticates as in a [DeviceFlow].
	Config oauth2.Config

	// URL is the revocation endpoint. If it is empty, there is none, and nothing is sent.
	URL string

	// HTTPClient has the Transport that carries the requests. If it or its Transport is nil, http.DefaultTransport does.
	HTTPClient *http.Client

	// Timeout bounds all of it. If it is zero, 10 s.
	Timeout time.Duration

	// Clock is what the timeout runs on. If it is nil, the real one.
	Clock clock.Clock
}

// RevokeError says that a server may not have revoked a token.
type RevokeError struct {
	Token  string // "refresh_token" or "access_token"
	Status int    // of the answer, 0 when there was none
	Code   string // the OAuth error code, "" when there was none
	Err    error  // the cause, where there was no answer
}

// Error says what happened and what to do next.
func (e *RevokeError) Error() string {
	text := "auth: the server did not revoke the " + e.Token
	switch {
	case e.Code != "":
		text += fmt.Sprintf(" (%d %s)", e.Status, e.Code)
	case e.Status != 0:
		text += fmt.Sprintf(" (status %d)", e.Status)
	case e.Err != nil:
		text += ": " + e.Err.Error()
	}
	return text + "; to be sure, end the session on the provider's own pages"
}

// Unwrap returns the cause.
func (e *RevokeError) Unwrap() error { return e.Err }

// Revoke revokes the refresh token, which ends the access tokens of most servers with it (RFC 7009, section 2.1), and
// then the access token. One that fails does not keep the other from being tried. The error is a *ConfigError or one or
// more *RevokeError.
func (r *Revoker) Revoke(ctx context.Context, c Credential) error {
	if r.URL == "" {
		return nil
	}
	var problems []Problem
	if r.Config.ClientID == "" {
		problems = append(problems, Problem{"Config.ClientID", "is missing"})
	}
	if p := endpointProblem(r.URL); p != "" {
		problems = append(problems, Problem{"URL", p})
	}
	if len(problems) > 0 {
		return &ConfigError{problems}
	}
	p := poster{
		transport: http.DefaultTransport, timers: delay.TimersOn(r.Clock),
		id: r.Config.ClientID, secret: r.Config.ClientSecret, style: r.Config.Endpoint.AuthStyle,
	}
	if r.HTTPClient != nil && r.HTTPClient.Transport != nil {
		p.transport = r.HTTPClient.Transport
	}
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = defaultRevokeBound
	}
	ctx, cancel := p.timers.WithTimeout(ctx, delay.KindRequestTimeout, timeout)
	defer cancel()
	hide := secrets{}.basic(r.Config.ClientID, r.Config.ClientSecret).with(c.RefreshToken, c.AccessToken)
	var errs []error
	for _, t := range []struct{ hint, token string }{
		{"refresh_token", c.RefreshToken}, {"access_token", c.AccessToken},
	} {
		if t.token == "" {
			continue
		}
		form := url.Values{"token": {t.token}, "token_type_hint": {t.hint}}
		answer, err := p.post(ctx, r.URL, form, timeout)
		switch {
		case err != nil:
			errs = append(errs, &RevokeError{Token: t.hint, Err: err})
		case answer.status != http.StatusOK && answer.status != http.StatusNoContent: // section 2.2: 200, also for unknown tokens
			errs = append(errs, &RevokeError{Token: t.hint, Status: answer.status, Code: hide.code(errorCode(answer.members))})
		}
	}
	return errors.Join(errs...)
}

// describe is what printing a Revoker shows.
func (r Revoker) describe() string {
	return fmt.Sprintf("auth.Revoker{client %q, endpoint %s}", r.Config.ClientID, withoutQuery(r.URL))
}

// Format prints the revoker without its secret, whatever the verb is.
func (r Revoker) Format(w fmt.State, _ rune) { fmt.Fprint(w, r.describe()) }

// LogValue is the revoker without its secret.
func (r Revoker) LogValue() slog.Value { return slog.StringValue(r.describe()) }
