package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// output writes results to stdout and remarks to stderr, one whole line at a time, and remembers the first failure of
// stdout: a full disk must not look like success.
type output struct {
	mu             sync.Mutex
	stdout, stderr io.Writer
	failed         error
	pinned         *pinned // nil: no line stays at the bottom
}

// outputError is a result that could not be written.
type outputError struct{ err error }

func (e *outputError) Error() string {
	return fmt.Sprintf("the output could not be written: %v: make room or write elsewhere, and run it again", e.err)
}

func (e *outputError) Unwrap() error { return e.err }

// Write writes to stdout.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return 0, o.failed
	}
	n, err := o.toStdout(p)
	if err != nil {
		o.failed = &outputError{err}
		return n, o.failed
	}
	return n, nil
}

// printf writes text to stdout.
func (o *output) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(o, format, args...)
	return err
}

// object writes one JSON value to stdout, on one line.
func (o *output) object(v any) error {
	line, err := jsonLine(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(o, line)
	return err
}

// remark writes one JSON value to stderr, on one line.
func (o *output) remark(v any) error {
	line, err := jsonLine(v)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.toStderr(line)
	return nil
}

// shown reports whether somebody is looking at stdout.
func (o *output) shown() bool {
	o.mu.Lock()
	shared := o.pinned != nil && o.pinned.shared
	o.mu.Unlock()
	f, ok := o.stdout.(*os.File)
	return shared || ok && term.IsTerminal(int(f.Fd()))
}

// terminal reports whether somebody is looking at stderr.
func (o *output) terminal() bool {
	f, ok := o.stderr.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func jsonLine(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return escaped(b.String()), err
}

// escaped writes the control characters in JSON that JSON allows, and terminals obey, as it writes the others.
func escaped(s string) string {
	if !strings.ContainsFunc(s, late) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if late(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// late reports whether a character is one of the control characters that are not the first of all.
func late(r rune) bool { return r >= 0x7F && r <= 0x9F }

// line writes one line to stderr, whatever is in it: a line break or a control character from elsewhere does not pass.
func (o *output) line(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.toStderr(oneLine(fmt.Sprintf(format, args...)) + "\n")
}

func (o *output) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}
