package glewlwyd

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"
)

const (
	prefix     = "api"
	pluginName = "oidc" // the path of the issuer ends with it
)

// The scopes that a client may ask for besides openid.
var ownScopes = []string{"read", "write", "offline_access"}

// person is somebody who is logged in at the server's pages, the administrator or the user.
type person struct {
	base   string
	client *http.Client
}

// enter logs in.
func enter(ctx context.Context, base, name, password string) (*person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &person{base: base, client: &http.Client{
		Jar: jar,
		// Nothing is kept alive, as in package browser; and where a redirect leads to is an answer here.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return p, p.send(ctx, http.MethodPost, "/auth/", map[string]any{"username": name, "password": password})
}

// send sends JSON to the server's own interface.
func (p *person) send(ctx context.Context, method, path string, body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return fmt.Errorf("%s %s: %s %s", method, path, res.Status, said)
	}
	return nil
}

// configure does what an administrator does: a plugin that speaks OpenID Connect, scopes, two clients and a user. The
// user's own part is done here as well, once and for all.
func configure(ctx context.Context, base string, config Config) error {
	admin, err := enter(ctx, base, "admin", "password") // as Debian's tables have it
	if err != nil {
		return err
	}
	plugin, err := plugin(base, config)
	if err != nil {
		return err
	}
	if err := admin.send(ctx, http.MethodPost, "/mod/plugin/", plugin); err != nil {
		return err
	}
	for _, name := range ownScopes {
		scope := map[string]any{
			"name": name, "display_name": name, "description": name,
			"password_required": true, "password_max_age": 0,
			"scheme": map[string]any{}, "scheme_required": map[string]any{},
		}
		if err := admin.send(ctx, http.MethodPost, "/scope/", scope); err != nil {
			return err
		}
	}
	err = admin.send(ctx, http.MethodPost, "/user/", map[string]any{
		"username": User, "password": password, "enabled": true, "scope": append([]string{"openid", "g_profile"}, ownScopes...),
	})
	if err != nil {
		return err
	}
	for _, client := range []map[string]any{
		{"client_id": ClientID, "confidential": false, "token_endpoint_auth_method": []string{"none"}},
		{
			"client_id": ConfidentialID, "confidential": true, "client_secret": ConfidentialSecret,
			"token_endpoint_auth_method": []string{"client_secret_basic"},
		},
	} {
		client["name"], client["enabled"] = client["client_id"], true
		client["redirect_uri"], client["scope"] = []string{}, []string{}
		client["authorization_type"] = []string{"device_authorization", "refresh_token", "delete_token"}
		if err := admin.send(ctx, http.MethodPost, "/client/", client); err != nil {
			return err
		}
	}

	// The user has been here before, and has granted both clients whatever they may ask for.
	user, err := enter(ctx, base, User, password)
	if err != nil {
		return err
	}
	grant := map[string]any{"scope": strings.Join(append([]string{"openid"}, ownScopes...), " ")}
	for _, client := range []string{ClientID, ConfidentialID} {
		if err := user.send(ctx, http.MethodPut, "/auth/grant/"+client, grant); err != nil {
			return err
		}
	}
	return nil
}

// plugin has the device flow, and refresh tokens that are spent once.
func plugin(base string, config Config) (map[string]any, error) {
	key, cert, err := keys()
	if err != nil {
		return nil, err
	}
	seconds := func(d time.Duration) int { return int(d / time.Second) }
	return map[string]any{
		"module": "oidc", "name": pluginName, "display_name": pluginName,
		"parameters": map[string]any{
			"iss":                     base + "/" + pluginName,
			"jwt-type":                "ecdsa",
			"jwt-key-size":            "256",
			"key":                     key,
			"cert":                    cert,
			"jwks-show":               true,
			"subject-type":            "public",
			"allow-non-oidc":          true,
			"scope":                   []string{},
			"request-parameter-allow": false,

			"access-token-duration":  seconds(config.AccessTTL),
			"refresh-token-duration": 86400,
			"refresh-token-rolling":  true,
			"refresh-token-one-use":  "always",
			"code-duration":          60,

			"auth-type-device-enabled":   true,
			"auth-type-refresh-enabled":  true,
			"auth-type-client-enabled":   false,
			"auth-type-code-enabled":     false,
			"auth-type-implicit-enabled": false,
			"auth-type-none-enabled":     false,
			"auth-type-password-enabled": false,
			"auth-type-token-enabled":    false,
			"auth-type-id-token-enabled": true,

			"device-authorization-expiration": seconds(config.DeviceTTL),
			"device-authorization-interval":   seconds(config.Interval),

			"introspection-revocation-allowed":             true,
			"introspection-revocation-allow-target-client": true,
			"introspection-revocation-auth-scope":          []string{},

			"session-cookie-name":       "oidc-session",
			"session-cookie-expiration": 86400,
		},
	}, nil
}

// keys are what the tokens are signed with.
func keys() (private, public string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", "", err
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})), nil
}
