package oidcprovider

import (
	"context"
	"fmt"
	"strings"

	"github.com/heed-sdk/heed/interop/browser"
)

// Approve does what the user does to let the device in: open the address, type the code where it is asked for, confirm
// it, log in and consent. The address is the verification_uri or the verification_uri_complete that the client was told.
func (s *Server) Approve(ctx context.Context, address, userCode string) error {
	page, err := walk(ctx, address, userCode, "")
	if err != nil {
		return fmt.Errorf("oidcprovider: approve: %w", err)
	}
	if !strings.Contains(page.Text, "Sign-in Success") {
		return fmt.Errorf("oidcprovider: approve: the last page says %q", page.Text)
	}
	return nil
}

// Deny opens the address like [Server.Approve], and then aborts where the code is to be confirmed.
func (s *Server) Deny(ctx context.Context, address, userCode string) error {
	page, err := walk(ctx, address, userCode, "abort")
	if err != nil {
		return fmt.Errorf("oidcprovider: deny: %w", err)
	}
	if !strings.Contains(page.Text, "request was interrupted") {
		return fmt.Errorf("oidcprovider: deny: the last page says %q", page.Text)
	}
	return nil
}

// walk submits one page after the other until there is nothing left to fill in; on the page that asks for confirmation it
// presses the named button, if any. It returns the last page.
func walk(ctx context.Context, address, userCode, button string) (*browser.Page, error) {
	b := browser.New()
	page, err := b.Open(ctx, address)
	typed := false
	// Seven pages are the longest way; the bound is for a server that asks the same thing for ever.
	for range 10 {
		if err != nil {
			return nil, err
		}
		var form *browser.Form
		switch {
		case page.Form("login") != nil:
			form = page.Form("login")
			form.Fields.Set("login", User)
			form.Fields.Set("password", "any")
		case page.Form("confirm") != nil:
			form = page.Form("confirm")
			if button != "" && !form.Press(button) {
				return nil, fmt.Errorf("the page %q has no button %q", page.Text, button)
			}
		case page.Form("user_code") != nil:
			// Asked again after the code was sent: it was wrong, or the user has denied. That page is the answer.
			if typed {
				return page, nil
			}
			form = page.Form("user_code")
			// The complete address brings a page with the code filled in, which a browser's script submits.
			if form.Fields.Get("user_code") == "" {
				form.Fields.Set("user_code", userCode)
			}
			typed = true
		case len(page.Forms) > 0:
			form = page.Forms[0] // consent
		default:
			return page, nil
		}
		page, err = b.Submit(ctx, form)
	}
	return nil, fmt.Errorf("still asking after ten pages: %q", page.Text)
}
