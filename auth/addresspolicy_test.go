package auth_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// TestNamedHosts has a server at a public address name a host by its spelling.
func TestNamedHosts(t *testing.T) {
	tests := []struct{ host, kind string }{
		{"other.test", ""},
		{"203.0.113.9", ""},
		{"8.8.8.8", ""},
		{"[2001:db8::1]", ""},
		{"172.15.255.255", ""},
		{"172.32.0.0", ""},
		{"100.63.255.255", ""},
		{"100.128.0.0", ""},
		{"169.253.1.1", ""},
		{"[64:ff9b::808:808]", ""},
		{"127.0.0.1", "loopback"},
		{"127.255.0.1", "loopback"},
		{"[::1]", "loopback"},
		{"[::ffff:127.0.0.1]", "loopback"},
		{"localhost", "loopback"},
		{"LocalHost.", "loopback"},
		{"as.localhost", "loopback"},
		{"10.0.0.1", "private"},
		{"172.16.0.1", "private"},
		{"172.31.255.255", "private"},
		{"192.168.1.1", "private"},
		{"100.64.0.1", "private"},
		{"[fc00::1]", "private"},
		{"[fd12:3456::1]", "private"},
		{"[fec0::1]", "private"},
		{"[::ffff:10.0.0.1]", "private"},
		{"[64:ff9b::a00:1]", "private"},
		{"[64:ff9b:1::1]", "private"},
		{"[2002:a00:1::]", "private"},
		{"intranet", "private"},
		{"printer.local", "private"},
		{"nas.home.arpa", "private"},
		{"vault.corp.internal", "private"},
		{"169.254.1.1", "link-local"},
		{"[fe80::1]", "link-local"},
		{"169.254.169.254", "cloud metadata"},
		{"[::ffff:169.254.169.254]", "cloud metadata"},
		{"[64:ff9b::a9fe:a9fe]", "cloud metadata"},
		{"169.254.170.2", "cloud metadata"},
		{"168.63.129.16", "cloud metadata"},
		{"100.100.100.200", "cloud metadata"},
		{"192.0.0.192", "cloud metadata"},
		{"[fd00:ec2::254]", "cloud metadata"},
		{"metadata.google.internal", "cloud metadata"},
		{"METADATA.google.internal.", "cloud metadata"},
		{"224.0.0.1", "multicast"},
		{"239.255.255.250", "multicast"},
		{"[ff02::1]", "multicast"},
		{"0.0.0.0", "unspecified"},
		{"0.1.2.3", "unspecified"},
		{"[::]", "unspecified"},
		{"255.255.255.255", "reserved"},
		{"240.0.0.1", "reserved"},
		{"192.0.0.8", "reserved"},
	}
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		var host string
		p.serve(t, "as.test", documents{serverPath: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.handler("as.test", documents{serverPath: metadataOf("https://as.test", map[string]any{"revocation_endpoint": "https://" + host + "/revoke"})}).ServeHTTP(w, r)
		})})
		for _, tt := range tests {
			host = tt.host
			for _, allow := range []bool{false, true} {
				want := tt.kind
				if allow && (want == "loopback" || want == "private") {
					want = ""
				}
				d := auth.Discovery{HTTPClient: p.client(), AllowPrivate: allow}
				_, err := d.Issuer(t.Context(), "https://as.test")
				kind := ""
				if e, ok := errors.AsType[*auth.AddressError](err); ok {
					kind = e.Kind
					if got := failureOf(t, err); got != (discoveryFailure{auth.ErrRefusedAddress, auth.HopIssuer, "revocation_endpoint", 0}) {
						t.Errorf("%s: %+v", host, got)
					}
				} else if err != nil {
					t.Errorf("%s: %v", host, err)
				}
				if kind != want {
					t.Errorf("%s (AllowPrivate %v) is refused as %q, want %q", host, allow, kind, want)
				}
			}
		}
	})
}

