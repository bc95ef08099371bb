package terminal_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/internal/fakes"
)

var folder string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if folder != "" {
			os.RemoveAll(folder)
		}
		os.Exit(code)
	}))
}

// build builds the command, once for all tests.
var build = sync.OnceValues(func() (string, error) {
	var err error
	if folder, err = os.MkdirTemp("", "heed-terminal-bin-"); err != nil {
		return "", err
	}
	bin := filepath.Join(folder, "heed")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./cmd/heed")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// server is an authorization server whose codes nobody approves by themselves, and the command line for it.
func server(t *testing.T, device func(issuer string) *fakes.AuthAnswer) (*fakes.AuthServer, []string) {
	t.Helper()
	need(t, "tmux", "zbarimg")
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	as := &fakes.AuthServer{Interval: 1}
	s := httptest.NewUnstartedServer(as)
	as.Issuer = "http://" + s.Listener.Addr().String()
	if device != nil {
		as.Device = device(as.Issuer)
	}
	s.Start()
	t.Cleanup(s.Close)
	return as, []string{
		bin, "login", "--device-url", as.Issuer + fakes.DevicePath, "--token-url", as.Issuer + fakes.TokenPath, "--client-id", "cli", "--no-browser",
	}
}

var userCode = regexp.MustCompile(`\b[B-Z]{4}-[B-Z]{4}\b`)

// TestLogin logs in at terminals of several sizes: the code is to be read and the QR code leads to the page with the code
// in it, the countdown runs in its place, and it is gone when the login is approved.
func TestLogin(t *testing.T) {
	for _, size := range []struct {
		columns, rows int
		qr, large     bool
	}{{120, 45, true, true}, {80, 24, true, false}, {40, 24, true, false}, {30, 24, false, false}, {80, 15, false, true}} {
		t.Run(fmt.Sprintf("%dx%d", size.columns, size.rows), func(t *testing.T) {
			t.Parallel()
			as, command := server(t, nil)
			p := open(t, size.columns, size.rows, nil, command...)
			first := p.untilHas(" left, ")
			code := userCode.FindString(first)
			complete := as.Issuer + "/device?user_code=" + code
			if got := decode(t, first); code == "" || (got == complete) != size.qr {
				t.Errorf("the QR code says %q, and the code is %q:\n%s", got, code, first)
			}
			if !size.qr && !strings.Contains(p.screen("-J"), complete) {
				t.Errorf("the address is not to be copied:\n%s", first)
			}
			if !size.qr && strings.Contains(first, "▀") != size.large {
				t.Errorf("the code is not as large as it should be:\n%s", first)
			}

			line, at := p.line(first, " left, ")
			second := p.until("second moment", func(s string) bool { l, _ := p.line(s, " left, "); return l != line && l != "" })
			if l, now := p.line(second, " left, "); now != at {
				t.Errorf("the countdown has moved from line %d %q to %d %q", at, line, now, l)
			}
			if !as.Approve(code) {
				t.Fatal("nobody knows the code")
			}
			last := p.untilHas("exit 0")
			if strings.Contains(last, " left, ") || !strings.Contains(last, "\nApproved.\nLogged in.") {
				t.Errorf("at the end:\n%s", last)
			}
			if v := as.Violations(); len(v) > 0 {
				t.Error(v)
			}
		})
	}
}

// TestLongAddress has an address whose QR code fits only with less of a margin than the norm has.
func TestLongAddress(t *testing.T) {
	t.Parallel()
	var complete string
	_, command := server(t, func(issuer string) *fakes.AuthAnswer {
		complete = issuer + "/login/device?user_code=WDJB-MJHT&next=%2Fx"
		complete += strings.Repeat("y", 70-len(complete))
		a := fakes.AuthJSON(200, map[string]any{
			"device_code": "d", "user_code": "WDJB-MJHT", "verification_uri": issuer + "/device", "verification_uri_complete": complete, "expires_in": 900,
		})
		return &a
	})
	p := open(t, 40, 24, nil, command...)
	if s := p.untilHas(" left, "); decode(t, s) != complete {
		t.Errorf("the QR code says %q:\n%s", decode(t, s), s)
	}
}

// TestInterrupted presses Ctrl-C: what is said after that is on a line of its own.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	_, command := server(t, nil)
	p := open(t, 80, 24, nil, command...)
	p.untilHas(" left, ")
	p.tmux("send-keys", "C-c")
	s := p.untilHas("exit 130")
	if !strings.Contains(s, "\nheed: interrupted: run it again when you are ready\nexit 130\n") || strings.Contains(s, " left, ") {
		t.Errorf("%s", s)
	}
}

// TestPlain has lines where a terminal is not to be drawn on.
func TestPlain(t *testing.T) {
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			as, command := server(t, nil)
			p := open(t, 120, 24, []string{env}, command...)
			s := p.untilHas("The code is good for 1") // 14 minutes, and most of another
			as.Approve(userCode.FindString(s))
			if s = p.untilHas("exit 0"); strings.ContainsAny(s, "█▀▄┌") || strings.Contains(s, " left") {
				t.Errorf("%s", s)
			}
		})
	}
}

// TestStartAndResume starts a login in one terminal and finishes it in another.
func TestStartAndResume(t *testing.T) {
	t.Parallel()
	as, command := server(t, nil)
	file := filepath.Join(t.TempDir(), "login.json")
	p := open(t, 100, 24, nil, append(command, "--start", "--output", file)...)
	s := p.untilHas("exit 0")
	code := userCode.FindString(s)
	p = open(t, 100, 24, nil, command[0], "login", "--resume", file, "--no-browser")
	if s := p.untilHas(" left, "); decode(t, s) != as.Issuer+"/device?user_code="+code {
		t.Errorf("the QR code says %q, and the code is %q:\n%s", decode(t, s), code, s)
	}
	as.Approve(code)
	p.untilHas("exit 0")
	if v := as.Violations(); len(v) > 0 {
		t.Error(v)
	}
}
