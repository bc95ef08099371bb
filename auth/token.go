package auth

import (
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// readToken reads a successful token response (RFC 6749, section 5.1). now is when it arrived; the token's expiry is an
// instant of the wall clock, which goes on while the machine sleeps. Every member is reachable through Extra, with scope
// as a string.
func readToken(m members, strict bool, now time.Time) (*oauth2.Token, error) {
	access, err := m.required("access_token")
	if err != nil {
		return nil, err
	}
	t := &oauth2.Token{AccessToken: access, TokenType: "Bearer"}

	if kind, found, err := m.text("token_type"); err != nil {
		return nil, err
	} else if found {
		if kind == "" {
			return nil, errors.New("token_type is empty")
		}
		t.TokenType = kind
	}
	if t.RefreshToken, _, err = m.text("refresh_token"); err != nil {
		return nil, err
	}
	extra := m.extra()
	if scope, found, err := m.list("scope", strict); err != nil {
		return nil, err
	} else if found {
		extra["scope"] = scope
	}
	// RFC 8707, section 2.2 lets the server narrow the resource; a refresh sends it back.
	if resource, found, err := m.text("resource"); err != nil {
		return nil, err
	} else if found && resource == "" {
		return nil, errors.New("resource is empty")
	}

	seconds, found, err := m.number("expires_in", maxExpiresIn, strict)
	switch {
	case err != nil:
		return nil, err
	case found && seconds == 0 && strict:
		return nil, errors.New("expires_in is 0")
	case seconds > 0: // else no expiry is known
		t.ExpiresIn = seconds
		t.Expiry = now.Round(0).Add(time.Duration(seconds) * time.Second)
	}
	return t.WithExtra(extra), nil
}

// grantedScopes returns what was granted, and what was asked for and was not. A response without scope grants what was
// asked for (RFC 6749, section 5.1).
func grantedScopes(t *oauth2.Token, asked []string) (granted, missing []string) {
	scope, ok := t.Extra("scope").(string)
	if !ok {
		return asked, nil
	}
	granted = strings.Fields(scope)
	// A scope may hold a comma, and some servers separate with it: both readings count.
	parts := strings.FieldsFunc(scope, func(r rune) bool { return r == ' ' || r == ',' })
	for _, want := range asked {
		if !slices.Contains(granted, want) && !slices.Contains(parts, want) {
			missing = append(missing, want)
		}
	}
	return granted, missing
}