// TestDialledAddresses has documents name hosts whose addresses are found out when they are dialled.
func TestDialledAddresses(t *testing.T) {
	tests := []struct {
		name      string
		own       string   // where the issuer asked for is
		endpoint  []string // where the host of its token endpoint is, at each connection
		allow     bool
		wantKinds []string // what each connection is refused as
	}{
		{"public to public", "203.0.113.1", []string{"198.51.100.7"}, false, []string{""}},
		{"public to private", "203.0.113.1", []string{"10.0.0.1"}, false, []string{"private"}},
		{"public to loopback", "203.0.113.1", []string{"127.0.0.1"}, false, []string{"loopback"}},
		{"public to metadata", "203.0.113.1", []string{"169.254.169.254"}, false, []string{"cloud metadata"}},
		{"public to private IPv6", "203.0.113.1", []string{"fd00::1"}, false, []string{"private"}},
		{"public to link-local with a zone", "203.0.113.1", []string{"fe80::1%eth0"}, false, []string{"link-local"}},
		{"public to mapped", "203.0.113.1", []string{"::ffff:192.168.0.1"}, false, []string{"private"}},
		{"rebinding", "203.0.113.1", []string{"198.51.100.7", "10.0.0.1", "198.51.100.7", "169.254.169.254"}, false, []string{"", "private", "", "cloud metadata"}},
		{"allowed", "203.0.113.1", []string{"10.0.0.1", "127.0.0.1", "169.254.169.254", "224.0.0.1"}, true, []string{"", "", "cloud metadata", "multicast"}},
		{"private to private", "10.0.0.5", []string{"10.9.9.9", "192.168.7.7"}, false, []string{"", ""}},
		{"private to the rest", "10.0.0.5", []string{"127.0.0.1", "169.254.169.254", "100.100.100.200", "8.8.8.8"}, false, []string{"loopback", "cloud metadata", "cloud metadata", ""}},
		{"loopback to loopback", "127.0.0.1", []string{"127.0.0.2", "::1"}, false, []string{"", ""}},
		{"loopback to private", "127.0.0.1", []string{"10.0.0.1"}, false, []string{"private"}},
		{"link-local to itself alone", "169.254.7.7", []string{"169.254.7.7", "169.254.7.8", "169.254.169.254"}, false, []string{"", "link-local", "cloud metadata"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				p := newPublished(t)
				p.serve(t, "as.test", documents{serverPath: metadataOf("https://as.test", map[string]any{"token_endpoint": "https://token.test/token"})})
				p.serve(t, "token.test", documents{"/token": map[string]any{}})
				p.at("as.test", tt.own)
				p.at("token.test", tt.endpoint...)
				d := auth.Discovery{HTTPClient: p.client(), AllowPrivate: tt.allow}
				m, err := d.Issuer(t.Context(), "https://as.test")
				if err != nil {
					t.Fatal(err)
				}
				client := m.HTTPClient()
				p.asked()
				for i, want := range tt.wantKinds {
					res, err := client.PostForm(m.TokenEndpoint, nil)
					if err == nil {
						res.Body.Close()
						client.CloseIdleConnections()
					}
					kind := ""
					if e, ok := errors.AsType[*auth.AddressError](err); ok {
						kind = e.Kind
						if e.Host != "token.test" || !errors.Is(err, auth.ErrUnavailable) {
							t.Errorf("%v", err)
						}
					}
					if kind != want || (err == nil) != (want == "") {
						t.Errorf("connection %d: refused as %q (%v), want %q", i+1, kind, err, want)
					}
					if asked := p.asked(); len(asked) != 0 && want != "" {
						t.Errorf("connection %d: something was sent: %v", i+1, asked)
					}
				}
			})
		})
	}
}

