package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestPinned has the line below all else after each single write, and the cursor at its end.
func TestPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{}
		o := &output{stdout: g, stderr: g}
		shows := func(want string) {
			t.Helper()
			if got := g.screen(); got != want {
				t.Errorf("the screen is\n%s\nin place of\n%s", got, want)
			}
		}
		o.repin("nobody pinned it")
		o.pin(true)
		o.repin("a long line")
		shows("a long line|")
		o.repin("short")
		shows("short|")
		if err := o.printf("%s\n", "one"); err != nil {
			t.Error(err)
		}
		shows("one\nshort|")
		o.line("two")
		shows("one\ntwo\nshort|")
		if n, err := o.Write([]byte("3\n4\n")); n != 4 || err != nil {
			t.Errorf("%d bytes were written: %v", n, err)
		}
		shows("one\ntwo\n3\n4\nshort|")
		o.unpin()
		shows("one\ntwo\n3\n4\n|")
		o.repin("too late")
		shows("one\ntwo\n3\n4\n|")
		if g.odd != "" {
			t.Errorf("%q was written, too", g.odd)
		}
	})
}

// TestPinnedElsewhere leaves a stdout that is no terminal as it is, and tells of one that is full.
func TestPinnedElsewhere(t *testing.T) {
	var stdout, stderr bytes.Buffer
	o := &output{stdout: &stdout, stderr: &stderr}
	o.pin(false)
	o.repin("line")
	if err := o.printf("a\n"); err != nil || stdout.String() != "a\n" || stderr.String() != "\rline" {
		t.Errorf("%v, stdout %q, stderr %q", err, &stdout, &stderr)
	}
	o = &output{stdout: &full{}, stderr: &stderr}
	o.pin(true)
	var failed *outputError
	if err := o.printf("a\n"); !errors.As(err, &failed) {
		t.Errorf("a full terminal: %v", err)
	}
}

// TestPress has Ctrl-C restore the terminal before it does anything else: another one is a signal.
func TestPress(t *testing.T) {
	var did []string
	note := func(what string) func() { return func() { did = append(did, what) } }
	press(strings.NewReader("xr\x03R"), note("restore"), note("try"), note("interrupt"))
	if want := []string{"try", "restore", "interrupt", "try"}; !slices.Equal(did, want) {
		t.Errorf("%q", did)
	}
}
