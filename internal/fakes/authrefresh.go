package fakes

import (
	"crypto/rand"
	"net/http"
	"time"
)

const refreshGrant = "refresh_token"

// RefreshAnswer is what an AuthServer says to one refresh. Without a status, a body, Drop and Hang it is the ordinary
// answer, with this one's latency.
type RefreshAnswer struct {
	AuthAnswer
	// Spend spends the refresh token before the answer, which is then lost, or says something else. The tokens that a
	// body of its own holds count as issued.
	Spend bool
	// Cut sends half of the ordinary answer.
	Cut bool
}

func (a RefreshAnswer) ordinary() bool {
	return a.Status == 0 && a.Body == nil && a.RawBody == nil && !a.Drop && !a.Hang && !a.Oversized
}

// refreshToken is a refresh token that was issued.
type refreshToken struct {
	family *family
	spent  time.Time // zero when it is not
	answer AuthAnswer
}

// family is all tokens of one login, revoked together (RFC 9700, section 4.14.2).
type family struct {
	access  []string
	revoked bool
}

// Login makes tokens known that were issued in a login of which the server has seen nothing.
func (s *AuthServer) Login(access, refresh string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.init()
	s.join(&family{}, access, refresh)
}

// Refreshes returns how many refreshes were asked for, those that broke the protocol included.
func (s *AuthServer) Refreshes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refreshes
}

// Reuses returns how many times a spent refresh token came again, which has revoked its login each time.
func (s *AuthServer) Reuses() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reuses
}

// Revoked returns the tokens that revocation requests have named, in order.
func (s *AuthServer) Revoked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.revoked...)
}

// EndSession revokes all tokens of the login of a refresh token, as an administrator does, and reports whether there is
// one.
func (s *AuthServer) EndSession(refresh string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.refresh[refresh]
	if t == nil {
		return false
	}
	s.end(t.family)
	return true
}

// join adds tokens to a login. The caller holds mu, as in what follows.
func (s *AuthServer) join(f *family, access, refresh string) {
	if access != "" {
		s.tokens[access] = true
		f.access = append(f.access, access)
	}
	if refresh != "" && s.refresh[refresh] == nil {
		s.refresh[refresh] = &refreshToken{family: f}
	}
}

func (s *AuthServer) end(f *family) {
	f.revoked = true
	for _, access := range f.access {
		s.tokens[access] = false
	}
}

// renew answers a refresh (RFC 6749, section 6).
func (s *AuthServer) renew(rec *AuthRequest) AuthAnswer {
	s.refreshes++
	odd, isOdd := s.OddRefresh[s.refreshes]
	t := s.refresh[rec.Form.Get("refresh_token")]
	now := s.timers.Now()
	switch {
	case t == nil:
		rec.Violation = "the refresh token is unknown"
		return OAuthError(http.StatusBadRequest, "invalid_grant")
	case isOdd && !odd.ordinary() && !odd.Spend:
		return odd.AuthAnswer // somebody in front, who looks at no token
	case t.family.revoked:
		return OAuthError(http.StatusBadRequest, "invalid_grant")
	case !t.spent.IsZero() && now.Sub(t.spent) < s.ReuseGrace:
		return odd.on(t.answer)
	case !t.spent.IsZero():
		rec.Violation = "the refresh token is spent"
		s.reuses++
		s.end(t.family)
		return OAuthError(http.StatusBadRequest, "invalid_grant")
	}

	t.answer = s.renewed(t)
	if isOdd && !odd.ordinary() {
		said := odd.members()
		s.join(t.family, said.Get("access_token"), said.Get("refresh_token"))
	}
	if !s.KeepRefresh {
		t.spent = now
	}
	return odd.on(t.answer)
}

// on is the answer in place of the ordinary one.
func (a RefreshAnswer) on(ordinary AuthAnswer) AuthAnswer {
	if !a.ordinary() {
		return a.AuthAnswer
	}
	ordinary.Latency = a.Latency
	if a.Cut {
		body, _ := ordinary.content()
		half := body[:len(body)/2]
		ordinary.RawBody, ordinary.ContentLength = &half, len(body)
	}
	return ordinary
}

func (s *AuthServer) renewed(t *refreshToken) AuthAnswer {
	access := s.Mark + rand.Text()
	m := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": orElse(s.TokenLifetime, 3600)}
	refresh := ""
	if !s.KeepRefresh {
		refresh = s.Mark + rand.Text()
		m["refresh_token"] = refresh
	}
	if s.Scope != "" {
		m["scope"] = s.Scope
	}
	s.join(t.family, access, refresh)
	return AuthJSON(http.StatusOK, m)
}

// revoke answers a revocation request (RFC 7009, section 2.2): 200 for a token that is not known as well, and the hint
// may be wrong.
func (s *AuthServer) revoke(rec *AuthRequest) AuthAnswer {
	token := rec.Form.Get("token")
	if token == "" {
		rec.Violation = "there is no token to revoke"
		return OAuthError(http.StatusBadRequest, "invalid_request")
	}
	s.revoked = append(s.revoked, token)
	if s.Revocation != nil {
		return *s.Revocation
	}
	if t := s.refresh[token]; t != nil {
		s.end(t.family)
	}
	if s.tokens[token] {
		s.tokens[token] = false
	}
	return AuthAnswer{}
}