// TestAdvertisedServer holds the second hop to the policy.
func TestAdvertisedServer(t *testing.T) {
	const as = "https://as.test"
	tests := []struct {
		name     string
		resource string // the resource's address
		server   string // the authorization server's
		token    string // its token endpoint's
		expected bool   // the server is the caller's own choice
		choose   bool
		hop      auth.Hop // at which it is refused
		post     string   // what the token endpoint is refused as
	}{
		{"all public", "203.0.113.1", "203.0.113.2", "203.0.113.3", false, false, "", ""},
		{"private server", "203.0.113.1", "10.0.0.1", "203.0.113.3", false, false, auth.HopIssuer, ""},
		{"private server, chosen among those named", "203.0.113.1", "10.0.0.1", "203.0.113.3", false, true, auth.HopIssuer, ""},
		{"private server, expected", "203.0.113.1", "10.0.0.1", "10.0.0.2", true, false, "", ""},
		{"private server, expected, and a metadata service", "203.0.113.1", "10.0.0.1", "169.254.169.254", true, false, "", "cloud metadata"},
		{"all private", "10.0.0.1", "10.0.0.2", "10.0.0.3", false, false, "", ""},
		{"public server of a private resource", "10.0.0.1", "203.0.113.2", "10.0.0.3", false, false, "", ""},
		{"metadata service", "203.0.113.1", "169.254.169.254", "203.0.113.3", false, false, auth.HopIssuer, ""},
		{"private token endpoint", "203.0.113.1", "203.0.113.2", "192.168.0.1", false, false, "", "private"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				p := newPublished(t)
				p.serve(t, "api.test", documents{resourcePath: map[string]any{"resource": "https://api.test", "authorization_servers": []string{as}}})
				p.serve(t, "as.test", documents{serverPath: metadataOf(as, map[string]any{"token_endpoint": "https://token.test/token"})})
				p.serve(t, "token.test", documents{"/token": map[string]any{}})
				p.at("api.test", tt.resource)
				p.at("as.test", tt.server)
				p.at("token.test", tt.token)
				d := auth.Discovery{HTTPClient: p.client()}
				if tt.expected {
					d.ExpectedIssuer = as
				}
				if tt.choose {
					d.Choose = func(servers []string) (string, error) { return servers[0], nil }
				}
				m, err := d.Resource(t.Context(), "https://api.test")
				if tt.hop != "" {
					if got := failureOf(t, err); got != (discoveryFailure{auth.ErrRefusedAddress, tt.hop, "", 0}) {
						t.Errorf("%+v", got)
					}
					if asked := p.asked(); !slices.Equal(asked, []string{"api.test" + resourcePath}) {
						t.Errorf("asked for %v", asked)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				res, err := m.HTTPClient().PostForm(m.TokenEndpoint, nil)
				if err == nil {
					res.Body.Close()
					m.HTTPClient().CloseIdleConnections()
				}
				kind := ""
				if e, ok := errors.AsType[*auth.AddressError](err); ok {
					kind = e.Kind
				}
				if kind != tt.post || (err == nil) != (tt.post == "") {
					t.Errorf("refused as %q (%v), want %q", kind, err, tt.post)
				}
			})
		})
	}
}

// TestOwnIssuerOnThisMachine is development: plain http on loopback, and neither more nor less.
func TestOwnIssuerOnThisMachine(t *testing.T) {
	const as = "http://127.0.0.1:8080"
	tests := []struct {
		endpoint string
		want     discoveryFailure
	}{
		{"http://127.0.0.1:8080/token", discoveryFailure{}},
		{"http://localhost:9090/token", discoveryFailure{}},
		{"http://[::1]:9090/token", discoveryFailure{}},
		{"https://as.test/token", discoveryFailure{}},
		{"https://10.0.0.1/token", discoveryFailure{auth.ErrRefusedAddress, auth.HopIssuer, "token_endpoint", 0}},
		{"https://169.254.169.254/token", discoveryFailure{auth.ErrRefusedAddress, auth.HopIssuer, "token_endpoint", 0}},
		{"http://as.test/token", discoveryFailure{auth.ErrInvalidMetadata, auth.HopIssuer, "token_endpoint", 0}},
	}
	for _, tt := range tests {
		fakes.Bubble(t, noon, func(t *testing.T) {
			p := newPublished(t)
			p.net.ServePlain(t, "127.0.0.1:8080", p.handler("as", documents{serverPath: metadataOf(as, map[string]any{"token_endpoint": tt.endpoint})}))
			d := auth.Discovery{HTTPClient: p.net.Client()} // whose connections have no IP address: the spelling tells
			_, err := d.Issuer(t.Context(), as)
			if got := failureOf(t, err); got != tt.want {
				t.Errorf("%s: got %+v (%v), want %+v", tt.endpoint, got, err, tt.want)
			}
		})
	}
}

