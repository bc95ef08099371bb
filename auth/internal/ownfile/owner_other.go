//go:build !unix

package ownfile

import (
	"io/fs"
	"os"
	"time"
)

const doNotBlock = 0

// fileProblem finds nothing: on Windows the user's configuration directory is closed to others by its access list, which
// its files inherit, and mode bits say nothing.
func fileProblem(fs.FileInfo) string { return "" }

func dirProblem(fs.FileInfo) string { return "" }

// claim does nothing: a lock would keep the writer itself from writing, so the age of the file has to do.
func claim(string) (release func(), err error) { return func() {}, nil }

func removeAbandoned(root *os.Root, _, name string, now time.Time) { removeOld(root, name, now) }

// flushDir does nothing: a directory cannot be flushed.
func flushDir(*os.File) error { return nil }
