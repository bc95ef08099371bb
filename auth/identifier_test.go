package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/auth"
)

// asked is a transport that answers 404 to everything and keeps what it was asked for.
type asked struct{ urls []string }

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a.urls = append(a.urls, r.URL.String())
	return &http.Response{
		StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r,
	}, nil
}

// fetches returns where the document of a resource would be fetched from, or "" if its identifier is malformed.
func fetches(t *testing.T, resource string, originRoot bool) string {
	t.Helper()
	var a asked
	d := auth.Discovery{HTTPClient: &http.Client{Transport: &a}, OriginRoot: originRoot}
	_, err := d.ProtectedResource(context.Background(), resource)
	e, ok := errors.AsType[*auth.DiscoveryError](err)
	switch {
	case ok && e.Reason == auth.ErrIdentifier && len(a.urls) == 0 && e.Hop == auth.HopResource && e.Issuer == "":
		return ""
	case ok && e.Reason == auth.ErrNoMetadata && e.Status == 404 && len(a.urls) == 1:
		return a.urls[0]
	}
	t.Fatalf("%q: asked for %q, and the error is %v", resource, a.urls, err)
	return ""
}

func TestIdentifiers(t *testing.T) {
	const at = "/.well-known/oauth-protected-resource"
	long := "https://api.example.com/" + strings.Repeat("a", 2048)
	tests := []struct {
		name, raw string
		want      string // where it is fetched from; "" when it is malformed
	}{
		{"origin", "https://api.example.com", "https://api.example.com" + at},
		{"root slash", "https://api.example.com/", "https://api.example.com" + at},
		{"path", "https://api.example.com/tenant/1", "https://api.example.com" + at + "/tenant/1"},
		{"path with a slash at its end", "https://api.example.com/tenant/", "https://api.example.com" + at + "/tenant"},
		{"escaped path", "https://api.example.com/a%20b/%C3%A9", "https://api.example.com" + at + "/a%20b/%C3%A9"},
		{"path of all that a path may have", "https://api.example.com/-._~!$&'()*+,;=:@", "https://api.example.com" + at + "/-._~!$&'()*+,;=:@"},
		{"three dots", "https://api.example.com/.../a", "https://api.example.com" + at + "/.../a"},
		{"dots in a name", "https://api.example.com/v1..2/.hidden", "https://api.example.com" + at + "/v1..2/.hidden"},
		{"twice encoded dots", "https://api.example.com/%252e%252e", "https://api.example.com" + at + "/%252e%252e"},
		{"port", "https://api.example.com:8443", "https://api.example.com:8443" + at},
		{"default port", "https://api.example.com:443/", "https://api.example.com:443" + at},
		{"highest port", "https://api.example.com:65535", "https://api.example.com:65535" + at},
		{"upper case", "HTTPS://API.Example.COM", "https://API.Example.COM" + at},
		{"absolute name", "https://api.example.com.", "https://api.example.com." + at},
		{"underscore", "https://my_host.example.com", "https://my_host.example.com" + at},
		{"single label", "https://keycloak/realms/x", "https://keycloak" + at + "/realms/x"},
		{"label of hexadecimal digits", "https://4f2a9c1b2d3e", "https://4f2a9c1b2d3e" + at},
		{"punycode", "https://xn--bcher-kva.example", "https://xn--bcher-kva.example" + at},
		{"IPv4", "https://192.0.2.7:8443/x", "https://192.0.2.7:8443" + at + "/x"},
		{"IPv6", "https://[2001:db8::1]", "https://[2001:db8::1]" + at},
		{"IPv6 with a port", "https://[2001:db8::1]:8443/p", "https://[2001:db8::1]:8443" + at + "/p"},
		{"http on IPv6 loopback", "http://[::1]:3000", "http://[::1]:3000" + at},
		{"http on IPv4 loopback", "http://127.0.0.1:3000", "http://127.0.0.1:3000" + at},
		{"http elsewhere in 127/8", "http://127.8.8.8", "http://127.8.8.8" + at},
		{"http on a mapped loopback", "http://[::ffff:127.0.0.1]", "http://[::ffff:127.0.0.1]" + at},
		{"http on localhost", "http://localhost:3000/x", "http://localhost:3000" + at + "/x"},
		{"http below localhost", "http://as.localhost", "http://as.localhost" + at},
		{"http on LOCALHOST", "http://LOCALHOST", "http://LOCALHOST" + at},

		{"nothing", "", ""},
		{"a word", "example", ""},
		{"no scheme", "api.example.com", ""},
		{"scheme-relative", "//api.example.com", ""},
		{"missing //", "https:api.example.com", ""},
		{"one slash", "https:/api.example.com", ""},
		{"three slashes", "https:///api.example.com", ""},
		{"no host", "https://", ""},
		{"a port alone", "https://:443", ""},
		{"another scheme", "ftp://api.example.com", ""},
		{"a file", "file:///etc/passwd", ""},
		{"a scheme with a tail", "httpsx://api.example.com", ""},
		{"a URN", "urn:example:api", ""},
		{"http", "http://api.example.com", ""},
		{"http on a private address", "http://10.0.0.1", ""},
		{"http on localhost's namesake", "http://localhost.example.com", ""},
		{"http on a name that ends in it", "http://notlocalhost", ""},
		{"http on the unspecified address", "http://0.0.0.0", ""},
		{"backslash for slashes", `https:\\api.example.com`, ""},
		{"backslash in the authority", `https://api.example.com\@evil.example`, ""},
		{"backslash in the path", `https://api.example.com/a\b`, ""},
		{"encoded backslash before dots", `https://api.example.com/a%5c..%5cb`, ""},
		{"query", "https://api.example.com?x=1", ""},
		{"empty query", "https://api.example.com?", ""},
		{"query after a path", "https://api.example.com/a?", ""},
		{"fragment", "https://api.example.com#x", ""},
		{"empty fragment", "https://api.example.com#", ""},
		{"fragment after a path", "https://api.example.com/a#b", ""},
		{"user info", "https://user@api.example.com", ""},
		{"user and password", "https://user:canary-password@api.example.com", ""},
		{"empty user info", "https://@api.example.com", ""},
		{"empty user and password", "https://:@api.example.com", ""},
		{"encoded @", "https://user%40api.example.com", ""},
		{"dangling port", "https://api.example.com:", ""},
		{"dangling port before a path", "https://api.example.com:/a", ""},
		{"dangling port after IPv6", "https://[::1]:", ""},
		{"plus before the port", "https://api.example.com:+1", ""},
		{"minus before the port", "https://api.example.com:-1", ""},
		{"port 0", "https://api.example.com:0", ""},
		{"port 00", "https://api.example.com:00", ""},
		{"leading zero", "https://api.example.com:0443", ""},
		{"port beyond 16 bits", "https://api.example.com:65536", ""},
		{"endless port", "https://api.example.com:99999999999999999999", ""},
		{"letters for a port", "https://api.example.com:https", ""},
		{"hexadecimal port", "https://api.example.com:0x50", ""},
		{"underscore in the port", "https://api.example.com:4_43", ""},
		{"two ports", "https://api.example.com:1:2", ""},
		{"bare IPv6", "https://2001:db8::1", ""},
		{"open bracket", "https://[::1", ""},
		{"closing bracket alone", "https://::1]", ""},
		{"something after the bracket", "https://[::1]x", ""},
		{"zone", "https://[fe80::1%25eth0]", ""},
		{"raw zone", "https://[fe80::1%eth0]", ""},
		{"name in brackets", "https://[localhost]", ""},
		{"IPv4 in brackets", "https://[127.0.0.1]", ""},
		{"future address", "https://[v1.x]", ""},
		{"short IPv4", "https://127.1", ""},
		{"IPv4 as one number", "https://2130706433", ""},
		{"hexadecimal IPv4", "https://0x7f000001", ""},
		{"octal IPv4", "https://0177.0.0.1", ""},
		{"IPv4 out of range", "https://1.2.3.256", ""},
		{"IPv4 with a dot at its end", "https://127.0.0.1.", ""},
		{"empty label", "https://api..example.com", ""},
		{"dot first", "https://.example.com", ""},
		{"only dots", "https://..", ""},
		{"encoded host", "https://api%2eexample.com", ""},
		{"star", "https://*.example.com", ""},
		{"comma", "https://a,b", ""},
		{"placeholder", "https://login.example.com/{tenantid}/v2.0", ""},
		{"dot segment", "https://api.example.com/./a", ""},
		{"two dots", "https://api.example.com/../a", ""},
		{"two dots at the end", "https://api.example.com/a/..", ""},
		{"a dot at the end", "https://api.example.com/a/.", ""},
		{"encoded dots", "https://api.example.com/%2e%2e/a", ""},
		{"encoded in upper case", "https://api.example.com/%2E%2E/a", ""},
		{"half encoded", "https://api.example.com/.%2e/a", ""},
		{"one encoded dot", "https://api.example.com/%2e/a", ""},
		{"dots behind an encoded slash", "https://api.example.com/a%2f..%2fb", ""},
		{"encoded NUL", "https://api.example.com/a%00b", ""},
		{"encoded newline", "https://api.example.com/a%0ab", ""},
		{"bad escape", "https://api.example.com/%zz", ""},
		{"cut escape", "https://api.example.com/%2", ""},
		{"space before", " https://api.example.com", ""},
		{"space after", "https://api.example.com ", ""},
		{"space within", "https://api.example.com/a b", ""},
		{"tab", "https://api.example\t.com", ""},
		{"newline", "https://api.example.com\n", ""},
		{"carriage return", "https://api.example.com\r\nHost: evil", ""},
		{"NUL", "https://api.example.com\x00", ""},
		{"delete", "https://api.example.com\x7f", ""},
		{"beyond ASCII in the host", "https://bücher.example", ""},
		{"beyond ASCII in the path", "https://api.example.com/é", ""},
		{"fullwidth dot", "https://127。0。0。1", ""},
		{"bidirectional control", "https://api.example.com/\u202e", ""},
		{"no UTF-8", "https://api.example.com/\xff", ""},
		{"angle brackets", "<https://api.example.com>", ""},
		{"quote", `https://api.example.com/"`, ""},
		{"too long", long, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fetches(t, tt.raw, false); got != tt.want {
				t.Errorf("%q is fetched from %q, want %q", tt.raw, got, tt.want)
			}
			// The origin-root profile is stricter by the path and by nothing else.
			want := tt.want
			if !strings.HasSuffix(want, at) || strings.HasSuffix(tt.raw, "/...") {
				want = ""
			}
			if got := fetches(t, tt.raw, true); got != want {
				t.Errorf("with OriginRoot, %q is fetched from %q, want %q", tt.raw, got, want)
			}
		})
	}
}

