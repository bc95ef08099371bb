package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// storedToken is a token as a store gives it back.
func storedToken(extra map[string]any) *oauth2.Token {
	t := &oauth2.Token{AccessToken: "canary-access", RefreshToken: "canary-refresh"}
	return t.WithExtra(extra)
}

// newRefresher returns a refresher for https://as.test, and the network that it is on.
func newRefresher(t *testing.T, token http.HandlerFunc) (*auth.Refresher, *published) {
	t.Helper()
	p := newPublished(t)
	p.serve(t, "as.test", documents{"/token": token})
	return &auth.Refresher{
		Config:     oauth2.Config{ClientID: "c", Endpoint: oauth2.Endpoint{TokenURL: "https://as.test/token"}},
		HTTPClient: p.client(),
	}, p
}

// formOf answers with a token and keeps the form that it was sent.
func formOf(form *url.Values, header *http.Header) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Method != http.MethodPost || r.URL.RawQuery != "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		*form, *header = r.PostForm, r.Header
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token":"new","token_type":"Bearer"}`)
	}
}

func TestRefreshForm(t *testing.T) {
	tests := []struct {
		name   string
		change func(*auth.Refresher)
		stored map[string]any
		want   string
		basic  string
	}{
		{"a public client", func(*auth.Refresher) {}, nil, "client_id=c&grant_type=refresh_token&refresh_token=canary-refresh", ""},
		{"the login's scopes stay at home", func(r *auth.Refresher) { r.Config.Scopes = []string{"read", "write"} }, map[string]any{"scope": "read"}, "client_id=c&grant_type=refresh_token&refresh_token=canary-refresh", ""},
		{"less scope", func(r *auth.Refresher) { r.Scopes = []string{"read", "list"} }, map[string]any{"scope": "read list write"}, "client_id=c&grant_type=refresh_token&refresh_token=canary-refresh&scope=read+list", ""},
		{"the token's resource", func(*auth.Refresher) {}, map[string]any{"resource": "urn:example:42"}, "client_id=c&grant_type=refresh_token&refresh_token=canary-refresh&resource=urn%3Aexample%3A42", ""},
		{"the token's resources", func(*auth.Refresher) {}, map[string]any{"resource": []any{"urn:a", "urn:b"}}, "client_id=c&grant_type=refresh_token&refresh_token=canary-refresh&resource=urn%3Aa&resource=urn%3Ab", ""},
		{"no resource", func(*auth.Refresher) {}, map[string]any{"resource": ""}, "client_id=c&grant_type=refresh_token&refresh_token=canary-refresh", ""},
		{"another resource", func(r *auth.Refresher) { r.Params = url.Values{"resource": {"urn:a", "urn:b"}} }, map[string]any{"resource": "urn:example:42"}, "client_id=c&grant_type=refresh_token&refresh_token=canary-refresh&resource=urn%3Aa&resource=urn%3Ab", ""},
		{"a secret in the header", func(r *auth.Refresher) { r.Config.ClientSecret = "s" }, nil, "client_id=c&grant_type=refresh_token&refresh_token=canary-refresh", "c:s"},
		{"a secret in the body", func(r *auth.Refresher) {
			r.Config.ClientSecret = "s"
			r.Config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
		}, nil, "client_id=c&client_secret=s&grant_type=refresh_token&refresh_token=canary-refresh", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				var form url.Values
				var header http.Header
				r, p := newRefresher(t, formOf(&form, &header))
				tt.change(r)
				before := r.Params.Encode()
				if _, err := r.Refresh(t.Context(), storedToken(tt.stored)); err != nil {
					t.Fatal(err)
				}
				if got := form.Encode(); got != tt.want {
					t.Errorf("sent %s\nwant %s", got, tt.want)
				}
				id, secret, ok := (&http.Request{Header: header}).BasicAuth()
				if got := id + ":" + secret; ok != (tt.basic != "") || ok && got != tt.basic {
					t.Errorf("basic authentication %q", got)
				}
				if asked := p.asked(); len(asked) != 1 || r.Params.Encode() != before || header.Get("Accept") != "application/json" {
					t.Errorf("asked %v, parameters %v", asked, r.Params)
				}
			})
		})
	}
}

