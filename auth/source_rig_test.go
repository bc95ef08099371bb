package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

const (
	firstAccess  = "canary-access-1"
	firstRefresh = "canary-refresh-1"
)

// hooked is a store whose methods can be got at. A hook runs before the method; what it returns, if not nil, is returned
// in place of what the store would.
type hooked struct {
	auth.MemStore
	onLoad func() error
	onSave func(auth.Credential) error
	onLock func() error
	onDrop func() error
}

func (s *hooked) Load(ctx context.Context, key auth.Key) (auth.Credential, error) {
	if s.onLoad != nil {
		if err := s.onLoad(); err != nil {
			return auth.Credential{}, err
		}
	}
	return s.MemStore.Load(ctx, key)
}

func (s *hooked) Save(ctx context.Context, key auth.Key, c auth.Credential) error {
	if s.onSave != nil {
		if err := s.onSave(c); err != nil {
			return err
		}
	}
	return s.MemStore.Save(ctx, key, c)
}

func (s *hooked) Lock(ctx context.Context, key auth.Key) (func(), error) {
	if s.onLock != nil {
		if err := s.onLock(); err != nil {
			return nil, err
		}
	}
	return s.MemStore.Lock(ctx, key)
}

func (s *hooked) Delete(ctx context.Context, key auth.Key) error {
	if s.onDrop != nil {
		if err := s.onDrop(); err != nil {
			return err
		}
	}
	return s.MemStore.Delete(ctx, key)
}

var (
	errSave   = &auth.StoreError{Op: auth.OpSave, Reason: auth.ErrStoreFailed, Err: errors.New("the disk is full")}
	errNoLock = &auth.StoreError{Op: auth.OpLock, Reason: auth.ErrStoreUnavailable, Err: errors.New("no file locks are to be had here")}
)

// sourceRig is a login, the store it is kept in, and the server that refreshes it.
type sourceRig struct {
	t      *testing.T
	net    *fakes.Network
	server *fakes.AuthServer
	store  *hooked
	cfg    auth.SourceConfig

	mu     sync.Mutex
	events []auth.Event
}

// newSourceRig makes a login with an access token that lives for life, 0 for ever; call it in a bubble.
func newSourceRig(t *testing.T, life time.Duration) *sourceRig {
	t.Helper()
	r := &sourceRig{t: t, net: fakes.NewNetwork(t), server: &fakes.AuthServer{ClientID: "cli", Mark: "canary-"}, store: &hooked{}}
	r.net.Serve(t, "as.test", r.server)
	r.server.Login(firstAccess, firstRefresh)
	r.cfg = auth.SourceConfig{
		Refresher: auth.Refresher{
			Config:     oauth2.Config{ClientID: "cli", Endpoint: oauth2.Endpoint{TokenURL: "https://as.test" + fakes.TokenPath}},
			HTTPClient: r.net.Client(),
		},
		Store: r.store, Key: storeKey,
		OnEvent: func(e auth.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		},
	}
	r.save(firstLogin(life))
	return r
}

// firstLogin is a login of now.
func firstLogin(life time.Duration) auth.Credential {
	c := auth.Credential{AccessToken: firstAccess, TokenType: "Bearer", RefreshToken: firstRefresh, Obtained: time.Now(), Scope: "a b"}
	if life > 0 {
		c.Expiry = c.Obtained.Add(life)
	}
	return c
}

// save puts a login into the store, as another process does.
func (r *sourceRig) save(c auth.Credential) {
	r.t.Helper()
	if err := r.store.MemStore.Save(context.Background(), storeKey, c); err != nil {
		r.t.Fatal(err)
	}
}

// stored is the login in the store.
func (r *sourceRig) stored() auth.Credential {
	r.t.Helper()
	c, err := r.store.MemStore.Load(context.Background(), storeKey)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// open is another process that finds the login.
func (r *sourceRig) open() *auth.TokenSource {
	r.t.Helper()
	s, err := auth.LoadTokenSource(context.Background(), r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// inMemory is a source without a store.
func (r *sourceRig) inMemory() *auth.TokenSource {
	r.t.Helper()
	c := r.stored()
	r.cfg.Store = nil
	s, err := auth.NewTokenSource(c, r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// names are the names of the events so far.
func (r *sourceRig) names() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, len(r.events))
	for i, e := range r.events {
		names[i] = e.Name()
	}
	return strings.Join(names, " ")
}

// waits are the waits told of.
func (r *sourceRig) waits() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var waits []time.Duration
	for _, e := range r.events {
		if w, ok := e.(auth.Waiting); ok {
			waits = append(waits, w.Wait.For)
		}
	}
	return waits
}

// refreshed checks how many refreshes the server has seen, and that none of them was one too many.
func (r *sourceRig) refreshed(want int) {
	r.t.Helper()
	if got := r.server.Refreshes(); got != want {
		r.t.Errorf("%d refreshes, want %d", got, want)
	}
	for _, v := range r.server.Violations() {
		r.t.Errorf("violation: %s", v)
	}
}

// token asks for a token that there has to be.
func (r *sourceRig) token(s *auth.TokenSource) string {
	r.t.Helper()
	tok, err := s.Token()
	if err != nil {
		r.t.Fatal(err)
	}
	return tok.AccessToken
}

// fresh asks for a token that has to be a new one of the server's.
func (r *sourceRig) fresh(s *auth.TokenSource) string {
	r.t.Helper()
	got := r.token(s)
	if got == firstAccess || !r.server.Valid(got) {
		r.t.Error("the token is not a new one")
	}
	return got
}

// old asks for a token that has to be the first one, and waits for what that may have started.
func (r *sourceRig) old(s *auth.TokenSource) {
	r.t.Helper()
	begin := time.Now()
	if r.token(s) != firstAccess {
		r.t.Error("the token is not the old one")
	}
	if took := time.Since(begin); took != 0 {
		r.t.Errorf("the old token took %v", took)
	}
	synctest.Wait()
}

// ended asks for a token that there must not be, because only another login helps, and returns the reason.
func ended(t *testing.T, s *auth.TokenSource) string {
	t.Helper()
	tok, err := s.Token()
	if tok != nil {
		t.Error("a token of a session that is over")
	}
	e, ok := errors.AsType[*auth.SessionExpired](err)
	if !ok {
		t.Errorf("%v is no SessionExpired", err)
		return ""
	}
	if !errors.Is(err, e.Reason) {
		t.Errorf("%v is not the error of its reason", err)
	}
	return string(e.Reason)
}

// refusal asks for a token that there must not be for now, and returns why.
func refusal(t *testing.T, s *auth.TokenSource) *auth.RefreshError {
	t.Helper()
	tok, err := s.Token()
	if tok != nil {
		t.Error("a token and an error")
	}
	e, ok := errors.AsType[*auth.RefreshError](err)
	if !ok {
		t.Fatalf("%v is no RefreshError", err)
	}
	return e
}

// form is a login in full, to be compared.
func form(c auth.Credential) string {
	b, err := json.Marshal(c)
	return fmt.Sprint(string(b), err)
}

// odd is a script of answers to refreshes, from the first on.
func odd(answers ...fakes.RefreshAnswer) map[int]fakes.RefreshAnswer {
	script := map[int]fakes.RefreshAnswer{}
	for i, a := range answers {
		script[i+1] = a
	}
	return script
}

// refusing is an answer that spends no token.
func refusing(a fakes.AuthAnswer) fakes.RefreshAnswer { return fakes.RefreshAnswer{AuthAnswer: a} }