func TestPathInsertion(t *testing.T) {
	tests := []struct {
		issuer string
		want   []string
	}{
		{"https://as.example.com", []string{
			"https://as.example.com/.well-known/oauth-authorization-server",
			"https://as.example.com/.well-known/openid-configuration",
		}},
		{"https://as.example.com/", []string{
			"https://as.example.com/.well-known/oauth-authorization-server",
			"https://as.example.com/.well-known/openid-configuration",
		}},
		{"https://as.example.com:8443/realms/demo", []string{
			"https://as.example.com:8443/.well-known/oauth-authorization-server/realms/demo",
			"https://as.example.com:8443/realms/demo/.well-known/openid-configuration",
			"https://as.example.com:8443/.well-known/openid-configuration/realms/demo",
		}},
		{"https://as.example.com/oauth2/default/", []string{
			"https://as.example.com/.well-known/oauth-authorization-server/oauth2/default",
			"https://as.example.com/oauth2/default/.well-known/openid-configuration",
			"https://as.example.com/.well-known/openid-configuration/oauth2/default",
		}},
		{"https://as.example.com/a%2Fb", []string{
			"https://as.example.com/.well-known/oauth-authorization-server/a%2Fb",
			"https://as.example.com/a%2Fb/.well-known/openid-configuration",
			"https://as.example.com/.well-known/openid-configuration/a%2Fb",
		}},
	}
	for _, tt := range tests {
		var a asked
		d := auth.Discovery{HTTPClient: &http.Client{Transport: &a}}
		_, err := d.Issuer(context.Background(), tt.issuer)
		if !errors.Is(err, auth.ErrNoMetadata) {
			t.Errorf("%s: %v", tt.issuer, err)
		}
		if fmt.Sprint(a.urls) != fmt.Sprint(tt.want) {
			t.Errorf("%s: asked\n%v, want\n%v", tt.issuer, a.urls, tt.want)
		}
	}
}

