package auth_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// sickStore is a MemStore whose probe and calls fail, or hang until their context ends.
type sickStore struct {
	auth.MemStore
	reason auth.StoreReason
	hangs  bool
}

func (s *sickStore) Probe(ctx context.Context) error {
	if s.hangs {
		<-ctx.Done()
	}
	return &auth.StoreError{Op: auth.OpProbe, Reason: s.reason}
}

func (s *sickStore) Load(context.Context, auth.Key) (auth.Credential, error) {
	return auth.Credential{}, &auth.StoreError{Op: auth.OpLoad, Reason: s.reason}
}

// noEnv keeps the environment of the test out of it.
var noEnv = &auth.EnvStore{Variable: "HEED_TEST_NO_SUCH_VARIABLE"}

func TestPolicyChoose(t *testing.T) {
	locked := &sickStore{reason: auth.ErrStoreLocked}
	full := &sickStore{reason: auth.ErrStoreFailed}
	tests := []struct {
		name   string
		policy auth.StorePolicy
		env    string
		want   string
		passed error // why the keyring was passed over
		err    error
	}{
		{name: "the keyring works", policy: auth.StorePolicy{Keyring: new(auth.MemStore)}, want: "keyring"},
		{name: "the keyring is locked", policy: auth.StorePolicy{Keyring: locked}, want: "file", passed: auth.ErrStoreLocked},
		{name: "no keyring", want: "file"},
		{name: "a required keyring works", policy: auth.StorePolicy{Keyring: new(auth.MemStore), RequireKeyring: true}, want: "keyring"},
		{name: "a required keyring is locked", policy: auth.StorePolicy{Keyring: locked, RequireKeyring: true}, err: auth.ErrStoreLocked},
		{name: "a required keyring is missing", policy: auth.StorePolicy{RequireKeyring: true}, err: auth.ErrStoreUnavailable},
		{name: "nothing works", policy: auth.StorePolicy{Keyring: locked, File: full}, err: auth.ErrStoreFailed},
		{name: "the environment", policy: auth.StorePolicy{Keyring: locked, RequireKeyring: true}, env: "tok", want: "env"},
		{name: "a bad environment", policy: auth.StorePolicy{Keyring: new(auth.MemStore)}, env: "to ken", err: auth.ErrStoreFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(auth.EnvVariable, tt.env)
			if tt.policy.File == nil {
				tt.policy.File = new(auth.MemStore)
			}
			c, err := tt.policy.Choose(t.Context(), storeKey)
			if !errors.Is(err, tt.err) || c.Name != tt.want || !errors.Is(c.Err, tt.passed) {
				t.Errorf("%v, passed over for %v, %v", c, c.Err, err)
			}
			if err != nil {
				if _, ok := errors.AsType[*auth.StoreError](err); !ok || c.Store != nil {
					t.Errorf("%v with a store %v", err, c.Store)
				}
				return
			}
			if c.Store == nil || c.Why == "" || !strings.HasPrefix(c.String(), tt.want+": ") {
				t.Errorf("an unexplained choice: %v", c)
			}
		})
	}
}

func TestPolicyDoesNotWaitForAKeyringThatHangs(t *testing.T) {
	clock := fakes.NewClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	p := auth.StorePolicy{Keyring: &sickStore{reason: auth.ErrStoreUnavailable, hangs: true}, File: new(auth.MemStore), Env: noEnv, Clock: clock}
	chosen := make(chan auth.Choice, 1)
	go func() {
		c, err := p.Choose(t.Context(), storeKey)
		if err != nil {
			t.Error(err)
		}
		chosen <- c
	}()
	armed, err := clock.Await(t.Context(), delay.KindStoreTimeout)
	if err != nil {
		t.Fatal(err)
	}
	if d := armed[0].Delay(); d != 3*time.Second {
		t.Errorf("bounded by %v", d)
	}
	clock.Advance(3 * time.Second)
	if c := <-chosen; c.Name != auth.InFile || c.Err == nil {
		t.Errorf("%v, passed over for %v", c, c.Err)
	}
	if left := clock.Armed(); len(left) > 0 {
		t.Errorf("timers left: %v", left)
	}
}

func TestPolicyChooseCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, require := range []bool{false, true} {
		p := auth.StorePolicy{Keyring: new(auth.MemStore), File: new(auth.MemStore), Env: noEnv, RequireKeyring: require}
		if _, err := p.Choose(ctx, storeKey); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestPolicyFind(t *testing.T) {
	with := func(token string) auth.Store {
		s := new(auth.MemStore)
		if err := s.Save(t.Context(), storeKey, auth.Credential{AccessToken: token}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	none := new(auth.MemStore)
	locked := &sickStore{reason: auth.ErrStoreLocked}
	tests := []struct {
		name          string
		keyring, file auth.Store
		require       bool
		env           string
		want          string // where, and the token
		passed, err   error
	}{
		{name: "in the keyring", keyring: with("k"), file: with("f"), want: "keyring k"},
		{name: "in the file", keyring: none, file: with("f"), want: "file f"},
		{name: "in the file, and no keyring", file: with("f"), want: "file f"},
		{name: "in the file, and the keyring is locked", keyring: locked, file: with("f"), want: "file f", passed: auth.ErrStoreLocked},
		{name: "not in the file, and the keyring is locked", keyring: locked, file: none, err: auth.ErrStoreLocked},
		{name: "nowhere", keyring: none, file: none, err: auth.ErrStoreNotFound},
		{name: "a file that is refused", keyring: none, file: &sickStore{reason: auth.ErrStoreInsecure}, err: auth.ErrStoreInsecure},
		{name: "in the file, and a keyring is required", keyring: none, file: with("f"), require: true, err: auth.ErrStoreNotFound},
		{name: "in the environment", keyring: with("k"), file: with("f"), env: "e", want: "env e"},
		{name: "a bad environment", keyring: with("k"), file: with("f"), env: "e e", err: auth.ErrStoreFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(auth.EnvVariable, tt.env)
			p := auth.StorePolicy{Keyring: tt.keyring, File: tt.file, RequireKeyring: tt.require}
			c, cred, err := p.Find(t.Context(), storeKey)
			if !errors.Is(err, tt.err) || !errors.Is(c.Err, tt.passed) {
				t.Errorf("passed over for %v, %v", c.Err, err)
			}
			if got := strings.TrimSpace(c.Name + " " + cred.AccessToken); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPolicyForget(t *testing.T) {
	for keep, want := range map[string]string{"": "", auth.InKeyring: "keyring", auth.InFile: "file"} {
		keyring, file := new(auth.MemStore), new(auth.MemStore)
		for _, s := range []auth.Store{keyring, file} {
			if err := s.Save(t.Context(), storeKey, keptLogin()); err != nil {
				t.Fatal(err)
			}
		}
		p := auth.StorePolicy{Keyring: keyring, File: file, Env: noEnv}
		if err := p.Forget(t.Context(), storeKey, keep); err != nil {
			t.Error(err)
		}
		c, _, err := p.Find(t.Context(), storeKey)
		if c.Name != want {
			t.Errorf("with %q kept, it is in %q: %v", keep, c.Name, err)
		}
	}
}

func TestPolicyDefaults(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("AppData", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv(auth.EnvVariable, "")
	var p auth.StorePolicy
	c, err := p.Choose(t.Context(), storeKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Store.(*auth.FileStore); !ok || c.Name != auth.InFile {
		t.Errorf("by default: %v", c)
	}
	if err := c.Store.Save(t.Context(), storeKey, keptLogin()); err != nil {
		t.Fatal(err)
	}
	if found, _, err := p.Find(t.Context(), storeKey); err != nil || found.Name != auth.InFile {
		t.Errorf("%v, %v", found, err)
	}
}
