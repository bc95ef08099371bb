package fakes

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"math/big"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// The endpoints of an AuthServer, below its issuer.
const (
	DevicePath = "/device_authorization"
	TokenPath  = "/token"
	RevokePath = "/revoke"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// AuthServer is an authorization server with the device grant (RFC 8628), refresh tokens and revocation (RFC 7009), as an
// http.Handler. Left to itself it issues codes and tokens and answers polls; Device, Polls and Odd put answers in its
// mouth, and so do OddRefresh and Revocation. Either way it enforces the protocol: a request that breaks it is refused
// and remembered, and so is a poll that comes before its time, and a refresh token that was spent before, which a
// well-behaved client never sends. The fields are set before the first request; the zero value serves.
type AuthServer struct {
	// Clock is the time of the server; nil is the real one, or a bubble's.
	Clock clock.Clock
	// Issuer is the address in front of the paths. If it is empty, https://as.test.
	Issuer string
	// ClientID, if set, is the only client there is. With a ClientSecret it has to authenticate, by HTTP Basic or in the
	// form.
	ClientID, ClientSecret string

	// Interval and ExpiresIn are of the codes, in seconds. If they are zero, 5 and 900.
	Interval, ExpiresIn int
	// TokenLifetime is of the access tokens, in seconds. If it is zero, 3600.
	TokenLifetime int
	// Scope, if set, is what is granted, whatever was asked for.
	Scope string
	// ApproveOnPoll, if positive, is the poll that finds the code approved. ApproveAfter, if positive, approves a code
	// that long after it was issued. If neither is, Approve does.
	ApproveOnPoll int
	ApproveAfter  time.Duration

	// Device answers every device authorization request.
	Device *AuthAnswer
	// Polls answer the polls of a code, in order; the last one answers all that follow.
	Polls []AuthAnswer
	// Odd answers single polls of a code, counted from 1.
	Odd map[int]AuthAnswer

	// Mark begins every token, so that a test can look for it.
	Mark string
	// KeepRefresh leaves a refresh token good for any number of uses. If it is false, each use replaces it, and a spent
	// one that comes again revokes all tokens of its login.
	KeepRefresh bool
	// ReuseGrace is how long a spent refresh token is answered once more with the same tokens.
	ReuseGrace time.Duration
	// OddRefresh answers single refreshes, counted from 1 over all logins.
	OddRefresh map[int]RefreshAnswer
	// Revocation answers every revocation request.
	Revocation *AuthAnswer

	mu        sync.Mutex
	timers    *delay.Timers
	grants    map[string]*grant // by device code
	tokens    map[string]bool
	refresh   map[string]*refreshToken
	refreshes int
	reuses    int
	revoked   []string
	requests  []*AuthRequest
}

var _ http.Handler = (*AuthServer)(nil)

// AuthRequest is what an AuthServer remembers of a request.
type AuthRequest struct {
	Path       string
	Header     http.Header
	Form       url.Values
	Begin, End time.Time // End is zero while it lasts
	Status     int       // 0 when there was no answer
	Violation  string    // what is wrong with it, or ""
}

// grant is a code that was issued.
type grant struct {
	userCode  string
	scope     string
	issued    time.Time
	expires   time.Time
	interval  time.Duration
	notBefore time.Time // the next poll
	polls     int
	approved  bool
	denied    bool
	spent     bool
}

// Requests returns what has come so far, in order.
func (s *AuthServer) Requests() []AuthRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]AuthRequest, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// Violations returns what was wrong with the requests so far.
func (s *AuthServer) Violations() []string {
	var list []string
	for _, r := range s.Requests() {
		if r.Violation != "" {
			list = append(list, r.Path+": "+r.Violation)
		}
	}
	return list
}

// Approve approves the login of a user code and reports whether there is one.
func (s *AuthServer) Approve(userCode string) bool {
	return s.decide(userCode, func(g *grant) { g.approved = true })
}

// Deny declines the login of a user code and reports whether there is one.
func (s *AuthServer) Deny(userCode string) bool {
	return s.decide(userCode, func(g *grant) { g.denied = true })
}

func (s *AuthServer) decide(userCode string, f func(*grant)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.grants {
		if g.userCode == userCode {
			f(g)
			return true
		}
	}
	return false
}

// Valid reports whether the server has issued an access token and not revoked it.
func (s *AuthServer) Valid(accessToken string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[accessToken]
}

