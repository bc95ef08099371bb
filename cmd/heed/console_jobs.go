//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// terminalName is the terminal of the process.
const terminalName = "/dev/tty"

// foreground reports whether the process is what the terminal is for at the moment.
func foreground(f *os.File) bool {
	var group int32
	_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return failed != 0 || int(group) == syscall.Getpgrp()
}
