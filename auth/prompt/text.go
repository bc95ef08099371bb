package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-sdk/heed/auth"
)

// clean takes out what could steer a terminal or hide in a line: control and format characters, line and paragraph
// separators, private ones, and what was no UTF-8. Of spaces it leaves the ordinary one.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp):
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, text)
}

// longest is the longest address with a code in it that is shown. It is optional, and no browser takes a longer one.
const longest = 2000

// cleaned is a prompt of which nothing steers a terminal. An address that changes by it is no address: it may be read,
// but a QR code or a hyperlink would lead elsewhere than it says.
func cleaned(p auth.Prompt) auth.Prompt {
	p.UserCode, p.VerificationURI = clean(p.UserCode), clean(p.VerificationURI)
	if len(p.VerificationURIComplete) > longest || clean(p.VerificationURIComplete) != p.VerificationURIComplete {
		p.VerificationURIComplete = ""
	}
	return p
}

// columns is how many columns a text takes, or more: characters that some terminals draw wide count as wide.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r >= 0x1100 && (r < 0x2000 || r >= 0x2e80) {
			n++
		}
	}
	return n
}

// cut shortens a text to a number of columns.
func cut(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += columns(string(r)); n > most {
			return text[:i]
		}
	}
	return text
}
