package main

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// pinned is a line that stays below all else on the terminal that stderr is. It is wiped with blanks: that takes no escape
// sequences, which not every console knows.
type pinned struct {
	shared bool // stdout is at a terminal, too: what is written there goes above the line
	text   string
}

// wiped moves to the beginning of the line and leaves nothing of it.
func (p *pinned) wiped() string {
	if p == nil || p.text == "" {
		return ""
	}
	return "\r" + strings.Repeat(" ", utf8.RuneCountInString(p.text)) + "\r"
}

// pin begins to keep a line at the bottom.
func (o *output) pin(shared bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pinned = &pinned{shared: shared}
}

// repin replaces the line at the bottom, if there is one.
func (o *output) repin(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pinned == nil || o.pinned.text == text {
		return
	}
	// In one write, and over the old line, so that it does not flicker.
	fill := max(utf8.RuneCountInString(o.pinned.text)-utf8.RuneCountInString(text), 0)
	o.pinned.text = text
	_, _ = io.WriteString(o.stderr, "\r"+text+strings.Repeat(" ", fill)+strings.Repeat("\b", fill))
}

// unpin takes the line away.
func (o *output) unpin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = io.WriteString(o.stderr, o.pinned.wiped())
	o.pinned = nil
}

// toStdout writes above the line at the bottom. The caller holds mu.
func (o *output) toStdout(p []byte) (int, error) {
	if o.pinned == nil || !o.pinned.shared {
		return o.stdout.Write(p)
	}
	_, _ = io.WriteString(o.stderr, o.pinned.wiped())
	n, err := o.stdout.Write(returning(p))
	if err == nil || n > len(p) {
		n = len(p)
	}
	_, _ = io.WriteString(o.stderr, o.pinned.text)
	return n, err
}

// toStderr writes above the line at the bottom, too. The caller holds mu.
func (o *output) toStderr(line string) {
	if o.pinned != nil {
		line = o.pinned.wiped() + string(returning([]byte(line))) + o.pinned.text
	}
	_, _ = io.WriteString(o.stderr, line)
}

// returning has each line end with a carriage return, which a terminal in raw mode does not add; another one is not
// disturbed by it.
func returning(p []byte) []byte {
	return bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))
}
