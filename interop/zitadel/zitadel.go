// Package zitadel runs the example OpenID provider of github.com/zitadel/oidc in the test's own process.
//
// The user's pages and the storage are the example's; the provider behind them is the library's, set up like the
// example's but with the times of Config. What a client meets here and not everywhere: metadata at the OpenID path only;
// a device code that is unknown or spent is access_denied; an unknown client is a server_error with status 500; an expired
// or revoked access token is a 403 with an empty object at the userinfo endpoint; no answer says `Cache-Control: no-store`.
//
// The library logs through slog's default logger.
package zitadel

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/text/language"
)

// What is registered at the provider.
const (
	ClientID = "cli" // a public client: device code and refresh token

	ConfidentialID     = "cli-secret" // the same grants, with HTTP Basic
	ConfidentialSecret = "s3cret"

	User     = "alice" // who logs in: the subject of every token
	password = "verysecure"
)

// Config sets what the tests vary. DeviceTTL and Interval must be whole seconds.
type Config struct {
	DeviceTTL time.Duration // life of a device code; if zero, 5 min
	AccessTTL time.Duration // life of an access token, at most 5 min; if zero, 5 min
	Interval  time.Duration // the interval in the device answer; if zero, 5 s
	MinPoll   time.Duration // a poll sooner than this after the last gets slow_down; if zero, none does
}

// Server is a running provider.
type Server struct {
	issuer string
}

// Issuer is the server's issuer identifier, on loopback and without a path.
func (s *Server) Issuer() string { return s.issuer }

// Start runs a provider until the test ends.
func Start(t testing.TB, config Config) *Server {
	t.Helper()
	if config.DeviceTTL == 0 {
		config.DeviceTTL = 5 * time.Minute
	}
	if config.Interval == 0 {
		config.Interval = 5 * time.Second
	}
	if config.DeviceTTL < 0 || config.DeviceTTL%time.Second != 0 || config.Interval < 0 || config.Interval%time.Second != 0 {
		t.Fatalf("zitadel: DeviceTTL %v or Interval %v is not a number of whole seconds", config.DeviceTTL, config.Interval)
	}
	users, err := users(t.TempDir())
	if err != nil {
		t.Fatalf("zitadel: users: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("zitadel: %v", err)
	}
	issuer := "http://" + listener.Addr().String()
	handler, err := handler(issuer, newStore(users, config), config)
	if err != nil {
		listener.Close()
		t.Fatalf("zitadel: %v", err)
	}

	server := &http.Server{Handler: oneByOne(handler)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("zitadel: %v", err)
		}
	})
	return &Server{issuer: issuer}
}

// handler joins the example's pages for the user with a provider whose times are ours: exampleop fixes them, and an
// interval of five seconds would cost every test as much.
func handler(issuer string, s *store, config Config) (http.Handler, error) {
	cfg := &op.Config{
		CodeMethodS256:          true,
		AuthMethodPost:          true,
		AuthMethodPrivateKeyJWT: true,
		GrantTypeRefreshToken:   true,
		SupportedUILocales:      []language.Tag{language.English},
		DeviceAuthorization: op.DeviceAuthorizationConfig{
			Lifetime:     config.DeviceTTL,
			PollInterval: config.Interval,
			UserFormPath: "/device",
			UserCode:     op.UserCodeBase20,
		},
	}
	rand.Read(cfg.CryptoKey[:])
	provider, err := op.NewProvider(cfg, s, op.StaticIssuer(issuer), op.WithAllowInsecure())
	if err != nil {
		return nil, err
	}
	// Given a logger, SetupServer would make it the default of the whole process.
	pages := exampleop.SetupServer(issuer, s, nil, false)
	mux := http.NewServeMux()
	mux.Handle("/", provider)
	mux.Handle("/device", pages)
	mux.Handle("/device/", pages)
	return mux, nil
}

// users writes the example's file of users and has it read. The device page stores the user's name as the subject, and
// the storage looks a subject up by its key in this file: key, ID and name must be the same.
func users(dir string) (storage.UserStore, error) {
	file, err := json.Marshal(map[string]storage.User{User: {
		ID:                User,
		Username:          User,
		Password:          password,
		FirstName:         "Al",
		LastName:          "Ice",
		Email:             "alice@example.test",
		EmailVerified:     true,
		PreferredLanguage: language.English,
	}})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "users.json")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return nil, err
	}
	return storage.StoreFromFile(path)
}

// oneByOne handles one request at a time: the example storage hands out pointers into its maps and reads some of them
// without its lock, so that a poll would race with the approval. Bodies are read before that, for a request that arrives
// slowly must not hold up the others.
func oneByOne(h http.Handler) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "cannot read the request", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		defer mu.Unlock()
		h.ServeHTTP(w, r)
	})
}
