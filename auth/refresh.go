package auth

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// Refresher exchanges a refresh token for a new token: one request, and what became of it. It keeps nothing, waits for
// nothing and repeats nothing; a token source does that, and asks the error of one exchange whether another is safe. It
// is configuration only, and one value serves any number of exchanges.
type Refresher struct {
	// Config has ClientID, ClientSecret and Endpoint.TokenURL; the scopes of the login are not sent again. The client
	// authenticates as in a [DeviceFlow].
	Config oauth2.Config

	// Scopes, if not empty, asks for less than was granted (RFC 6749, section 6). If it is empty, the scope stays.
	Scopes []string

	// Params are extra parameters. A resource among them is sent in place of the token's own.
	Params url.Values

	// HTTPClient has the Transport that carries the request. If it or its Transport is nil, http.DefaultTransport does.
	// Nothing else of it is used: redirects are refused whatever its CheckRedirect says.
	HTTPClient *http.Client

	// Strict reads answers as the RFC writes them: see [DeviceFlow].
	Strict bool

	// RequestTimeout bounds the request. If it is zero, 30 s.
	RequestTimeout time.Duration

	// Clock is what the timeout runs on and the new token's expiry is counted from. If it is nil, the real one.
	Clock clock.Clock
}

// Refresh sends the refresh token of a stored token, and the resources that it is bound to (RFC 8707, section 2.2), which
// Extra has, as [Credential.Token] leaves them there. The new token keeps the stored one's refresh token, scope and
// resources where the answer leaves them out. It returns a *ConfigError before anything is sent, or a *RefreshError.
func (r *Refresher) Refresh(ctx context.Context, stored *oauth2.Token) (*oauth2.Token, error) {
	p, timeout, err := r.settings(stored)
	if err != nil {
		return nil, err
	}
	form := clone(r.Params)
	form.Set("grant_type", GrantRefreshToken)
	form.Set("refresh_token", stored.RefreshToken)
	if len(r.Scopes) > 0 {
		form.Set("scope", strings.Join(r.Scopes, " "))
	}
	if resources := memberTexts(stored.Extra("resource")); len(resources) > 0 && !form.Has("resource") {
		form["resource"] = resources
	}
	hide := secrets{}.basic(r.Config.ClientID, r.Config.ClientSecret).with(stored.RefreshToken, stored.AccessToken)
	for _, name := range sensitive {
		hide = hide.with(r.Params[name]...)
	}
	if ended := delay.Ended(ctx); ended != nil {
		return nil, &RefreshError{Reason: ErrNotSent, Err: ended}
	}
	var sent sending
	answer, err := p.post(sent.watch(ctx), r.Config.Endpoint.TokenURL, form, timeout)
	now := p.timers.Now()
	if err != nil {
		return nil, sent.failure(ctx, err)
	}
	fresh, failure := judgeRefresh(answer, r.Strict, now, hide)
	if failure != nil {
		return nil, failure
	}
	return keep(fresh, answer.members, stored), nil
}

// settings checks the configuration. The error is a *ConfigError with all mistakes.
func (r *Refresher) settings(stored *oauth2.Token) (*poster, time.Duration, error) {
	var problems []Problem
	wrong := func(field, text string) { problems = append(problems, Problem{field, text}) }
	c := &r.Config
	if c.ClientID == "" {
		wrong("Config.ClientID", "is missing")
	}
	if p := endpointProblem(c.Endpoint.TokenURL); p != "" {
		wrong("Config.Endpoint.TokenURL", p)
	}
	for _, name := range []string{"client_id", "client_secret", "grant_type", "refresh_token", "scope"} {
		if r.Params.Has(name) {
			wrong("Params", "holds "+name+", which the refresh sets")
		}
	}
	if r.RequestTimeout < 0 {
		wrong("RequestTimeout", "is negative")
	}
	if stored == nil || stored.RefreshToken == "" {
		wrong("the token", "has no refresh token: log in again, with the scope that the server wants for one")
	}
	if len(problems) > 0 {
		return nil, 0, &ConfigError{problems}
	}
	p := &poster{
		transport: http.DefaultTransport, timers: delay.TimersOn(r.Clock),
		id: c.ClientID, secret: c.ClientSecret, style: c.Endpoint.AuthStyle,
	}
	if r.HTTPClient != nil && r.HTTPClient.Transport != nil {
		p.transport = r.HTTPClient.Transport
	}
	if r.RequestTimeout == 0 {
		return p, defaultRequestTimeout, nil
	}
	return p, r.RequestTimeout, nil
}

// judgeRefresh decides what an answer means. It is a function of the answer alone; now is when it arrived.
func judgeRefresh(r *reply, strict bool, now time.Time, hide secrets) (*oauth2.Token, *RefreshError) {
	m := r.members
	code := errorCode(m)
	switch {
	case r.status == http.StatusOK && r.cut != nil && r.bad != nil:
		return nil, &RefreshError{Reason: ErrReplyLost, Status: r.status, Err: r.cut}
	case r.status == http.StatusOK && (m.textOr("access_token") != "" || code == "" || strict):
		// A body over the limit has no members, and its error is what is wrong with it.
		if r.bad != nil {
			return nil, &RefreshError{Reason: ErrUnusableToken, Status: r.status, Err: r.bad}
		}
		fresh, err := readToken(m, strict, now)
		if err != nil {
			return nil, &RefreshError{Reason: ErrUnusableToken, Status: r.status, Err: err}
		}
		return fresh, nil
	}
	// An answer that is no token may hold one all the same.
	hide = hide.with(m.textOr("access_token"), m.textOr("refresh_token"), m.textOr("id_token"))
	e := &RefreshError{
		Reason: ErrRefused, Status: r.status, Code: hide.code(code), Description: hide.clean(description(m)),
		RetryAfter: delay.GeneratedRetry.RetryAfter(r.header, now),
	}
	if r.bad != nil {
		e.Err = r.cut // what it meant is in the part that did not arrive
	}
	return nil, e
}

// keep carries over what an answer leaves out because it stays as it is (RFC 6749, sections 5.1 and 6; RFC 8707, section
// 2.2).
func keep(fresh *oauth2.Token, answer members, stored *oauth2.Token) *oauth2.Token {
	if fresh.RefreshToken == "" {
		fresh.RefreshToken = stored.RefreshToken
	}
	extra := answer.extra()
	for _, name := range []string{"scope", "resource"} {
		value := fresh.Extra(name)
		if len(memberTexts(value)) == 0 {
			value = stored.Extra(name)
		}
		if len(memberTexts(value)) > 0 {
			extra[name] = value
		}
	}
	return fresh.WithExtra(extra)
}

// describe is what printing a Refresher shows.
func (r Refresher) describe() string {
	return fmt.Sprintf("auth.Refresher{client %q, token endpoint %s}", r.Config.ClientID, withoutQuery(r.Config.Endpoint.TokenURL))
}

// Format prints the refresher without its secret, whatever the verb is.
func (r Refresher) Format(w fmt.State, _ rune) { fmt.Fprint(w, r.describe()) }

// LogValue is the refresher without its secret.
func (r Refresher) LogValue() slog.Value { return slog.StringValue(r.describe()) }