// ServeHTTP serves the three endpoints.
func (s *AuthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != DevicePath && r.URL.Path != TokenPath && r.URL.Path != RevokePath {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20)) // and to its end, so that the end of the client is noticed
	rec := &AuthRequest{Path: r.URL.Path, Header: r.Header.Clone()}
	answer, g := s.receive(r, string(body), rec)

	lost := answer.Drop || answer.Hang
	if answer.Latency > 0 && !s.sleep(r.Context(), time.Duration(answer.Latency*float64(time.Second))) {
		lost = true
	}
	if answer.Hang {
		<-r.Context().Done()
	}
	s.finish(rec, answer, g, lost)
	if lost {
		panic(http.ErrAbortHandler)
	}
	answer.write(w)
}

// receive checks a request and decides its answer.
func (s *AuthServer) receive(r *http.Request, body string, rec *AuthRequest) (AuthAnswer, *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.init()
	rec.Begin = s.timers.Now()
	s.requests = append(s.requests, rec)
	if a := s.check(r, body, rec); a != nil {
		return *a, nil
	}
	switch {
	case rec.Path == DevicePath:
		return s.issue(rec)
	case rec.Path == RevokePath:
		return s.revoke(rec), nil
	case rec.Form.Get("grant_type") == refreshGrant:
		return s.renew(rec), nil
	}
	return s.poll(rec)
}

// init makes what the zero value lacks. The caller holds mu.
func (s *AuthServer) init() {
	if s.timers == nil {
		s.timers = delay.TimersOn(s.Clock)
		s.grants, s.tokens, s.refresh = map[string]*grant{}, map[string]bool{}, map[string]*refreshToken{}
	}
}

// check enforces what the RFCs say of every request.
func (s *AuthServer) check(r *http.Request, body string, rec *AuthRequest) *AuthAnswer {
	refuse := func(status int, code, violation string) *AuthAnswer {
		rec.Violation = violation
		a := OAuthError(status, code)
		return &a
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form, err := url.ParseQuery(body)
	rec.Form = form
	switch {
	case r.Method != http.MethodPost:
		return refuse(http.StatusMethodNotAllowed, "invalid_request", "the method is "+r.Method)
	case media != "application/x-www-form-urlencoded":
		return refuse(http.StatusBadRequest, "invalid_request", "the content type is "+media)
	case err != nil:
		return refuse(http.StatusBadRequest, "invalid_request", "the body is no form")
	case r.Header.Get("Accept") != "application/json":
		return refuse(http.StatusBadRequest, "invalid_request", "it does not ask for JSON")
	}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		// RFC 6749, sections 3.1 and 3.2; resource may come again (RFC 8707, section 2).
		if len(form[name]) > 1 && name != "resource" && name != "audience" {
			return refuse(http.StatusBadRequest, "invalid_request", name+" comes twice")
		}
		if form.Get(name) == "" {
			return refuse(http.StatusBadRequest, "invalid_request", name+" is empty")
		}
	}

	id, secret := form.Get("client_id"), form.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		if secret != "" {
			return refuse(http.StatusBadRequest, "invalid_request", "it authenticates in two ways")
		}
		user, _ = url.QueryUnescape(user)
		if secret, _ = url.QueryUnescape(password); user != id {
			return refuse(http.StatusUnauthorized, "invalid_client", "client_id is not the one that authenticates")
		}
	}
	if id == "" || s.ClientID != "" && id != s.ClientID || secret != s.ClientSecret {
		return refuse(http.StatusUnauthorized, "invalid_client", "the client is unknown")
	}
	return nil
}

// issue answers a device authorization request (RFC 8628, section 3.2).
func (s *AuthServer) issue(rec *AuthRequest) (AuthAnswer, *grant) {
	g := &grant{scope: rec.Form.Get("scope")}
	var a AuthAnswer
	if s.Device != nil {
		a = *s.Device
	} else {
		issuer := s.Issuer
		if issuer == "" {
			issuer = "https://as.test"
		}
		code := userCode()
		a = AuthJSON(http.StatusOK, map[string]any{
			"device_code": rand.Text(), "user_code": code,
			"verification_uri": issuer + "/device", "verification_uri_complete": issuer + "/device?user_code=" + code,
			"expires_in": orElse(s.ExpiresIn, 900), "interval": orElse(s.Interval, 5),
		})
	}
	said := a.members()
	code := said.Get("device_code")
	if code == "" {
		return a, nil
	}
	g.userCode = said.Get("user_code")
	g.interval = authSeconds(said.Get("interval"))
	if g.interval <= 0 {
		g.interval = 5 * time.Second
	}
	g.expires = s.timers.Now().Add(time.Duration(a.Latency*float64(time.Second)) + authSeconds(said.Get("expires_in")))
	g.issued = s.timers.Now()
	s.grants[code] = g
	return a, g
}

