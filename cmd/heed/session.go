package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed"
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/keyring"
	"github.com/heed-sdk/heed/delay"
)

// open makes the app of the login that the flags name.
func (a *app) open(f *authFlags, onEvent func(auth.Event)) (*heed.App, error) {
	if f.clientID == "" || f.issuer == "" && f.tokenURL == "" && f.provider == "" {
		return nil, usage("which login? Name it with --client-id and --issuer, --provider or --token-url")
	}
	provider, err := f.profile()
	if err != nil {
		return nil, err
	}
	cfg := heed.Config{
		Issuer:   f.issuer,
		Provider: provider,
		ClientID: f.clientID,
		Endpoint: oauth2.Endpoint{DeviceAuthURL: f.deviceURL, TokenURL: f.tokenURL, AuthStyle: oauth2.AuthStyleInParams},
		Scopes:   strings.Fields(strings.Join(f.scopes, " ")), Audience: f.audience, Resources: f.resources,
		RevocationURL: f.revocationURL, Account: f.account, PKCE: f.pkce, Strict: f.strict,
		HTTPClient: &http.Client{Transport: a.transport}, OnEvent: onEvent,
	}
	if cfg.Stores, cfg.Store, err = a.stores(f.store); err != nil {
		return nil, err
	}
	return heed.New(cfg)
}

// profile is the provider that the flags name, if they do.
func (f *authFlags) profile() (auth.Profile, error) {
	if f.provider == "" {
		return auth.Profile{}, nil
	}
	p, ok := auth.ProfileNamed(f.provider)
	if !ok {
		return p, usage("--provider %s is not a provider: take %s, or --issuer for any other", f.provider, providerNames())
	}
	return p.With(f.values)
}

func providerNames() string {
	var names []string
	for _, p := range auth.Profiles() {
		if p.Unsupported == "" {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ")
}

// stores are where a login is kept: a policy, or one place.
func (a *app) stores(name string) (*auth.StorePolicy, auth.Store, error) {
	env := &environment{a}
	ring := &keyring.Store{Dir: a.dir}
	file := &auth.FileStore{Dir: a.dir}
	switch name {
	case "":
		return &auth.StorePolicy{Keyring: ring, File: file, Env: env}, nil, nil
	case auth.InKeyring:
		return &auth.StorePolicy{Keyring: ring, RequireKeyring: true, File: file, Env: env}, nil, nil
	case auth.InFile:
		return &auth.StorePolicy{File: file, Env: env}, nil, nil
	case auth.InEnv:
		return nil, env, nil
	case "memory":
		return nil, &auth.MemStore{}, nil
	}
	return nil, nil, usage("--store %s is not a store: take keyring, file, memory or env", name)
}

// environment lends the token in the command's environment.
type environment struct{ app *app }

// Load returns the token that the variable holds.
func (e *environment) Load(_ context.Context, _ auth.Key) (auth.Credential, error) {
	token, ok := e.app.env(tokenVariable)
	if !ok || strings.TrimSpace(token) == "" {
		return auth.Credential{}, &auth.StoreError{Op: auth.OpLoad, Reason: auth.ErrStoreNotFound}
	}
	return auth.Credential{AccessToken: strings.TrimSpace(token)}, nil
}

// Save fails: the environment only lends.
func (*environment) Save(context.Context, auth.Key, auth.Credential) error {
	return &auth.StoreError{Op: auth.OpSave, Reason: auth.ErrStoreReadOnly}
}

// Delete fails: the environment only lends.
func (*environment) Delete(context.Context, auth.Key) error {
	return &auth.StoreError{Op: auth.OpDelete, Reason: auth.ErrStoreReadOnly}
}

// tokens is where get and tail have their token from: the environment, or the login that the flags name, or nowhere.
func (a *app) tokens(f *authFlags) (oauth2.TokenSource, func(), error) {
	if token, ok := a.env(tokenVariable); ok && strings.TrimSpace(token) != "" {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: strings.TrimSpace(token)}), func() {}, nil
	}
	if f.clientID == "" && f.issuer == "" && f.tokenURL == "" && f.provider == "" {
		return nil, func() {}, nil
	}
	login, err := a.open(f, a.tellSession)
	if err != nil {
		return nil, nil, err
	}
	return login.TokenSource(), func() { a.settle(login) }, nil
}

// settle lets a refresh under way be stored before the command ends.
func (a *app) settle(login *heed.App) {
	ctx, cancel := delay.TimersOn(nil).WithTimeout(context.Background(), delay.KindRefresh, 10*time.Second)
	defer cancel()
	_ = login.Close(ctx)
}

// tellSession tells what happens to a login while it is used, as far as it is of interest.
func (a *app) tellSession(e auth.Event) {
	if a.verbose && !a.json {
		a.out.line("%s", e)
	}
}

