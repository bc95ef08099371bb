package prompt_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/prompt"
)

// holds reports whether a drawing has a QR code in it: it alone has its colours.
func holds(drawn []string) bool { return strings.Contains(strings.Join(drawn, ""), "\x1b[37;97;40m") }

// rows is how many rows lines take in a window.
func rows(seen []string, columns int) int {
	n := 0
	for _, l := range seen {
		n += max(1, (prompt.Columns(l)+columns-1)/columns)
	}
	return n
}

// TestQRWhereItFits looks for the smallest windows that have room for the QR code of an address, and for those that have
// it: they are the same, and the line of the countdown has its place in each.
func TestQRWhereItFits(t *testing.T) {
	for _, length := range []int{20, 52, 53, 54, 78, 79, 106, 200, 800, 2000, 2001, 1 << 20} {
		p := auth.Prompt{UserCode: "WDJB-MJHT", VerificationURI: "https://a.test/", VerificationURIComplete: "https://a.test/" + strings.Repeat("x", length-15)}
		modules := 1000
		if length <= 2000 {
			modules = prompt.Columns(prompt.QR(p.VerificationURIComplete)[0]) - 8
		}
		for _, columns := range []int{10, 20, 29, 33, 36, 37, 40, 59, 60, 79, 80, 97, 98, 120, 250} {
			for _, height := range []int{1, 5, 19, 20, 21, 22, 23, 24, 30, 45, 100, 200} {
				drawn, seen, _ := prompt.Layout(p, columns, height, true, false)
				room := columns >= modules+4 && height >= (modules+5)/2+1+3 || // below two lines and the one before it
					columns >= modules+4+3+len("Open https://a.test/") && height >= (modules+5)/2+1 // or to the right of them
				if got := holds(drawn); got != room {
					t.Errorf("%d characters in %dx%d: drawn %v, room %v", length, columns, height, got, room)
				} else if got && rows(seen, columns)+1 > height {
					t.Errorf("%d characters in %dx%d: %d rows and the countdown", length, columns, height, rows(seen, columns))
				}
			}
		}
	}
}

func TestNoQR(t *testing.T) {
	p := auth.Prompt{UserCode: "WDJB-MJHT", VerificationURI: uri, VerificationURIComplete: complete}
	for name, tt := range map[string]struct {
		change  func(*auth.Prompt)
		unicode bool
		want    string
	}{
		"no address with the code": {func(p *auth.Prompt) { p.VerificationURIComplete = "" }, true, "WDJB-MJHT"},
		"one that is changed":      {func(p *auth.Prompt) { p.VerificationURIComplete += "\u200b" }, true, "WDJB-MJHT"},
		"no half blocks":           {func(*auth.Prompt) {}, false, complete},
	} {
		p := p
		tt.change(&p)
		drawn, seen, _ := prompt.Layout(p, 200, 100, tt.unicode, true)
		if text := strings.Join(seen, "\n"); holds(drawn) || !strings.Contains(text, tt.want) || strings.Contains(text, "scan") {
			t.Errorf("%s: %s", name, text)
		}
		if !tt.unicode && strings.IndexFunc(strings.Join(seen, ""), func(r rune) bool { return r > '~' }) >= 0 {
			t.Errorf("%s: %q", name, seen)
		}
	}
}

// A link leads where it says, or to the address with the code in it on the same server.
func TestLinks(t *testing.T) {
	for _, tt := range []struct{ uri, complete, target string }{
		{uri, "", uri},
		{uri, complete, complete},
		{uri, "https://evil.test/?c=1", uri},
		{uri, "http://as.example.com/?c=1", uri},
		{"https://as.example.com/ü", "", ""}, // a URI is ASCII
		{"https://as.example.com/\x1b[2J", "", "https://as.example.com/[2J"},
		{"as.example.com", "", ""},
	} {
		drawn, _, _ := prompt.Layout(auth.Prompt{UserCode: "A", VerificationURI: tt.uri, VerificationURIComplete: tt.complete}, 20, 10, true, true)
		_, after, found := strings.Cut(strings.Join(drawn, "\n"), "\x1b]8;;")
		target, _, _ := strings.Cut(after, "\x1b")
		if target != tt.target || found != (tt.target != "") {
			t.Errorf("%q leads to %q, want %q", tt.uri, target, tt.target)
		}
	}
}

// The code is drawn large if every character of it can be, and it is in the text as it is in any case.
func TestLarge(t *testing.T) {
	var all strings.Builder
	for _, part := range []string{"ABCDEFGHI", "JKLMNOPQR", "STUVWXYZ-", "0123456789"} {
		all.WriteString(strings.Join(prompt.Large(part), "\n") + "\n\n")
	}
	golden(t, "font.txt", all.String())
	for code, want := range map[string]bool{"WDJB-MJHT": true, "wdjb-mjht": false, "ÄБ-Ω": false, "AB_CD": false, "123456789012": true, strings.Repeat("A", 40): false} {
		drawn, seen, _ := prompt.Layout(auth.Prompt{UserCode: code, VerificationURI: uri}, 80, 40, true, false)
		if got := strings.Contains(strings.Join(drawn, ""), "▀"); got != want {
			t.Errorf("%s is drawn large: %v", code, got)
		}
		if !strings.Contains(strings.Join(seen, "\n"), code) {
			t.Errorf("%s is not in the text", code)
		}
	}
}

// FuzzLayout shows what no server sends that package auth has talked to.
func FuzzLayout(f *testing.F) {
	f.Add("WDJB-MJHT", uri, complete, 80, 24, true, true)
	f.Add("\x1b[2J\x9b", "https://a.test/\x1b]8;;https://evil.test\x07", "https://a.test/\u202e\n", 40, 24, true, true)
	f.Add("漢字", "https://漢字.test/", "https://a.test/", 12, 3, false, true)
	f.Add("", "", "", 1, 1, true, false)
	f.Fuzz(func(t *testing.T, code, address, complete string, columns, height int, hasUnicode, links bool) {
		columns, height = 1+max(columns, -columns)%300, max(height, -height)%100
		if columns < 1 || height < 0 || len(code)+len(address)+len(complete) > 5000 {
			t.Skip("more than any window or server has")
		}
		p := auth.Prompt{UserCode: code, VerificationURI: address, VerificationURIComplete: complete}
		drawn, seen, wraps := prompt.Layout(p, columns, height, hasUnicode, links)
		e := newEmulator(columns, max(height, 1))
		for i := range drawn {
			fmt.Fprintln(e, drawn[i])
			if strings.ContainsFunc(seen[i], func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
				t.Errorf("%q would be shown", seen[i])
			}
			if holds(drawn) && !wraps[i] && prompt.Columns(seen[i]) > columns {
				t.Errorf("%q is too long for %d columns", seen[i], columns)
			}
		}
		if len(e.odd) > 0 {
			t.Errorf("%v", e.odd)
		}
		if holds(drawn) && rows(seen, columns)+1 > height {
			t.Errorf("%d rows and the countdown in %d", rows(seen, columns), height)
		}
	})
}
