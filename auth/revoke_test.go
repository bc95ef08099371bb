package auth_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestRevoke(t *testing.T) {
	const secret = "canary"
	login := auth.Credential{AccessToken: secret + "-access", RefreshToken: secret + "-refresh"}
	for _, c := range []struct {
		name   string
		login  auth.Credential
		answer func(http.ResponseWriter, *http.Request)
		tokens string
		failed []auth.RevokeError // without their causes
	}{
		{name: "both, the refresh token first", login: login, tokens: "canary-refresh canary-access"},
		{name: "no refresh token", login: auth.Credential{AccessToken: "canary-access"}, tokens: "canary-access"},
		{name: "nothing to revoke"},
		{
			name: "an OAuth error", login: login, tokens: "canary-refresh canary-access",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":"unsupported_token_type","error_description":"canary-refresh"}`)
			},
			failed: []auth.RevokeError{{Token: "refresh_token", Status: 400, Code: "unsupported_token_type"}, {Token: "access_token", Status: 400, Code: "unsupported_token_type"}},
		},
		{
			name: "401 with an empty body", login: auth.Credential{RefreshToken: "canary-refresh"}, tokens: "canary-refresh",
			answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			failed: []auth.RevokeError{{Token: "refresh_token", Status: 401}},
		},
		{
			name: "a redirect is not followed", login: auth.Credential{RefreshToken: "canary-refresh"}, tokens: "canary-refresh",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "https://evil.test/")
				w.WriteHeader(http.StatusTemporaryRedirect)
			},
			failed: []auth.RevokeError{{Token: "refresh_token", Status: 307}},
		},
		{
			name: "no answer", login: auth.Credential{RefreshToken: "canary-refresh"}, tokens: "canary-refresh",
			answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			failed: []auth.RevokeError{{Token: "refresh_token"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				n := fakes.NewNetwork(t)
				var tokens []string
				n.Serve(t, "as.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					form, _ := url.ParseQuery(string(body))
					tokens = append(tokens, form.Get("token"))
					hint, _, _ := strings.Cut(form.Get("token_type_hint"), "_")
					if form.Get("client_id") != "c" || !strings.HasSuffix(form.Get("token"), hint) {
						t.Errorf("the form is %v", form)
					}
					if c.answer != nil {
						c.answer(w, r)
					}
				}))
				n.Serve(t, "evil.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					t.Error("another host was asked")
				}))
				r := auth.Revoker{Config: oauth2.Config{ClientID: "c"}, URL: "https://as.test/revoke", HTTPClient: n.Client()}
				err := r.Revoke(t.Context(), c.login)
				if got := strings.Join(tokens, " "); got != c.tokens {
					t.Errorf("the server saw %q in place of %q", got, c.tokens)
				}
				var failed []auth.RevokeError
				var all interface{ Unwrap() []error }
				if errors.As(err, &all) {
					for _, one := range all.Unwrap() {
						e, ok := errors.AsType[*auth.RevokeError](one)
						if !ok {
							t.Fatalf("%v is no RevokeError", one)
						}
						failed = append(failed, auth.RevokeError{Token: e.Token, Status: e.Status, Code: e.Code})
					}
				}
				if len(failed) != len(c.failed) || err != nil && strings.Contains(err.Error(), secret) {
					t.Fatalf("the error is %v", err)
				}
				for i := range failed {
					if failed[i] != c.failed[i] {
						t.Errorf("failed %+v in place of %+v", failed[i], c.failed[i])
					}
				}
			})
		})
	}
}

func TestRevokeIsBounded(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		n.Serve(t, "as.test", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			<-r.Context().Done()
		}))
		r := auth.Revoker{Config: oauth2.Config{ClientID: "c"}, URL: "https://as.test/revoke", HTTPClient: n.Client()}
		began := time.Now()
		err := r.Revoke(t.Context(), auth.Credential{AccessToken: "a", RefreshToken: "r"})
		if took := time.Since(began); err == nil || took != 10*time.Second {
			t.Errorf("it took %v and says %v", took, err)
		}
	})
}

func TestRevokeWithoutEndpoint(t *testing.T) {
	if err := (&auth.Revoker{}).Revoke(t.Context(), auth.Credential{AccessToken: "a"}); err != nil {
		t.Errorf("no endpoint is an error: %v", err)
	}
	err := (&auth.Revoker{URL: "http://as.test/revoke"}).Revoke(t.Context(), auth.Credential{AccessToken: "a"})
	if wrong, ok := errors.AsType[*auth.ConfigError](err); !ok || len(wrong.Problems) != 2 {
		t.Errorf("the mistakes are %v", err)
	}
}

func TestRevokerPrintsNoSecret(t *testing.T) {
	r := auth.Revoker{Config: oauth2.Config{ClientID: "c", ClientSecret: "canary"}, URL: "https://as.test/revoke?key=canary"}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "r", r)
	if text := fmt.Sprintf("%v %+v %#v %s %x", r, r, &r, &r, r) + log.String(); strings.Contains(text, "canary") || strings.Contains(text, fmt.Sprintf("%x", "canary")) {
		t.Error(text)
	}
}
