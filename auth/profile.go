package auth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Profile is what is known of a provider: where its endpoints are, and where it is not the RFC's. It is data. Reading
// answers needs none, because the leniencies that the providers want are everybody's; a server that publishes metadata
// needs none either: see [Discovery].
//
// A {name} in an address is a placeholder that [Profile.With] fills in.
type Profile struct {
	Name  string // for flags and configuration files, such as "entra"
	Title string // such as "Microsoft Entra"

	// Placeholders lists the names to fill in, each with its default, "" for one that has to be given.
	Placeholders map[string]string

	// Issuer is the identifier under which the provider publishes metadata, "" when the profile does not rely on it. The
	// endpoints are "" when they are to be discovered there.
	Issuer        string
	DeviceAuthURL string
	TokenURL      string

	// ScopeParam is the parameter of the device request that has the scopes, in place of "scope".
	ScopeParam string
	// AudienceParam is the parameter of the device request that names the API that the token is for.
	AudienceParam string
	// RefreshScope is the scope without which there is no refresh token.
	RefreshScope string
	// NeedsSecret is set where polls without a client secret are refused.
	NeedsSecret bool
	// MayEnforcePKCE is set where a client can be set up so that it needs a proof key: see [DeviceFlow].PKCE.
	MayEnforcePKCE bool
	// SingleUseRefresh is set where a refresh token is spent by its first use.
	SingleUseRefresh bool
	// ReuseGrace is how long after its first use a refresh token may be presented again, as after a lost reply, and is
	// answered with the same tokens. It is 0 where no such window is known: then a lost reply must not be replayed.
	ReuseGrace time.Duration

	// Unsupported says why a device login at this provider cannot be done; "" when it can.
	Unsupported string
	// Notes are for people.
	Notes []string
}

// profiles are in the order of names. Each fact was seen on the wire, in the provider's own documentation, or has been
// reported in public; what is only commonly said is left out.
var profiles = []Profile{
	{
		Name: "auth0", Title: "Auth0", Placeholders: map[string]string{"domain": ""},
		Issuer:        "https://{domain}/",
		DeviceAuthURL: "https://{domain}/oauth/device/code", TokenURL: "https://{domain}/oauth/token",
		AudienceParam: "audience", RefreshScope: "offline_access",
		Notes: []string{"An expired code is expired_token once, and invalid_grant from then on."},
	},
	{
		Name: "aws", Title: "AWS IAM Identity Center",
		Unsupported: "its protocol is JSON in camelCase, after a client has been registered, and not RFC 8628",
	},
	{
		Name: "entra", Title: "Microsoft Entra", Placeholders: map[string]string{"tenant": "common"},
		DeviceAuthURL: "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/devicecode",
		TokenURL:      "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token",
		Notes:         []string{"There is no complete address: the user types the code.", "A refusal is authorization_declined."},
	},
	{
		Name: "github", Title: "GitHub",
		DeviceAuthURL: "https://github.com/login/device/code", TokenURL: "https://github.com/login/oauth/access_token",
		Notes: []string{
			"Errors come with status 200; device_flow_disabled is one to mend in the app's settings.",
			"Tokens of OAuth apps have no expiry.",
		},
	},
	{
		Name: "gitlab", Title: "GitLab", Placeholders: map[string]string{"domain": "gitlab.com"},
		DeviceAuthURL: "https://{domain}/oauth/authorize_device", TokenURL: "https://{domain}/oauth/token",
	},
	{
		Name: "google", Title: "Google",
		Issuer:        "https://accounts.google.com",
		DeviceAuthURL: "https://oauth2.googleapis.com/device/code", TokenURL: "https://oauth2.googleapis.com/token",
		NeedsSecret: true,
		Notes:       []string{"The address to show comes as verification_url, and authorization_pending with status 428."},
	},
	{
		Name: "keycloak", Title: "Keycloak", Placeholders: map[string]string{"domain": "", "realm": ""},
		Issuer:         "https://{domain}/realms/{realm}",
		MayEnforcePKCE: true,
		Notes:          []string{"Old versions ask for an interval of 600 s."},
	},
	{
		Name: "okta", Title: "Okta", Placeholders: map[string]string{"domain": "", "server": ""},
		Issuer: "https://{domain}/oauth2/{server}",
	},
	{
		Name: "twitch", Title: "Twitch",
		DeviceAuthURL: "https://id.twitch.tv/oauth2/device", TokenURL: "https://id.twitch.tv/oauth2/token",
		ScopeParam: "scopes", SingleUseRefresh: true,
		Notes: []string{"The code of an error comes as message, and the scope of a token as an array."},
	},
}

// Profiles returns every profile, in the order of names.
func Profiles() []Profile {
	all := make([]Profile, len(profiles))
	for i, p := range profiles {
		all[i] = p.clone()
	}
	return all
}

