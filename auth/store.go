package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Store keeps logins. It is safe for use by several goroutines.
//
//   - Every method takes a key in any form and acts on its canonical one; it refuses an invalid key.
//   - Every error is a [*StoreError] that names the method and the reason, and shows no secret.
//   - A method that is called with an ended context changes nothing, and its error is the context's to errors.Is. Once
//     Save has begun to write, it finishes: a token that was rotated must not be lost to a cancelled caller.
//   - No method waits for a human for longer than it says in its documentation.
//
// Package storetest checks a Store against all this.
type Store interface {
	// Load returns the login of a key.
	//
	//   - What it returns is what Save was given, whole, whatever happened meanwhile.
	//   - It is a copy: changing it changes nothing in the store.
	//   - Where there is none, the reason is ErrStoreNotFound.
	Load(ctx context.Context, key Key) (Credential, error)
	// Save keeps a login in place of the one of the same key.
	//
	//   - When it returns nil, the login survives the process, unless the store is documented to forget.
	//   - When it fails, or the process dies within it, the next Load finds the old login or the new one, never half.
	//   - A credential without any token is refused.
	Save(ctx context.Context, key Key, c Credential) error
	// Delete forgets the login of a key, and succeeds when there is none.
	Delete(ctx context.Context, key Key) error
}

// Locker is implemented by stores that can keep other processes from refreshing the same login.
type Locker interface {
	// Lock waits until it has the exclusive lock of a login, or ctx ends.
	//
	//   - It excludes every other holder of the same login, in this process and in others, and no holder of another one.
	//   - The lock dies with the process that holds it.
	//   - unlock never blocks for long, and may be called more than once.
	//   - The reason is ErrStoreLocked when ctx ended while somebody else held the lock, and another one when there is no lock
	//     to be had where the store lives, such as ErrStoreUnavailable: go on without, and read the store again instead of
	//     trusting what was read before. It never hangs.
	Lock(ctx context.Context, key Key) (unlock func(), err error)
}

// Prober is implemented by stores that can tell beforehand whether Save has a chance. Probe honours ctx, changes no
// login, and leaves nothing behind.
type Prober interface {
	Probe(ctx context.Context) error
}

// StoreOp names a method of a store.
type StoreOp string

// The methods of a store.
const (
	OpLoad   StoreOp = "load"
	OpSave   StoreOp = "save"
	OpDelete StoreOp = "delete"
	OpLock   StoreOp = "lock"
	OpProbe  StoreOp = "probe"
)

// StoreReason is why a store failed. Its values are errors themselves, so that errors.Is tells them apart, and
// machine-readable words, so that string(r) can be printed and compared.
type StoreReason string

// The reasons of a [StoreError].
const (
	// ErrStoreNotFound is a store that has no such login.
	ErrStoreNotFound StoreReason = "not_found"
	// ErrStoreLocked is a store that somebody has to unlock, or a login that somebody else holds the lock of.
	ErrStoreLocked StoreReason = "locked"
	// ErrStoreUnavailable is a store that is not to be had here, or does not answer.
	ErrStoreUnavailable StoreReason = "unavailable"
	// ErrStoreTooLarge is a login that does not fit.
	ErrStoreTooLarge StoreReason = "too_large"
	// ErrStoreInsecure is a store that others can read or change.
	ErrStoreInsecure StoreReason = "insecure"
	// ErrStoreReadOnly is a store that only lends.
	ErrStoreReadOnly StoreReason = "read_only"
	// ErrStoreFailed is any other failure.
	ErrStoreFailed StoreReason = "failed"
)

// Error describes the reason in a few words.
func (r StoreReason) Error() string {
	switch r {
	case ErrStoreNotFound:
		return "auth: no login is stored"
	case ErrStoreLocked:
		return "auth: the store is locked"
	case ErrStoreUnavailable:
		return "auth: the store is not available"
	case ErrStoreTooLarge:
		return "auth: the login is too large for the store"
	case ErrStoreInsecure:
		return "auth: others have access to the stored login"
	case ErrStoreReadOnly:
		return "auth: the store cannot be written to"
	}
	return "auth: the store failed"
}

// StoreError is the failure of a store. No field holds anything of a login.
type StoreError struct {
	Op     StoreOp
	Reason StoreReason
	Err    error // the cause; may be nil
}

// Error says what happened and what to do next.
func (e *StoreError) Error() string {
	s := fmt.Sprintf("%s (%s)", e.Reason.Error(), e.Op)
	if e.Err != nil {
		s += ": " + strings.TrimPrefix(e.Err.Error(), "auth: ")
	}
	return s + "; " + e.advice()
}

// advice is the next step for whoever reads the error.
func (e *StoreError) advice() string {
	switch e.Reason {
	case ErrStoreNotFound:
		return "log in"
	case ErrStoreLocked:
		if e.Op == OpLock {
			return "wait for the other process and try again"
		}
		return "unlock it and try again"
	case ErrStoreUnavailable:
		return "choose another store, or try again later"
	case ErrStoreTooLarge:
		return "choose another store, or ask for fewer scopes"
	case ErrStoreInsecure:
		return "take it from them, and log in again if they may have read it"
	case ErrStoreReadOnly:
		return "choose another store"
	}
	_, newer := errors.AsType[*VersionError](e.Err)
	switch {
	case newer:
		return "upgrade, or log in again"
	case errors.Is(e.Err, ErrMalformedCredential):
		return "log in again"
	case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
		return "try again"
	}
	return "mend that and try again"
}

// Is makes the error the one of its reason.
func (e *StoreError) Is(target error) bool { return target == e.Reason }

// LoginRequired reports whether there is nothing in the store: package stream asks it, which does not know this type.
func (e *StoreError) LoginRequired() bool { return e.Reason == ErrStoreNotFound }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }
