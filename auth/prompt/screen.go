package prompt

import (
	"context"
	"io"
	"sync"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
)

// again moves to the beginning of the line and wipes it.
const again = "\r\x1b[K"

// screen is the countdown below one login's code. Its goroutine draws it; the login's own only leaves a note, so that no
// poll waits for a terminal.
type screen struct {
	of    *terminal
	inbox chan struct{} // holds one nudge
	done  chan struct{}
	drawn string // the goroutine's own

	mu     sync.Mutex
	status status
}

func newScreen(t *terminal, p auth.Prompt) *screen {
	return &screen{
		of: t, inbox: make(chan struct{}, 1), done: make(chan struct{}),
		status: status{expires: p.ExpiresAt, said: unapproved},
	}
}

func (s *screen) on(e auth.Event) {
	s.mu.Lock()
	news := s.status.on(e)
	s.mu.Unlock()
	if news {
		s.nudge()
	}
}

func (s *screen) nudge() {
	select {
	case s.inbox <- struct{}{}:
	default: // one is there already
	}
}

// run draws the countdown until the login ends.
func (s *screen) run(ctx context.Context) {
	defer close(s.done)
	for s.draw() {
		var t *delay.Timer
		if d := s.now().tick(s.of.timers.Now()); d > 0 {
			t = s.of.timers.After(delay.KindCountdown, d, s.nudge)
		}
		select {
		case <-s.inbox:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil { // what was on its way is no news any more
			s.finish()
			return
		}
	}
	<-ctx.Done()
}

func (s *screen) now() status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// draw draws the line again if it has changed. It reports false when the terminal is gone.
func (s *screen) draw() bool {
	width, _, ok := s.of.Size()
	if !ok || width <= 0 {
		width = 80
	}
	state := s.now()
	line := state.line(s.of.timers.Now(), width)
	if line == s.drawn {
		return true
	}
	s.drawn = line
	_, err := io.WriteString(s.of.w, again+line)
	return err == nil
}

// finish leaves the cursor on a line of its own, with nothing said that is no longer so.
func (s *screen) finish() {
	text := again
	if s.now().granted {
		text += "Approved.\n"
	}
	_, _ = io.WriteString(s.of.w, text)
}
