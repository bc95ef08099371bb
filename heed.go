package heed

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/keyring"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// Config says which authorization server an app logs in to, and as whom. An issuer, a provider or the two endpoints, and a
// client id are all it needs.
type Config struct {
	// Issuer is the authorization server's issuer, under which it publishes its endpoints (RFC 8414, OpenID Connect).
	Issuer string

	// Provider, if it has a name, is the provider to log in to, in place of Issuer and the endpoints: what [auth.ProfileNamed]
	// returns, its placeholders filled in. A server that is like any other needs none.
	Provider auth.Profile

	// Endpoint has DeviceAuthURL and TokenURL, for a server that publishes nothing; Issuer is then a name, and may be
	// empty. Its AuthStyle holds in both cases.
	Endpoint oauth2.Endpoint
	// RevocationURL is the revocation endpoint beside Endpoint; "" when there is none.
	RevocationURL string

	// ClientID is the app at that server. ClientSecret is empty for a public client, as most apps on a user's machine are.
	ClientID, ClientSecret string

	// Scopes are asked for at the login, one to an element.
	Scopes []string
	// Audience is the API that the token is for, on servers that want it.
	Audience string
	// Resources are the resources that the token is for (RFC 8707). They are sent again when it is refreshed.
	Resources []string

	// API is the origin that is given the token, such as "https://api.example.com". If it is empty, every origin is that
	// a request of HTTPClient was made for.
	API string

	// Account tells the logins of one user apart. If it is empty, there is one.
	Account string

	// PKCE gives each login a proof key; Strict reads answers without leniency: see [auth.DeviceFlow].
	PKCE, Strict bool

	// Prompter shows the code. If it is nil, it writes plain lines to standard error.
	Prompter auth.Prompter

	// Stores says where the login is kept. If it is nil, that is the system's keyring, or a file where there is none.
	Stores *auth.StorePolicy
	// Store, if set, is the one place where the login is kept, in place of Stores.
	Store auth.Store

	// HTTPClient has the Transport of every request. If it is nil, http.DefaultTransport is.
	HTTPClient *http.Client

	// Clock is what time it is. If it is nil, the real one.
	Clock clock.Clock

	// OnEvent, if not nil, is told each step of logins and refreshes, and of the store that was chosen. It must not block.
	OnEvent func(auth.Event)

	// Logger, if not nil, logs the same. It is never given a secret.
	Logger *slog.Logger
}

// describe is what printing a Config shows.
func (c Config) describe() string {
	return fmt.Sprintf("client %q, issuer %q, scopes %q", c.ClientID, c.Issuer, strings.Join(c.Scopes, " "))
}

// Format prints the configuration without its secret, whatever the verb is.
func (c Config) Format(w fmt.State, _ rune) { fmt.Fprintf(w, "heed.Config{%s}", c.describe()) }

// LogValue is the configuration without its secret.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.describe()) }

// App is a login and what is done with it. Any number of goroutines may use it, and with a store any number of
// processes. Close it before the program ends.
type App struct {
	cfg  Config
	key  auth.Key
	base http.RoundTripper

	// busy is held while the session is looked up or replaced. It is a channel so that who waits for it can give up.
	busy    chan struct{}
	session *auth.TokenSource // of a login that was found in a store, or made
	unkept  bool              // no store has it

	found atomic.Pointer[found]
}

// found is a server's published metadata, which is asked for once.
type found struct {
	*auth.Metadata
	client *http.Client
}

