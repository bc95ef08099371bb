package keyring_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	system "github.com/zalando/go-keyring"
	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	key   = auth.Key{Issuer: "https://as.test", ClientID: "cli"}
	login = auth.Credential{AccessToken: "canary-access", RefreshToken: "canary-refresh", Scope: "read"}
)

// ring is a keyring in memory. What before does comes before each call: it may fail, or hang.
type ring struct {
	mu      sync.Mutex
	entries map[string]string
	calls   []string
	before  func(op string) error
}

func (r *ring) call(op string) error {
	r.mu.Lock()
	before := r.before
	r.calls = append(r.calls, op)
	r.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(op)
}

func (r *ring) Get(service, user string) (string, error) {
	if err := r.call("get"); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, ok := r.entries[service+"/"+user]
	if !ok {
		return "", system.ErrNotFound
	}
	return entry, nil
}

func (r *ring) Set(service, user, secret string) error {
	if err := r.call("set"); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries = map[string]string{}
	}
	r.entries[service+"/"+user] = secret
	return nil
}

func (r *ring) Delete(service, user string) error {
	if err := r.call("delete"); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.entries[service+"/"+user]; !ok {
		return system.ErrNotFound
	}
	delete(r.entries, service+"/"+user)
	return nil
}

// fails makes every call fail with err; nil makes the ring well again.
func (r *ring) fails(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = func(string) error { return err }
}

// hangs makes the calls of one kind hang until release is called; began says that one does.
func (r *ring) hangs(op string) (began <-chan struct{}, release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in, out := make(chan struct{}, 10), make(chan struct{})
	r.before = func(called string) error {
		if called == op {
			in <- struct{}{}
			<-out
		}
		return nil
	}
	return in, sync.OnceFunc(func() { close(out) })
}

func (r *ring) took() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := strings.Join(r.calls, " ")
	r.calls = nil
	return calls
}

// sealedFile returns the name of the only sealed file in a directory.
func sealedFile(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.sealed"))
	if err != nil || len(names) != 1 {
		t.Fatalf("sealed files: %q, %v", names, err)
	}
	return names[0]
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, name, data string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func save(t *testing.T, s auth.Store) {
	t.Helper()
	if err := s.Save(t.Context(), key, login); err != nil {
		t.Fatal(err)
	}
}
