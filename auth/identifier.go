package auth

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxIdentifier is far above any address that a server publishes, and keeps what ends up in an error short.
const maxIdentifier = 2048

// flaw says what is wrong with an address. It quotes nothing of it, because an address may hold a password.
type flaw string

func (f flaw) Error() string { return string(f) }

// parseIdentifier reads the identifier of an issuer or a resource: an https address (http on loopback only) that may
// have a path and nothing behind it (RFC 8414, section 2; RFC 9728, section 1.2). What it stands for is the string
// itself; the URL is where to fetch from. With originRoot, any path beyond "/" is a flaw too.
func parseIdentifier(raw string, originRoot bool) (*url.URL, error) {
	u, err := parseAddress(raw)
	switch {
	case err != nil:
		return nil, err
	case strings.Contains(raw, "?"):
		return nil, flaw("it has a query")
	case originRoot && u.EscapedPath() != "" && u.EscapedPath() != "/":
		return nil, flaw("it has a path, which the origin-root profile refuses")
	}
	return u, nil
}

// parseAddress reads an https address that may have a path and a query. Every rule looks at the raw string first:
// parsers disagree about the rest (an empty port or user info vanishes, a backslash becomes a slash, a missing // is
// supplied), and an address that two parsers read differently is one that a check can be led past.
func parseAddress(raw string) (*url.URL, error) {
	if err := checkCharacters(raw); err != nil {
		return nil, err
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") {
		return nil, flaw("it does not begin with https://")
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if err := checkAuthority(authority); err != nil {
		return nil, err
	}
	path, _, _ = strings.Cut(path, "?")
	if err := checkPath(path); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	// The cause is left out: it quotes the address. And the parser that sends the request has to agree with this one.
	if err != nil || u.Host != authority || u.EscapedPath() != path || u.User != nil || u.Opaque != "" {
		return nil, flaw("it is no valid URL")
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, flaw("it is not https, which only an address of this machine may be")
	}
	return u, nil
}

// checkCharacters lets through what RFC 3986, section 2 knows, short of a fragment.
func checkCharacters(raw string) error {
	switch {
	case raw == "":
		return flaw("it is empty")
	case len(raw) > maxIdentifier:
		return flaw("it is longer than " + strconv.Itoa(maxIdentifier) + " characters")
	}
	for i := range len(raw) {
		switch c := raw[i]; {
		case c == '\\':
			return flaw("it has a backslash")
		case c == '#':
			return flaw("it has a fragment")
		case c <= ' ' || c == 0x7f:
			return flaw("it has a space or a control character")
		case c > 0x7f:
			return flaw("it has a character beyond ASCII, which is to be percent-encoded, or punycode in a host")
		case strings.IndexByte("\"<>^`{|}", c) >= 0:
			return flaw("it has a character that an address cannot have")
		}
	}
	return nil
}

// checkAuthority reads user info, host and port (RFC 3986, section 3.2).
func checkAuthority(authority string) error {
	if strings.Contains(authority, "@") {
		return flaw("it has user info") // also an empty one
	}
	host, port, hasPort := strings.Cut(authority, ":")
	if strings.HasPrefix(authority, "[") {
		literal, after, closed := strings.Cut(authority[1:], "]")
		addr, err := netip.ParseAddr(literal)
		if !closed || err != nil || !addr.Is6() || addr.Zone() != "" || after != "" && after[0] != ':' {
			return flaw("its IPv6 address is malformed")
		}
		hasPort, port = after != "", strings.TrimPrefix(after, ":")
	} else if err := checkHost(host); err != nil {
		return err
	}
	if hasPort {
		return checkPort(port)
	}
	return nil
}

// checkHost reads a registered name or an IPv4 address.
func checkHost(host string) error {
	if host == "" {
		return flaw("it has no host")
	}
	for i := range len(host) {
		if c := host[i]; c != '-' && c != '.' && c != '_' && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			return flaw("its host has a character that host names do not have")
		}
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if slices.Contains(labels, "") {
		return flaw("its host has an empty label")
	}
	// 127.1, 0x7f000001 and 2130706433 are 127.0.0.1 to one resolver or proxy and a name to the next.
	if isNumber(labels[len(labels)-1]) {
		if _, err := netip.ParseAddr(host); err != nil {
			return flaw("its IPv4 address is malformed")
		}
	}
	return nil
}

// isNumber reports whether a label is decimal or hexadecimal.
func isNumber(label string) bool {
	if strings.Trim(label, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(strings.ToLower(label), "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

func checkPort(port string) error {
	// The signs that number parsers take, and a leading zero, are no digits of a port.
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return flaw("its port is no number from 1 to 65535")
	}
	return nil
}

// checkPath refuses what a server or a proxy on the way may resolve to another path (RFC 3986, section 5.2.4).
func checkPath(path string) error {
	plain, err := url.PathUnescape(path)
	if err != nil {
		return flaw("its path has a malformed percent-encoding")
	}
	for i := range len(plain) {
		if c := plain[i]; c < ' ' || c == 0x7f {
			return flaw("its path has an encoded control character")
		}
	}
	for segment := range strings.FieldsFuncSeq(plain, func(r rune) bool { return r == '/' || r == '\\' }) {
		if segment == "." || segment == ".." {
			return flaw("its path has a dot segment")
		}
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// sameIdentifier compares code point by code point (RFC 8414, section 3.3; RFC 9728, section 3.3), with one concession:
// an empty path and "/" are the same.
func sameIdentifier(asked, got string) bool {
	return withoutRootSlash(asked) == withoutRootSlash(got)
}

func withoutRootSlash(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	if strings.IndexByte(rest, '/') == len(rest)-1 {
		return strings.TrimSuffix(raw, "/")
	}
	return raw
}

// insertWellKnown puts /.well-known/name between the host and the path (RFC 8414, section 3.1; RFC 9728, section 3.1).
func insertWellKnown(u *url.URL, name string) string {
	return u.Scheme + "://" + u.Host + "/.well-known/" + name + strings.TrimSuffix(u.EscapedPath(), "/")
}

// appendWellKnown puts /.well-known/name behind the path (OpenID Connect Discovery 1.0, section 4.1).
func appendWellKnown(u *url.URL, name string) string {
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/") + "/.well-known/" + name
}

// fitToPrint returns an identifier for an error text, or "" if it is not one: then it may hold anything.
func fitToPrint(raw string) string {
	if _, err := parseIdentifier(raw, false); err != nil {
		return ""
	}
	return raw
}
