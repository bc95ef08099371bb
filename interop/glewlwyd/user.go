package glewlwyd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Approve does what the pages do when the user lets the device in: log in and confirm the code. The pages are one script,
// so that there is no form to fill in. The address is the verification_uri or the verification_uri_complete that the client
// was told.
func (s *Server) Approve(ctx context.Context, address, userCode string) error {
	if err := s.approve(ctx, address, userCode); err != nil {
		return fmt.Errorf("glewlwyd: approve: %w", err)
	}
	return nil
}

func (s *Server) approve(ctx context.Context, address, userCode string) error {
	user, err := enter(ctx, s.base, User, password)
	if err != nil {
		return err
	}

	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	query := u.Query()
	if query.Get("code") == "" {
		query.Set("code", userCode)
	}
	query.Set("g_continue", "")
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	res, err := user.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	next, err := res.Location()
	if err != nil {
		return fmt.Errorf("%s: %w", res.Status, err)
	}
	if prompt := next.Query().Get("prompt"); prompt != "deviceComplete" {
		return fmt.Errorf("the next page is %q", prompt)
	}
	return nil
}
