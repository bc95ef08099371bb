package prompt

import (
	"io"
	"os"
	"syscall"
)

// drawsEscapes has a console take escape sequences, which older ones do only when asked to, and reports whether it does.
func drawsEscapes(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return true // whoever says that it is a terminal knows
	}
	const virtualTerminal = 0x0004 // ENABLE_VIRTUAL_TERMINAL_PROCESSING
	var mode uint32
	if syscall.GetConsoleMode(syscall.Handle(f.Fd()), &mode) != nil {
		return true // no console, but a pipe to a terminal that is none of Windows's own
	}
	if mode&virtualTerminal != 0 {
		return true
	}
	set := syscall.NewLazyDLL("kernel32.dll").NewProc("SetConsoleMode")
	ok2, _, _ := set.Call(f.Fd(), uintptr(mode|virtualTerminal))
	return ok2 != 0
}
