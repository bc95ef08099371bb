package interop_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/interop/oidcprovider"
	"github.com/heed-sdk/heed/interop/zitadel"
)

// Both servers have the same clients and the same user.
const (
	publicID           = zitadel.ClientID
	confidentialID     = zitadel.ConfidentialID
	confidentialSecret = zitadel.ConfidentialSecret
	user               = zitadel.User
)

// The names under which tables have what is different between the servers.
const (
	oidcProvider = "oidc-provider"
	zitadelOP    = "zitadel"
)

// pace has the times of a server. The Config of either is made of the same fields.
type pace struct {
	DeviceTTL, AccessTTL, Interval, MinPoll time.Duration
}

// paced is a server that lets nobody poll faster than it has said: a poll that comes early gets slow_down.
var paced = pace{Interval: time.Second, MinPoll: time.Second}

// provider is what the helpers of both servers offer.
type provider interface {
	Issuer() string
	Approve(ctx context.Context, address, userCode string) error
	Deny(ctx context.Context, address, userCode string) error
}

var providers = []struct {
	name  string
	start func(testing.TB, pace) provider
}{
	{oidcProvider, func(t testing.TB, p pace) provider { return oidcprovider.Start(t, oidcprovider.Config(p)) }},
	{zitadelOP, func(t testing.TB, p pace) provider { return zitadel.Start(t, zitadel.Config(p)) }},
}

// server is a running authorization server with its endpoints.
type server struct {
	provider
	name                                            string
	deviceURL, tokenURL, userInfoURL, revocationURL string
}

// servedBy are tests that need a server of a certain pace.
type servedBy []struct {
	name string
	test func(t *testing.T, s *server)
}

// onEach runs tests on each of the servers, all at once. They share one server of each kind: node takes its time to start.
func (tests servedBy) onEach(t *testing.T, p pace) {
	t.Parallel()
	for _, each := range providers {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			s := &server{provider: each.start(t, p), name: each.name}
			s.discover(t)
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					tt.test(t, s)
				})
			}
		})
	}
}

// discover asks the server for its endpoints. oidc-provider answers at the address of RFC 8414, zitadel at OpenID's alone.
func (s *server) discover(t *testing.T) {
	t.Helper()
	d := auth.Discovery{HTTPClient: newClient(t)}
	m, err := d.Issuer(t.Context(), s.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.For(auth.GrantDeviceCode); err != nil {
		t.Fatal(err)
	}
	if m.UserinfoEndpoint == "" || m.RevocationEndpoint == "" {
		t.Fatalf("the metadata lacks an endpoint: %+v", m)
	}
	s.deviceURL, s.tokenURL = m.DeviceAuthorizationEndpoint, m.TokenEndpoint
	s.userInfoURL, s.revocationURL = m.UserinfoEndpoint, m.RevocationEndpoint
}

// config is a client of the server.
func (s *server) config(id, secret string, style oauth2.AuthStyle, scopes ...string) oauth2.Config {
	return oauth2.Config{
		ClientID: id, ClientSecret: secret, Scopes: scopes,
		Endpoint: oauth2.Endpoint{DeviceAuthURL: s.deviceURL, TokenURL: s.tokenURL, AuthStyle: style},
	}
}

// newClient returns a client with connections of its own, which end with the test.
func newClient(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}
