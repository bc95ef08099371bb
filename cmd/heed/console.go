package main

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// console is where somebody sits who looks at stderr, and may press keys.
type console struct {
	columns func() int // 0: not known
	shared  bool       // stdout is there, too
	// keys reads key by key, until it is closed, and restore undoes what that took. It is nil where nobody presses keys.
	keys func() (keys io.ReadCloser, restore func(), err error)
}

// sat returns the console that a line is to be drawn on, or nil.
func (a *app) sat() *console {
	if a.json {
		return nil
	}
	if v, _ := a.env("NO_COLOR"); v != "" {
		return nil
	}
	if name, _ := a.env("TERM"); name == "dumb" {
		return nil
	}
	if a.console != nil {
		return a.console
	}
	// Who draws, or reads keys, in the background is in the shell's way, and is stopped for it.
	f, ok := a.out.stderr.(*os.File)
	if !ok || !a.out.terminal() || !foreground(f) {
		return nil
	}
	c := &console{columns: func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return width
	}}
	into := "" // what stdout is
	if out, ok := a.out.stdout.(*os.File); ok {
		if c.shared = term.IsTerminal(int(out.Fd())); c.shared {
			into = "terminal"
		} else if info, err := out.Stat(); err == nil && info.Mode().IsRegular() {
			into = "file"
		}
	}
	// Behind a pipe there may be a program that writes to this terminal, and knows nothing of raw mode.
	if a.in == nil && term.IsTerminal(int(os.Stdin.Fd())) && into != "" {
		c.keys = rawKeys
	}
	return c
}

// rawKeys opens the terminal once more: unlike a read from standard input, one from there ends when it is closed.
func rawKeys() (io.ReadCloser, func(), error) {
	f, err := os.OpenFile(terminalName, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	var state *term.State
	// Not by Fd, which would have reads block for good.
	conn, err := f.SyscallConn()
	if err == nil {
		bad := conn.Control(func(fd uintptr) { state, err = term.MakeRaw(int(fd)) })
		if bad != nil {
			err = bad
		}
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, err
	}
	restore := sync.OnceFunc(func() {
		_ = conn.Control(func(fd uintptr) { _ = term.Restore(int(fd), state) }) // nobody could do more
	})
	return f, restore, nil
}

// The keys that mean something. In raw mode Ctrl-C is one of them, and no signal.
const ctrlC = 3

// press hands keys over until there are no more.
func press(keys io.Reader, restore, tryNow, interrupt func()) {
	key := make([]byte, 1)
	for {
		n, err := keys.Read(key)
		if n > 0 {
			switch key[0] {
			case 'r', 'R':
				tryNow()
			case ctrlC:
				restore() // at once, so that another Ctrl-C is a signal
				interrupt()
			}
		}
		if err != nil {
			return
		}
	}
}
