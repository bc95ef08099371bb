package keyring_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/keyring"
	"github.com/heed-sdk/heed/auth/storetest"
)

var (
	key   = auth.Key{Issuer: "https://as.test", ClientID: "cli"}
	login = auth.Credential{AccessToken: "canary-access", RefreshToken: "canary-refresh"}
)

// patience bounds what is slow on a busy machine, on top of what the tests are about.
const patience = 30 * time.Second

// scene is what happens in one session.
const scene = "HEED_TEST_KEYRING_SCENE"

func TestSecretService(t *testing.T) {
	for _, program := range []string{"gnome-keyring-daemon", "dbus-run-session", "dbus-send", "secret-tool"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("HEED_INTEROP") != "" && runtime.GOOS == "linux" {
				t.Fatalf("%s is missing: install the packages gnome-keyring, dbus and libsecret-tools", program)
			}
			t.Skipf("%s is missing", program)
		}
	}
	home := t.TempDir()
	// In this order: the first makes the keyring of the others.
	for _, s := range []struct{ state, scene string }{
		{"unlocked", "conformance"},
		{"unlocked", "save"},
		{"unlocked", "load"}, // from another daemon
		{"unlocked", "hidden"},
		{"locked", "locked"},
		{"stopped", "stopped"},
		{"missing", "missing"},
		{"", "missing"},
		{"unlocked", "delete"},
	} {
		t.Run(s.scene, func(t *testing.T) {
			session := []string{"./with-keyring.sh", s.state, home}
			if s.state == "" { // not even a bus
				t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(home, "nothing"))
				session = []string{"env", "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config")}
			}
			run(t, s.scene, session...)
		})
	}
}

// run plays a scene in a process of its own: the D-Bus connection of go-keyring lives as long as its process.
func run(t *testing.T, what string, within ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, within[0], append(within[1:], self, "-test.run=^TestScene$", "-test.v")...)
	cmd.Env = append(os.Environ(), scene+"="+what, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestScene ") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "canary") {
		t.Errorf("a secret shows:\n%s", out)
	}
}

func TestScene(t *testing.T) {
	ctx, s := t.Context(), &keyring.Store{}
	policy := auth.StorePolicy{Keyring: s}
	// refused checks that a login is neither lost nor delayed, and kept in the file instead.
	refused := func(want auth.StoreReason, within time.Duration) {
		t.Helper()
		start := time.Now()
		c, err := policy.Choose(ctx, key)
		if took := time.Since(start); took > within {
			t.Errorf("choosing took %v", took)
		}
		if err != nil || c.Name != auth.InFile || !errors.Is(c.Err, want) {
			t.Errorf("%v, because of %v; %v", c, c.Err, err)
		}
		t.Logf("%v", c.Err)
		if within > 3*time.Second {
			return // once is enough
		}
		policy.RequireKeyring = true
		if _, err := policy.Choose(ctx, key); !errors.Is(err, want) {
			t.Errorf("required: %v", err)
		}
	}
	switch os.Getenv(scene) {
	case "":
		t.Skip("for child processes")
	case "conformance":
		storetest.Run(t, func() auth.Store { return &keyring.Store{Dir: t.TempDir(), Service: "conformance"} })
	case "save":
		c, err := policy.Choose(ctx, key)
		if err != nil || c.Name != auth.InKeyring {
			t.Fatalf("%v, because of %v; %v", c, c.Err, err)
		}
		if err := s.Save(ctx, key, login); err != nil {
			t.Fatal(err)
		}
	case "load":
		c, got, err := policy.Find(ctx, key)
		if err != nil || c.Name != auth.InKeyring || got.AccessToken != login.AccessToken {
			t.Errorf("%v, %v", c, err)
		}
	case "hidden":
		home := os.Getenv("HOME")
		err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if strings.Contains(string(data), "canary") {
				t.Errorf("the token can be read in %s", d.Name())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	case "locked":
		refused(auth.ErrStoreLocked, 3*time.Second)
		if _, err := s.Load(ctx, key); !errors.Is(err, auth.ErrStoreLocked) {
			t.Errorf("Load: %v", err)
		}
		if _, _, err := policy.Find(ctx, key); !errors.Is(err, auth.ErrStoreLocked) {
			t.Errorf("Find: %v", err)
		}
	case "stopped":
		refused(auth.ErrStoreUnavailable, 4*time.Second)
	case "missing":
		refused(auth.ErrStoreUnavailable, 3*time.Second)
		if _, err := s.Load(ctx, key); !errors.Is(err, auth.ErrStoreUnavailable) {
			t.Errorf("Load: %v", err)
		}
	case "delete":
		if err := s.Delete(ctx, key); err != nil {
			t.Error(err)
		}
		if _, err := s.Load(ctx, key); !errors.Is(err, auth.ErrStoreNotFound) {
			t.Errorf("Load: %v", err)
		}
		// The search prints secrets, so what it finds is not for the log.
		if out, err := exec.CommandContext(ctx, "secret-tool", "search", "--all", "service", "heed").CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("entries are left: %d bytes, %v", len(out), err)
		}
	}
}