// poll answers an access token request (RFC 8628, section 3.5).
func (s *AuthServer) poll(rec *AuthRequest) (AuthAnswer, *grant) {
	if rec.Form.Get("grant_type") != deviceGrant {
		rec.Violation = "the grant type is not the device grant"
		return OAuthError(http.StatusBadRequest, "unsupported_grant_type"), nil
	}
	g := s.grants[rec.Form.Get("device_code")]
	if g == nil {
		rec.Violation = "the device code is unknown"
		return OAuthError(http.StatusBadRequest, "invalid_grant"), nil
	}
	now := s.timers.Now()
	switch {
	case g.spent:
		rec.Violation = "the device code is spent"
		return OAuthError(http.StatusBadRequest, "invalid_grant"), g
	case !now.Before(g.expires):
		rec.Violation = fmt.Sprintf("the device code is dead for %v", now.Sub(g.expires))
		return OAuthError(http.StatusBadRequest, "expired_token"), g
	case now.Before(g.notBefore):
		rec.Violation = fmt.Sprintf("the poll is %v early", g.notBefore.Sub(now))
		return OAuthError(http.StatusBadRequest, "slow_down"), g
	}
	g.polls++
	if a, ok := s.Odd[g.polls]; ok {
		return a, g
	}
	switch n := len(s.Polls); {
	case n > 0:
		return s.Polls[min(g.polls, n)-1], g
	case g.denied:
		return OAuthError(http.StatusBadRequest, "access_denied"), g
	case g.approved, s.ApproveOnPoll > 0 && g.polls >= s.ApproveOnPoll, s.ApproveAfter > 0 && now.Sub(g.issued) >= s.ApproveAfter:
		g.spent = true
		return s.token(g), g
	}
	return OAuthError(http.StatusBadRequest, "authorization_pending"), g
}

func (s *AuthServer) token(g *grant) AuthAnswer {
	access, refresh := s.Mark+rand.Text(), s.Mark+rand.Text()
	s.join(&family{}, access, refresh)
	t := map[string]any{
		"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": orElse(s.TokenLifetime, 3600),
	}
	if s.Scope != "" {
		t["scope"] = s.Scope
	} else if g.scope != "" {
		t["scope"] = g.scope
	}
	return AuthJSON(http.StatusOK, t)
}

// finish notes the end of a request, before a client can know of it, and when the next poll may come.
func (s *AuthServer) finish(rec *AuthRequest, a AuthAnswer, g *grant, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec.End = s.timers.Now()
	if !lost {
		rec.Status = orElse(a.Status, http.StatusOK)
	}
	if g == nil {
		return
	}
	wait := g.interval
	if rec.Path == TokenPath && !lost {
		said := a.members()
		code := said.Get("error")
		if code == "" {
			code = said.Get("message")
		}
		switch {
		case code == "slow_down" && (rec.Status == http.StatusOK || rec.Status/100 == 4):
			g.interval = max(g.interval+5*time.Second, authSeconds(said.Get("interval")))
			wait = g.interval
		case code == "authorization_pending" && rec.Status/100 == 4:
		case rec.Status == http.StatusTooManyRequests, rec.Status >= 502 && rec.Status <= 504:
			// Whoever is refused comes back when told to.
			n, err := strconv.ParseUint(a.Headers["Retry-After"], 10, 31)
			if err == nil {
				wait = max(wait, time.Duration(n)*time.Second)
			}
		}
	}
	g.notBefore = rec.End.Add(wait)
}

// sleep passes time on the server's clock; it reports false when the client is gone.
func (s *AuthServer) sleep(ctx context.Context, d time.Duration) bool {
	done := make(chan struct{})
	t := s.timers.After("server-latency", d, func() { close(done) })
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// userCode is eight letters that are easy to tell apart and spell no words (RFC 8628, section 6.1).
func userCode() string {
	const letters = "BCDFGHJKLMNPQRSTVWXZ"
	code := make([]byte, 0, 9)
	for i := range 8 {
		if i == 4 {
			code = append(code, '-')
		}
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			panic(err)
		}
		code = append(code, letters[n.Int64()])
	}
	return string(code)
}
