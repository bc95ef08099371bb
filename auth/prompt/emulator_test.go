package prompt_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// emulator is a terminal: it has a window that scrolls, wraps at the last column, and knows the few sequences that a
// Display may use. Any other is noted.
type emulator struct {
	mu            sync.Mutex
	columns, rows int
	lines         [][]rune // all that were ever there
	x             int
	full          bool // the cursor is behind the last column
	odd           []string
	raw           strings.Builder
	wrote         chan struct{} // told of each write, if somebody listens
}

func newEmulator(columns, rows int) *emulator {
	return &emulator{columns: columns, rows: rows, lines: [][]rune{nil}, wrote: make(chan struct{}, 1)}
}

// size is for Options.
func (e *emulator) size() (int, int, bool) { return e.columns, e.rows, true }

func (e *emulator) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.raw.Write(p)
	s := string(p)
	for s != "" {
		switch r, n := utf8.DecodeRuneInString(s); {
		case r == '\x1b':
			n = e.sequence(s)
			s = s[n:]
		case r == '\n':
			e.lines, e.x, e.full = append(e.lines, nil), 0, false
			s = s[n:]
		case r == '\r':
			e.x, e.full = 0, false
			s = s[n:]
		case r < ' ' || r == utf8.RuneError || r == 0x7f:
			e.odd = append(e.odd, fmt.Sprintf("%q", s[:n]))
			s = s[n:]
		default:
			e.put(r)
			s = s[n:]
		}
	}
	select {
	case e.wrote <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (e *emulator) put(r rune) {
	if e.full {
		e.lines, e.x, e.full = append(e.lines, nil), 0, false
	}
	line := &e.lines[len(e.lines)-1]
	for len(*line) <= e.x {
		*line = append(*line, ' ')
	}
	(*line)[e.x] = r
	if e.x++; e.x == e.columns {
		e.full = true
	}
}

// sequence obeys an escape sequence and returns its length.
func (e *emulator) sequence(s string) int {
	switch {
	case strings.HasPrefix(s, "\x1b[K"):
		line := &e.lines[len(e.lines)-1]
		*line = (*line)[:min(e.x, len(*line))]
		return 3
	case strings.HasPrefix(s, "\x1b]8;;"):
		if end := strings.Index(s, "\x1b\\"); end > 0 {
			return end + 2
		}
	case strings.HasPrefix(s, "\x1b["):
		end := strings.IndexFunc(s[2:], func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
		if end >= 0 && s[2+end] == 'm' {
			return 3 + end
		}
	}
	e.odd = append(e.odd, fmt.Sprintf("%.10q", s))
	return 1
}

// screen is what is in the window, without what is blank at its end, and the cursor as a line below.
func (e *emulator) screen() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, line := range e.lines[max(0, len(e.lines)-e.rows):] {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	if above := len(e.lines) - e.rows; above > 0 {
		fmt.Fprintf(&b, "(%d lines have scrolled away)\n", above)
	}
	return b.String()
}

// until waits until the screen ends with a text.
func (e *emulator) until(t *testing.T, end string) {
	t.Helper()
	for !strings.HasSuffix(e.screen(), end) {
		select {
		case <-e.wrote:
		case <-t.Context().Done():
			t.Fatalf("the screen does not come to end with %q: %s", end, e.screen())
		}
	}
}

func (e *emulator) written() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.raw.String()
}
