package sse_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-sdk/heed/stream/sse"
)

func checkScan(t *testing.T, text []byte) {
	t.Helper()
	marks, ok := sse.Scan(text)
	if want := utf8.Valid(text); ok != want {
		t.Fatalf("%q is UTF-8: %t, want %t", text, ok, want)
	}
	var want []int
	for i, c := range text {
		if c < 0x0E {
			want = append(want, i)
		}
	}
	if !slices.Equal(marks, want) {
		t.Fatalf("%q has marks at %v, want %v", text, marks, want)
	}
}

// FuzzScan compares what scan says with package utf8, wherever the blocks end.
func FuzzScan(f *testing.F) {
	f.Add([]byte("data: Съешь ещё этих мягких французских булок, да выпей чаю\n\n"))
	f.Add([]byte("data: 春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。\r\n\r\n"))
	f.Add([]byte("\x00\t\r\n\x0E😀\uFEFF\uFFFD\U0010FFFF한ก\xED\xA0\x80\xF4\x90\x80\x80\xC0\x80\xE0\x9F\xBF\xF0\x8F\xBF\xBF"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, before := range []int{0, 1, 31, 61, 62, 63} {
			checkScan(t, append(bytes.Repeat([]byte("x"), before), text...))
		}
	})
}

// TestScan has every row of the table of RFC 3629, section 4, and what is just beyond it: four bytes of all kinds, in the
// middle of a block and where one ends.
func TestScan(t *testing.T) {
	kinds := []byte("\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEF\xF0\xF3\xF4\xF5\xF8")
	for _, at := range []int{28, 61, 62, 63} {
		text := []byte(strings.Repeat(" ", at+5))
		var try func(i int)
		try = func(i int) {
			if i == 4 {
				if _, ok := sse.Scan(text); ok != utf8.Valid(text) {
					t.Fatalf("%q at %d is UTF-8: %t", text[at:], at, ok)
				}
				return
			}
			for _, c := range kinds {
				text[at+i] = c
				try(i + 1)
			}
		}
		try(0)
	}
}

// TestUnfinished cuts a text everywhere: what is left of a character is not searched before the rest has come.
func TestUnfinished(t *testing.T) {
	const text = "aé€😀한\uFFFD\U0010FFFFz"
	for end := range len(text) + 1 {
		whole := end
		for !utf8.ValidString(text[:whole]) {
			whole--
		}
		if got := sse.Unfinished([]byte(text[:end])); got != end-whole {
			t.Errorf("%q: %d, want %d", text[:end], got, end-whole)
		}
	}
	for _, bad := range []string{"\x80", "\x80\x80\x80\x80", "é\x80", "€\x80\x80", "\n", ""} {
		if got := sse.Unfinished([]byte(bad)); got != 0 {
			t.Errorf("%q: %d, want 0", bad, got)
		}
	}
}
