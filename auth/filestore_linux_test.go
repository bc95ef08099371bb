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

func TestSaveOntoFullFileSystem(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("none", mount, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		t.Skipf("no file system of our own to fill: %v", err)
	}
	defer syscall.Unmount(mount, 0)
	s := &auth.FileStore{Dir: mount}
	savedFile(t, s)
	if err := os.WriteFile(filepath.Join(mount, "filler.lock"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling: %v", err)
	}
	err := s.Save(t.Context(), storeKey, keptLogin())
	if !errors.Is(err, auth.ErrStoreFailed) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Save: %v", err)
	}
	if err := s.Probe(t.Context()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Probe: %v", err)
	}
	oldLoginKept(t, s)
	if err := s.Delete(t.Context(), storeKey); err != nil {
		t.Errorf("there is no logging out on a full disk: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "canary") {
		t.Error("the error shows a secret")
	}
}
