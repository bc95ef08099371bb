//go:build unix

package ownfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// doNotBlock keeps the opening of a named pipe from waiting for its other end.
const doNotBlock = syscall.O_NONBLOCK

// fileProblem says why a file is not its owner's secret, or "".
func fileProblem(info fs.FileInfo) string {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Sprintf("is open to others (mode %#o, want 0600)", mode)
	}
	return ownerProblem(info)
}

// dirProblem says why a directory is not its owner's, or "". That others may list it does no harm: names are hashes.
func dirProblem(info fs.FileInfo) string {
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Sprintf("can be written to by others (mode %#o, want 0700)", mode)
	}
	return ownerProblem(info)
}

func ownerProblem(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int64(stat.Uid) != int64(os.Geteuid()) {
		return fmt.Sprintf("belongs to another user (uid %d, this is uid %d)", stat.Uid, os.Geteuid())
	}
	return ""
}

// claim locks a temporary file as long as its writer lives, so that removeAbandoned can tell. Without locks the age of
// the file has to do.
func claim(path string) (release func(), err error) {
	l := flock.New(path, flock.SetFlag(os.O_RDWR))
	ok, err := l.TryLock()
	if err == nil && !ok {
		return nil, errSwept
	}
	return func() { _ = l.Unlock() }, nil
}

// removeAbandoned removes a temporary file whose writer is dead. A name is never used twice, so that a file that has
// meanwhile been renamed is out of reach.
func removeAbandoned(root *os.Root, path, name string, now time.Time) {
	l := flock.New(path, flock.SetFlag(os.O_RDWR))
	ok, err := l.TryLock()
	if ok {
		_ = root.Remove(name)
		_ = l.Unlock()
	} else if err != nil {
		removeOld(root, name, now)
	}
}

func flushDir(dir *os.File) error { return dir.Sync() }
