package zitadel

import (
	"context"
	"fmt"
	"strings"

	"github.com/heed-sdk/heed/interop/browser"
)

// Approve does what the user does to let the device in: open the address, type the code where it is asked for, log in and
// allow. The address is the verification_uri or the verification_uri_complete that the client was told.
func (s *Server) Approve(ctx context.Context, address, userCode string) error {
	if err := s.confirm(ctx, address, userCode, "allowed"); err != nil {
		return fmt.Errorf("zitadel: approve: %w", err)
	}
	return nil
}

// Deny does the same as [Server.Approve] and then denies.
func (s *Server) Deny(ctx context.Context, address, userCode string) error {
	if err := s.confirm(ctx, address, userCode, "denied"); err != nil {
		return fmt.Errorf("zitadel: deny: %w", err)
	}
	return nil
}

func (s *Server) confirm(ctx context.Context, address, userCode, action string) error {
	b := browser.New()
	page, err := b.Open(ctx, address)
	if err != nil {
		return err
	}
	if page.Form("username") == nil {
		form := page.Form("user_code")
		if form == nil {
			return fmt.Errorf("no form for the code on the page %q", page.Text)
		}
		form.Fields.Set("user_code", userCode)
		if page, err = b.Submit(ctx, form); err != nil {
			return err
		}
	}
	form := page.Form("user_code", "username", "password")
	if form == nil {
		return fmt.Errorf("no form to log in on the page %q", page.Text)
	}
	form.Fields.Set("username", User)
	form.Fields.Set("password", password)
	if page, err = b.Submit(ctx, form); err != nil {
		return err
	}
	if !strings.Contains(page.Text, "You are about to grant") {
		return fmt.Errorf("not asked to confirm, but shown %q", page.Text)
	}
	// The two buttons of this page are scripts that go to these addresses.
	if page, err = b.Open(ctx, s.issuer+"/device/confirm?action="+action); err != nil {
		return err
	}
	if !strings.Contains(page.Text, "Device authorization "+action) {
		return fmt.Errorf("the last page says %q", page.Text)
	}
	return nil
}
