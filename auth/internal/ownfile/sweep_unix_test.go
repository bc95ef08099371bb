//go:build unix

package ownfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

func TestSweepKeepsWhatIsBeingWritten(t *testing.T) {
	dir, _ := newDir(t)
	temp := filepath.Join(dir.Path, ".heed-living.tmp")
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	writer := flock.New(temp) // as another process has it
	if ok, err := writer.TryLock(); !ok {
		t.Fatal(err)
	}
	for range 2 {
		if err := dir.Write(t.Context(), "mine", []byte("y")); err != nil {
			t.Fatal(err)
		}
		if err := dir.Remove("mine"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(temp); err != nil {
		t.Errorf("a file that is being written is gone: %v", err)
	}
	if err := writer.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := dir.Remove("mine"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(temp); err == nil {
		t.Error("a file that nobody writes any more has been left")
	}
}