func TestRefreshMerges(t *testing.T) {
	stored := map[string]any{"scope": "read write", "resource": "urn:old", "id_token": "stale"}
	tests := []struct {
		name, answer                    string
		refresh, scope, resource, other any
	}{
		{"all left out", `{"access_token":"new"}`, "canary-refresh", "read write", "urn:old", nil},
		{"all null", `{"access_token":"new","refresh_token":null,"scope":null,"resource":null}`, "canary-refresh", "read write", "urn:old", nil},
		{"all new", `{"access_token":"new","refresh_token":"rotated","scope":"read","resource":"urn:new","x":"y"}`, "rotated", "read", "urn:new", "y"},
		{"an array of scopes", `{"access_token":"new","scope":["read","list"]}`, "canary-refresh", "read list", "urn:old", nil},
		{"empty texts", `{"access_token":"new","refresh_token":"","scope":""}`, "canary-refresh", "read write", "urn:old", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r, _ := newRefresher(t, body("application/json", tt.answer))
				old := storedToken(stored)
				got, err := r.Refresh(t.Context(), old)
				if err != nil {
					t.Fatal(err)
				}
				if got.AccessToken != "new" || got.RefreshToken != tt.refresh || got.Extra("scope") != tt.scope || got.Extra("resource") != tt.resource ||
					got.Extra("x") != tt.other || got.Extra("id_token") != nil {
					t.Errorf("%q %q %v %v", got.AccessToken, got.RefreshToken, got.Extra("scope"), got.Extra("resource"))
				}
				if old.RefreshToken != "canary-refresh" || old.Extra("scope") != "read write" {
					t.Error("the stored token was changed")
				}
			})
		})
	}
	fakes.Bubble(t, noon, func(t *testing.T) {
		// By way of a store, and with more than one resource.
		r, _ := newRefresher(t, body("application/json", `{"access_token":"new"}`))
		kept := auth.Credential{RefreshToken: "canary-refresh", Scope: "read", Resources: []string{"urn:a", "urn:b"}}
		got, err := r.Refresh(t.Context(), kept.Token())
		if err != nil {
			t.Fatal(err)
		}
		if next := auth.NewCredential(got, noon); next.RefreshToken != kept.RefreshToken || next.Scope != kept.Scope || !slices.Equal(next.Resources, kept.Resources) {
			t.Errorf("scope %q, resources %q", next.Scope, next.Resources)
		}
	})
	fakes.Bubble(t, noon, func(t *testing.T) {
		r, _ := newRefresher(t, body("application/json", `{"access_token":"new","expires_in":3600}`))
		got, err := r.Refresh(t.Context(), storedToken(nil))
		if err != nil || !got.Expiry.Equal(noon.Add(time.Hour)) || got.Extra("scope") != nil || got.Extra("resource") != nil {
			t.Errorf("%v, %v", got.Expiry, err)
		}
	})
}

