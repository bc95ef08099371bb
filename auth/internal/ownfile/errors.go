package ownfile

import (
	"errors"
	"io/fs"
)

// The classes of failure. They are the words of auth.StoreReason, which this package must not import.
const (
	NotFound    = "not_found"
	Locked      = "locked"
	Unavailable = "unavailable"
	TooLarge    = "too_large"
	Insecure    = "insecure"
	Failed      = "failed"
)

// Error is a failure whose class is known better than from the cause alone.
type Error struct {
	Class string
	Text  string
	Err   error // may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Class returns the class of an error of this package.
func Class(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	if errors.Is(err, fs.ErrNotExist) {
		return NotFound
	}
	return Failed
}
