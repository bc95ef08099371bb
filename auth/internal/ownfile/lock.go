package ownfile

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/heed-sdk/heed/delay"
)

// Lock waits for the exclusive lock of a name, across goroutines and processes, until ctx ends. The operating system
// drops the lock with the process that holds it, so that no lock is ever stale. The empty lock file stays: removing it
// would let two processes lock two files of one name.
//
// The class of an error is Locked when another holder had it until ctx ended, Insecure when others could take the lock
// for mischief, and Unavailable when there are no locks to be had here, as on some network file systems.
func (d Dir) Lock(ctx context.Context, name string) (unlock func(), err error) {
	return d.lock(ctx, flock.New(filepath.Join(d.Path, name), flock.SetFlag(os.O_CREATE|os.O_RDWR|doNotBlock)))
}

// locker is what is used of a file lock.
type locker interface {
	TryLock() (bool, error)
	Unlock() error
}

func (d Dir) lock(ctx context.Context, l locker) (unlock func(), err error) {
	if err := delay.Ended(ctx); err != nil {
		return nil, err
	}
	root, err := d.open(true)
	if err != nil {
		return nil, err
	}
	_ = root.Close()
	// The operating system can wait for a lock, but it knows no context.
	pauses := delay.AddedJitter(delay.Exponential(5*time.Millisecond, 200*time.Millisecond), 5*time.Millisecond, nil)
	for {
		ok, err := l.TryLock()
		if err != nil {
			return nil, &Error{Class: Unavailable, Text: "no file locks are to be had here", Err: err}
		}
		if ok {
			return sync.OnceFunc(func() { _ = l.Unlock() }), nil
		}
		if err := d.pause(ctx, delay.KindStoreLock, pauses.NextBackOff()); err != nil {
			return nil, &Error{Class: Locked, Text: "another process holds the lock", Err: err}
		}
	}
}
