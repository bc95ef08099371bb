// Package address decides which addresses may be called, and how an address is shown.
package address

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Parse reads an absolute address that may carry a secret: encrypted, or on this machine. The schemes ws and wss count as
// http and https. No error shows the address.
func Parse(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("the address cannot be parsed")
	}
	return u, Check(u)
}

// Check says what is wrong with an address. The error shows at most its origin.
func Check(u *url.URL) error {
	switch u.Scheme {
	case "https", "wss":
	case "http", "ws":
		if !Loopback(u.Hostname()) {
			return errors.New(Origin(u) + " is not encrypted, which is allowed to this machine alone")
		}
	case "":
		return errors.New("the address has no scheme")
	default:
		return errors.New("the address has a scheme that is neither HTTP's nor WebSocket's")
	}
	if u.Hostname() == "" {
		return errors.New("the address has no host")
	}
	if p := u.Port(); p != "" {
		if _, err := strconv.ParseUint(p, 10, 16); err != nil {
			return errors.New("the address has a port that is none")
		}
	}
	return nil
}

// Origin shows scheme and host. Everything else may be a secret.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// SameOrigin reports whether two addresses have scheme, host and port in common.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	switch u.Scheme {
	case "https", "wss":
		return "443"
	}
	return "80"
}

// Loopback reports whether a host is this machine, by its address or by the name that is reserved for it (RFC 6761,
// section 6.3).
func Loopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
