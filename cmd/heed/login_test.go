package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

// events are the names of the events on stderr, and each has to be JSON on a line of its own.
func events(t *testing.T, stderr string) string {
	t.Helper()
	var names []string
	for line := range strings.Lines(stderr) {
		var e struct{ Event string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Event == "" {
			t.Errorf("no event: %q", line)
		}
		names = append(names, e.Event)
	}
	return strings.Join(names, " ")
}

func TestLoginEvents(t *testing.T) {
	for args, want := range map[string]string{
		"":          "code_issued almost_expired",
		"--verbose": "code_issued code_shown wait polled wait polled slowed wait almost_expired polled granted",
	} {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			n := fakes.NewNetwork(t)
			n.Serve(t, "as.test", &fakes.AuthServer{ExpiresIn: 24, Odd: map[int]fakes.AuthAnswer{2: fakes.OAuthError(400, "slow_down")}, ApproveOnPoll: 3})
			r := tool{net: n}.run(t.Context(), login(append(strings.Fields(args), "--json")...)...)
			if got := events(t, r.stderr); r.code != 0 || got != want {
				t.Errorf("%q: exit %d, events %s", args, r.code, got)
			}
			if strings.Count(r.stdout, "\n") != 1 || !strings.HasPrefix(r.stdout, `{"token_type":`) {
				t.Errorf("stdout %q", r.stdout)
			}
		})
	}
}

// TestStartAndResume starts a login in one run of the command and finishes it in another, through a file and through
// pipes.
func TestStartAndResume(t *testing.T) {
	for _, c := range []struct {
		name  string
		file  bool
		after time.Duration
		args  string // of the second run
		code  int
		says  string
		took  time.Duration
	}{
		{name: "through a file", file: true, took: 10 * time.Second},
		{name: "through a pipe", after: 3 * time.Second, took: 7 * time.Second},
		{name: "later", after: time.Minute, took: 5 * time.Second},
		{name: "with the same client", args: "--client-id cli --token-url https://as.test" + fakes.TokenPath, took: 10 * time.Second},
		{name: "with another client", args: "--client-id other", code: exitUsage, says: "client_id is not the flow's"},
		{name: "with another server", file: true, args: "--token-url https://evil.test/token", code: exitUsage, says: "token_endpoint is not the flow's"},
		{name: "too late", after: time.Hour, code: 3, says: "the code expired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				n := fakes.NewNetwork(t)
				as := &fakes.AuthServer{ClientID: "cli", ApproveOnPoll: 2}
				n.Serve(t, "as.test", as)
				file := filepath.Join(t.TempDir(), "login.json")
				args := login("--start")
				if c.file {
					args = append(args, "--output", file)
				}
				r := tool{net: n}.run(t.Context(), args...)
				saved := r.stdout
				if c.file {
					b, err := os.ReadFile(file)
					info, bad := os.Stat(file)
					if err != nil || bad != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
						t.Fatalf("%v, %v, mode %v", err, bad, info.Mode())
					}
					if r.stdout != "" {
						t.Errorf("the login is on stdout, too: %q", r.stdout)
					}
					saved = string(b)
				}
				var members struct {
					UserCode   string `json:"user_code"`
					DeviceCode string `json:"device_code"`
				}
				if err := json.Unmarshal([]byte(saved), &members); err != nil || strings.Count(saved, "\n") != 1 || members.DeviceCode == "" || r.code != 0 {
					t.Fatalf("exit %d, %v: %s", r.code, err, saved)
				}
				if !strings.Contains(r.stderr, "enter the code  "+members.UserCode+"\n") {
					t.Errorf("the code is not shown: %s", r.stderr)
				}

				time.Sleep(c.after)
				began := time.Now()
				second := tool{net: n, in: strings.NewReader(saved)}
				args = []string{"login", "--no-browser", "--resume", "-"}
				if c.file {
					args[3] = file
				}
				r2 := second.run(t.Context(), append(args, strings.Fields(c.args)...)...)
				if r2.code != c.code || !strings.Contains(r2.stderr, c.says) {
					t.Errorf("exit %d, %s", r2.code, r2.stderr)
				}
				if took := time.Since(began); took != c.took || len(as.Violations()) > 0 {
					t.Errorf("it took %v, violations %v", took, as.Violations())
				}
				if c.code == 0 && (!strings.Contains(r2.stdout, "good for: read write.") || !strings.Contains(r2.stderr, members.UserCode)) {
					t.Errorf("stdout %q, stderr %q", r2.stdout, r2.stderr)
				}
				if c.code != 0 {
					oneLineOf(t, r2.stderr)
				}
				if strings.Contains(r.stderr+r2.stdout+r2.stderr, members.DeviceCode) {
					t.Error("the device code was printed")
				}
			})
		})
	}
}

