package auth

import (
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// loopback reports whether a host name stays on this machine, where plain http is allowed.
func loopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") // RFC 6761, section 6.3
}

// addressProblem says what is wrong with an address that a credential is sent to or that a user is sent to, or "". The
// text does not repeat the address.
func addressProblem(raw string) string {
	if raw == "" {
		return "is missing"
	}
	// What a browser takes for a slash, url.Parse does not.
	if strings.Contains(raw, `\`) || !printable(raw) {
		return "holds a space, a control character or a backslash"
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "is no valid URL" // err repeats the address
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return "is no https URL"
	case u.Opaque != "" || u.Hostname() == "":
		return "has no host"
	case u.User != nil:
		return "holds credentials"
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "is not https, and not on loopback"
	}
	return ""
}

// endpointProblem is addressProblem for an endpoint, which has no fragment (RFC 6749, sections 3.1 and 3.2).
func endpointProblem(raw string) string {
	if p := addressProblem(raw); p != "" {
		return p
	}
	if strings.Contains(raw, "#") {
		return "has a fragment"
	}
	return ""
}

// withoutQuery is an address without its query and fragment, and without credentials: an endpoint that has some is
// refused, but may be printed before.
func withoutQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return redacted
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// printable reports whether a text shows as it is: no control, bidirectional, invisible or space characters, and nothing
// that was not UTF-8.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsSpace(r) || hidden(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// hidden reports whether a character steers a terminal, changes the order of a text, or cannot be seen.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp)
}