// ProfileNamed finds a profile by its name.
func ProfileNamed(name string) (Profile, bool) {
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return profiles[i].clone(), true
}

func (p Profile) clone() Profile {
	p.Placeholders, p.Notes = maps.Clone(p.Placeholders), slices.Clone(p.Notes)
	return p
}

// With returns the profile with its placeholders filled in. The error is a *ConfigError.
func (p Profile) With(values map[string]string) (Profile, error) {
	var problems []Problem
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(p.Placeholders)) {
		value := p.Placeholders[name]
		if given, ok := values[name]; ok {
			value = given
		}
		if value == "" {
			problems = append(problems, Problem{name, "is missing"})
		} else if !fills(name, value) {
			problems = append(problems, Problem{name, "cannot be part of an address"})
		}
		pairs = append(pairs, "{"+name+"}", value)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := p.Placeholders[name]; !ok {
			problems = append(problems, Problem{name, "is no placeholder of the profile " + p.Name})
		}
	}
	if len(problems) > 0 {
		return Profile{}, &ConfigError{problems}
	}
	p = p.clone()
	p.Placeholders = nil
	fill := strings.NewReplacer(pairs...)
	for _, address := range []*string{&p.Issuer, &p.DeviceAuthURL, &p.TokenURL} {
		*address = fill.Replace(*address)
	}
	return p, nil
}

// fills reports whether a value can only become the part of an address that its placeholder stands for: a host, or one
// segment of a path.
func fills(name, value string) bool {
	if name == "domain" {
		return !strings.ContainsAny(value, "/?#\\@") && checkAuthority(value) == nil
	}
	_, err := parseIdentifier("https://h.invalid/"+value, false)
	return err == nil && !strings.Contains(value, "/") && value == url.PathEscape(value)
}

// Metadata returns the provider's endpoints: from the profile where it has them, else as d discovers them. The error is an
// *UnsupportedError, a *ConfigError when placeholders are not filled in, or d's.
func (p Profile) Metadata(ctx context.Context, d *Discovery) (*Metadata, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.TokenURL == "" {
		return d.Issuer(ctx, p.Issuer)
	}
	return &Metadata{Issuer: p.Issuer, DeviceAuthorizationEndpoint: p.DeviceAuthURL, TokenEndpoint: p.TokenURL}, nil
}

// Validate reports whether a device login can be done with the profile as it is. The error is an *UnsupportedError, or a
// *ConfigError with the placeholders that are not filled in.
func (p Profile) Validate() error {
	if p.Unsupported != "" {
		return &UnsupportedError{Provider: p.Title, Why: p.Unsupported}
	}
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(p.Placeholders)) {
		problems = append(problems, Problem{name, "is not filled in: call With"})
	}
	if len(problems) > 0 {
		return &ConfigError{problems}
	}
	return nil
}

// Apply returns a copy of the flow that asks as the provider wants it. Endpoints of the flow's own are kept; where it has
// none, the profile's are taken. The error is an *UnsupportedError, or a *ConfigError.
func (p Profile) Apply(f DeviceFlow) (*DeviceFlow, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	endpoint := &f.Config.Endpoint
	if endpoint.DeviceAuthURL == "" && endpoint.TokenURL == "" {
		if p.TokenURL == "" {
			return nil, &ConfigError{[]Problem{{"Config.Endpoint", "is missing: " + p.Title + " publishes it, so ask Metadata"}}}
		}
		endpoint.DeviceAuthURL, endpoint.TokenURL = p.DeviceAuthURL, p.TokenURL
		if endpoint.AuthStyle == oauth2.AuthStyleAutoDetect {
			endpoint.AuthStyle = oauth2.AuthStyleInParams // as Metadata.Endpoint has it
		}
	}
	if p.NeedsSecret && f.Config.ClientSecret == "" {
		return nil, &ConfigError{[]Problem{{"Config.ClientSecret", "is missing: " + p.Title + " wants it from each poll"}}}
	}
	if p.ScopeParam != "" && len(f.Config.Scopes) > 0 {
		f.Params = clone(f.Params)
		f.Params.Set(p.ScopeParam, strings.Join(f.Config.Scopes, " "))
		f.asked, f.Config.Scopes = slices.Concat(f.asked, f.Config.Scopes), nil
	}
	return &f, nil
}

// UnsupportedError is a provider at which a device login cannot be done. It is errors.ErrUnsupported to errors.Is.
type UnsupportedError struct {
	Provider string
	Why      string
}

// Error says why, and what to do.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("auth: no device login at %s: %s; use the provider's own tools to log in", e.Provider, e.Why)
}

// Is makes the error an errors.ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }
