package terminal_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

// tail starts a stream server with a script, and returns the command line that follows it.
func tail(t *testing.T, script ...fakes.StreamStep) (*fakes.StreamServer, []string) {
	t.Helper()
	need(t, "tmux")
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	server := fakes.NewStreamServer(script...)
	s := httptest.NewServer(http.Handler(server))
	t.Cleanup(func() {
		_ = server.Close()
		s.Close()
	})
	return server, []string{bin, "tail", strings.Replace(s.URL, "http", "ws", 1)}
}

// TestTail follows a stream: the status stays in the last line, the messages go above it, r ends a wait, and Ctrl-C leaves
// the terminal as it was.
func TestTail(t *testing.T) {
	t.Parallel()
	server, command := tail(t,
		fakes.StreamStep{Messages: []string{"one", "two\n  lines"}, Alive: 2 * time.Second, Then: fakes.Drop},
		fakes.StreamStep{Refuse: 503, RetryAfter: "600"},
		fakes.StreamStep{Messages: []string{"three"}, Then: fakes.Stop},
	)
	p := open(t, 100, 30, nil, "sh", "-c", strings.Join(command, " ")+`; echo "left $?"; stty -a`)
	first := p.untilHas("last frame 1 s ago")
	if !strings.HasPrefix(first, "one\ntwo\n  lines\nconnected since ") {
		t.Errorf("the messages are not above the status:\n%s", first)
	}
	waiting := p.untilHas("waiting 9:5")
	if line, _ := p.line(waiting, "waiting 9:5"); !strings.HasSuffix(line, "; press r to try now") {
		t.Errorf("of a wait it says %q", line)
	}
	p.tmux("send-keys", "r")
	third := p.untilHas("three\nconnected since ")
	if strings.Contains(third, "waiting") || len(server.Attempts()) != 3 {
		t.Errorf("after r, and %d attempts:\n%s", len(server.Attempts()), third)
	}
	p.tmux("send-keys", "C-c")
	last := p.untilHas("exit 0")
	if !strings.Contains(last, "\nheed: interrupted: run it again when you are ready\nleft 130\n") || strings.Contains(last, "connected since") {
		t.Errorf("at the end:\n%s", last)
	}
	for _, mode := range []string{"-icanon", "-echo ", "-opost", "-isig"} {
		if strings.Contains(last, mode) {
			t.Errorf("the terminal was left with %s:\n%s", mode, last)
		}
	}
}

// TestTailElsewhere has messages go to a file, and through a pipe: the status is at the terminal, and only with the file are
// keys read, because what is behind the pipe may write to the terminal, too.
func TestTailElsewhere(t *testing.T) {
	for _, c := range []struct {
		name, to, code string
		keys           bool
	}{
		{"file", " > ", "left 130", true},
		{"pipe", " | cat > ", "left 0", false}, // cat's
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, command := tail(t, fakes.StreamStep{Messages: []string{"one"}, Then: fakes.Drop}, fakes.StreamStep{Refuse: 503, RetryAfter: "600"})
			file := filepath.Join(t.TempDir(), "messages")
			p := open(t, 100, 12, nil, "sh", "-c", "trap : INT; "+strings.Join(command, " ")+c.to+file+`; echo "left $?"`)
			s := p.untilHas("waiting 9:5")
			if strings.Contains(s, "press r") != c.keys || strings.Contains(s, "one") {
				t.Errorf("%s", s)
			}
			p.tmux("send-keys", "C-c")
			p.untilHas("left ")
			if b, err := os.ReadFile(file); err != nil || string(b) != "one\n" {
				t.Errorf("the file holds %q: %v", b, err)
			}
		})
	}
}

// TestTailIntoHead has what reads the messages end after the first one: the command ends too, without a word, and takes its
// line away.
func TestTailIntoHead(t *testing.T) {
	t.Parallel()
	_, command := tail(t,
		fakes.StreamStep{Messages: []string{"one"}, Alive: 2 * time.Second, Then: fakes.Drop},
		fakes.StreamStep{Messages: []string{"two"}, Then: fakes.Stop},
	)
	p := open(t, 100, 12, nil, "bash", "-c", "{ "+strings.Join(command, " ")+`; echo "left $?" >&2; } | head -1`)
	p.untilHas("last frame 1 s ago")
	s := p.untilHas("left ")
	if line, _ := p.line(s, "left "); strings.TrimSpace(line) != "left 11" || strings.Contains(s, "heed:") {
		t.Errorf("at the end:\n%s", s)
	}
}

// TestTailInBackground has a job that nobody looks at: it tells lines, and is not stopped.
func TestTailInBackground(t *testing.T) {
	t.Parallel()
	_, command := tail(t, fakes.StreamStep{Messages: []string{"one"}, Alive: time.Second, Then: fakes.Drop}, fakes.StreamStep{Messages: []string{"two"}, Then: fakes.Stop})
	p := open(t, 100, 12, nil, "bash", "-c", "set -m; "+strings.Join(command, " ")+` --count 2 < /dev/tty & wait; echo "left $?"`)
	if s := p.untilHas("left "); !strings.Contains(s, "connected\none\n") || !strings.Contains(s, "\ntwo\n") || !strings.Contains(s, "left 0") {
		t.Errorf("%s", s)
	}
}