// TestMalformedIdentifiersStayUnprinted looks for what an identifier may hide.
func TestMalformedIdentifiersStayUnprinted(t *testing.T) {
	for _, raw := range []string{
		"https://user:canary-password@as.example.com", "https://as.example.com?token=canary-password", "https://as.example.com#canary-password",
		"canary-password", "https://as.example.com/canary-password/..", "https://as.example.com:canary-password", "https://canary-password%zz",
	} {
		for _, ask := range []func(*auth.Discovery) error{
			func(d *auth.Discovery) error { _, err := d.Issuer(t.Context(), raw); return err },
			func(d *auth.Discovery) error { _, err := d.Resource(t.Context(), raw); return err },
		} {
			err := ask(&auth.Discovery{HTTPClient: &http.Client{Transport: &asked{}}})
			if !errors.Is(err, auth.ErrIdentifier) {
				t.Errorf("%q: %v", raw, err)
			}
			for _, text := range []string{err.Error(), fmt.Sprintf("%v %+v %#v", err, err, err)} {
				if strings.Contains(text, "canary") || !strings.Contains(text, "auth: ") && !strings.Contains(text, "auth.") {
					t.Errorf("the error says %s", text)
				}
			}
		}
	}
}

// FuzzIdentifier checks what holds for every string: it is refused, or a document is fetched from the host that two
// parsers see in it, by https or on loopback, at a path that nothing on the way rewrites.
func FuzzIdentifier(f *testing.F) {
	for _, seed := range []string{
		"https://as.example.com/realms/x", "http://[::1]:3000", "https://a@b", "https:a", "https://a:0", "https://a/%2e%2e/", `https://a\b`,
		"https://127.1", "https://a?b", "https://a#b", "https://[fe80::1%25e]/", "http://localhost", "https://0x7f.1/", "https://a//b/",
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, raw string, originRoot bool) {
		got := fetches(t, raw, originRoot)
		if got == "" {
			return
		}
		u, err := url.Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		in, err := url.Parse(raw)
		if err != nil {
			t.Fatalf("%q was accepted: %v", raw, err)
		}
		_, rest, _ := strings.Cut(raw, "://")
		authority, _, _ := strings.Cut(rest, "/")
		switch {
		case u.Host != in.Host || u.Host != authority:
			t.Errorf("%q leads to the host %q", raw, u.Host)
		case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" || u.Port() == "0":
			t.Errorf("%q leads to %q", raw, got)
		case u.Scheme == "http" && !strings.Contains(strings.ToLower(u.Host), "localhost") && !strings.Contains(u.Host, "127.") &&
			!strings.Contains(u.Host, ":"):
			t.Errorf("%q leads to plain http at %q", raw, u.Host)
		case originRoot && u.Path != "/.well-known/oauth-protected-resource":
			t.Errorf("%q is no origin and leads to %q", raw, got)
		case !strings.HasPrefix(u.Path, "/.well-known/oauth-protected-resource"):
			t.Errorf("%q leads to %q", raw, got)
		}
		// The path below the well-known one may have empty segments, and nothing else that joining would take away.
		for _, segment := range strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' || r == '\\' }) {
			if segment == "." || segment == ".." {
				t.Errorf("%q leads to %q", raw, got)
			}
		}
	})
}
