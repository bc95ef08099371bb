// Package redact keeps secrets out of errors.
package redact

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/heed-sdk/heed/stream/internal/address"
)

// shortest is the length from which a secret is looked for: below, it would be found in ordinary words.
const shortest = 4

// Secrets lists what must not be shown of an address: its query and fragment, the values in them, as they are and as they
// are meant, and who logs in.
func Secrets(u *url.URL) []string {
	all := []string{u.RawQuery, u.RawFragment, u.Fragment}
	for pair := range strings.FieldsFuncSeq(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		if name, value, ok := strings.Cut(pair, "="); ok {
			all = append(all, value)
		} else {
			all = append(all, name)
		}
	}
	for _, values := range u.Query() {
		for _, v := range values {
			all = append(all, v, url.QueryEscape(v))
		}
	}
	if u.User != nil {
		all = append(all, u.User.String())
		if p, ok := u.User.Password(); ok {
			all = append(all, p)
		}
	}
	return all
}

// Error returns err as it may be shown. A url.Error, which quotes the whole address, gives way to its cause; a text that
// has a secret in it is kept without.
func Error(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	quoted, ok := errors.AsType[*url.Error](err)
	if !ok {
		if clean := Text(err.Error(), secrets); clean != err.Error() {
			return errors.New(clean)
		}
		return err
	}
	cause := Error(quoted.Err, secrets)
	if errors.Is(quoted, err) { // err is the url.Error, not something around it
		return cause
	}
	origin := "an address"
	if u, err := url.Parse(quoted.URL); err == nil {
		origin = address.Origin(u)
		secrets = append(Secrets(u), secrets...)
	}
	return &shown{Text(strings.ReplaceAll(err.Error(), quoted.URL, origin), secrets), cause}
}

// shown is the text of an error without its secrets, and the part of its chain that has none.
type shown struct {
	text  string
	cause error
}

func (s *shown) Error() string { return s.text }
func (s *shown) Unwrap() error { return s.cause }

// Text returns a text without the secrets.
func Text(text string, secrets []string) string {
	// The longest first, lest what is in it be taken out of it and the rest stay.
	longest := func(a, b string) int { return len(b) - len(a) }
	for _, s := range slices.SortedFunc(slices.Values(secrets), longest) {
		if len(s) >= shortest {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return text
}
