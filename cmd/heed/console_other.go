//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import "os"

// terminalName is the terminal of the process. On systems other than Windows it is not there, and no keys are read.
const terminalName = "CONIN$"

// foreground reports true: either there are no jobs here, or it is not known how to ask.
func foreground(*os.File) bool { return true }
