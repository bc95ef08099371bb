package keyring_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	system "github.com/zalando/go-keyring"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/keyring"
	"github.com/heed-sdk/heed/auth/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func() auth.Store { return &keyring.Store{Dir: t.TempDir(), Ring: new(ring)} })
}

func TestSystemRing(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent") // the mock needs no bus
	t.Run("works", func(t *testing.T) {
		system.MockInit()
		s := &keyring.Store{Dir: t.TempDir()}
		if err := s.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		save(t, s)
		if entry, err := system.Get("heed", key.Name()); err != nil || len(entry) > 100 {
			t.Errorf("an entry of %d bytes: %v", len(entry), err)
		}
		if c, err := s.Load(t.Context(), key); err != nil || c.AccessToken != login.AccessToken {
			t.Errorf("%v, %v", c, err)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
		if _, err := system.Get("heed", key.Name()); !errors.Is(err, system.ErrNotFound) {
			t.Errorf("the entry after logging out: %v", err)
		}
	})
	t.Run("fails", func(t *testing.T) {
		system.MockInitWithError(errors.New("failed to unlock correct collection '/org/freedesktop/secrets/collection/login'"))
		defer system.MockInit()
		if err := (&keyring.Store{Dir: t.TempDir()}).Probe(t.Context()); !errors.Is(err, auth.ErrStoreLocked) {
			t.Error(err)
		}
	})
}

func TestNothingInTheOpen(t *testing.T) {
	r := new(ring)
	s := &keyring.Store{Dir: t.TempDir(), Ring: r, Service: "my tool"}
	save(t, s)
	file := read(t, sealedFile(t, s.Dir))
	for _, bad := range []string{"canary", base64.StdEncoding.EncodeToString([]byte("canary"))[:7]} {
		if strings.Contains(file, bad) || strings.Contains(fmt.Sprint(r.entries), bad) {
			t.Error("the token can be read without the other half")
		}
	}
	entry := r.entries["my tool/"+key.Name()]
	if len(r.entries) != 1 || entry == "" || len(entry) > 100 {
		t.Errorf("%d entries, of %d bytes", len(r.entries), len(entry))
	}
	secret := entry[strings.LastIndex(entry, ".")+1:]
	if len(secret) != 43 || strings.Contains(file, secret) {
		t.Error("the file holds its own key")
	}
	r.took()
	save(t, s)
	if got := r.entries["my tool/"+key.Name()]; got != entry {
		t.Error("the key was replaced")
	}
	if read(t, sealedFile(t, s.Dir)) == file {
		t.Error("one nonce was used twice")
	}
}

func TestAsksTheKeyringOnlyWhenNeeded(t *testing.T) {
	r := new(ring)
	s := &keyring.Store{Dir: t.TempDir(), Ring: r}
	_, _ = s.Load(t.Context(), key)
	_ = s.Delete(t.Context(), key)
	if calls := r.took(); calls != "" {
		t.Errorf("without a login: %s", calls)
	}
	for _, want := range []string{"get set get", "get"} {
		save(t, s)
		if calls := r.took(); calls != want {
			t.Errorf("a Save: %s, want %s", calls, want)
		}
	}
	if _, err := s.Load(t.Context(), key); err != nil {
		t.Error(err)
	}
	if calls := r.took(); calls != "get" {
		t.Errorf("a Load: %s", calls)
	}
}

func TestOpensOnlyWhatItSealed(t *testing.T) {
	other := auth.Key{Issuer: "https://evil.test", ClientID: "cli"}
	tests := []struct {
		name  string
		spoil func(t *testing.T, r *ring, s *keyring.Store, file string)
		want  auth.StoreReason
	}{
		{"the key is gone", func(_ *testing.T, r *ring, _ *keyring.Store, _ string) { r.entries = nil }, auth.ErrStoreNotFound},
		{"the entry is not ours", func(_ *testing.T, r *ring, _ *keyring.Store, _ string) { r.entries["heed/"+key.Name()] = "canary" }, auth.ErrStoreNotFound},
		{"the entry is cut", func(_ *testing.T, r *ring, _ *keyring.Store, _ string) {
			entry := r.entries["heed/"+key.Name()]
			r.entries["heed/"+key.Name()] = entry[:len(entry)-4]
		}, auth.ErrStoreNotFound},
		{"the key was replaced", func(t *testing.T, r *ring, s *keyring.Store, file string) {
			old := read(t, file)
			r.entries = nil
			save(t, s)
			write(t, file, old)
		}, auth.ErrStoreNotFound},
		{"the file is another login's", func(t *testing.T, r *ring, s *keyring.Store, file string) {
			if err := s.Save(t.Context(), other, login); err != nil {
				t.Fatal(err)
			}
			r.entries["heed/"+key.Name()] = r.entries["heed/"+other.Name()]
			write(t, file, read(t, strings.Replace(file, key.Name(), other.Name(), 1)))
		}, auth.ErrStoreFailed},
		{"a bit is flipped", func(t *testing.T, _ *ring, _ *keyring.Store, file string) {
			var f map[string]any
			if err := json.Unmarshal([]byte(read(t, file)), &f); err != nil {
				t.Fatal(err)
			}
			sealed, _ := base64.StdEncoding.DecodeString(f["sealed"].(string))
			sealed[len(sealed)/2] ^= 1
			f["sealed"] = sealed
			data, _ := json.Marshal(f)
			write(t, file, string(data))
		}, auth.ErrStoreFailed},
		{"the file is empty", func(t *testing.T, _ *ring, _ *keyring.Store, file string) { write(t, file, "") }, auth.ErrStoreFailed},
		{"the file has no content", func(t *testing.T, _ *ring, _ *keyring.Store, file string) { write(t, file, `{"v":1}`) }, auth.ErrStoreNotFound},
		{"a later version", func(t *testing.T, _ *ring, _ *keyring.Store, file string) {
			write(t, file, strings.Replace(read(t, file), `"v":1`, `"v":2`, 1))
		}, auth.ErrStoreFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := new(ring)
			s := &keyring.Store{Dir: t.TempDir(), Ring: r}
			save(t, s)
			tt.spoil(t, r, s, sealedFile(t, s.Dir))
			c, err := s.Load(t.Context(), key)
			if !errors.Is(err, tt.want) || c.AccessToken != "" {
				t.Errorf("%v, %v", c, err)
			}
			if _, newer := errors.AsType[*auth.VersionError](err); newer != (tt.name == "a later version") {
				t.Error(err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Error("the error shows a secret")
			}
			save(t, s) // a login mends everything
			if _, err := s.Load(t.Context(), key); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDeleteWithAKeyringThatFails(t *testing.T) {
	r := new(ring)
	s := &keyring.Store{Dir: t.TempDir(), Ring: r}
	save(t, s)
	file := sealedFile(t, s.Dir)
	r.fails(errors.New("failed to unlock correct collection 'x'"))
	if err := s.Delete(t.Context(), key); !errors.Is(err, auth.ErrStoreLocked) {
		t.Errorf("Delete: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the login is still there")
	}
	r.fails(nil)
	save(t, s)
	if _, err := s.Load(t.Context(), key); err != nil {
		t.Error(err)
	}
}

func TestAKeyringThatForgets(t *testing.T) {
	r := new(ring)
	s := &keyring.Store{Dir: t.TempDir(), Ring: forgetful{r}}
	if err := s.Probe(t.Context()); !errors.Is(err, auth.ErrStoreFailed) {
		t.Errorf("Probe: %v", err)
	}
	if err := s.Save(t.Context(), key, login); !errors.Is(err, auth.ErrStoreFailed) {
		t.Errorf("Save: %v", err)
	}
}

type forgetful struct{ *ring }

func (forgetful) Set(_, _, _ string) error { return nil }

func TestFirstSavesAtOnce(t *testing.T) {
	for range 5 {
		r, dir := new(ring), t.TempDir()
		var all sync.WaitGroup
		for range 4 { // each as a process of its own
			s := &keyring.Store{Dir: dir, Ring: r}
			all.Go(func() {
				if err := s.Save(t.Context(), key, login); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, err := (&keyring.Store{Dir: dir, Ring: r}).Load(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	s := &keyring.Store{Dir: t.TempDir(), Ring: new(ring)}
	if err := s.Save(t.Context(), key, auth.Credential{AccessToken: strings.Repeat("x", 1<<20)}); !errors.Is(err, auth.ErrStoreTooLarge) {
		t.Error(err)
	}
	large := auth.Credential{AccessToken: strings.Repeat("x", 1<<20-100)}
	if err := s.Save(t.Context(), key, large); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Load(t.Context(), key); err != nil || c.AccessToken != large.AccessToken {
		t.Errorf("%v", err)
	}
}

// Between the two halves that a Load looks at, somebody logs out and in again.
func TestLoadLooksTwice(t *testing.T) {
	r := new(ring)
	s := &keyring.Store{Dir: t.TempDir(), Ring: r}
	save(t, s)
	again := auth.Credential{AccessToken: "canary-again"}
	r.before = func(string) error {
		r.fails(nil)
		other := &keyring.Store{Dir: s.Dir, Ring: r}
		return errors.Join(other.Delete(t.Context(), key), other.Save(t.Context(), key, again))
	}
	if c, err := s.Load(t.Context(), key); err != nil || c.AccessToken != again.AccessToken {
		t.Errorf("%v, %v", c, err)
	}
}

// Whatever Save and Delete do at once, a file is never left behind that no key opens.
func TestSaveAndDeleteAtOnce(t *testing.T) {
	r, dir := new(ring), t.TempDir()
	var all sync.WaitGroup
	for range 30 {
		for _, deletes := range []bool{false, true} {
			s := &keyring.Store{Dir: dir, Ring: r}
			all.Go(func() {
				if deletes {
					if err := s.Delete(t.Context(), key); err != nil {
						t.Error(err)
					}
				} else if err := s.Save(t.Context(), key, login); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if names, _ := filepath.Glob(filepath.Join(dir, "*.sealed")); len(names) > 0 {
			if _, err := (&keyring.Store{Dir: dir, Ring: r}).Load(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
}
