package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

// provider is an authorization server that publishes its endpoints, and an API that wants its tokens.
func provider(t *testing.T, n *fakes.Network) *fakes.AuthServer {
	t.Helper()
	as := &fakes.AuthServer{ClientID: "cli", ApproveOnPoll: 1, TokenLifetime: 600}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": "https://as.test", "token_endpoint": "https://as.test" + fakes.TokenPath,
			"device_authorization_endpoint": "https://as.test" + fakes.DevicePath, "revocation_endpoint": "https://as.test" + fakes.RevokePath,
		})
	})
	mux.Handle("/", as)
	n.Serve(t, "as.test", mux)
	n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !as.Valid(token) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("yours"))
	}))
	return as
}

// TestSession is a login from its beginning to its end, each step in a process of its own.
func TestSession(t *testing.T) {
	fakes.Bubble(t, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), func(t *testing.T) {
		n := fakes.NewNetwork(t)
		as := provider(t, n)
		h := tool{net: n, dir: t.TempDir()}
		named := []string{"--issuer", "https://as.test", "--client-id", "cli", "--store", "file"}
		run := func(code int, args ...string) result {
			t.Helper()
			r := h.run(t.Context(), append(args, named...)...)
			if r.code != code {
				t.Fatalf("%v: exit %d in place of %d, %s", args, r.code, code, r.stderr)
			}
			if code != 0 {
				oneLineOf(t, r.stderr)
			}
			return r
		}

		for _, args := range [][]string{{"whoami"}, {"token"}, {"get", "https://api.test/"}, {"tail", "wss://api.test/"}} {
			if r := run(3, args...); !strings.Contains(r.stderr, "log in") {
				t.Errorf("%v without a login says %s", args, r.stderr)
			}
		}
		if r := run(0, "logout"); r.stdout != "Logged out.\n" {
			t.Errorf("logging out without a login says %q", r.stdout)
		}

		r := run(0, "login", "--no-browser", "--scope", "read")
		if !strings.Contains(r.stderr, "kept in the file") || strings.Index(r.stderr, "kept in the file") > strings.Index(r.stderr, "enter the code") {
			t.Errorf("where the login is kept is not said before the code is shown: %s", r.stderr)
		}
		files, err := filepath.Glob(filepath.Join(h.dir, "*.json"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the stored logins are %v", files)
		}
		if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the login's file: %v, %v", info, err)
		}

		first := strings.TrimSpace(run(0, "token").stdout)
		if !as.Valid(first) {
			t.Errorf("%q is not the server's", first)
		}
		who := run(0, "whoami", "--json")
		began := time.Now().Add(-5 * time.Second) // and one interval, which the login took
		var said struct {
			Issuer, Store, Scope string
			ClientID             string `json:"client_id"`
			Expiry               time.Time
			Refreshable          bool
		}
		if err := json.Unmarshal([]byte(who.stdout), &said); err != nil || said.Issuer != "https://as.test" || said.ClientID != "cli" ||
			said.Store != "file" || said.Scope != "read" || !said.Refreshable || said.Expiry.Sub(began) != 605*time.Second {
			t.Errorf("whoami says %s, %v", who.stdout, err)
		}
		if text := run(0, "whoami").stdout; !strings.Contains(text, "kept in the file") || strings.Contains(text, first) {
			t.Errorf("whoami says %s", text)
		}
		if r := run(0, "get", "https://api.test/"); r.stdout != "yours" {
			t.Errorf("the API answers %q", r.stdout)
		}

		time.Sleep(time.Hour)
		if r := run(0, "get", "https://api.test/"); r.stdout != "yours" || as.Refreshes() != 1 {
			t.Errorf("after the expiry the API answers %q after %d refreshes", r.stdout, as.Refreshes())
		}
		var token struct {
			AccessToken string    `json:"access_token"`
			Expiry      time.Time `json:"expiry"`
		}
		if err := json.Unmarshal([]byte(run(0, "token", "--json").stdout), &token); err != nil || token.AccessToken == first || !as.Valid(token.AccessToken) {
			t.Errorf("after the refresh the token is %+v, %v", token, err)
		}

		run(0, "logout")
		if as.Valid(token.AccessToken) {
			t.Error("the token outlives the logout")
		}
		run(3, "whoami")
		if v := as.Violations(); len(v) > 0 {
			t.Error(v)
		}
	})
}

func TestSessionNeedsAName(t *testing.T) {
	for _, command := range []string{"whoami", "token", "logout"} {
		for _, flags := range []string{"", "--client-id c", "--issuer https://as.test"} {
			r := tool{}.run(t.Context(), append([]string{command}, strings.Fields(flags)...)...)
			if r.code != exitUsage || !strings.Contains(r.stderr, "--client-id and --issuer") {
				t.Errorf("%s %s: exit %d, %s", command, flags, r.code, r.stderr)
			}
			oneLineOf(t, r.stderr)
		}
	}
}

// TestTokenInTheEnvironment goes before every stored login, and cannot be logged out.
func TestTokenInTheEnvironment(t *testing.T) {
	h := tool{env: map[string]string{tokenVariable: " " + canary + "\n"}}
	named := []string{"--issuer", "https://as.test", "--client-id", "cli"}
	if r := h.run(t.Context(), append([]string{"token"}, named...)...); r.stdout != canary+"\n" {
		t.Errorf("the token is %q", r.stdout)
	}
	if r := h.run(t.Context(), append([]string{"whoami", "--json"}, named...)...); !strings.Contains(r.stdout, `"store":"env"`) || strings.Contains(r.stdout, canary) {
		t.Errorf("whoami says %q", r.stdout)
	}
	if r := h.run(t.Context(), append([]string{"whoami"}, named...)...); !strings.Contains(r.stdout, "kept in the environment") {
		t.Errorf("whoami says %q", r.stdout)
	}
	for _, command := range []string{"logout", "login"} {
		r := h.run(t.Context(), append([]string{command}, named...)...)
		if r.code != exitUsage && r.code != 6 || strings.Contains(r.stdout+r.stderr, canary) || strings.Contains(r.stderr, "heed: heed: ") {
			t.Errorf("%s: exit %d, %s", command, r.code, r.stderr)
		}
	}
}