func TestLoginBrowser(t *testing.T) {
	for _, c := range []struct {
		args  string
		err   error
		opens int
		says  string
	}{
		{args: "--store=memory", opens: 1, says: "A browser was opened.\n"},
		{args: "--no-browser"},
		{args: "--start"},
		{args: "--verbose", err: errors.New("no display"), opens: 1, says: "no browser could be opened: no display\n"},
		{args: "--json", err: errors.New("no display"), opens: 1, says: `{"event":"browser","opened":false,"cause":"no display"}` + "\n"},
	} {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			n := fakes.NewNetwork(t)
			n.Serve(t, "as.test", &fakes.AuthServer{ApproveOnPoll: 1})
			opened := 0
			h := tool{net: n, browser: func(_ context.Context, address string) error {
				if opened++; !strings.HasPrefix(address, "https://as.test/device?user_code=") {
					t.Errorf("opened %s", address)
				}
				return c.err
			}}
			args := slices.DeleteFunc(login(), func(arg string) bool { return arg == "--no-browser" })
			r := h.run(t.Context(), append(args, c.args)...)
			if r.code != 0 || opened != c.opens || !strings.Contains(r.stderr, c.says) {
				t.Errorf("%s: exit %d, %d browsers, %s", c.args, r.code, opened, r.stderr)
			}
		})
	}
}

func TestStartEvents(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		n.Serve(t, "as.test", &fakes.AuthServer{ApproveOnPoll: 1})
		r := tool{net: n}.run(t.Context(), login("--start", "--json")...)
		if got := events(t, r.stderr); got != "code_issued" || r.code != 0 {
			t.Errorf("exit %d, events %s", r.code, got)
		}
		r = tool{net: n, in: strings.NewReader(r.stdout)}.run(t.Context(), "login", "--json", "-v", "--resume", "-", "--no-browser")
		if got := events(t, r.stderr); got != "store_chosen code_issued code_shown wait polled granted" || r.code != 0 || !strings.HasPrefix(r.stdout, `{"token_type":`) {
			t.Errorf("exit %d, events %s, stdout %q", r.code, got, r.stdout)
		}
	})
}

// A login that cannot be written down is not shown: nobody could finish it.
func TestStartIntoNowhere(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		n.Serve(t, "as.test", &fakes.AuthServer{})
		dir := t.TempDir()
		for _, h := range []tool{{net: n, out: &full{room: 20}}, {net: n}} {
			r := h.run(t.Context(), login("--start", "--output", map[bool]string{true: filepath.Join(dir, "missing", "x")}[h.out == nil])...)
			if r.code != exitOutput {
				t.Errorf("exit %d", r.code)
			}
			oneLineOf(t, r.stderr)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("something was left: %v", left)
		}
	})
}

// Ctrl-C is heard while standard input has nothing to read.
func TestResumeInterrupted(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		in, end := io.Pipe()
		defer end.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r := tool{in: in}.run(ctx, "login", "--resume", "-")
		if r.code != exitInterrupted {
			t.Errorf("exit %d, %q", r.code, r.stderr)
		}
	})
	in, end := io.Pipe()
	end.CloseWithError(errors.New("broken"))
	r := tool{in: in}.run(t.Context(), "login", "--resume", "-")
	if r.code != exitUsage || !strings.Contains(r.stderr, "standard input cannot be read: broken") {
		t.Errorf("exit %d, %q", r.code, r.stderr)
	}
}
