package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/internal/fakes"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// logins is where command lines keep their logins that say nothing else.
var logins string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "heed-test-")
	if err != nil {
		panic(err)
	}
	logins = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// result is what a command line came to.
type result struct {
	code           int
	stdout, stderr string
}

// tool runs command lines with an environment, on a network in memory.
type tool struct {
	env map[string]string
	net *fakes.Network
	out io.Writer // in place of stdout
	dir string    // of stored logins
	in  io.Reader // in place of stdin
	err io.Writer // in place of stderr

	console   *console
	transport http.RoundTripper // in place of net's
	disk      func(io.Writer) io.Writer
	watched   bool

	browser func(ctx context.Context, address string) error
}

func (h tool) run(ctx context.Context, args ...string) result {
	var stdout, stderr bytes.Buffer
	a := &app{
		out: &output{stdout: &stdout, stderr: &stderr},
		env: func(name string) (string, bool) { v, ok := h.env[name]; return v, ok },
	}
	a.in, a.browser, a.console, a.disk, a.watched = h.in, h.browser, h.console, h.disk, h.watched
	if h.err != nil {
		a.out.stderr = h.err
	}
	if a.dir = h.dir; a.dir == "" {
		dir, err := os.MkdirTemp(logins, "")
		if err != nil {
			panic(err)
		}
		a.dir = dir
	}
	if h.out != nil {
		a.out.stdout = h.out
	}
	if h.net != nil {
		a.transport = h.net.Transport()
		var mu sync.Mutex
		port := 1000
		a.listen = func() (net.Listener, error) {
			mu.Lock()
			defer mu.Unlock()
			port++
			return h.net.Listen(fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	if h.transport != nil {
		a.transport = h.transport
	}
	code := a.execute(ctx, args)
	return result{code, stdout.String(), stderr.String()}
}

// golden compares with a file of testdata, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update rewrites it); got:\n%s\nwant:\n%s", file, got, want)
	}
}

// oneLineOf checks that stderr is one line that names the command and no Go innards.
func oneLineOf(t *testing.T, stderr string) {
	t.Helper()
	if !strings.HasPrefix(stderr, "heed: ") || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "goroutine") {
		t.Errorf("stderr is not one line: %q", stderr)
	}
}

func TestGoldenOutput(t *testing.T) {
	for name, args := range map[string]string{
		"help":            "--help",
		"help-login":      "login --help",
		"help-get":        "get --help",
		"help-download":   "download --help",
		"help-operations": "operations --help",
		"help-tail":       "tail --help",
		"help-explain":    "explain --help",
		"help-demo":       "demo --help",
		"explain":         "explain",
		"explain-json":    "explain --json",
		"explain-draw":    "explain --draw 2.5 --retry-after 4 --attempt 3",
		"explain-drawn":   "explain --loop reconnect --retry-after 1 --draw 50",
		"explain-cap":     "explain --loop generated-retry --draw 1 --retry-after 60 --cap 5s",
		"explain-limit":   "explain --loop generated-retry --draw 1 --retry-after 3600 --limit 1m --json",
		"explain-several": "explain --loop hop --draw 1 --retry-after 3 --retry-after 10 --retry-after junk --json",
	} {
		t.Run(name, func(t *testing.T) {
			r := tool{}.run(t.Context(), strings.Fields(args)...)
			if r.code != 0 || r.stderr != "" {
				t.Errorf("exit %d, stderr %q", r.code, r.stderr)
			}
			golden(t, name+".txt", r.stdout)
		})
	}
}

func TestExplainWaits(t *testing.T) {
	for _, c := range []struct {
		args string
		wait float64
	}{
		{"--loop reconnect --retry-after 1 --draw 50", 50},
		{"--loop reconnect --retry-after 600 --draw 50", 600},
		{"--loop poll-retry --retry-after 1 --draw 50", 1},
		{"--loop device-poll --interval 10 --retry-after 1", 10},
		{"--loop device-poll --interval 10 --retry-after 30", 30},
		{"--loop device-poll --retry-after 1", 5},
		{"--loop generated-retry --retry-after 5 --draw 1", 5},
		{"--loop hop --retry-after 5 --draw 7", 5},
		{"--loop hop --draw 7", 7},
	} {
		t.Run(c.args, func(t *testing.T) {
			r := tool{}.run(t.Context(), append(strings.Fields("explain --json"), strings.Fields(c.args)...)...)
			var w struct{ Wait float64 }
			if err := json.Unmarshal([]byte(r.stdout), &w); err != nil || r.code != 0 {
				t.Fatalf("exit %d, %q: %v", r.code, r.stdout, err)
			}
			if w.Wait != c.wait {
				t.Errorf("waits %v in place of %v", w.Wait, c.wait)
			}
		})
	}
}