func TestRefreshAnswers(t *testing.T) {
	answer := func(code int, text string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			io.WriteString(w, text)
		}
	}
	cut := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)+100))
			io.WriteString(w, text)
		}
	}
	const fine = `{"access_token":"new"}`
	tests := []struct {
		name       string
		answer     http.HandlerFunc
		strict     bool
		want       auth.RefreshReason // "" is a token
		status     int
		code       string
		repeatable bool
	}{
		{"a token", answer(200, fine), false, "", 0, "", false},
		{"a token in a form", body("application/x-www-form-urlencoded", "access_token=new&token_type=bearer"), false, "", 0, "", false},
		{"a token, complete before the cut", cut(fine), false, "", 0, "", false},
		{"a token beside an error", answer(200, `{"access_token":"new","error":"x"}`), false, "", 0, "", false},
		{"cut within", cut(`{"access_token":"n`), false, auth.ErrReplyLost, 200, "", false},
		{"a used token", answer(400, `{"error":"invalid_grant"}`), false, auth.ErrRefused, 400, "invalid_grant", false},
		{"an empty 400", answer(400, ""), false, auth.ErrRefused, 400, "", false},
		{"a bad client", answer(401, `{"error":"invalid_client"}`), false, auth.ErrRefused, 401, "invalid_client", false},
		{"an error with status 200", answer(200, `{"error":"bad_refresh_token"}`), false, auth.ErrRefused, 200, "bad_refresh_token", false},
		{"the same, strictly", answer(200, `{"error":"bad_refresh_token"}`), true, auth.ErrUnusableToken, 200, "", false},
		{"throttled", answer(429, ""), false, auth.ErrRefused, 429, "", true},
		{"throttled for a while", answer(429, "", "Retry-After", "7"), false, auth.ErrRefused, 429, "", true},
		{"unavailable for a while", answer(503, "", "Retry-After", "7"), false, auth.ErrRefused, 503, "", true},
		{"unavailable", answer(503, ""), false, auth.ErrRefused, 503, "", false},
		{"unavailable, malformed", answer(503, "", "Retry-After", "soon"), false, auth.ErrRefused, 503, "", false},
		{"a bad gateway", answer(502, "", "Retry-After", "7"), false, auth.ErrRefused, 502, "", false},
		{"a server's failure", answer(500, `{"error":"server_error"}`), false, auth.ErrRefused, 500, "server_error", false},
		{"a redirect", answer(307, "", "Location", "https://attacker.test/"), false, auth.ErrRefused, 307, "", false},
		{"created", answer(201, fine), false, auth.ErrRefused, 201, "", false},
		{"no token", answer(200, `{}`), false, auth.ErrUnusableToken, 200, "", false},
		{"an empty token", answer(200, `{"access_token":""}`), false, auth.ErrUnusableToken, 200, "", false},
		{"a page", answer(200, `<html>`), false, auth.ErrUnusableToken, 200, "", false},
		{"a bad expiry", answer(200, `{"access_token":"new","expires_in":-1}`), false, auth.ErrUnusableToken, 200, "", false},
		{"a resource that is no text", answer(200, `{"access_token":"new","resource":7}`), false, auth.ErrUnusableToken, 200, "", false},
		{"an empty resource", answer(200, `{"access_token":"new","resource":""}`), false, auth.ErrUnusableToken, 200, "", false},
		{"too large", answer(200, `{"access_token":"new","x":"`+strings.Repeat("x", 1<<20)+`"}`), false, auth.ErrUnusableToken, 200, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r, p := newRefresher(t, tt.answer)
				p.serve(t, "attacker.test", documents{"/": answer(200, fine)})
				r.Strict = tt.strict
				token, err := r.Refresh(t.Context(), storedToken(nil))
				if asked := p.asked(); len(asked) != 1 {
					t.Errorf("asked %v", asked)
				}
				if tt.want == "" {
					if err != nil || token.AccessToken != "new" {
						t.Errorf("%v", err)
					}
					return
				}
				e, ok := errors.AsType[*auth.RefreshError](err)
				if !ok || token != nil || !errors.Is(err, tt.want) || e.Reason != tt.want {
					t.Fatalf("got %v, want %s", err, tt.want)
				}
				if e.Status != tt.status || e.Code != tt.code || e.Repeatable() != tt.repeatable {
					t.Errorf("status %d, code %q, repeatable %v", e.Status, e.Code, e.Repeatable())
				}
			})
		})
	}
}

