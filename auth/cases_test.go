package auth_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/cases"
	"github.com/heed-sdk/heed/internal/fakes"
)

// deviceCase is a file of the family deviceflow.
type deviceCase struct {
	Name           string             `json:"name"`
	Why            string             `json:"why"`
	Device         fakes.AuthAnswer   `json:"device"`
	Polls          []fakes.AuthAnswer `json:"polls"`
	Strict         bool               `json:"strict"`
	DisplaySeconds float64            `json:"displaySeconds"`
	Expect         struct {
		Outcome string    `json:"outcome"`
		Waits   []float64 `json:"waits"`
		Status  *int      `json:"status"`
		Code    *string   `json:"code"`
		expectations
	} `json:"expect"`
}

// expectations are members that a token or a prompt must hold; null means absent.
type expectations struct {
	AccessToken     json.RawMessage `json:"access_token"`
	RefreshToken    json.RawMessage `json:"refresh_token"`
	TokenType       json.RawMessage `json:"token_type"`
	ExpiresIn       json.RawMessage `json:"expires_in"`
	Scope           json.RawMessage `json:"scope"`
	Resource        json.RawMessage `json:"resource"`
	IDToken         json.RawMessage `json:"id_token"`
	UserCode        json.RawMessage `json:"user_code"`
	VerificationURI json.RawMessage `json:"verification_uri"`
	Complete        json.RawMessage `json:"verification_uri_complete"`
}

func TestCases(t *testing.T) {
	cases.Run(t, "deviceflow", func(t *testing.T, c deviceCase) {
		t.Parallel()
		switch c.Expect.Outcome {
		case "token", "access_denied", "expired", "transport", "unavailable", "rejected", "malformed":
		default:
			t.Fatalf("the outcome %q is unknown", c.Expect.Outcome)
		}
		fakes.Bubble(t, noon, func(t *testing.T) { runCase(t, c) })
	})
}

func runCase(t *testing.T, c deviceCase) {
	r := newRig(t, c.Polls...)
	r.server.Device = &c.Device
	r.flow.Strict = c.Strict
	r.flow.Prompter = r.prompter(time.Duration(c.DisplaySeconds * float64(time.Second)))
	tok, err := r.flow.Login(t.Context())

	if got := reason(t, tok, err); got != c.Expect.Outcome {
		t.Errorf("outcome %s, want %s: %v", got, c.Expect.Outcome, err)
	}
	if waits := r.waits(); !near(waits, c.Expect.Waits) {
		t.Errorf("waits %v, want %v", waits, c.Expect.Waits)
	}
	r.obeyed(t)
	e, _ := errors.AsType[*auth.DeviceError](err)
	if e == nil {
		e = &auth.DeviceError{}
	}
	if want := c.Expect.Status; want != nil && e.Status != *want {
		t.Errorf("status %d, want %d", e.Status, *want)
	}
	if want := c.Expect.Code; want != nil && e.Code != *want {
		t.Errorf("code %q, want %q", e.Code, *want)
	}
	if tok == nil {
		tok = &oauth2.Token{}
	}
	for name, x := range map[string]struct {
		want json.RawMessage
		got  any
	}{
		"access_token":              {c.Expect.AccessToken, tok.AccessToken},
		"refresh_token":             {c.Expect.RefreshToken, tok.RefreshToken},
		"token_type":                {c.Expect.TokenType, tok.TokenType},
		"expires_in":                {c.Expect.ExpiresIn, tok.ExpiresIn},
		"scope":                     {c.Expect.Scope, tok.Extra("scope")},
		"resource":                  {c.Expect.Resource, tok.Extra("resource")},
		"id_token":                  {c.Expect.IDToken, tok.Extra("id_token")},
		"user_code":                 {c.Expect.UserCode, r.prompt.UserCode},
		"verification_uri":          {c.Expect.VerificationURI, r.prompt.VerificationURI},
		"verification_uri_complete": {c.Expect.Complete, r.prompt.VerificationURIComplete},
	} {
		if x.got == "" || x.got == int64(0) {
			x.got = nil
		}
		if got, _ := json.Marshal(x.got); x.want != nil && string(got) != string(x.want) {
			t.Errorf("%s is %s, want %s", name, got, x.want)
		}
	}
	if tok.ExpiresIn == 0 != tok.Expiry.IsZero() || !tok.Expiry.IsZero() && !tok.Expiry.Equal(time.Now().Add(time.Duration(tok.ExpiresIn)*time.Second)) {
		t.Errorf("expiry %v with expires_in %d", tok.Expiry, tok.ExpiresIn)
	}
}
