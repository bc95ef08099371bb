// Package optest drives an authorization server with nothing but net/http, to show that the server does what the tests of
// the SDK rely on. Polls here are as fast as the test wants: it is no client to imitate.
package optest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// Client is one client at one server, with the endpoints of its metadata.
type Client struct {
	t          testing.TB
	http       *http.Client
	id, secret string
	endpoints  map[string]any
}

// NewClient reads the issuer's OpenID discovery document. A client with a secret authenticates by HTTP Basic; one without,
// by its id in the body.
func NewClient(t testing.TB, issuer, id, secret string) *Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := &Client{t: t, id: id, secret: secret, http: &http.Client{Transport: transport, Timeout: 20 * time.Second}}
	a := c.get(issuer+"/.well-known/openid-configuration", "")
	if a.Status != http.StatusOK || a.String("issuer") != issuer {
		t.Fatalf("discovery: %v", a)
	}
	c.endpoints = a.Body
	return c
}

// Answer is what came back. Body is nil when it was no JSON object.
type Answer struct {
	Status int
	Header http.Header
	Body   map[string]any
	Raw    string
}

// String returns the member as a string, or "" if it is none.
func (a Answer) String(member string) string {
	s, _ := a.Body[member].(string)
	return s
}

// Number returns the member as a number, or -1 if it is none.
func (a Answer) Number(member string) float64 {
	if n, ok := a.Body[member].(float64); ok {
		return n
	}
	return -1
}

// Device asks for a device code, and fails the test if there is none.
func (c *Client) Device(scope string, extra ...string) Answer {
	c.t.Helper()
	a := c.Post("device_authorization_endpoint", append([]string{"scope", scope}, extra...)...)
	if a.Status != http.StatusOK || a.String("device_code") == "" || a.String("user_code") == "" ||
		a.String("verification_uri") == "" || a.String("verification_uri_complete") == "" {
		c.t.Fatalf("device request: %d %s", a.Status, a.Raw)
	}
	return a
}

// Poll asks once for the token of a device code.
func (c *Client) Poll(deviceCode string) Answer {
	c.t.Helper()
	return c.Post("token_endpoint", "grant_type", deviceGrant, "device_code", deviceCode)
}

// Refresh spends a refresh token.
func (c *Client) Refresh(refreshToken string) Answer {
	c.t.Helper()
	return c.Post("token_endpoint", "grant_type", "refresh_token", "refresh_token", refreshToken)
}

// Revoke revokes a token.
func (c *Client) Revoke(token string) Answer {
	c.t.Helper()
	return c.Post("revocation_endpoint", "token", token)
}

// UserInfo asks the one resource that every OpenID provider protects.
func (c *Client) UserInfo(accessToken string) Answer {
	c.t.Helper()
	return c.get(c.endpoint("userinfo_endpoint"), accessToken)
}

// Introspect asks about a token.
func (c *Client) Introspect(token string) Answer {
	c.t.Helper()
	return c.Post("introspection_endpoint", "token", token)
}

// Post sends name, value pairs to the endpoint that the metadata has under this name.
func (c *Client) Post(endpoint string, pairs ...string) Answer {
	c.t.Helper()
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	if c.secret == "" {
		values.Set("client_id", c.id)
	}
	body := strings.NewReader(values.Encode())
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.endpoint(endpoint), body)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if c.secret != "" {
		req.SetBasicAuth(url.QueryEscape(c.id), url.QueryEscape(c.secret))
	}
	return c.do(req)
}

func (c *Client) endpoint(name string) string {
	c.t.Helper()
	u, _ := c.endpoints[name].(string)
	if u == "" {
		c.t.Fatalf("the metadata has no %s", name)
	}
	return u
}

func (c *Client) get(address, bearer string) Answer {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	return c.do(req)
}

func (c *Client) do(req *http.Request) Answer {
	c.t.Helper()
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		c.t.Fatal(err)
	}
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Raw: string(raw)}
	if json.Unmarshal(raw, &a.Body) != nil {
		a.Body = nil
	}
	return a
}
