package auth

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

const defaultRequestTimeout = 30 * time.Second

// sensitive are the parameters whose values a server could echo and nobody must read.
var sensitive = []string{"code_verifier", "client_assertion", "assertion", "password", "subject_token", "actor_token"}

// ownParams are the parameters of a poll that the login sets itself.
var ownParams = []string{"client_id", "client_secret", "grant_type", "device_code"}

// use is what a configuration is checked for.
type use int

const (
	toStart use = iota
	toLogIn
	toResume
)

// settings checks the configuration, and copies it for one login. The error is a *ConfigError with all mistakes.
func (f *DeviceFlow) settings(u use) (*settings, error) {
	var problems []Problem
	wrong := func(field, text string) { problems = append(problems, Problem{field, text}) }

	c := &f.Config
	if c.ClientID == "" {
		wrong("Config.ClientID", "is missing")
	}
	if p := endpointProblem(c.Endpoint.DeviceAuthURL); p != "" && u != toResume {
		wrong("Config.Endpoint.DeviceAuthURL", p)
	}
	if p := endpointProblem(c.Endpoint.TokenURL); p != "" {
		wrong("Config.Endpoint.TokenURL", p)
	}
	switch c.Endpoint.AuthStyle {
	case oauth2.AuthStyleAutoDetect, oauth2.AuthStyleInParams, oauth2.AuthStyleInHeader:
	default:
		wrong("Config.Endpoint.AuthStyle", "is none of package oauth2's")
	}
	for i, scope := range c.Scopes {
		// RFC 6749, section 3.3.
		if scope == "" || !printable(scope) {
			wrong(fmt.Sprintf("Config.Scopes[%d]", i), "is empty or holds a space or a control character: one scope to an element")
		}
	}
	for _, name := range []string{"client_id", "client_secret", "scope"} {
		if f.Params.Has(name) {
			wrong("Params", "holds "+name+", which Config sets")
		}
	}
	for _, name := range ownParams {
		if f.TokenParams.Has(name) {
			wrong("TokenParams", "holds "+name+", which the login sets")
		}
	}
	if f.PKCE && (f.Params.Has("code_challenge") || f.TokenParams.Has("code_verifier")) {
		wrong("PKCE", "is set beside a proof key of the caller's own")
	}
	if f.RequestTimeout < 0 {
		wrong("RequestTimeout", "is negative")
	}
	if u == toLogIn && f.Prompter == nil {
		wrong("Prompter", "is missing: Login has to show the code; Start leaves that to its caller")
	}
	if len(problems) > 0 {
		return nil, &ConfigError{problems}
	}

	s := &settings{
		poster: poster{
			transport: http.DefaultTransport,
			timers:    delay.TimersOn(f.Clock),
			id:        c.ClientID,
			secret:    c.ClientSecret,
			style:     c.Endpoint.AuthStyle,
		},
		deviceURL:   c.Endpoint.DeviceAuthURL,
		tokenURL:    c.Endpoint.TokenURL,
		scopes:      slices.Clone(c.Scopes),
		asked:       slices.Concat(c.Scopes, f.asked),
		params:      clone(f.Params),
		tokenParams: clone(f.TokenParams),
		strict:      f.Strict,
		timeout:     f.RequestTimeout,
		prompter:    f.Prompter,
		browser:     f.Browser,
		onEvent:     f.OnEvent,
		logger:      f.Logger,
		secrets:     secrets{}.basic(c.ClientID, c.ClientSecret),
	}
	if f.HTTPClient != nil && f.HTTPClient.Transport != nil {
		s.transport = f.HTTPClient.Transport
	}
	if s.timeout == 0 {
		s.timeout = defaultRequestTimeout
	}
	if f.PKCE {
		withProofKey(s.params, s.tokenParams)
	}
	for _, params := range []url.Values{s.params, s.tokenParams} {
		for _, name := range sensitive {
			s.secrets = s.secrets.with(params[name]...)
		}
	}
	return s, nil
}

// describe is what printing a DeviceFlow shows.
func (f DeviceFlow) describe() string {
	return fmt.Sprintf("auth.DeviceFlow{client %q, scopes %q, device endpoint %s, token endpoint %s}",
		f.Config.ClientID, strings.Join(f.Config.Scopes, " "),
		withoutQuery(f.Config.Endpoint.DeviceAuthURL), withoutQuery(f.Config.Endpoint.TokenURL))
}
