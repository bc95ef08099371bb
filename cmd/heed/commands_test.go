package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

const canary = "sEcReT-cAnArY"

func login(more ...string) []string {
	return append([]string{
		"login", "--device-url", "https://as.test" + fakes.DevicePath, "--token-url", "https://as.test" + fakes.TokenPath,
		"--client-id", "cli", "--store", "memory", "--no-browser", "--scope", "read write",
	}, more...)
}

func TestLogin(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	token := fakes.AuthJSON(http.StatusOK, map[string]any{
		"access_token": canary, "refresh_token": canary, "token_type": "Bearer", "expires_in": 3600, "scope": "read",
	})
	for _, c := range []struct {
		name   string
		as     *fakes.AuthServer
		args   []string
		code   int
		stdout string
		stderr []string
	}{
		{
			name: "text", as: &fakes.AuthServer{Polls: []fakes.AuthAnswer{token}},
			stdout: "Logged in. The token expires at 2026-11-29T13:00:05Z and is good for: read.\nAsked for and not granted: write.\n",
			stderr: []string{"To log in, open  https://as.test/device\n", "enter the code  ", "good for 15 minutes.\n"},
		},
		{
			name: "json", as: &fakes.AuthServer{Polls: []fakes.AuthAnswer{token}}, args: []string{"--json"},
			stdout: `{"token_type":"Bearer","expiry":"2026-11-29T13:00:05Z","expires_in":3600,"scope":"read","not_granted":["write"],"refreshable":true,"store":"memory"}` + "\n",
			stderr: []string{`{"event":"code_issued","user_code":"`},
		},
		{
			name: "verbose", as: &fakes.AuthServer{Odd: map[int]fakes.AuthAnswer{1: fakes.Throttle(30)}, Polls: nil, ApproveOnPoll: 2}, args: []string{"--verbose"},
			stderr: []string{"device-poll attempt 1 (429 too_many_requests): wait 30s, local 5s, server 30s"},
		},
		{
			name: "denied", as: &fakes.AuthServer{Polls: []fakes.AuthAnswer{fakes.OAuthError(400, "access_denied")}}, code: 4,
			stderr: []string{"heed: auth: "},
		},
		{
			name: "expired", as: &fakes.AuthServer{ExpiresIn: 12}, code: 3,
			stderr: []string{"heed: auth: "},
		},
		{
			name: "rejected", as: &fakes.AuthServer{ClientID: "another"}, code: 7,
			stderr: []string{"heed: auth: "},
		},
		{
			name: "nonsense", as: &fakes.AuthServer{Device: &fakes.AuthAnswer{Status: 200, Body: json.RawMessage(`"<html>"`)}}, code: 7,
			stderr: []string{"heed: auth: "},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakes.Bubble(t, at, func(t *testing.T) {
				time.Local = time.UTC
				n := fakes.NewNetwork(t)
				n.Serve(t, "as.test", c.as)
				r := tool{net: n}.run(t.Context(), login(c.args...)...)
				if r.code != c.code {
					t.Errorf("exit %d in place of %d", r.code, c.code)
				}
				if c.stdout != "" && r.stdout != c.stdout || c.code != 0 && r.stdout != "" {
					t.Errorf("stdout is\n%s", r.stdout)
				}
				for _, s := range c.stderr {
					if !strings.Contains(r.stderr, s) {
						t.Errorf("stderr does not hold %q:\n%s", s, r.stderr)
					}
				}
				if strings.Contains(r.stdout+r.stderr, canary) {
					t.Error("the token was printed")
				}
			})
		})
	}
}

func TestLoginUnreachable(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		r := tool{net: fakes.NewNetwork(t)}.run(t.Context(), login()...)
		if r.code != 6 || r.stdout != "" {
			t.Errorf("exit %d, stdout %q", r.code, r.stdout)
		}
		oneLineOf(t, r.stderr)
	})
}

func TestGet(t *testing.T) {
	for _, c := range []struct {
		name   string
		script []fakes.Answer
		args   string
		code   int
		stdout string
		stderr string
	}{
		{name: "body", script: []fakes.Answer{{Body: "hello\x1b[2J"}}, stdout: "hello\x1b[2J"},
		{
			name: "json", args: "--json",
			script: []fakes.Answer{{Body: `{"a":1}`, Header: http.Header{"Content-Type": {"application/json"}, "Date": {"x"}}}},
			stdout: `{"status":200,"headers":{"Content-Length":["7"],"Content-Type":["application/json"],"Date":["x"]},"body":{"a":1}}` + "\n",
		},
		{
			name: "retried", script: []fakes.Answer{{Status: 503, Header: http.Header{"Retry-After": {"7"}}}, {Body: "ok"}}, args: "--verbose",
			stdout: "ok", stderr: "generated-retry attempt 1 of 3 (503): wait 7s",
		},
		{name: "not found", script: []fakes.Answer{{Status: 404, Body: `{"error":"no such thing"}`}}, code: 2, stderr: "no such thing"},
		{name: "unauthorized", script: []fakes.Answer{{Status: 401}}, code: 3, stderr: "log in again"},
		{name: "forbidden", script: []fakes.Answer{{Status: 403}}, code: 4},
		{name: "limit", script: []fakes.Answer{{Status: 429, Header: http.Header{"Retry-After": {"3600"}}}}, args: "--limit 1m", code: 5, stderr: "1h0m0s"},
		{name: "no time", script: []fakes.Answer{{Status: 429, Header: http.Header{"Retry-After": {"3600"}}}}, args: "--timeout 1m", code: 5, stderr: "1h0m0s"},
		{name: "once", script: []fakes.Answer{{Drop: true}}, args: "--attempts 1", code: 6, stderr: "check the address"},
		{name: "server error", script: []fakes.Answer{{Status: 500}}, code: 7},
		{name: "invalid", script: []fakes.Answer{{Status: 422, Body: `{"title":["is too long"]}`}}, code: 9, stderr: "title: is too long"},
		{name: "too much", script: []fakes.Answer{{Status: 507}}, code: 10},
		{name: "cut", script: []fakes.Answer{{Body: "hel", Cut: true}}, code: 6, stdout: "hel", stderr: "broke off"},
		{name: "refused only", script: []fakes.Answer{{Status: 429}, {Status: 503}}, args: "--policy refused-only", code: 7},
		{name: "throttled", script: []fakes.Answer{{Status: 429}, {Status: 429}, {Body: "ok"}}, args: "--policy throttled", stdout: "ok"},
		{name: "header", script: []fakes.Answer{{Body: "ok"}}, args: "-H X-Canary:yes", stdout: "ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				n := fakes.NewNetwork(t)
				api := fakes.NewAPI(c.script...)
				n.Serve(t, "api.test", api)
				h := tool{net: n, env: map[string]string{tokenVariable: canary}}
				r := h.run(t.Context(), append([]string{"get", "https://api.test/x?sig=" + canary}, strings.Fields(c.args)...)...)
				if r.code != c.code || r.stdout != c.stdout {
					t.Errorf("exit %d, stdout %q", r.code, r.stdout)
				}
				if !strings.Contains(r.stderr, c.stderr) || r.code == 0 && c.stderr == "" && r.stderr != "" {
					t.Errorf("stderr %q", r.stderr)
				}
				if c.code != 0 {
					oneLineOf(t, r.stderr)
				}
				if strings.Contains(r.stdout+r.stderr, canary) {
					t.Error("a secret was printed")
				}
				for _, req := range api.Received() {
					if req.Header.Get("Authorization") != "Bearer "+canary {
						t.Error("a request without the token")
					}
				}
				if v := api.Violations(); len(v) > 0 {
					t.Error(v)
				}
			})
		})
	}
}

// TestLoginIntoFile does not say that there is no keyring, which nobody has looked for.
func TestLoginIntoFile(t *testing.T) {
	for _, more := range [][]string{{"--store", "file"}, {"--store", "file", "--json"}} {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			n := fakes.NewNetwork(t)
			n.Serve(t, "as.test", &fakes.AuthServer{ApproveOnPoll: 1})
			r := tool{net: n}.run(t.Context(), login(more...)...)
			if r.code != 0 || !strings.Contains(r.stderr, "as asked for, unencrypted") || strings.Contains(r.stderr, "no keyring") {
				t.Errorf("%v: exit %d, stderr %q", more, r.code, r.stderr)
			}
		})
	}
}

func TestLoginWithoutMetadata(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter)
		code   int
	}{
		{name: "nobody there", code: 6},
		{name: "a page", answer: func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, code: 7},
		{name: "another's", answer: func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"issuer":"https://other.test"}`) }, code: 7},
		{name: "nothing", answer: func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, code: 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				n := fakes.NewNetwork(t)
				if c.answer != nil {
					n.Serve(t, "as.test", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
				}
				r := tool{net: n}.run(t.Context(), "login", "--issuer", "https://as.test", "--client-id", "cli", "--store", "memory")
				if r.code != c.code || r.stdout != "" {
					t.Errorf("exit %d in place of %d, stdout %q, stderr %q", r.code, c.code, r.stdout, r.stderr)
				}
				oneLineOf(t, r.stderr)
			})
		})
	}
}

func TestGetIntoFile(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		n.Serve(t, "api.test", fakes.NewAPI(fakes.Answer{Body: "whole"}, fakes.Answer{Body: "ha", Cut: true}, fakes.Answer{Body: "x"}))
		dir := t.TempDir()
		file := filepath.Join(dir, "out")
		h := tool{net: n}
		if r := h.run(t.Context(), "get", "https://api.test/", "-o", file); r.code != 0 || r.stdout != "" {
			t.Fatalf("exit %d, %q", r.code, r.stderr)
		}
		if r := h.run(t.Context(), "get", "https://api.test/", "-o", file); r.code != 6 {
			t.Errorf("exit %d for a body that broke off", r.code)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != "whole" {
			t.Errorf("the file holds %q: %v", b, err)
		}
		r := h.run(t.Context(), "get", "https://api.test/", "-o", filepath.Join(dir, "missing", "out"))
		if r.code != exitOutput {
			t.Errorf("exit %d for a folder that is not there", r.code)
		}
		oneLineOf(t, r.stderr)
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("something half-written was left: %v", left)
		}
	})
}

// TestIntoDevice is behind a link, so that it is the link that would be replaced.
func TestIntoDevice(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		n.Serve(t, "api.test", fakes.NewAPI(fakes.Answer{Body: "whole"}, fakes.Answer{Body: "whole"}))
		n.Serve(t, "as.test", &fakes.AuthServer{})
		device := filepath.Join(t.TempDir(), "device")
		if err := os.Symlink(os.DevNull, device); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			args []string
			code int
		}{
			{[]string{"get", "https://api.test/"}, 0},
			{[]string{"download", "https://api.test/", "--force"}, exitUsage},
			{login("--start"), exitUsage},
		} {
			r := tool{net: n}.run(t.Context(), append(c.args, "--output", device)...)
			if r.code != c.code {
				t.Errorf("%s: exit %d in place of %d, stderr %q", c.args[0], r.code, c.code, r.stderr)
			}
			if info, err := os.Lstat(device); err != nil || info.Mode().IsRegular() {
				t.Fatalf("%s has put a file in its place: %v", c.args[0], err)
			}
		}
	})
}

func TestTail(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		server := fakes.NewStreamServer(
			fakes.StreamStep{Messages: []string{"a", "b"}, Then: fakes.Drop},
			fakes.StreamStep{Refuse: 503, RetryAfter: "30"},
			fakes.StreamStep{Messages: []string{"c"}, Then: fakes.Stop},
		)
		n.Serve(t, "stream.test", server)
		h := tool{net: n, env: map[string]string{tokenVariable: canary}}
		r := h.run(t.Context(), "tail", "wss://stream.test/?ticket="+canary, "--count", "3")
		if r.code != 0 || r.stdout != "a\nb\nc\n" {
			t.Errorf("exit %d, stdout %q", r.code, r.stdout)
		}
		if !strings.Contains(r.stderr, "(503): wait 30s") || strings.Contains(r.stderr, canary) {
			t.Errorf("stderr %q", r.stderr)
		}
		for _, a := range server.Attempts() {
			if a.Authorization != "Bearer "+canary {
				t.Error("a handshake without the token")
			}
		}
	})
}

func TestTailEventStream(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		var since []string
		n.Serve(t, "stream.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			since = append(since, r.Header.Get("Last-Event-ID"))
			if len(since) == 2 {
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "id: %d\nevent: tick\ndata: n%d\n\n", 7+len(since), len(since))
		}))
		r := tool{net: n}.run(t.Context(), "tail", "https://stream.test/", "--json", "--count", "2", "--since", "7")
		want := `{"id":"8","type":"tick","data":"n1"}` + "\n" + `{"id":"10","type":"tick","data":"n3"}` + "\n"
		if r.code != 0 || r.stdout != want {
			t.Errorf("exit %d, stdout %q", r.code, r.stdout)
		}
		if got := strings.Join(since, " "); got != "7 8 8" {
			t.Errorf("the positions were %s", got)
		}
		if !strings.Contains(r.stderr, `"server":30`) {
			t.Errorf("stderr %q", r.stderr)
		}
	})
}

func TestTailEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		step fakes.StreamStep
		n    int
		code int
	}{
		{"not found", fakes.StreamStep{Refuse: 404}, 1, 2},
		{"gone", fakes.StreamStep{Refuse: 410}, 1, 2},
		{"unauthorized", fakes.StreamStep{Refuse: 401}, 3, 3},
		{"forbidden", fakes.StreamStep{Refuse: 403}, 3, 4},
		{"invalid", fakes.StreamStep{Refuse: 400}, 1, 9},
		{"of no use", fakes.StreamStep{Refuse: 501}, 1, 7},
		{"closed for good", fakes.StreamStep{Then: fakes.End, Code: 1002}, 1, 7},
		{"redirected", fakes.StreamStep{Refuse: 302, Location: "https://elsewhere.test/"}, 1, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				n := fakes.NewNetwork(t)
				var script []fakes.StreamStep
				for range c.n {
					script = append(script, c.step)
				}
				n.Serve(t, "stream.test", fakes.NewStreamServer(script...))
				r := tool{net: n}.run(t.Context(), "tail", "wss://stream.test/", "--json")
				if r.code != c.code || r.stdout != "" {
					t.Errorf("exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
				}
			})
		})
	}
}

// TestTailUnread has the reader of the output go away, which is an end like any other.
func TestTailUnread(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s, h := sit(t)
		var out strings.Builder
		h.out = &head{Writer: &out}
		h.console.shared = false
		h.net.Serve(t, "stream.test", fakes.NewStreamServer(fakes.StreamStep{Messages: []string{"a", "b"}, Then: fakes.Stop}))
		r := h.run(t.Context(), "tail", "wss://stream.test/")
		if got := s.screen(); r.code != exitOutput || out.String() != "a\n" || strings.Trim(got, " |") != "" {
			t.Errorf("exit %d, %q, and the screen is\n%s", r.code, out.String(), got)
		}
	})
}

// head takes one line.
type head struct {
	io.Writer
	had bool
}

func (h *head) Write(p []byte) (int, error) {
	if h.had {
		return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	}
	h.had = true
	return h.Writer.Write(p)
}

// TestTailJSON has every line on standard error be an event, with the reason of what went wrong.
func TestTailJSON(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		n.Serve(t, "stream.test", fakes.NewStreamServer(
			fakes.StreamStep{Refuse: 503},
			fakes.StreamStep{Then: fakes.End, Code: 1012, Reason: "restart"},
			fakes.StreamStep{Alive: time.Hour, Then: fakes.End},
			fakes.StreamStep{Messages: []string{"\x1b[1m\"a\"\nb\u2028"}, Then: fakes.Stop},
		))
		r := tool{net: n}.run(t.Context(), "tail", "wss://stream.test/", "--json", "--count", "1", "--staleness", "1m")
		if want := `{"data":"\u001b[1m\"a\"\nb\u2028"}` + "\n"; r.code != 0 || r.stdout != want {
			t.Errorf("exit %d, stdout %q", r.code, r.stdout)
		}
		var told []string
		for line := range strings.Lines(r.stderr) {
			var e struct {
				Event, Error string
				Silence      float64
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if e.Event != "wait" {
				told = append(told, fmt.Sprintf("%s %s %v", e.Event, e.Error, e.Silence))
			}
		}
		want := []string{
			"failed refused with 503 Service Unavailable 0",
			"connected  0", `disconnected closed by the server with code 1012 "restart" 0`,
			"connected  0", "stale  60", "disconnected nothing came from the server for too long 0",
			"connected  0",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told\n%q in place of\n%q", told, want)
		}
	})
}

func TestDemo(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		began := time.Now()
		r := tool{net: fakes.NewNetwork(t)}.run(t.Context(), "demo", "--json")
		if took := time.Since(began); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("the demo takes %v", took)
		}
		if r.code != 0 || r.stderr != "" {
			t.Fatalf("exit %d, stderr %q, stdout %s", r.code, r.stderr, r.stdout)
		}
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		if last := lines[len(lines)-1]; last != `{"event":"done","ok":true}` {
			t.Errorf("the last line is %s", last)
		}
		loops := map[string]int{}
		for _, line := range lines {
			var e struct{ Event, Loop, Reason string }
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Event == "" {
				t.Errorf("no event: %s", line)
			}
			if e.Event == "wait" {
				loops[e.Loop]++
			}
		}
		want := map[string]int{"device-poll": 5, "generated-retry": 2, "hop": 2, "reconnect": 2, "poll-retry": 1}
		if fmt.Sprint(loops) != fmt.Sprint(want) {
			t.Errorf("the waits were %v in place of %v", loops, want)
		}
	})
}

func TestDemoText(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		r := tool{net: fakes.NewNetwork(t)}.run(t.Context(), "demo", "--speed", "50")
		for _, s := range []string{"50 times as fast", "the user is shown the code", "wait 25s", "slow_down: local 10s", "report.txt: 55 bytes", "each once and in order", "All five loops"} {
			if !strings.Contains(r.stdout, s) {
				t.Errorf("the demo does not say %q:\n%s", s, r.stdout)
			}
		}
	})
}

// TestInterrupted ends commands at many moments.
func TestInterrupted(t *testing.T) {
	for i := range 40 {
		after := time.Duration(i) * 350 * time.Millisecond
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			n := fakes.NewNetwork(t)
			n.Serve(t, "as.test", &fakes.AuthServer{Odd: map[int]fakes.AuthAnswer{2: {Hang: true}}})
			n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "3")
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			for _, args := range [][]string{{"demo"}, {"demo", "--json"}, login(), {"get", "--attempts", "3", "https://api.test/"}, {"tail", "wss://nobody.test/"}} {
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				timer := time.AfterFunc(after, cancel)
				r := tool{net: n}.run(ctx, args...)
				took := time.Since(began)
				timer.Stop()
				cancel()
				if took < after {
					continue // done before
				}
				if r.code != exitInterrupted || took > after+10*time.Millisecond {
					t.Errorf("%s after %v: exit %d, %v late, %q", args[0], after, r.code, took-after, r.stderr)
				}
				if last := r.stderr[strings.LastIndex(strings.TrimSuffix(r.stderr, "\n"), "\n")+1:]; !strings.HasPrefix(last, "heed: interrupted") {
					t.Errorf("%s: stderr ends with %q", args[0], last)
				}
			}
		})
	}
}
