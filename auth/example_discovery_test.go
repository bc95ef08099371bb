package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

// publisher is a server on loopback that publishes documents; @ stands for its own address.
func publisher(documents map[string]string) *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, ok := documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.ReplaceAll(document, "@", "https://"+r.Host))
	}))
}

// Log in at a server of which only the address is known.
func ExampleDiscovery_Issuer() {
	server := publisher(map[string]string{
		"/.well-known/oauth-authorization-server/realms/demo": `{"issuer": "@/realms/demo", "token_endpoint": "@/token",
			"device_authorization_endpoint": "@/device"}`,
	})
	defer server.Close()

	discovery := auth.Discovery{HTTPClient: server.Client()}
	found, err := discovery.Issuer(context.Background(), server.URL+"/realms/demo")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := found.For(auth.GrantDeviceCode); err != nil {
		fmt.Println(err) // it says which endpoint is missing
		return
	}
	flow := auth.DeviceFlow{
		Config:     oauth2.Config{ClientID: "my-app", Endpoint: found.Endpoint()},
		HTTPClient: found.HTTPClient(), // which goes nowhere that a document should not lead
		Prompter:   auth.Lines(os.Stderr),
	}
	fmt.Println(strings.TrimPrefix(flow.Config.Endpoint.DeviceAuthURL, server.URL))
	// Output: /device
}

// Find the authorization server of an API. Of several it is never guessed which.
func ExampleDiscovery_Resource() {
	server := publisher(map[string]string{
		"/.well-known/oauth-protected-resource/api": `{"resource": "@/api", "authorization_servers": ["@/staff", "@/customers"]}`,
		"/.well-known/openid-configuration/staff":   `{"issuer": "@/staff", "token_endpoint": "@/staff/token"}`,
	})
	defer server.Close()

	discovery := auth.Discovery{HTTPClient: server.Client()}
	_, err := discovery.Resource(context.Background(), server.URL+"/api")
	fmt.Println(errors.Is(err, auth.ErrSeveralServers))

	discovery.ExpectedIssuer = server.URL + "/staff"
	found, err := discovery.Resource(context.Background(), server.URL+"/api")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.ReplaceAll(found.TokenEndpoint+" for "+found.Resource, server.URL, ""))
	// Output:
	// true
	// /staff/token for /api
}

// Let the user choose.
func ExampleDiscovery_choose() {
	server := publisher(map[string]string{
		"/.well-known/oauth-protected-resource":         `{"resource": "@", "authorization_servers": ["@/staff", "@/customers"]}`,
		"/.well-known/oauth-authorization-server/staff": `{"issuer": "@/staff", "token_endpoint": "@/staff/token"}`,
	})
	defer server.Close()

	discovery := auth.Discovery{HTTPClient: server.Client(), Choose: func(servers []string) (string, error) {
		fmt.Println("one of", len(servers))
		return servers[0], nil // what the user said
	}}
	found, err := discovery.Resource(context.Background(), server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.TrimPrefix(found.Issuer, server.URL))
	// Output:
	// one of 2
	// /staff
}

// An error says which document was at fault, and what to do.
func ExampleDiscoveryError() {
	discovery := auth.Discovery{OriginRoot: true}
	_, err := discovery.Issuer(context.Background(), "https://as.example.com/realms/demo")
	if e, ok := errors.AsType[*auth.DiscoveryError](err); ok {
		fmt.Println(string(e.Reason), e.Hop)
	}
	fmt.Println(err)
	// Output:
	// invalid_identifier issuer
	// auth: the identifier asked for is malformed: it has a path, which the origin-root profile refuses; give the https address exactly as the server publishes it
}

// Log in at a provider whose ways are known.
func ExampleProfile_Apply() {
	profile, _ := auth.ProfileNamed("entra")
	profile, err := profile.With(map[string]string{"tenant": "contoso.example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	flow, err := profile.Apply(auth.DeviceFlow{
		Config:   oauth2.Config{ClientID: "my-app", Scopes: []string{"User.Read"}},
		Prompter: auth.Lines(os.Stderr),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(flow.Config.Endpoint.DeviceAuthURL)
	// Output: https://login.microsoftonline.com/contoso.example.com/oauth2/v2.0/devicecode
}

// A provider that does not speak RFC 8628 says so before anything is sent.
func ExampleUnsupportedError() {
	profile, _ := auth.ProfileNamed("aws")
	_, err := profile.Apply(auth.DeviceFlow{})
	fmt.Println(errors.Is(err, errors.ErrUnsupported))
	fmt.Println(err)
	// Output:
	// true
	// auth: no device login at AWS IAM Identity Center: its protocol is JSON in camelCase, after a client has been registered, and not RFC 8628; use the provider's own tools to log in
}

// Refresh a token once, and know whether trying again is safe.
func ExampleRefresher_Refresh() {
	server := publisher(map[string]string{
		"/token": `{"access_token": "new", "refresh_token": "next", "token_type": "Bearer"}`,
	})
	defer server.Close()

	refresher := auth.Refresher{
		Config:     oauth2.Config{ClientID: "my-app", Endpoint: oauth2.Endpoint{TokenURL: server.URL + "/token"}},
		HTTPClient: server.Client(),
	}
	token, err := refresher.Refresh(context.Background(), &oauth2.Token{RefreshToken: "stored"})
	if e, ok := errors.AsType[*auth.RefreshError](err); ok {
		fmt.Println(e, e.Repeatable())
		return
	}
	fmt.Println(token.AccessToken, token.RefreshToken)
	// Output: new next
}
