package main

import (
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/prompt"
)

// show has a login shown on standard error in the way that suits who is there.
func (a *app) show(flow *auth.DeviceFlow, f *authFlags, d prompt.Display) {
	flow.Prompter = d
	if !f.noBrowser && !f.start {
		flow.Browser = a.browser
		if flow.Browser == nil && a.out.terminal() {
			flow.Browser = prompt.OpenBrowser
		}
	}
}

// follower tells the events of a login, and keeps what was granted.
func (a *app) follower(d prompt.Display, granted *auth.Granted) func(auth.Event) {
	return func(e auth.Event) {
		if c, ok := e.(auth.StoreChosen); ok && c.Choice.Name == auth.InFile && c.Choice.Err == nil {
			// No keyring was passed over, so it was not asked: there may be one.
			c.Choice.Why = "as asked for, unencrypted, for your eyes only"
			e = c
		}
		switch e := e.(type) {
		case auth.Granted:
			*granted = e
		case auth.Waiting:
			a.tellWait(e.Wait)
		case auth.StoreChosen:
			// It is said without being asked, and before the code is shown: nothing falls back in silence.
			if !a.json {
				a.out.line("%s", e)
				return
			}
		}
		a.tell(d, e)
	}
}

// display is for who is there: a program, somebody who wants to know all, or somebody at a terminal.
func (a *app) display(f *authFlags) prompt.Display {
	switch {
	case a.json:
		return prompt.JSON(a.out.stderr)
	case a.verbose, f.start: // a countdown would be in the way of what is told, and --start does not stay
		return prompt.Lines(a.out.stderr)
	}
	return prompt.Terminal(a.out.stderr, nil)
}

// tell shows an event. With --verbose that is every event, but for the waits, which all commands tell in one way.
func (a *app) tell(d prompt.Display, e auth.Event) {
	if !a.verbose && !a.json {
		d.OnEvent(e)
		return
	}
	switch e.(type) {
	case auth.Waiting:
		return
	case auth.CodeIssued, auth.Browser, auth.AlmostExpired, auth.StoreChosen, auth.RevokeFailed, auth.StoreTrouble: // a program wants to know without being asked
	default:
		if !a.verbose {
			return
		}
	}
	if a.json {
		d.OnEvent(e)
		return
	}
	a.out.line("%s", e)
}
