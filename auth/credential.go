package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Credential is what is kept of a login. Printing one, in whatever way, shows no secret; its JSON form does, and is meant
// for stores alone.
type Credential struct {
	// AccessToken may be empty when there is a refresh token.
	AccessToken string
	// TokenType is the type as the server named it. If it is empty, the type is Bearer.
	TokenType string
	// RefreshToken is empty when the server gave none.
	RefreshToken string
	// Expiry is when the access token expires, on the wall clock, in UTC. If it is zero, no expiry is known.
	Expiry time.Time
	// Obtained is when the access token was received, on the same clock. If it is zero, that is not known.
	Obtained time.Time
	// Scope is what was granted, as the server wrote it (RFC 6749, section 3.3). If it is empty, the server named none.
	Scope string
	// Resources are the resource indicators of the token (RFC 8707), to be sent again when it is refreshed.
	Resources []string
	// IDToken is the ID token of OpenID Connect, unverified.
	IDToken string
	// Extra holds other members of the token response that are worth keeping, as encoding/json decodes them.
	Extra map[string]any
	// Presented is the note that a refresh token went out to the server, written before the request. If it is nil, every
	// request has been answered.
	Presented *Presentation
}

// Presentation notes that a refresh token was presented to the server, so that whoever finds the note after a crash knows
// that the token may be spent. It holds a digest, not the token once more.
type Presentation struct {
	// Digest is the SHA-256 digest of the refresh token, in unpadded base64url.
	Digest string `json:"digest"`
	// At is when the token was presented, on the wall clock.
	At time.Time `json:"at"`
}

// NewCredential returns what is to be kept of a token that was received at the instant obtained. Of the members of the
// token response it keeps scope, resource and id_token, and those named in keep. If the token has no expiry but says in
// how many seconds it expires, the expiry is computed from obtained.
func NewCredential(tok *oauth2.Token, obtained time.Time, keep ...string) Credential {
	c := Credential{
		AccessToken:  tok.AccessToken,
		TokenType:    tok.TokenType,
		RefreshToken: tok.RefreshToken,
		Expiry:       wallTime(tok.Expiry),
		Obtained:     wallTime(obtained),
		Scope:        strings.Join(memberTexts(tok.Extra("scope")), " "),
		Resources:    memberTexts(tok.Extra("resource")),
		IDToken:      strings.Join(memberTexts(tok.Extra("id_token")), ""),
	}
	if c.Expiry.IsZero() && tok.ExpiresIn > 0 && tok.ExpiresIn < 1<<31 && !obtained.IsZero() {
		c.Expiry = c.Obtained.Add(time.Duration(tok.ExpiresIn) * time.Second)
	}
	for _, name := range keep {
		if v := tok.Extra(name); v != nil && v != "" && !slices.Contains(ownMembers, name) {
			if c.Extra == nil {
				c.Extra = map[string]any{}
			}
			c.Extra[name] = v
		}
	}
	return c
}

// ownMembers are the members of a token response that have a field of Credential.
var ownMembers = []string{"access_token", "token_type", "refresh_token", "expires_in", "scope", "resource", "id_token"}

// Token returns the credential in the type that the Go ecosystem takes. The scope, the resource, the ID token and the
// members of Extra are found with the token's method Extra, under their names in the token response.
func (c Credential) Token() *oauth2.Token {
	raw := maps.Clone(c.Extra)
	if raw == nil {
		raw = map[string]any{}
	}
	if c.Scope != "" {
		raw["scope"] = c.Scope
	}
	if c.IDToken != "" {
		raw["id_token"] = c.IDToken
	}
	switch len(c.Resources) {
	case 0:
	case 1:
		raw["resource"] = c.Resources[0]
	default:
		list := make([]any, len(c.Resources))
		for i, r := range c.Resources {
			list[i] = r
		}
		raw["resource"] = list
	}
	tok := &oauth2.Token{
		AccessToken:  c.AccessToken,
		TokenType:    c.TokenType,
		RefreshToken: c.RefreshToken,
		Expiry:       c.Expiry,
	}
	return tok.WithExtra(raw)
}

// Lifetime returns how long the access token lives from when it was received to its expiry, and 0 when that is not known.
func (c Credential) Lifetime() time.Duration {
	if c.Expiry.IsZero() || c.Obtained.IsZero() {
		return 0
	}
	return max(c.Expiry.Sub(c.Obtained), 0)
}

// Present notes that the refresh token is about to be presented to the server. Save the credential before the request
// goes out, and set Presented to nil once the answer, whatever it is, has been dealt with.
func (c *Credential) Present(at time.Time) {
	c.Presented = &Presentation{Digest: tokenDigest(c.RefreshToken), At: wallTime(at)}
}

// Unanswered reports whether the present refresh token went out to the server and was never answered, and when. A note
// about another token counts for nothing.
func (c Credential) Unanswered() (at time.Time, ok bool) {
	if c.Presented == nil || c.RefreshToken == "" {
		return time.Time{}, false
	}
	if subtle.ConstantTimeCompare([]byte(c.Presented.Digest), []byte(tokenDigest(c.RefreshToken))) != 1 {
		return time.Time{}, false
	}
	return c.Presented.At, true
}

func tokenDigest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// String describes the credential without a secret in it.
func (c Credential) String() string {
	parts := []string{c.Token().Type()}
	if c.AccessToken == "" {
		parts = append(parts, "no access token")
	}
	if c.RefreshToken != "" {
		parts = append(parts, "refreshable")
	}
	if !c.Expiry.IsZero() {
		parts = append(parts, "expires "+c.Expiry.UTC().Format(time.RFC3339))
	}
	if c.Scope != "" {
		parts = append(parts, "scope "+strconv.Quote(c.Scope))
	}
	if at, ok := c.Unanswered(); ok {
		parts = append(parts, "presented "+at.UTC().Format(time.RFC3339)+" and not answered")
	}
	return "credential(" + strings.Join(parts, ", ") + ")"
}

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// Format writes String for every verb: %x would show a secret as well as %v.
func (c Credential) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }

// LogValue is String.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// wallTime drops the monotonic reading, which means nothing to another process, and the zone.
func wallTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

// memberTexts reads a member that providers write as a string or as a list of strings. The numbers are strings that
// oauth2.Token has taken for numbers.
func memberTexts(v any) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case int64:
		return []string{strconv.FormatInt(v, 10)}
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case []string:
		return slices.Clone(v)
	case []any:
		var list []string
		for _, e := range v {
			list = append(list, memberTexts(e)...)
		}
		return list
	}
	return nil
}