// TestRefreshWithoutAnAnswer is about one question: can the refresh token have been spent?
func TestRefreshWithoutAnAnswer(t *testing.T) {
	hangs := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		hangs(w, r)
	}
	drops := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	dialling := func(err error) func(*auth.Refresher, *published) {
		return func(r *auth.Refresher, _ *published) {
			r.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				if errors.Is(err, syscall.ETIMEDOUT) {
					time.Sleep(time.Minute) // net/http lets a dial go on without the request
				}
				return nil, err
			}}}
		}
	}
	failing := func(err error) func(*auth.Refresher, *published) {
		return func(r *auth.Refresher, _ *published) { r.HTTPClient = &http.Client{Transport: fails{err}} }
	}
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no route to host")}
	tests := []struct {
		name   string
		server http.HandlerFunc
		change func(*auth.Refresher, *published)
		want   auth.RefreshReason
	}{
		{"nobody listens", drops, func(r *auth.Refresher, _ *published) { r.Config.Endpoint.TokenURL = "https://nobody.test/token" }, auth.ErrNotSent},
		{"no such name", drops, dialling(&net.DNSError{Err: "no such host", Name: "as.test", IsNotFound: true}), auth.ErrNotSent},
		{"a dial that takes too long", drops, dialling(syscall.ETIMEDOUT), auth.ErrNotSent},
		{"a certificate for another name", drops, func(r *auth.Refresher, p *published) {
			r.HTTPClient.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return p.dial(ctx, network, "as.test:443")
			}
			r.Config.Endpoint.TokenURL = "https://other.test/token"
		}, auth.ErrNotSent},
		{"dropped", drops, nil, auth.ErrReplyLost},
		{"no answer in time", hangs, nil, auth.ErrReplyLost},
		{"a transport that tells nothing, and dialled", drops, failing(dial), auth.ErrNotSent},
		{"a transport that tells nothing, and looked a name up", drops, failing(&net.DNSError{Err: "no such host"}), auth.ErrNotSent},
		{"a transport that tells nothing, and has a policy", drops, failing(fmt.Errorf("policy: %w", auth.ErrUnavailable)), auth.ErrNotSent},
		{"a transport that tells nothing", drops, failing(errors.New("it broke")), auth.ErrReplyLost},
		{"a transport that tells nothing, and read", drops, failing(&net.OpError{Op: "read", Err: errors.New("reset")}), auth.ErrReplyLost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r, p := newRefresher(t, tt.server)
				if tt.change != nil {
					tt.change(r, p)
				}
				_, err := r.Refresh(t.Context(), storedToken(nil))
				e, ok := errors.AsType[*auth.RefreshError](err)
				if !ok || e.Reason != tt.want || e.Repeatable() != (tt.want == auth.ErrNotSent) || e.Status != 0 {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				if _, timeout := errors.AsType[*delay.TimeoutError](err); timeout && time.Since(noon) != 30*time.Second {
					t.Errorf("after %v", time.Since(noon))
				}
				time.Sleep(time.Minute) // for the dial
			})
		})
	}
}

type fails struct{ err error }

func (f fails) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func TestRefreshInterrupted(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r, p := newRefresher(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				hangs(w, r)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := auth.ErrReplyLost
			if after == 0 {
				cancel()
				want = auth.ErrNotSent
			}
			time.AfterFunc(after, cancel)
			_, err := r.Refresh(ctx, storedToken(nil))
			if !errors.Is(err, want) || !errors.Is(err, context.Canceled) || time.Since(noon) != after {
				t.Errorf("after %v: %v", time.Since(noon), err)
			}
			if asked := p.asked(); len(asked) != 1 && after > 0 || len(asked) != 0 && after == 0 {
				t.Errorf("asked %v", asked)
			}
		})
	}
}

func TestRefreshConfiguration(t *testing.T) {
	r := auth.Refresher{
		Config:         oauth2.Config{ClientSecret: "canary-secret", Endpoint: oauth2.Endpoint{TokenURL: "http://as.test/token?canary"}},
		Params:         url.Values{"grant_type": {"canary"}, "scope": {"canary"}},
		RequestTimeout: -1,
	}
	_, err := r.Refresh(t.Context(), &oauth2.Token{AccessToken: "canary"})
	e, ok := errors.AsType[*auth.ConfigError](err)
	if !ok || len(e.Problems) != 6 || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v", err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, r) + fmt.Sprintf(verb, &r); strings.Contains(text, "canary") || !strings.Contains(text, "as.test") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

// TestRefreshKeepsSecrets has servers answer with what they were sent, in all kinds of places.
func TestRefreshKeepsSecrets(t *testing.T) {
	echo := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			all := fmt.Sprintf("%s %s %s", text, r.Header.Get("Authorization"), "canary-access")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"error":%q,"error_description":%q,"refresh_token":"canary-new","message":"canary-new"}`, all, all)
		}
	}
	for _, code := range []int{200, 400, 429, 500} {
		for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r, _ := newRefresher(t, echo(code))
				r.Config.ClientSecret = "canary-secret"
				r.Config.Endpoint.AuthStyle = style
				r.Config.Endpoint.TokenURL += "?key=1"
				r.Params = url.Values{"client_assertion": {"canary-assertion"}}
				_, err := r.Refresh(t.Context(), storedToken(nil))
				if err == nil {
					t.Fatal("no error")
				}
				e, _ := errors.AsType[*auth.RefreshError](err)
				text := fmt.Sprintf("%v %+v %#v %+v", err, err, err, *e)
				if strings.Contains(text, "canary") || strings.Contains(text, "Y2FuYXJ5") || strings.Contains(text, "key=1") {
					t.Errorf("%s", text)
				}
			})
		}
	}
}