// New checks a configuration; nothing is read or sent. The error is an *auth.ConfigError with all mistakes.
func New(cfg Config) (*App, error) {
	var problems []auth.Problem
	wrong := func(field, text string) { problems = append(problems, auth.Problem{Field: field, Text: text}) }
	if cfg.ClientID == "" {
		wrong("ClientID", "is missing")
	}
	own := cfg.Endpoint.DeviceAuthURL != "" || cfg.Endpoint.TokenURL != ""
	if p := cfg.Provider; p.Name != "" {
		if err := p.Validate(); err != nil {
			return nil, err
		}
		if own || cfg.Issuer != "" {
			wrong("Provider", "is set beside Issuer or the endpoints: one of them says where to log in")
		}
		cfg.Issuer, cfg.Endpoint.DeviceAuthURL, cfg.Endpoint.TokenURL = p.Issuer, p.DeviceAuthURL, p.TokenURL
		own = p.TokenURL != ""
	}
	switch {
	case !own && cfg.Issuer == "":
		wrong("Issuer", "is missing, and so are the endpoints: one or the other says where to log in")
	case own && cfg.Endpoint.TokenURL == "":
		wrong("Endpoint.TokenURL", "is missing beside DeviceAuthURL")
	}
	if cfg.RevocationURL != "" && !own {
		wrong("RevocationURL", "is set without the other endpoints: the issuer publishes it")
	}
	if cfg.Store != nil && cfg.Stores != nil {
		wrong("Store", "is set beside Stores: one or the other says where the login is kept")
	}
	if len(problems) > 0 {
		return nil, &auth.ConfigError{Problems: problems}
	}
	key := auth.Key{Issuer: cfg.Issuer, ClientID: cfg.ClientID, Account: cfg.Account}
	if key.Issuer == "" {
		key.Issuer, _, _ = strings.Cut(cfg.Endpoint.TokenURL, "?")
	}
	key, err := key.Canonical()
	if err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, key: key, busy: make(chan struct{}, 1)}
	if cfg.HTTPClient != nil {
		a.base = cfg.HTTPClient.Transport
	}
	if cfg.Store == nil && cfg.Stores == nil {
		a.cfg.Stores = &auth.StorePolicy{Keyring: &keyring.Store{Clock: cfg.Clock}, Clock: cfg.Clock}
	}
	if cfg.Prompter == nil {
		a.cfg.Prompter = auth.Lines(os.Stderr)
	}
	return a, nil
}

// Format prints what the app is, and nothing of its login.
func (a *App) Format(w fmt.State, _ rune) { fmt.Fprintf(w, "heed.App{%s}", a.cfg.describe()) }

// LogValue is what the app is, and nothing of its login.
func (a *App) LogValue() slog.Value { return slog.StringValue(a.cfg.describe()) }

// Key names the login in its store.
func (a *App) Key() auth.Key { return a.key }

// TokenSource hands out a token that has not expired, for as long as the login lasts. It is also a
// requests.ContextTokenSource, a requests.Refresher and a stream.TokenRefresher. The login is looked up in the store when
// the first token is asked for; without one the error is auth.ErrStoreNotFound or an *auth.SessionExpired.
func (a *App) TokenSource() oauth2.TokenSource { return &tokens{a} }

// HTTPClient returns a client whose requests carry the token, are repeated where that is right, and wait as the server
// asks: see [requests.Transport].
func (a *App) HTTPClient() *http.Client {
	return &http.Client{Transport: &requests.Transport{
		Base: a.base, Tokens: a.TokenSource(), Origin: a.cfg.API, Clock: a.cfg.Clock, Logger: a.cfg.Logger,
	}}
}

// Close waits until a refresh under way has been stored, or ctx ends.
func (a *App) Close(ctx context.Context) error {
	if err := a.take(ctx); err != nil {
		return err
	}
	defer a.release()
	if a.session == nil {
		return nil
	}
	return a.session.Close(ctx)
}

// metadata is where the server's endpoints are, and a client that keeps to the policy for addresses that a document named.
func (a *App) metadata(ctx context.Context) (*auth.Metadata, *http.Client, error) {
	if a.cfg.Endpoint.TokenURL != "" {
		return &auth.Metadata{
			Issuer: a.cfg.Issuer, TokenEndpoint: a.cfg.Endpoint.TokenURL,
			DeviceAuthorizationEndpoint: a.cfg.Endpoint.DeviceAuthURL, RevocationEndpoint: a.cfg.RevocationURL,
		}, a.cfg.HTTPClient, nil
	}
	if f := a.found.Load(); f != nil {
		return f.Metadata, f.client, nil
	}
	d := auth.Discovery{HTTPClient: a.cfg.HTTPClient, Clock: a.cfg.Clock}
	m, err := d.Issuer(ctx, a.cfg.Issuer)
	if err != nil {
		return nil, nil, err
	}
	f := &found{m, m.HTTPClient()}
	a.found.Store(f)
	return f.Metadata, f.client, nil
}

