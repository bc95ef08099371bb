package conformance_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/conformance"
)

// tokenFixture is a fixture of the family oauth-token: see its schema.json.
type tokenFixture struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Operation   string `json:"operation"`
	Request     struct {
		Resource string `json:"resource"`
	} `json:"request"`
	Response struct {
		Status int             `json:"status"`
		Body   json.RawMessage `json:"body"`
	} `json:"response"`
	Expect struct {
		Outcome            string `json:"outcome"`
		Resource           string `json:"resource"`
		ResourceAbsent     bool   `json:"resourceAbsent"`
		FormResource       string `json:"formResource"`
		FormResourceAbsent bool   `json:"formResourceAbsent"`
	} `json:"expect"`
}

func TestOAuthToken(t *testing.T) {
	conformance.Run(t, "oauth-token", nil, func(t *testing.T, c tokenFixture) {
		if c.Operation != "refreshToken" {
			t.Fatalf("the operation %q is unknown", c.Operation)
		}
		var forms []url.Values
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			forms = append(forms, r.PostForm)
			w.Header().Set("Content-Type", "application/json")
			if c.Response.Status != 0 {
				w.WriteHeader(c.Response.Status)
			}
			_, _ = w.Write(c.Response.Body)
		}))
		defer server.Close()

		refresher := auth.Refresher{
			Config:     oauth2.Config{ClientID: "client", Endpoint: oauth2.Endpoint{TokenURL: server.URL + "/token"}},
			HTTPClient: &http.Client{Transport: &http.Transport{}},
		}
		if c.Request.Resource != "" {
			// An argument of the call: what a stored token keeps is not modelled here, says the schema.
			refresher.Params = url.Values{"resource": {c.Request.Resource}}
		}
		token, err := refresher.Refresh(t.Context(), &oauth2.Token{RefreshToken: "refresh"})

		if len(forms) != 1 || forms[0].Get("grant_type") != "refresh_token" || forms[0].Get("refresh_token") != "refresh" || forms[0].Get("client_id") != "client" {
			t.Fatalf("sent %v", forms)
		}
		switch sent := forms[0]; {
		case c.Expect.FormResourceAbsent == (c.Expect.FormResource != ""):
			t.Error("the fixture says nothing about the form")
		case c.Expect.FormResourceAbsent && sent.Has("resource"):
			t.Errorf("sent the resource %q", sent["resource"])
		case c.Expect.FormResource != "" && (len(sent["resource"]) != 1 || sent.Get("resource") != c.Expect.FormResource):
			t.Errorf("sent the resource %q, want %q", sent["resource"], c.Expect.FormResource)
		}
		switch c.Expect.Outcome {
		case "reject":
			if _, ok := errors.AsType[*auth.RefreshError](err); !ok {
				t.Errorf("got %v, %v, want a rejection", token, err)
			}
		case "token":
			if err != nil {
				t.Fatal(err)
			}
			resource, _ := token.Extra("resource").(string)
			if c.Expect.ResourceAbsent == (c.Expect.Resource != "") {
				t.Error("the fixture says nothing about the token")
			}
			if resource != c.Expect.Resource || c.Expect.ResourceAbsent && token.Extra("resource") != nil {
				t.Errorf("the token's resource is %v", token.Extra("resource"))
			}
		default:
			t.Errorf("the outcome %q is unknown", c.Expect.Outcome)
		}
	})
}
