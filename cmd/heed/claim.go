package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/gofrs/flock"
)

// claim is the right to write a partial file. The operating system takes it back with the process, so that what a killed
// one has left of it is in nobody's way.
type claim struct{ lock *flock.Flock }

// claimFile claims a partial file, or fails with a *claimedError at once. The lock is on a file beside it, which is gone
// afterwards: on Windows nobody else reads a file that is locked, not even through another handle of the same process.
func claimFile(part string) (*claim, error) {
	for {
		l := flock.New(part+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR))
		switch ok, err := l.TryLock(); {
		case err != nil:
			return nil, &outputError{fmt.Errorf("%s.lock: no lock is to be had, which --resume needs: %w", part, err)}
		case !ok:
			return nil, &claimedError{part}
		}
		c := &claim{l}
		if current, err := c.current(); err != nil || current {
			return c, err
		}
		_ = l.Close()
	}
}

// current reports whether the locked file is still the one of its name: its last holder may have removed it in between.
func (c *claim) current() (bool, error) {
	locked, err := c.lock.Stat()
	if err != nil {
		return false, &outputError{err}
	}
	named, err := os.Stat(c.lock.Path())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(locked, named), err
}

// release gives the right back. The file goes first, while nobody else can have locked it; Windows removes no open file.
func (c *claim) release() {
	if c == nil {
		return
	}
	removed := os.Remove(c.lock.Path())
	_ = c.lock.Close()
	if removed != nil {
		_ = os.Remove(c.lock.Path())
	}
}

// claimedError is a partial file that another run is writing.
type claimedError struct{ part string }

func (e *claimedError) Error() string {
	return fmt.Sprintf("another download is writing %s at this moment: wait for it, or name another file with --output", e.part)
}