func (a *App) config(m *auth.Metadata) oauth2.Config {
	return oauth2.Config{
		ClientID: a.cfg.ClientID, ClientSecret: a.cfg.ClientSecret, Scopes: a.cfg.Scopes,
		Endpoint: oauth2.Endpoint{
			DeviceAuthURL: m.DeviceAuthorizationEndpoint, TokenURL: m.TokenEndpoint, AuthStyle: a.cfg.Endpoint.AuthStyle,
		},
	}
}

// params are the parameters of both requests that say what the token is for.
func (a *App) params() (device, token url.Values) {
	device, token = url.Values{}, url.Values{}
	if a.cfg.Audience != "" {
		device.Set("audience", a.cfg.Audience)
	}
	if len(a.cfg.Resources) > 0 {
		device["resource"], token["resource"] = a.cfg.Resources, a.cfg.Resources
	}
	return device, token
}

func (a *App) take(ctx context.Context) error {
	select {
	case a.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return delay.Ended(ctx)
	}
}

func (a *App) release() { <-a.busy }

// find looks the login up where it may be kept.
func (a *App) find(ctx context.Context) (auth.Choice, auth.Credential, error) {
	if a.cfg.Store == nil {
		return a.cfg.Stores.Find(ctx, a.key)
	}
	c, err := a.cfg.Store.Load(ctx, a.key)
	return auth.Choice{Store: a.cfg.Store}, c, err
}

// source is the token source of the login, looked up once.
func (a *App) source(ctx context.Context) (*auth.TokenSource, error) {
	if err := a.take(ctx); err != nil {
		return nil, err
	}
	defer a.release()
	if a.session != nil {
		return a.session, nil
	}
	choice, c, err := a.find(ctx)
	if err != nil {
		return nil, err
	}
	return a.begin(ctx, choice, c)
}

// begin makes a login the present session. The caller has taken busy.
func (a *App) begin(ctx context.Context, choice auth.Choice, c auth.Credential) (*auth.TokenSource, error) {
	cfg := auth.SourceConfig{
		Store: choice.Store, Key: a.key, ReuseGrace: a.cfg.Provider.ReuseGrace,
		Clock: a.cfg.Clock, OnEvent: a.cfg.OnEvent, Logger: a.cfg.Logger,
	}
	if choice.Name == auth.InEnv {
		cfg.Store = nil // it only lends
	} else if c.RefreshToken != "" { // else no server has to be asked where that is done
		m, client, err := a.metadata(ctx)
		if err != nil {
			return nil, err
		}
		cfg.Refresher = auth.Refresher{Config: a.config(m), HTTPClient: client, Strict: a.cfg.Strict, Clock: a.cfg.Clock}
	}
	source, err := auth.NewTokenSource(c, cfg)
	if err == nil {
		a.session, a.unkept = source, choice.Store == nil
	}
	return source, err
}

// lockBound is more than a refresh takes.
const lockBound = 90 * time.Second

// lock waits until no refresh of the login is under way, here or in another process: it would store what it gets over a
// new login, or after a logout. Where no lock is to be had, it says so and goes on; without elsewhere it asks for none. The
// caller has taken busy.
func (a *App) lock(ctx context.Context, store auth.Store, elsewhere bool) (unlock func()) {
	if a.session != nil {
		_ = a.session.Close(ctx) // for stores without a lock
	}
	locker, ok := store.(auth.Locker)
	if !ok || !elsewhere {
		return func() {}
	}
	within, cancel := delay.TimersOn(a.cfg.Clock).WithTimeout(ctx, delay.KindStoreTimeout, lockBound)
	defer cancel()
	unlock, err := locker.Lock(within, a.key)
	if err != nil {
		a.tell(ctx, auth.StoreTrouble{Err: err})
		return func() {}
	}
	return unlock
}

// tokens is the TokenSource of an App.
type tokens struct{ app *App }

// Token returns a token that has not expired.
func (t *tokens) Token() (*oauth2.Token, error) { return t.TokenContext(context.Background()) }

// TokenContext is Token with a context.
func (t *tokens) TokenContext(ctx context.Context) (*oauth2.Token, error) {
	s, err := t.app.source(ctx)
	if err != nil {
		return nil, err
	}
	return s.TokenContext(ctx)
}

// Refresh replaces a token that a server has refused.
func (t *tokens) Refresh(ctx context.Context, refused *oauth2.Token) (*oauth2.Token, error) {
	s, err := t.app.source(ctx)
	if err != nil {
		return nil, err
	}
	return s.Refresh(ctx, refused)
}