// TestRefusedAddressEndsALogin does not try again what a policy refuses.
func TestRefusedAddressEndsALogin(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		p.serve(t, "as.test", documents{
			serverPath: metadataOf("https://as.test"),
			"/device":  map[string]any{"device_code": "d", "user_code": "U", "verification_uri": "https://as.test/activate", "expires_in": 900},
		})
		p.at("as.test", "203.0.113.1", "203.0.113.1", "10.0.0.1")
		d := auth.Discovery{HTTPClient: p.client()}
		m, err := d.Issuer(t.Context(), "https://as.test")
		if err != nil {
			t.Fatal(err)
		}
		flow := auth.DeviceFlow{
			Config: oauth2.Config{ClientID: "c", Endpoint: m.Endpoint()}, HTTPClient: m.HTTPClient(),
			Prompter: auth.PrompterFunc(func(context.Context, auth.Prompt) error { return nil }),
		}
		_, err = flow.Login(t.Context())
		if !errors.Is(err, auth.ErrUnavailable) || time.Since(noon) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(noon), err)
		}
		if _, ok := errors.AsType[*auth.AddressError](err); !ok {
			t.Errorf("the error does not say what was refused: %v", err)
		}
	})
}

// TestOtherRoundTrippers can be held to the spelling alone.
func TestOtherRoundTrippers(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		endpoint := "https://token.test/token"
		p.serve(t, "as.test", documents{serverPath: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.handler("as.test", documents{serverPath: metadataOf("https://as.test", map[string]any{"token_endpoint": endpoint})}).ServeHTTP(w, r)
		})})
		p.serve(t, "token.test", documents{"/token": map[string]any{}})
		p.at("token.test", "10.0.0.1")
		d := auth.Discovery{HTTPClient: &http.Client{Transport: wrapped{p.client().Transport}}}
		m, err := d.Issuer(t.Context(), "https://as.test")
		if err != nil {
			t.Fatal(err)
		}
		res, err := m.HTTPClient().PostForm(m.TokenEndpoint, nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		m.HTTPClient().CloseIdleConnections()
		if _, err := m.HTTPClient().PostForm("https://10.0.0.1/token", nil); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		// The caller's own issuer is known by its spelling.
		p.net.ServePlain(t, "localhost:8080", p.handler("own", documents{serverPath: metadataOf("http://localhost:8080")}))
		d.HTTPClient.Transport = wrapped{p.net.Transport()}
		if _, err := d.Issuer(t.Context(), "http://localhost:8080"); err != nil {
			t.Errorf("%v", err)
		}
		endpoint = "https://10.0.0.1/token"
		if _, err := d.Issuer(t.Context(), "https://as.test"); !errors.Is(err, auth.ErrRefusedAddress) {
			t.Errorf("%v", err)
		}
	})
}

type wrapped struct{ http.RoundTripper }

// TestOldDialers keeps the dialers that a transport should no longer have.
func TestOldDialers(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		p.serve(t, "as.test", documents{serverPath: metadataOf("https://as.test"), "/token": map[string]any{}})
		p.at("as.test", "203.0.113.1", "10.0.0.1")
		client := p.client()
		tr := client.Transport.(*http.Transport)
		tr.DialContext = nil
		tr.Dial = func(network, addr string) (net.Conn, error) { return p.dial(context.Background(), network, addr) } //nolint:staticcheck // the point
		d := auth.Discovery{HTTPClient: client}
		m, err := d.Issuer(t.Context(), "https://as.test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.HTTPClient().PostForm(m.TokenEndpoint, nil); !errors.Is(err, auth.ErrUnavailable) || !strings.Contains(err.Error(), "AllowPrivate") {
			t.Errorf("%v", err)
		}
	})
}
