package auth

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest is how much of a text of the server's is kept, in characters.
const longest = 200

const redacted = "[redacted]"

var query = regexp.MustCompile(`(?i)(https?://[^\s?#"'<>]*)[?#][^\s"'<>]*`)

// secrets are the texts that must not show, in the forms in which a server may echo them.
type secrets []string

// with returns the secrets and some more. Empty ones are none.
func (s secrets) with(more ...string) secrets {
	s = slices.Clone(s)
	for _, text := range more {
		for _, form := range []string{text, url.QueryEscape(text), url.PathEscape(text), oneLine(text)} {
			if form != "" && !slices.Contains(s, form) {
				s = append(s, form)
			}
		}
	}
	// The longer first: of two that begin alike, the shorter must not leave the rest of the longer.
	slices.SortStableFunc(s, func(a, b string) int { return len(b) - len(a) })
	return s
}

// basic returns the secrets of client authentication (RFC 6749, section 2.3.1).
func (s secrets) basic(id, secret string) secrets {
	if secret == "" {
		return s
	}
	pair := url.QueryEscape(id) + ":" + url.QueryEscape(secret)
	return s.with(secret, base64.StdEncoding.EncodeToString([]byte(pair)))
}

// clean makes an untrusted text fit for an error or a log: one printable line of bounded length, without the queries of
// addresses and without the secrets.
func (s secrets) clean(text string) string {
	text = oneLine(text) // first: a secret may have been broken up by what is taken out
	// One character that the text has not got stands for the mark, so that no secret is looked for inside a mark: of a long
	// text and short secrets much would become of it.
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "\x00")
	}
	text = strings.ReplaceAll(text, "\x00", redacted)
	text = query.ReplaceAllString(text, "$1")
	if utf8.RuneCountInString(text) > longest {
		text = string([]rune(text)[:longest]) + "…"
	}
	return text
}

// oneLine drops hidden characters and turns each run of spaces into one space.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case hidden(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
