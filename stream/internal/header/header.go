// Package header knows what cannot be sent. net/http says so only in an error like that of a broken connection, after which
// one would try again for ever.
package header

import (
	"errors"
	"net/http"
	"strings"
)

// Check reports a header that cannot be sent (RFC 9110, sections 5.1 and 5.5). The error has no value in it.
func Check(h http.Header) error {
	for name, values := range h {
		if name == "" || strings.ContainsFunc(name, notInToken) {
			return errors.New("a header cannot be sent: its name is none")
		}
		for _, v := range values {
			if strings.ContainsFunc(v, Control) {
				return errors.New("the header " + name + " cannot be sent: it has control characters")
			}
		}
	}
	return nil
}

// Control reports whether a character cannot be in a header's value.
func Control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F }

func notInToken(r rune) bool {
	return r <= ' ' || r >= 0x7F || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}
