package terminal_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience bounds whatever a test waits for.
const patience = 30 * time.Second

// need looks for programs that the machine may lack. In CI they have to be there.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing", p)
		}
		t.Skipf("NOT TESTED: %s is missing: install tmux and zbar-tools", p)
	}
}

// pane is a program in a terminal of a size.
type pane struct {
	t      *testing.T
	socket string
}

// open runs a command in a terminal. The shell says how it ends, and stays.
func open(t *testing.T, columns, rows int, env []string, command ...string) *pane {
	t.Helper()
	dir, err := os.MkdirTemp("", "heed-terminal-") // short: a socket's name has to be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &pane{t: t, socket: filepath.Join(dir, "s")}
	var words []string
	for _, w := range append(append([]string{"env"}, env...), command...) {
		words = append(words, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	// The shell gets the Ctrl-C of its terminal, too, and has to outlive it.
	script := "trap : INT; " + strings.Join(words, " ") + `; echo "exit $?"; exec cat`
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), script)
	t.Cleanup(func() { p.tmux("kill-server") })
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", p.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=", "NO_COLOR=", "FORCE_HYPERLINK=0", "SHELL=/bin/sh")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// screen is what is in the window now.
func (p *pane) screen(flags ...string) string {
	p.t.Helper()
	return p.tmux(append([]string{"capture-pane", "-p"}, flags...)...)
}

// until waits until the screen is as it should be.
func (p *pane) until(what string, good func(screen string) bool) string {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		s := p.screen()
		if good(s) {
			return s
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("there is no %s:\n%s", what, s)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *pane) untilHas(text string) string {
	p.t.Helper()
	return p.until(text, func(s string) bool { return strings.Contains(s, text) })
}

// line returns the one line that holds a text, and its number.
func (p *pane) line(screen, text string) (string, int) {
	p.t.Helper()
	found, at := "", -1
	for i, l := range strings.Split(screen, "\n") {
		if strings.Contains(l, text) {
			if at >= 0 {
				p.t.Errorf("%q is in lines %d and %d:\n%s", text, at, i, screen)
			}
			found, at = l, i
		}
	}
	return found, at
}

// decode reads the QR code on a screen as a camera would, or returns "" when there is none.
func decode(t *testing.T, screen string) string {
	t.Helper()
	var points []string
	width := 0
	for l := range strings.SplitSeq(screen, "\n") {
		if strings.ContainsAny(l, "█▀▄") {
			points = append(points, l)
			width = max(width, len([]rune(l)))
		}
	}
	if len(points) == 0 {
		return ""
	}
	const size = 8 // of a point, in pixels
	var picture strings.Builder
	for _, l := range points {
		runes := []rune(l)
		for _, lit := range []string{"█▀", "█▄"} {
			var row strings.Builder
			for x := range width {
				bit := "1" // black, in PBM
				if x < len(runes) && strings.ContainsRune(lit, runes[x]) {
					bit = "0"
				}
				row.WriteString(strings.Repeat(bit, size))
			}
			picture.WriteString(strings.Repeat(row.String()+"\n", size))
		}
	}
	file := filepath.Join(t.TempDir(), "qr.pbm")
	header := fmt.Sprintf("P1\n%d %d\n", width*size, len(points)*2*size)
	if err := os.WriteFile(file, []byte(header+picture.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "zbarimg", "-q", "--nodbus", "--raw", file).Output()
	if err != nil {
		t.Logf("zbarimg: %v", err)
	}
	return strings.TrimSpace(string(out))
}
