package ownfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// Dir is a directory of secrets. It is made when something is first written to it, readable by its owner alone.
type Dir struct {
	Path   string
	Timers *delay.Timers
}

// DefaultPath returns the directory heed in the user's configuration directory. XDG_CONFIG_HOME is respected on every
// system that has one, macOS included, where package os does not look at it.
func DefaultPath() (string, error) {
	if xdg := os.Getenv("XDG_CONFIG_HOME"); runtime.GOOS != "windows" && filepath.IsAbs(xdg) {
		return filepath.Join(xdg, "heed"), nil
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", &Error{Class: Unavailable, Text: "the user's configuration directory is not known", Err: err}
	}
	return filepath.Join(config, "heed"), nil
}

// open opens the directory and refuses it when others can put files into it: they could plant a secret, or have the
// lock file of their choice.
func (d Dir) open(create bool) (*os.Root, error) {
	if create {
		if err := os.MkdirAll(d.Path, 0o700); err != nil {
			return nil, &Error{Class: Unavailable, Text: "the directory could not be made", Err: err}
		}
	}
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		if !create && errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, &Error{Class: Unavailable, Text: "the directory could not be opened", Err: err}
	}
	info, err := root.Stat(".")
	if err != nil {
		_ = root.Close()
		return nil, &Error{Class: Unavailable, Text: "the directory could not be examined", Err: err}
	}
	if problem := dirProblem(info); problem != "" {
		_ = root.Close()
		return nil, &Error{Class: Insecure, Text: d.Path + " " + problem}
	}
	return root, nil
}

// Read returns the content of a file. It refuses a file that is not a regular one, that others can read, that belongs to
// another user, or that is larger than limit.
func (d Dir) Read(name string, limit int64) ([]byte, error) {
	root, err := d.open(false)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|doNotBlock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// What is examined is the open file: it cannot be another one by the time it is read.
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.Path, name)
	if !info.Mode().IsRegular() {
		return nil, &Error{Class: Failed, Text: path + " is not a regular file"}
	}
	if problem := fileProblem(info); problem != "" {
		return nil, &Error{Class: Insecure, Text: path + " " + problem}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &Error{Class: TooLarge, Text: fmt.Sprintf("%s is larger than %d bytes", path, limit)}
	}
	return data, nil
}

// Remove removes a file, if it is there, and what killed writers have left behind.
func (d Dir) Remove(name string) error {
	root, err := d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	d.sweep(root)
	err = root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(root)
}

func (d Dir) pause(ctx context.Context, kind delay.Kind, rest time.Duration) error {
	return delay.Pause{Timers: d.Timers, Kind: kind}.Sleep(ctx, delay.Wait{For: rest})
}
