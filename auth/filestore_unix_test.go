//go:build linux || darwin

package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/heed-sdk/heed/auth"
)

func TestFileStoreDefaultDir(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	s := &auth.FileStore{}
	if path := savedFile(t, s); path != filepath.Join(config, "heed", storeKey.Name()+".json") {
		t.Errorf("the file is %s", path)
	}
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "")
	if err := s.Save(t.Context(), storeKey, keptLogin()); !errors.Is(err, auth.ErrStoreUnavailable) {
		t.Errorf("without a home: %v", err)
	}
}

func TestFileStoreModes(t *testing.T) {
	old := syscall.Umask(0) // a mask must not be what keeps others out
	defer syscall.Umask(old)
	s := &auth.FileStore{Dir: filepath.Join(t.TempDir(), "a", "heed")}
	path := savedFile(t, s)
	unlock, err := s.Lock(t.Context(), storeKey)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	for name, want := range map[string]os.FileMode{
		path: 0o600,
		filepath.Join(s.Dir, storeKey.Name()+".lock"): 0o600,
		s.Dir:               0o700 | os.ModeDir,
		filepath.Dir(s.Dir): 0o700 | os.ModeDir,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
}

func TestFileStoreRefusesWhatOthersReach(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(dir, path string) error
		ops   string // the methods that must refuse, by their first letters
	}{
		{"a file that the group can read", func(_, path string) error { return os.Chmod(path, 0o640) }, "l"},
		{"a file that others can read", func(_, path string) error { return os.Chmod(path, 0o604) }, "l"},
		{"a file that others can write", func(_, path string) error { return os.Chmod(path, 0o602) }, "l"},
		{"a directory that the group can write to", func(dir, _ string) error { return os.Chmod(dir, 0o770) }, "lsdLp"},
		{"a directory that others can write to", func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, "lsdLp"},
		{"another user's file", func(_, path string) error { return os.Chown(path, 12345, -1) }, "l"},
		{"another user's directory", func(dir, _ string) error { return os.Chown(dir, 12345, -1) }, "lsdLp"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &auth.FileStore{Dir: t.TempDir()}
			path := savedFile(t, s)
			if err := tt.spoil(s.Dir, path); errors.Is(err, os.ErrPermission) {
				t.Skip("only root can give a file away")
			} else if err != nil {
				t.Fatal(err)
			}
			refused := func(op string, err error) {
				t.Helper()
				if want := strings.Contains(tt.ops, op); want != errors.Is(err, auth.ErrStoreInsecure) {
					t.Errorf("%s: %v", op, err)
				} else if !want && err != nil {
					t.Errorf("%s: %v", op, err)
				}
			}
			c, err := s.Load(t.Context(), storeKey)
			refused("l", err)
			if c.AccessToken != "" {
				t.Error("the login was handed out all the same")
			}
			unlock, err := s.Lock(t.Context(), storeKey)
			refused("L", err)
			if err == nil {
				unlock()
			}
			refused("p", s.Probe(t.Context()))
			refused("s", s.Save(t.Context(), storeKey, keptLogin()))
			if tt.ops == "l" { // the new file is its owner's alone again
				if _, err := s.Load(t.Context(), storeKey); err != nil {
					t.Error(err)
				}
			}
			refused("d", s.Delete(t.Context(), storeKey))
		})
	}
}

func TestFileStoreOddFiles(t *testing.T) {
	s := &auth.FileStore{Dir: t.TempDir()}
	path := savedFile(t, s)
	replace := func(with func() error) {
		t.Helper()
		if err := errors.Join(os.Remove(path), with()); err != nil {
			t.Fatal(err)
		}
	}
	replace(func() error { return syscall.Mkfifo(path, 0o600) })
	if _, err := s.Load(t.Context(), storeKey); !errors.Is(err, auth.ErrStoreFailed) {
		t.Errorf("a named pipe: %v", err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	replace(func() error { return os.Symlink(outside, path) })
	if _, err := s.Load(t.Context(), storeKey); !errors.Is(err, auth.ErrStoreFailed) {
		t.Errorf("a link out of the directory: %v", err)
	}
	savedFile(t, s)
	if data, err := os.ReadFile(outside); err != nil || string(data) != "{}" {
		t.Errorf("Save has written through a link: %v", err)
	}
}

func TestFileStoreReadOnlyDir(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes everywhere")
	}
	s := &auth.FileStore{Dir: t.TempDir()}
	savedFile(t, s)
	if err := os.Chmod(s.Dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(s.Dir, 0o700)
	if err := s.Save(t.Context(), storeKey, keptLogin()); !errors.Is(err, auth.ErrStoreFailed) {
		t.Error(err)
	}
	if err := s.Probe(t.Context()); !errors.Is(err, auth.ErrStoreFailed) {
		t.Error(err)
	}
}