func TestExplainMalformed(t *testing.T) {
	r := tool{}.run(t.Context(), "explain", "--json", "--retry-after", "soon", "--draw", "3")
	var waits []struct {
		Loop   string
		Wait   float64
		Server *float64
		Reason string
	}
	if err := json.Unmarshal([]byte(r.stdout), &waits); err != nil {
		t.Fatal(err)
	}
	if len(waits) != 5 {
		t.Fatalf("%d loops in place of 5", len(waits))
	}
	for _, w := range waits {
		if w.Wait != 3 || w.Server != nil || !strings.Contains(w.Reason, "malformed") {
			t.Errorf("%s waits %v, server %v: %s", w.Loop, w.Wait, w.Server, w.Reason)
		}
	}
}

// TestExplainDraws checks that a loop's own delay is drawn from its own formula, at any attempt.
func TestExplainDraws(t *testing.T) {
	for _, c := range []struct {
		args      string
		low, high float64
	}{
		{"--loop generated-retry", 1, 1.1},
		{"--loop generated-retry --attempt 3", 4, 4.1},
		{"--loop hop --attempt 9223372036854775807", 30, 30.1},
		{"--loop reconnect --attempt 1", 0, 1},
		{"--loop poll-retry --attempt 9", 0, 60},
	} {
		r := tool{}.run(t.Context(), append(strings.Fields("explain --json"), strings.Fields(c.args)...)...)
		var w struct{ Wait, Local float64 }
		if err := json.Unmarshal([]byte(r.stdout), &w); err != nil {
			t.Fatal(err)
		}
		if w.Wait < c.low || w.Wait > c.high || w.Wait != w.Local {
			t.Errorf("%s: wait %v, local %v", c.args, w.Wait, w.Local)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct {
		args string
		env  map[string]string
		says string
	}{
		{args: "frob", says: "not a command"},
		{args: "--frob", says: "unknown flag"},
		{args: "help frob", says: "frob is not a command"},
		{args: "help get frob", says: "get frob is not a command"},
		{args: "completion frob", says: "heed completion --help"},
		{args: "explain extra", says: "heed explain --help"},
		{args: "explain --draw x", says: "--draw"},
		{args: "explain --draw NaN", says: "--draw"},
		{args: "explain --draw -1", says: "--draw"},
		{args: "explain --interval 1e300", says: "--interval"},
		{args: "explain --attempt 0", says: "--attempt"},
		{args: "explain --loop nope", says: "generated-retry"},
		{args: "explain --limit -1s", says: "--limit"},
		{args: "get", says: "heed get URL"},
		{args: "get nonsense", says: "https://"},
		{args: "get ::", says: "https://"},
		{args: "get ftp://host/x", says: "https"},
		{args: "get http://api.test/x", says: "https"},
		{args: "get https://api.test/ --policy never", says: "refused-only"},
		{args: "get https://api.test/ --header nonsense", says: "Name: value"},
		{args: "get https://api.test/ --limit -1s", says: "--limit"},
		{args: "get https://api.test/", env: map[string]string{"HEED_ATTEMPTS": "many"}, says: "HEED_ATTEMPTS"},
		{args: "download nonsense", says: "https://"},
		{args: "download ftp://host/x", says: "https"},
		{args: "download https://api.test/x --resume", says: "--resume needs --output"},
		{args: "download https://api.test/x --checksum md5:1", says: "sha256:"},
		{args: "download https://api.test/x --timeout -1s", says: "--timeout"},
		{args: "download https://api.test/x -o testdata", says: "testdata is a directory"},
		{args: "download https://api.test/x -o testdata/help.txt", says: "--force"},
		{args: "operations", says: "heed operations FILE"},
		{args: "operations testdata/nowhere.yaml --package p", says: "testdata/nowhere.yaml cannot be read: no such file"},
		{args: "operations testdata/help.txt", says: "--package"},
		{args: "operations testdata/help.txt --package p", says: "testdata/help.txt:3: it cannot be read as OpenAPI"},
		{args: "operations testdata/help.txt --package p --base v1", says: "slash"},
		{args: "operations testdata/help.txt --package 4", says: "identifier"},
		{args: "tail ftp://host/x", says: "wss://"},
		{args: "tail http://stream.test/x", says: "not encrypted"},
		{args: "tail wss://stream.test/x --since 7", says: "--since"},
		{args: "tail https://stream.test/x --subprotocol a", says: "--subprotocol"},
		{args: "tail ws://stream.test/x", says: "not encrypted"},
		{args: "login", says: "--client-id; and --issuer, --provider, or --device-url and --token-url"},
		{args: "login --device-url http://as.test/d --token-url https://as.test/t --client-id c", says: "https"},
		{args: "login --device-url https://as.test/d --token-url https://as.test/t --client-id c --store nowhere", says: "--store"},
		{args: "login --start --resume x", says: "--start begins a login and --resume finishes one"},
		{args: "login --resume x --output y", says: "--output"},
		{args: "login --resume testdata/nowhere.json", says: "testdata/nowhere.json cannot be read: no such file"},
		{args: "login --resume testdata", says: "testdata cannot be read: is a directory"},
		{args: "login --resume testdata/help.txt", says: "the saved login cannot be read: start a new one"},
		{args: "login --start", says: "--client-id; and --issuer, --provider, or --device-url and --token-url"},
		{args: "login --client-id c --provider nobody", says: "github"},
		{args: "login --client-id c --provider okta", says: "domain"},
		{args: "login --client-id c --provider aws", says: "no device login at AWS"},
		{args: "login --client-id c --provider github --issuer https://as.test", says: "Provider is set beside Issuer"},
		{args: "demo --speed 0", says: "--speed"},
		{args: "demo --speed NaN", says: "--speed"},
	} {
		t.Run(c.args, func(t *testing.T) {
			r := tool{env: c.env}.run(t.Context(), strings.Fields(c.args)...)
			if r.code != exitUsage || r.stdout != "" {
				t.Errorf("exit %d, stdout %q", r.code, r.stdout)
			}
			oneLineOf(t, r.stderr)
			if !strings.Contains(r.stderr, c.says) {
				t.Errorf("stderr does not name %q: %q", c.says, r.stderr)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for args, says := range map[string]string{
		"help": "Available Commands:", "help get": "heed get URL [flags]", "help completion bash": "heed completion bash",
		"get --help": "heed get URL [flags]", "completion": "zsh", "completion bash": "bash completion",
	} {
		if r := (tool{}).run(t.Context(), strings.Fields(args)...); r.code != 0 || r.stderr != "" || !strings.Contains(r.stdout, says) {
			t.Errorf("%s: exit %d, stderr %q, and of %d bytes none are %q", args, r.code, r.stderr, len(r.stdout), says)
		}
	}
}

func TestFlagsFromVariables(t *testing.T) {
	r := tool{env: map[string]string{"HEED_LOOP": "poll-retry", "HEED_DRAW": "7", "HEED_JSON": "true"}}.run(t.Context(), "explain", "--draw", "8")
	if !strings.Contains(r.stdout, `"wait":8`) {
		t.Errorf("a flag does not go before its variable: %q", r.stdout)
	}
}

var errFull = errors.New("no space left on device")

// full is a disk with room for some bytes.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.room)
	f.room -= n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestFullDisk(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 1000))
		}))
		for _, args := range []string{"explain", "explain --json", "get https://api.test/", "get https://api.test/ --json", "demo", "demo --json"} {
			r := tool{net: n, out: &full{room: 100}}.run(t.Context(), strings.Fields(args)...)
			if r.code != exitOutput || !strings.Contains(r.stderr, errFull.Error()) || strings.Contains(r.stderr, "broke off") {
				t.Errorf("%s: exit %d, stderr %q", args, r.code, r.stderr)
			}
			oneLineOf(t, r.stderr)
		}
	})
}
