package ownfile

import "context"

// LockWith is Lock with a file lock of the test's own.
func (d Dir) LockWith(ctx context.Context, l interface {
	TryLock() (bool, error)
	Unlock() error
},
) (func(), error) {
	return d.lock(ctx, l)
}

// Persist is how a file is moved to where somebody may have another one open.
func (d Dir) Persist(ctx context.Context, move func() error, busy func(error) bool) error {
	return d.persist(ctx, move, busy)
}
