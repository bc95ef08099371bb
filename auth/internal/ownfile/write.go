package ownfile

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// Write replaces the content of a file, or makes the file. A reader, and a process that starts after this one was
// killed, finds the old content or the new, never less: the new content goes into a temporary file beside the old one,
// is flushed to the disk, and takes the name in one step.
func (d Dir) Write(ctx context.Context, name string, data []byte) error {
	root, err := d.open(true)
	if err != nil {
		return err
	}
	defer root.Close()
	d.sweep(root)
	for range 5 {
		if err = d.replace(ctx, root, name, data); !errors.Is(err, errSwept) {
			return err
		}
	}
	return err
}

// Probe reports whether Write has a chance, by doing all of it but the last step.
func (d Dir) Probe(ctx context.Context) error {
	root, err := d.open(true)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := delay.Ended(ctx); err != nil {
		return err
	}
	tmp, release, err := d.temporary(root, []byte("probe\n"))
	if err != nil {
		return err
	}
	defer release()
	return root.Remove(tmp)
}

// errSwept says that somebody took the temporary file for a dead writer's: the writer tries again with another.
var errSwept = errors.New("the temporary file was removed by another process")

func (d Dir) replace(ctx context.Context, root *os.Root, name string, data []byte) error {
	tmp, release, err := d.temporary(root, data)
	if err != nil {
		return err
	}
	defer release()
	err = d.persist(ctx, func() error { return root.Rename(tmp, name) }, busy)
	if err != nil {
		_ = root.Remove(tmp)
		if errors.Is(err, fs.ErrNotExist) {
			return errSwept
		}
		return err
	}
	return syncDir(root)
}

// temporary writes data to a new file of the directory, for its owner alone from the moment it exists, and flushes it.
// The file is claimed until release is called. If it cannot be written whole, it is removed again.
func (d Dir) temporary(root *os.Root, data []byte) (name string, release func(), err error) {
	name = tempPrefix + strings.ToLower(rand.Text()) + tempSuffix
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, err
	}
	release, err = claim(filepath.Join(d.Path, name))
	if err == nil {
		err = errors.Join(write(f, data), f.Close())
		if err == nil {
			return name, release, nil
		}
		release()
	} else {
		_ = f.Close()
	}
	_ = root.Remove(name)
	return "", nil, err
}

func write(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

// persist repeats what failed because somebody has the file open, for about two seconds: on Windows a file cannot be
// replaced while it is being read, and virus scanners read everything.
func (d Dir) persist(ctx context.Context, move func() error, busy func(error) bool) error {
	pauses := delay.Exponential(10*time.Millisecond, 200*time.Millisecond)
	for tries := 0; ; tries++ {
		err := move()
		if err == nil || !busy(err) || tries == 12 {
			return err
		}
		if ended := d.pause(ctx, delay.KindStoreWrite, pauses.NextBackOff()); ended != nil {
			return errors.Join(err, ended)
		}
	}
}

const (
	tempPrefix = ".heed-"
	tempSuffix = ".tmp"
)

// sweep removes the temporary files of writers that were killed. It does its best: whoever comes next tries again.
func (d Dir) sweep(root *os.Root) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(100)
		for _, e := range entries {
			name := e.Name()
			if strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix) {
				removeAbandoned(root, filepath.Join(d.Path, name), name, d.Timers.Now())
			}
		}
		if err != nil { // io.EOF, or a directory that cannot be read
			return
		}
	}
}

// removeOld removes a temporary file by its age. A writer needs milliseconds; an hour leaves room for a sleeping laptop.
func removeOld(root *os.Root, name string, now time.Time) {
	if info, err := root.Lstat(name); err == nil && now.Sub(info.ModTime()) > time.Hour {
		_ = root.Remove(name)
	}
}

// syncDir makes a new or a removed name last. Some file systems cannot flush a directory, and say so.
func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	err = flushDir(dir)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
