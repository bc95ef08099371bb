package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/oauth2"
)

// The grants that the SDK asks endpoints for (RFC 6749, sections 4.1.3 and 6; RFC 8628, section 3.4). Metadata.For takes
// any other grant's name as well.
const (
	GrantDeviceCode        = grantType
	GrantRefreshToken      = "refresh_token"
	GrantAuthorizationCode = "authorization_code"
)

// Metadata is what an authorization server has published about itself (RFC 8414, section 2). Each endpoint that is there
// is an https address, or http on loopback. The lists say what the server claims; real servers leave out what they
// support, so that nothing is refused for not being on one.
type Metadata struct {
	// Issuer is the identifier that was asked for, or the one that the resource named.
	Issuer string
	// Resource is the identifier of the resource through which the issuer was found, to be sent as the resource parameter
	// (RFC 8707); "" when the issuer was asked for directly.
	Resource string

	AuthorizationEndpoint       string
	TokenEndpoint               string
	DeviceAuthorizationEndpoint string // RFC 8628, section 4
	RevocationEndpoint          string // RFC 7009
	IntrospectionEndpoint       string // RFC 7662
	UserinfoEndpoint            string // OpenID Connect

	ScopesSupported                   []string
	GrantTypesSupported               []string
	TokenEndpointAuthMethodsSupported []string
	CodeChallengeMethodsSupported     []string

	transport http.RoundTripper
}

// endpoints maps the members of the document to where they are kept.
func (m *Metadata) endpoints() []endpointMember {
	return []endpointMember{
		{"authorization_endpoint", &m.AuthorizationEndpoint},
		{"token_endpoint", &m.TokenEndpoint},
		{"device_authorization_endpoint", &m.DeviceAuthorizationEndpoint},
		{"revocation_endpoint", &m.RevocationEndpoint},
		{"introspection_endpoint", &m.IntrospectionEndpoint},
		{"userinfo_endpoint", &m.UserinfoEndpoint},
	}
}

type endpointMember struct {
	name  string
	value *string
}

// Endpoint returns the endpoints as package oauth2 has them. A client without a secret sends its id in the body, so the
// style is AuthStyleInParams; change it for a client whose secret belongs into the header. The server's list of methods
// has no say in it, because the methods that work are often not on it.
func (m *Metadata) Endpoint() oauth2.Endpoint {
	return oauth2.Endpoint{
		AuthURL: m.AuthorizationEndpoint, DeviceAuthURL: m.DeviceAuthorizationEndpoint, TokenURL: m.TokenEndpoint,
		AuthStyle: oauth2.AuthStyleInParams,
	}
}

// For reports what a grant lacks: nil, or a *DiscoveryError that is ErrMissingEndpoint and names the endpoint.
func (m *Metadata) For(grant string) error {
	need := []endpointMember{{"token_endpoint", &m.TokenEndpoint}}
	switch grant {
	case GrantDeviceCode:
		need = append(need, endpointMember{"device_authorization_endpoint", &m.DeviceAuthorizationEndpoint})
	case GrantAuthorizationCode:
		need = append(need, endpointMember{"authorization_endpoint", &m.AuthorizationEndpoint})
	}
	for _, e := range slices.Backward(need) { // the grant's own endpoint says more than the common one
		if *e.value == "" {
			return &DiscoveryError{
				Reason: ErrMissingEndpoint, Hop: HopIssuer, Issuer: fitToPrint(m.Issuer), Endpoint: e.name,
				Err: fmt.Errorf("the grant %q needs it", grant),
			}
		}
	}
	return nil
}

// HTTPClient returns a client for the server's endpoints, which a document has named: it keeps to the address policy of
// the [Discovery] at each connection, and follows no redirect. Give it to [DeviceFlow]. A Metadata that did not come from
// a Discovery has nil, which stands for the default client.
func (m *Metadata) HTTPClient() *http.Client {
	if m.transport == nil {
		return nil
	}
	return &http.Client{
		Transport:     m.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// readMetadata reads an authorization server's document. issuer is the string asked for. The error is a *DiscoveryError
// that lacks the hop.
func readMetadata(m members, issuer string) (*Metadata, *DiscoveryError) {
	if err := sameAs(m, "issuer", issuer); err != nil {
		return nil, err
	}
	md := &Metadata{Issuer: issuer}
	for _, e := range md.endpoints() {
		text, found, err := m.text(e.name)
		switch {
		case err != nil:
			err = flaw("it is no string")
		case found:
			_, err = parseAddress(text)
		}
		if err != nil {
			return nil, &DiscoveryError{Reason: ErrInvalidMetadata, Endpoint: e.name, Err: err}
		}
		*e.value = text
	}
	// What is only told and never acted on cannot make a document unusable.
	md.ScopesSupported, _, _ = texts(m, "scopes_supported")
	md.GrantTypesSupported, _, _ = texts(m, "grant_types_supported")
	md.TokenEndpointAuthMethodsSupported, _, _ = texts(m, "token_endpoint_auth_methods_supported")
	md.CodeChallengeMethodsSupported, _, _ = texts(m, "code_challenge_methods_supported")
	return md, nil
}

// ResourceMetadata is what a protected resource has published about itself (RFC 9728, section 2).
type ResourceMetadata struct {
	// Resource is the identifier that was asked for.
	Resource string
	// AuthorizationServers are the issuers that the resource trusts, as it spells them: nil when the document says nothing
	// about them, empty when it says that there are none. They are not checked; the one that is asked for will be.
	AuthorizationServers []string
	ScopesSupported      []string
}

// readResourceMetadata reads a resource's document. resource is the string asked for. The error is a *DiscoveryError that
// lacks the hop.
func readResourceMetadata(m members, resource string) (*ResourceMetadata, *DiscoveryError) {
	if err := sameAs(m, "resource", resource); err != nil {
		return nil, err
	}
	servers, _, err := texts(m, "authorization_servers")
	if err != nil {
		return nil, &DiscoveryError{Reason: ErrInvalidMetadata, Err: err}
	}
	md := &ResourceMetadata{Resource: resource, AuthorizationServers: servers}
	md.ScopesSupported, _, _ = texts(m, "scopes_supported")
	return md, nil
}

// sameAs checks that a document is about what was asked for (RFC 8414, section 3.3; RFC 9728, section 3.3).
func sameAs(m members, name, asked string) *DiscoveryError {
	got, err := m.required(name)
	if err != nil {
		return &DiscoveryError{Reason: ErrInvalidMetadata, Err: err}
	}
	if sameIdentifier(asked, got) {
		return nil
	}
	why := errors.New("the document's own is no identifier")
	if got = fitToPrint(got); got != "" {
		why = fmt.Errorf("the document's own is %s", got)
	}
	return &DiscoveryError{Reason: ErrMismatch, Err: why}
}

// texts reads an array of strings; found is false, and the list nil, when it is absent or null.
func texts(m members, name string) (list []string, found bool, err error) {
	if !m.has(name) {
		return nil, false, nil
	}
	var items []*string
	if json.Unmarshal(m.values[name], &items) != nil || slices.Contains(items, nil) {
		return nil, true, fmt.Errorf("%s is no array of strings", name)
	}
	list = make([]string, len(items))
	for i, item := range items {
		list[i] = *item
	}
	return list, true, nil
}
