package auth

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Prompt is what a user needs in order to approve a login. The addresses and the code were checked: they hold no
// control, bidirectional or space characters, and the addresses are https, or http on loopback.
type Prompt struct {
	UserCode        string
	VerificationURI string
	// VerificationURIComplete is the address with the code in it, for a link or a QR code; "" when there is none. Show
	// the code beside it all the same, so that the user can compare (RFC 8628, section 3.3.1).
	VerificationURIComplete string
	ExpiresAt               time.Time
	ExpiresIn               time.Duration // the time that was left when Prompt was called
}

// Prompter shows a code to the user.
//
//   - Prompt is called once for each login, after the code was issued and before the first poll.
//   - It returns as soon as the code can be seen. The time it takes comes off the code's life. Polling begins when it
//     returns: it must not wait for the user to press anything.
//   - An error ends the login. A browser that does not open is no error, as long as the code can be seen.
//   - ctx ends when the login does, so that a countdown may run on it. If the Prompter has a method Wait(), it is called
//     after that and before Login or Finish returns, for what is left running to come to its end.
//   - What it prints must not go where the result of a program goes.
type Prompter interface {
	Prompt(ctx context.Context, p Prompt) error
}

// PrompterFunc is a function that is a [Prompter].
type PrompterFunc func(ctx context.Context, p Prompt) error

// Prompt calls f.
func (f PrompterFunc) Prompt(ctx context.Context, p Prompt) error { return f(ctx, p) }

// Lines returns a [Prompter] that writes a few plain lines to w: the address, the code, and how long it is good for.
func Lines(w io.Writer) Prompter {
	return PrompterFunc(func(_ context.Context, p Prompt) error {
		text := fmt.Sprintf("To log in, open  %s\nand enter the code  %s\n", p.VerificationURI, p.UserCode)
		if p.VerificationURIComplete != "" {
			text += fmt.Sprintf("or open  %s\n", p.VerificationURIComplete)
		}
		_, err := io.WriteString(w, text+fmt.Sprintf("The code is good for %s.\n", roughly(p.ExpiresIn)))
		return err
	})
}

// roughly rounds down to what a person wants to know.
func roughly(d time.Duration) string {
	switch {
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	case d >= 2*time.Second:
		return fmt.Sprintf("%d seconds", d/time.Second)
	}
	return "a second"
}
