package requests

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// admit refuses what must not be sent.
func (t *Transport) admit(req *http.Request) error {
	if err := t.ready(); err != nil {
		return err
	}
	switch u := req.URL; {
	case u == nil || u.Host == "":
		return &Error{Code: CodeUsage, Message: "the request's URL has no host: make it absolute"}
	case u.Scheme != "https":
		return secure(u)
	}
	return nil
}

// secure refuses what is not https, unless it stays on this machine.
func secure(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()) {
		return nil
	}
	return &Error{
		Code: CodeUsage, Err: ErrInsecure,
		Message: u.Scheme + "://" + u.Host + " is not sent to: use https (http is for loopback addresses)",
	}
}

// loopback knows the names of RFC 6761, section 6.3, and the addresses.
func loopback(host string) bool {
	const name = "localhost"
	if n := len(host) - len(name); n >= 0 && strings.EqualFold(host[n:], name) && (n == 0 || host[n-1] == '.') {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// parseOrigin reads an origin. The text of its error has nothing of the input, which might be anything.
func parseOrigin(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, &Error{Code: CodeUsage, Message: "Transport.Origin is no origin: use one such as https://api.example.com"}
	}
	return u, secure(u)
}

// gives reports whether requests for a URL are given credentials.
func (t *Transport) gives(c *call, u *url.URL) bool {
	origin := t.origin
	if c != nil {
		origin = c.origin
	}
	return origin == nil || sameOrigin(origin, u)
}

// sameOrigin is RFC 6454, section 5.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// strayed reports whether a redirect on the way to this request left the origin that the first one was for. There is no
// way back: whoever redirects back has chosen what is asked for there.
func strayed(req *http.Request) bool {
	for r := req; r.Response != nil; r = r.Response.Request {
		if r.Response.Request == nil || !sameOrigin(r.URL, r.Response.Request.URL) {
			return true
		}
	}
	return false
}
