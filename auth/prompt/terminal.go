package prompt

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/benbjohnson/clock"
	"golang.org/x/term"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
)

// Options are of a [Terminal]. The zero value is for a program on a real terminal.
type Options struct {
	// Clock is the one of the flow. If it is nil, the real one.
	Clock clock.Clock
	// Size returns how large the terminal is, or false when there is none. If it is nil, the writer is asked, which has one
	// if it is an *os.File that is a terminal.
	Size func() (columns, rows int, ok bool)
	// Env looks up a variable of the environment. If it is nil, os.LookupEnv does.
	Env func(name string) (string, bool)
}

// Terminal returns a [Display] for a person at the terminal w, or one of plain lines where w is no terminal or does not
// want to be drawn on: see the package documentation. While a login runs, nothing else should write there.
func Terminal(w io.Writer, o *Options) Display {
	t := &terminal{w: w, lines: Lines(w)}
	if o != nil {
		t.Options = *o
	}
	t.timers = delay.TimersOn(t.Clock)
	if t.Env == nil {
		t.Env = os.LookupEnv
	}
	if t.Size == nil {
		t.Size = sizeOf(w)
	}
	return t
}

type terminal struct {
	Options
	w      io.Writer
	lines  Display
	timers *delay.Timers

	mu     sync.Mutex
	screen *screen // of the login that runs, nil for plain lines
}

func (t *terminal) Prompt(ctx context.Context, p auth.Prompt) error {
	width, height, ok := t.Size()
	if !ok || !t.drawable() {
		t.use(nil)
		return t.lines.Prompt(ctx, p)
	}
	if width <= 0 || height <= 0 {
		width, height = 80, 0 // one that does not know: no QR code
	}
	var text strings.Builder
	p = cleaned(p)
	w := window{columns: width, rows: height, unicode: drawsUnicode(t.Env), links: hyperlinks(t.Env)}
	for _, l := range layout(p, w) {
		text.WriteString(l.drawn + "\n")
	}
	s := newScreen(t, p)
	first := s.status.line(t.timers.Now(), width)
	if _, err := io.WriteString(t.w, text.String()+first); err != nil {
		return err
	}
	s.drawn = first
	t.use(s)
	go s.run(ctx)
	return nil
}

func (t *terminal) OnEvent(e auth.Event) {
	if s := t.now(); s != nil {
		s.on(e)
		return
	}
	t.lines.OnEvent(e)
}

func (t *terminal) Wait() {
	if s := t.now(); s != nil {
		<-s.done
		t.use(nil)
	}
}

func (t *terminal) use(s *screen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen = s
}

func (t *terminal) now() *screen {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen
}

// drawable reports whether the user wants more than lines, and the terminal can do more.
func (t *terminal) drawable() bool {
	if v, _ := t.Env("NO_COLOR"); v != "" {
		return false
	}
	name, _ := t.Env("TERM")
	return name != "dumb" && drawsEscapes(t.w)
}

// sizeOf asks a writer.
func sizeOf(w io.Writer) func() (int, int, bool) {
	f, ok := w.(*os.File)
	return func() (int, int, bool) {
		if !ok || !term.IsTerminal(int(f.Fd())) {
			return 0, 0, false
		}
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0, 0, true
		}
		return width, height, true
	}
}
