// Package prompt shows the code of a device login: to a person at a terminal, as plain lines, or as JSON for a program.
// Each [Display] is an auth.Prompter that follows the events of the login as well:
//
//	screen := prompt.Terminal(os.Stderr, nil)
//	flow := &auth.DeviceFlow{
//		Config:   config,
//		Prompter: screen,
//		OnEvent:  screen.OnEvent,
//		Browser:  prompt.OpenBrowser,
//	}
//	token, err := flow.Login(ctx)
//
// # At a terminal
//
// [Terminal] draws the code large, the address as a hyperlink where the terminal is known to have them, and a QR code of
// the address with the code in it where that fits into the window; else it writes that address out. Below, one line
// counts down the life of the code and says what the last poll brought. That line alone is drawn again, in place, and it
// is gone when the login has ended. Nothing waits for a key.
//
// Without a terminal, with TERM=dumb and with NO_COLOR (https://no-color.org) it writes plain lines.
//
// # What it keeps to
//
//   - It writes to the writer it is given, which is not the one that the result of a program goes to.
//   - What a server has sent was checked by package auth, and what could steer a terminal is taken out again here.
//   - It never sees a device code or a token.
//   - The countdown is a timer of package delay (kind "countdown"), on the flow's clock. Its goroutine ends with the
//     login, which waits for it.
package prompt
