package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// savedFile saves a login and returns the name of its file.
func savedFile(t *testing.T, s *auth.FileStore) string {
	t.Helper()
	if err := s.Save(t.Context(), storeKey, keptLogin()); err != nil {
		t.Fatal(err)
	}
	path, err := s.Path(storeKey)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// leftovers lists what is in a directory besides logins and locks.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".json" && ext != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestFileStoreContent(t *testing.T) {
	s := &auth.FileStore{Dir: t.TempDir()}
	data, err := os.ReadFile(savedFile(t, s))
	if err != nil {
		t.Fatal(err)
	}
	var content struct {
		Issuer     string          `json:"issuer"`
		ClientID   string          `json:"client_id"`
		Credential auth.Credential `json:"credential"`
	}
	if err := json.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	if content.Issuer != storeKey.Issuer || content.ClientID != storeKey.ClientID || content.Credential.AccessToken != "canary-access" {
		t.Errorf("the file holds something else")
	}
	if left := leftovers(t, s.Dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

func TestFileStoreMakesNothingToRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	s := &auth.FileStore{Dir: dir}
	if _, err := s.Load(t.Context(), storeKey); !errors.Is(err, auth.ErrStoreNotFound) {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), storeKey); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("reading has made the directory")
	}
}

func TestFileStoreDamaged(t *testing.T) {
	s := &auth.FileStore{Dir: t.TempDir()}
	path := savedFile(t, s)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"empty": "", "cut": string(good[:len(good)/2]), "text": "canary", "no credential": `{"issuer":"https://as.test","client_id":"cli"}`,
		"another login's": strings.Replace(string(good), "as.test", "evil.test", 1),
	} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := s.Load(t.Context(), storeKey)
		if !errors.Is(err, auth.ErrStoreFailed) || !errors.Is(err, auth.ErrMalformedCredential) || c.AccessToken != "" {
			t.Errorf("%s: %v, %v", name, c, err)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error quotes the file", name)
		}
	}
	newer := strings.Replace(string(good), `"v":1`, `"v":7`, 1)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = s.Load(t.Context(), storeKey)
	if v, ok := errors.AsType[*auth.VersionError](err); !ok || v.Version != 7 {
		t.Errorf("a later version: %v", err)
	}
	savedFile(t, s) // a login mends it
	if _, err := s.Load(t.Context(), storeKey); err != nil {
		t.Error(err)
	}
}

func TestFileStoreTooLarge(t *testing.T) {
	s := &auth.FileStore{Dir: t.TempDir()}
	path := savedFile(t, s)
	err := s.Save(t.Context(), storeKey, auth.Credential{AccessToken: strings.Repeat("x", 1<<20)})
	if !errors.Is(err, auth.ErrStoreTooLarge) {
		t.Errorf("Save: %v", err)
	}
	if _, err := s.Load(t.Context(), storeKey); err != nil {
		t.Errorf("the old login is gone: %v", err)
	}
	if err := os.WriteFile(path, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), storeKey); !errors.Is(err, auth.ErrStoreTooLarge) {
		t.Errorf("Load: %v", err)
	}
}

func TestFileStoreLockWaits(t *testing.T) {
	clock := fakes.NewClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	s := &auth.FileStore{Dir: t.TempDir(), Clock: clock}
	unlock, err := s.Lock(t.Context(), storeKey)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		unlock func()
		err    error
	}
	lock := func(ctx context.Context) <-chan result {
		done := make(chan result, 1)
		go func() {
			unlock, err := s.Lock(ctx, storeKey)
			done <- result{unlock, err}
		}()
		return done
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	waiting := lock(ctx)
	if _, err := clock.Await(t.Context(), delay.KindStoreLock); err != nil {
		t.Fatal(err)
	}
	why := errors.New("the user has lost patience")
	cancel(why)
	r := <-waiting
	if !errors.Is(r.err, auth.ErrStoreLocked) || !errors.Is(r.err, context.Canceled) || !errors.Is(r.err, why) {
		t.Errorf("a wait that was given up: %v", r.err)
	}
	if armed := clock.Armed(); len(armed) > 0 {
		t.Errorf("timers left: %v", armed)
	}

	waiting = lock(t.Context())
	for range 3 {
		if _, err := clock.Await(t.Context(), delay.KindStoreLock); err != nil {
			t.Fatal(err)
		}
		clock.FireNext(delay.KindStoreLock)
	}
	if _, err := clock.Await(t.Context(), delay.KindStoreLock); err != nil {
		t.Fatal(err)
	}
	unlock()
	clock.FireNext(delay.KindStoreLock)
	r = <-waiting
	if r.err != nil {
		t.Fatal(r.err)
	}
	r.unlock()
}

func TestFileStoreLockNotToBeHad(t *testing.T) {
	s := &auth.FileStore{Dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(s.Dir, storeKey.Name()+".lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lock(t.Context(), storeKey); !errors.Is(err, auth.ErrStoreUnavailable) {
		t.Errorf("a lock on what cannot be locked: %v", err)
	}
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s = &auth.FileStore{Dir: filepath.Join(plain, "dir")}
	if _, err := s.Lock(t.Context(), storeKey); !errors.Is(err, auth.ErrStoreUnavailable) {
		t.Errorf("a lock where there can be no directory: %v", err)
	}
	if err := s.Probe(t.Context()); !errors.Is(err, auth.ErrStoreUnavailable) {
		t.Errorf("a probe where there can be no directory: %v", err)
	}
}
