//go:build !windows

package prompt

import "io"

// drawsEscapes reports whether a terminal takes escape sequences: here all do, but for those that TERM calls dumb.
func drawsEscapes(io.Writer) bool { return true }