func (a *app) whoami() *cobra.Command {
	var f authFlags
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Say where the login is kept and what it is good for",
		Long:  "Say where the login is kept, when its token expires and what it is good for. Nothing is sent, and no token is printed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			login, err := a.open(&f, nil)
			if err != nil {
				return err
			}
			choice, c, err := login.Session(cmd.Context())
			if err != nil {
				return err
			}
			return a.describe(&f, login.Key().Issuer, choice, c)
		},
	}
	f.name(cmd)
	return cmd
}

func (a *app) describe(f *authFlags, issuer string, choice auth.Choice, c auth.Credential) error {
	if a.json {
		result := struct {
			Issuer      string     `json:"issuer"`
			ClientID    string     `json:"client_id"`
			Account     string     `json:"account,omitempty"`
			Store       string     `json:"store"`
			Expiry      *time.Time `json:"expiry"`
			Scope       string     `json:"scope"`
			Refreshable bool       `json:"refreshable"`
		}{issuer, f.clientID, f.account, choice.Name, nil, c.Scope, c.RefreshToken != ""}
		if !c.Expiry.IsZero() {
			result.Expiry = &c.Expiry
		}
		return a.out.object(result)
	}
	expiry := "has no known expiry"
	if !c.Expiry.IsZero() {
		expiry = "expires at " + c.Expiry.Format(time.RFC3339)
	}
	if c.RefreshToken != "" {
		expiry += ", and is then refreshed"
	}
	where := choice.Name
	if where == auth.InEnv {
		where = "environment"
	}
	text := fmt.Sprintf("Logged in as %s. The login is kept in the %s. Its token %s.\n", f.clientID, where, expiry)
	if c.Scope != "" {
		text += fmt.Sprintf("It is good for: %s.\n", oneLine(c.Scope))
	}
	return a.out.printf("%s", text)
}

func (a *app) printToken() *cobra.Command {
	var f authFlags
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "Print an access token that has not expired",
		Long:    "Print the login's access token, refreshed if need be. Whoever reads it can act for you: mind where it goes.",
		Example: `  curl -H "Authorization: Bearer $(heed token --issuer https://as.example.com --client-id app)" https://api.example.com/`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			login, err := a.open(&f, a.tellSession)
			if err != nil {
				return err
			}
			defer a.settle(login)
			source := login.TokenSource().(interface {
				TokenContext(context.Context) (*oauth2.Token, error)
			})
			token, err := source.TokenContext(cmd.Context())
			if err != nil {
				return err
			}
			if !a.json {
				return a.out.printf("%s\n", token.AccessToken)
			}
			result := struct {
				AccessToken string     `json:"access_token"`
				TokenType   string     `json:"token_type"`
				Expiry      *time.Time `json:"expiry"`
			}{token.AccessToken, token.Type(), nil}
			if !token.Expiry.IsZero() {
				result.Expiry = &token.Expiry
			}
			return a.out.object(result)
		},
	}
	f.name(cmd)
	return cmd
}

func (a *app) logout() *cobra.Command {
	var f authFlags
	cmd := &cobra.Command{
		Use:   "logout",
		Short: "Revoke the login and delete it",
		Long: `Revoke the login's tokens, as far as the server takes part, and delete it wherever it is kept, whatever the server has
said. Without a login it does nothing.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			login, err := a.open(&f, nil)
			if err != nil {
				return err
			}
			err = login.Logout(cmd.Context())
			var revoked *auth.RevokeError
			if errors.As(err, &revoked) && !errors.As(err, new(*auth.StoreError)) {
				// The login is gone from here, which is what was asked for; that the server may still know it is a remark.
				a.out.line("heed: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
				err = nil
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.out.object(json.RawMessage(`{"logged_out":true}`))
			}
			return a.out.printf("Logged out.\n")
		},
	}
	f.name(cmd)
	cmd.Flags().StringVar(&f.revocationURL, "revocation-url", "", "the revocation endpoint, of a server that publishes none")
	return cmd
}

// name registers the flags that name a login.
func (f *authFlags) name(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.issuer, "issuer", "", "the authorization server's issuer, under which it publishes its endpoints")
	flags.StringVar(&f.provider, "provider", "", "a provider that is known, in place of the issuer: "+providerNames())
	flags.StringToStringVar(&f.values, "provider-value", nil, "what the provider's addresses need, such as domain=example.okta.com")
	flags.StringVar(&f.tokenURL, "token-url", "", "the token endpoint, of a server that publishes none")
	flags.StringVar(&f.clientID, "client-id", "", "the client id")
	flags.StringVar(&f.account, "account", "", "which of several logins, if there are more than one")
	flags.StringVar(&f.store, "store", "", "where the login is kept: keyring, file, memory or env (none: the keyring, or a file where there is none)")
}
