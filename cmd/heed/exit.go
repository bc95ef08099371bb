package main

import (
	"context"
	"errors"
)

// The exit codes are stable: scripts branch on them.
const (
	exitUsage       = 1
	exitOutput      = 11
	exitInterrupted = 130
)

// verdict returns the exit code of an error and the one line that says what to do about it.
func verdict(ctx context.Context, err error) (int, string) {
	if _, ok := errors.AsType[*outputError](err); ok {
		return exitOutput, err.Error()
	}
	if ctx.Err() != nil {
		return exitInterrupted, "interrupted: nothing was left half done"
	}
	return exitUsage, err.Error()
}
