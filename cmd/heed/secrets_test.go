package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

// TestNoSecretIsPrinted runs every command, down every path on which servers can lead it, at the highest level of telling,
// with a canary in every token, code and secret, and looks for the canary in all that it prints and writes, but for the
// store and for what `heed token` is there to print.
func TestNoSecretIsPrinted(t *testing.T) {
	device := func(status int, more string) *fakes.AuthAnswer {
		body := fmt.Sprintf(`{"device_code":"%[1]s-device","user_code":"AB-CD","verification_uri":"https://as.test/d","expires_in":60,"interval":5%[2]s}`, canary, more)
		return &fakes.AuthAnswer{Status: status, Body: json.RawMessage(body)}
	}
	raw := func(status int, body string) fakes.AuthAnswer {
		body = strings.ReplaceAll(body, "CANARY", canary)
		return fakes.AuthAnswer{Status: status, RawBody: &body}
	}
	echo := `"error_description":"CANARY-device CANARY-access https://x.test/?code=CANARY","access_token":"CANARY-access","refresh_token":"CANARY-refresh","id_token":"CANARY-id"`
	servers := map[string]*fakes.AuthServer{
		"granted":          {Device: device(200, ""), Polls: []fakes.AuthAnswer{raw(200, `{"access_token":"CANARY-access","refresh_token":"CANARY-refresh","id_token":"CANARY-id","expires_in":60,"scope":"read"}`)}},
		"denied":           {Device: device(200, ""), Polls: []fakes.AuthAnswer{raw(400, `{"error":"access_denied",`+echo+`}`)}},
		"rejected":         {Device: device(200, ""), Polls: []fakes.AuthAnswer{raw(400, `{"error":"invalid_CANARY-device",`+echo+`}`)}},
		"malformed":        {Device: device(200, ""), Polls: []fakes.AuthAnswer{raw(200, `{"access_token":"CANARY-access","expires_in":"CANARY"}`)}},
		"cut":              {Device: device(200, ""), Polls: []fakes.AuthAnswer{{RawBody: new(`{"access_token":"` + canary), ContentLength: 500}}},
		"server error":     {Device: device(200, ""), Polls: []fakes.AuthAnswer{raw(500, `CANARY-device`)}},
		"throttled":        {Device: device(200, ""), Polls: []fakes.AuthAnswer{raw(429, `{"error":"too_many_requests",`+echo+`}`), raw(400, `{"error":"expired_token"}`)}},
		"expired":          {Device: device(200, ""), Polls: []fakes.AuthAnswer{raw(400, `{"error":"authorization_pending",`+echo+`}`)}},
		"device rejected":  {Device: device(400, `,"error":"`+canary+`-device"`)},
		"device malformed": {Device: device(200, `,"interval":"`+canary+`"`)},
	}
	names := []string{
		"--device-url", "https://as.test" + fakes.DevicePath, "--token-url", "https://as.test" + fakes.TokenPath,
		"--client-id", "cli",
	}
	commands := [][]string{
		{"login", "--no-browser", "--store", "file"},
		{"login", "--no-browser", "--store", "memory", "--json"},
		{"whoami", "--store", "file"},
		{"whoami", "--store", "file", "--json"},
		{"get", "https://api.test/ok?sig=" + canary, "--store", "file"},
		{"get", "https://api.test/404?sig=" + canary, "--store", "file"},
		{"get", "https://api.test/429?sig=" + canary, "--store", "file", "--limit", "1s"},
		{"get", "https://api.test/away?sig=" + canary, "--store", "file"},
		{"get", "https://nobody.test/?sig=" + canary, "--store", "file"},
		{"get", "https://" + canary + ":" + canary + "@api.test/%zz", "--store", "file"},
		{"tail", "wss://api.test/404?ticket=" + canary, "--store", "file"},
		{"tail", "https://api.test/404?ticket=" + canary, "--store", "file", "--json"},
		{"tail", "https://" + canary + "@api.test/%zz?ticket=" + canary, "--store", "file"},
		{"logout", "--store", "file", "--revocation-url", "https://as.test/500"},
	}
	for name, as := range servers {
		t.Run(name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				n := fakes.NewNetwork(t)
				mux := http.NewServeMux()
				mux.Handle("/", as)
				mux.HandleFunc("/500", func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = fmt.Fprintf(w, `{"error":"%s-access","error_description":"%s-refresh"}`, canary, canary)
				})
				n.Serve(t, "as.test", mux)
				n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/404":
						w.WriteHeader(http.StatusNotFound)
					case "/429":
						w.Header().Set("Retry-After", "60")
						w.WriteHeader(http.StatusTooManyRequests)
					case "/away":
						w.Header().Set("Location", "http://evil.test/?"+url.QueryEscape(canary))
						w.WriteHeader(http.StatusFound)
					}
				}))
				h := tool{net: n, dir: t.TempDir()}
				t.Chdir(t.TempDir())
				for _, args := range commands {
					flags := names
					if !slices.Contains(args, "--no-browser") {
						flags = names[2:] // the device endpoint is for logging in
					}
					r := h.run(t.Context(), append(append(slices.Clone(args), flags...), "--verbose")...)
					for where, text := range map[string]string{"stdout": r.stdout, "stderr": r.stderr} {
						if i := strings.Index(text, canary); i >= 0 {
							t.Errorf("heed %s, exit %d: %s holds the canary: …%q", args[0], r.code, where, text[max(i-80, 0):])
						}
					}
				}
				left, err := filepath.Glob("*")
				if err != nil || len(left) > 0 {
					t.Errorf("outside of the store there is %v, %v", left, err)
				}
				kept, _ := filepath.Glob(filepath.Join(h.dir, "*"))
				for _, file := range kept {
					if b, err := os.ReadFile(file); err != nil || strings.Contains(string(b), canary) {
						t.Errorf("after the logout the store still holds the canary: %v", err)
					}
				}
			})
		})
	}
}
