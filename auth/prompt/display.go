package prompt

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/heed-sdk/heed/auth"
)

// Display shows a login and what becomes of it. It is for one login at a time.
//
//   - Prompt shows the code and returns, as of every auth.Prompter.
//   - OnEvent is for auth.DeviceFlow.OnEvent. It does not block, except on the writer.
//   - Wait returns when nothing is left running of a login that has ended. Login and Finish call it.
type Display interface {
	auth.Prompter
	OnEvent(auth.Event)
	Wait()
}

// Lines returns a [Display] that writes plain lines: those of auth.Lines, and one for each thing that the user has to
// know later.
func Lines(w io.Writer) Display { return &lines{w: w} }

type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Prompt(ctx context.Context, p auth.Prompt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return auth.Lines(l.w).Prompt(ctx, cleaned(p))
}

func (l *lines) OnEvent(e auth.Event) {
	var text string
	switch e := e.(type) {
	case auth.Browser:
		text = "A browser was opened."
		if !e.Opened {
			text = "No browser could be opened: " + e.Cause + "."
		}
	case auth.AlmostExpired:
		text = fmt.Sprintf("The code expires in %v.", e.Left.Round(time.Second))
	case auth.Unreachable:
		if e.Failures > 1 {
			return // it was said
		}
		text = "The server gave no answer: " + e.Cause + ". It will be asked again."
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.w, clean(text)+"\n")
}

func (*lines) Wait() {}
