package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

// answers is a transport that answers every request with one document.
type answers string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(a))), Request: r,
	}, nil
}

// read reads a server's document.
func read(document string) (*auth.Metadata, error) {
	d := auth.Discovery{HTTPClient: &http.Client{Transport: answers(document)}}
	return d.Issuer(context.Background(), "https://as.test")
}

func TestMetadata(t *testing.T) {
	m, err := read(`{
		"issuer": "https://as.test",
		"authorization_endpoint": "https://as.test/authorize?p=1",
		"token_endpoint": "https://token.test/token",
		"device_authorization_endpoint": "https://as.test/device",
		"revocation_endpoint": "https://as.test/revoke",
		"introspection_endpoint": "https://as.test/introspect",
		"userinfo_endpoint": "https://as.test/me",
		"scopes_supported": ["openid", "read"],
		"grant_types_supported": ["authorization_code"],
		"token_endpoint_auth_methods_supported": ["client_secret_basic"],
		"code_challenge_methods_supported": ["S256"],
		"jwks_uri": "http://ignored.test", "Token_Endpoint": "https://attacker.test", "more": {"a": [1e400]}
	}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := (oauth2.Endpoint{
		AuthURL: "https://as.test/authorize?p=1", DeviceAuthURL: "https://as.test/device", TokenURL: "https://token.test/token",
		AuthStyle: oauth2.AuthStyleInParams,
	}); m.Endpoint() != want {
		t.Errorf("%+v", m.Endpoint())
	}
	if m.RevocationEndpoint != "https://as.test/revoke" || m.IntrospectionEndpoint != "https://as.test/introspect" || m.UserinfoEndpoint != "https://as.test/me" {
		t.Errorf("%+v", m)
	}
	if !slices.Equal(m.ScopesSupported, []string{"openid", "read"}) || !slices.Equal(m.CodeChallengeMethodsSupported, []string{"S256"}) ||
		!slices.Equal(m.GrantTypesSupported, []string{"authorization_code"}) || !slices.Equal(m.TokenEndpointAuthMethodsSupported, []string{"client_secret_basic"}) {
		t.Errorf("%+v", m)
	}
	if m.Resource != "" || m.HTTPClient() == nil || (&auth.Metadata{}).HTTPClient() != nil {
		t.Errorf("%+v", m)
	}
	// What the lists leave out is no reason to refuse it: see the interoperability notes on real servers.
	for _, grant := range []string{auth.GrantDeviceCode, auth.GrantRefreshToken, auth.GrantAuthorizationCode, "client_credentials"} {
		if err := m.For(grant); err != nil {
			t.Errorf("%s: %v", grant, err)
		}
	}
}

func TestMissingEndpoints(t *testing.T) {
	const device, token, authorization = "device_authorization_endpoint", "token_endpoint", "authorization_endpoint"
	tests := []struct {
		has, grant, missing string
	}{
		{token + " " + device, auth.GrantDeviceCode, ""},
		{token + " " + device, auth.GrantRefreshToken, ""},
		{token + " " + device, auth.GrantAuthorizationCode, authorization},
		{token + " " + authorization, auth.GrantDeviceCode, device},
		{device, auth.GrantDeviceCode, token},
		{"", auth.GrantDeviceCode, device},
		{"", auth.GrantRefreshToken, token},
		{authorization, auth.GrantAuthorizationCode, token},
		{device, "client_credentials", token},
	}
	for _, tt := range tests {
		doc := map[string]string{"issuer": "https://as.test"}
		for name := range strings.FieldsSeq(tt.has) {
			doc[name] = "https://as.test/" + name
		}
		text, _ := json.Marshal(doc)
		m, err := read(string(text))
		if err != nil {
			t.Fatal(err)
		}
		err = m.For(tt.grant)
		want := discoveryFailure{}
		if tt.missing != "" {
			want = discoveryFailure{auth.ErrMissingEndpoint, auth.HopIssuer, tt.missing, 0}
		}
		if got := failureOf(t, err); got != want {
			t.Errorf("%q for %s: got %+v, want %+v", tt.has, tt.grant, got, want)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.missing) || !strings.Contains(err.Error(), "https://as.test")) {
			t.Errorf("%v", err)
		}
	}
}

func TestEndpointsThatAreThere(t *testing.T) {
	tests := []struct {
		value string // JSON
		good  bool
	}{
		{`"https://as.test/token"`, true},
		{`"https://as.test/token?tenant=1"`, true},
		{`"https://other.test:8443"`, true},
		{`null`, true},
		{`""`, false},
		{`" "`, false},
		{`7`, false},
		{`["https://as.test/token"]`, false},
		{`"http://as.test/token"`, false},
		{`"/token"`, false},
		{`"//as.test/token"`, false},
		{`"https:as.test"`, false},
		{`"https://user:canary@as.test/token"`, false},
		{`"https://@as.test/token"`, false},
		{`"https://as.test/token#canary"`, false},
		{`"https://as.test/token?x=canary#"`, false},
		{`"https://as.test:0/token"`, false},
		{`"https://as.test/../token"`, false},
		{`"https://as.test\\token"`, false},
		{`"https://as.test/\ud800"`, false},
		{`"javascript:alert(1)"`, false},
		{`"file:///etc/passwd"`, false},
	}
	for _, name := range []string{
		"authorization_endpoint", "token_endpoint", "device_authorization_endpoint", "revocation_endpoint", "introspection_endpoint", "userinfo_endpoint",
	} {
		for _, tt := range tests {
			_, err := read(fmt.Sprintf(`{"issuer":"https://as.test",%q:%s}`, name, tt.value))
			want := discoveryFailure{}
			if !tt.good {
				want = discoveryFailure{auth.ErrInvalidMetadata, auth.HopIssuer, name, 0}
			}
			if got := failureOf(t, err); got != want {
				t.Errorf("%s %s: got %+v, want %+v", name, tt.value, got, want)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("%v", err)
			}
		}
	}
}

func TestDocumentsWithoutAnIssuer(t *testing.T) {
	for _, doc := range []string{`{}`, `{"issuer":null}`, `{"issuer":""}`, `{"issuer":7}`, `{"issuer":["https://as.test"]}`, `{"Issuer":"https://as.test"}`} {
		if _, err := read(doc); !errors.Is(err, auth.ErrInvalidMetadata) {
			t.Errorf("%s: %v", doc, err)
		}
	}
	// Of a member that comes twice the last one counts, for the check as for the use.
	if _, err := read(`{"issuer":"https://as.test","issuer":"https://other.test"}`); !errors.Is(err, auth.ErrMismatch) {
		t.Error(err)
	}
	// Lists that nothing depends on cannot fail a discovery.
	if _, err := read(`{"issuer":"https://as.test","scopes_supported":"openid","grant_types_supported":[7]}`); err != nil {
		t.Error(err)
	}
}

// FuzzMetadata checks what holds for every document: it is refused with a reason, or it is about the issuer asked for and
// every endpoint in it may be used.
func FuzzMetadata(f *testing.F) {
	for _, seed := range []string{
		`{"issuer":"https://as.test","token_endpoint":"https://as.test/token"}`, `{"issuer":"https://as.test/"}`, `{`, `[]`, `null`, ``,
		`{"issuer":"https://as.test","token_endpoint":""}`, `{"issuer":"https://as.test","scopes_supported":["a"]}`,
		`{"issuer":"https://as.test","token_endpoint":"https://10.0.0.1/"}`, `{"resource":"https://as.test","authorization_servers":["https://a.test"]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) {
		m, err := read(document)
		if (m == nil) == (err == nil) {
			t.Fatalf("%v, %v", m, err)
		}
		if err != nil {
			if failureOf(t, err).reason == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		} else {
			var doc struct{ Issuer string }
			if json.Unmarshal([]byte(document), &map[string]any{}) == nil && json.Unmarshal([]byte(document), &doc) != nil {
				t.Errorf("accepted %q", document)
			}
			for _, endpoint := range []string{m.AuthorizationEndpoint, m.TokenEndpoint, m.DeviceAuthorizationEndpoint, m.RevocationEndpoint, m.IntrospectionEndpoint, m.UserinfoEndpoint} {
				if endpoint == "" {
					continue
				}
				if u, err := url.Parse(endpoint); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
					t.Errorf("the endpoint %q was accepted", endpoint)
				}
			}
		}
		d := auth.Discovery{HTTPClient: &http.Client{Transport: answers(document)}}
		if r, err := d.ProtectedResource(context.Background(), "https://as.test"); (r == nil) == (err == nil) {
			t.Fatalf("%v, %v", r, err)
		}
	})
}
