package main

import (
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/prompt"
)

// show has a login shown on standard error in the way that suits who is there, and returns where to find what was
// granted when it is over.
func (a *app) show(flow *auth.DeviceFlow, f *authFlags) *auth.Granted {
	d := a.display(f)
	flow.Prompter = d
	if !f.noBrowser && !f.start {
		flow.Browser = a.browser
		if flow.Browser == nil && a.out.terminal() {
			flow.Browser = prompt.OpenBrowser
		}
	}
	granted := &auth.Granted{}
	flow.OnEvent = func(e auth.Event) {
		switch e := e.(type) {
		case auth.Granted:
			*granted = e
		case auth.Waiting:
			a.tellWait(e.Wait)
		}
		a.tell(d, e)
	}
	return granted
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
	case auth.CodeIssued, auth.Browser, auth.AlmostExpired: // a program wants to know without being asked
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
