package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// grantType is the device grant's (RFC 8628, section 3.4).
const grantType = "urn:ietf:params:oauth:grant-type:device_code"

// settings are a DeviceFlow as it was when the login started.
type settings struct {
	poster
	deviceURL   string
	tokenURL    string
	scopes      []string // for the parameter of that name
	asked       []string // all of them
	params      url.Values
	tokenParams url.Values
	strict      bool
	timeout     time.Duration
	prompter    Prompter
	browser     func(context.Context, string) error
	onEvent     func(Event)
	logger      *slog.Logger
	secrets     secrets
}

// almostExpired is how little is left of a code that has almost expired, unless a fifth of its life is less.
const almostExpired = time.Minute

// login is one login under way.
type login struct {
	*settings
	deviceCode string
	hide       secrets   // with the device code among them
	issued     time.Time // the code, on the monotonic clock
	deadline   time.Time // of the code, on the monotonic clock
	cadence    *delay.Cadence
	next       delay.Wait // what comes before the next poll
	due        time.Time  // when the next poll may come at the earliest, whenever it was decided
	resumed    bool       // from a saved login, and not polled since: the next poll comes when it is due
	warned     bool       // that the code has almost expired
	polls      int
	failures   int   // polls without an answer, in a row
	unanswered error // the last of them
	ended      error // what another Poll returns
}

var errHandedOut = errors.New("auth: this login has handed out its token: start a new one")

// ask sends the device authorization request (RFC 8628, section 3.1).
func (s *settings) ask(ctx context.Context) (*login, authorization, error) {
	form := clone(s.params)
	if len(s.scopes) > 0 {
		form.Set("scope", strings.Join(s.scopes, " "))
	}
	r, err := s.post(ctx, s.deviceURL, form, s.timeout)
	if ended := delay.Ended(ctx); ended != nil {
		return nil, authorization{}, interrupted(ended)
	}
	now := s.timers.Now()
	if err == nil && r.cut != nil && r.bad != nil && r.status < 500 { // of a server's failure the status says it all
		err = r.cut // nothing is lost but an answer that nobody has seen
	}
	if err != nil {
		return nil, authorization{}, unreached(err)
	}
	a, failure := s.judgeAuthorization(r, now)
	if failure != nil {
		return nil, authorization{}, failure
	}
	l := &login{
		settings: s, deviceCode: a.deviceCode, hide: s.secrets.with(a.deviceCode),
		issued: now, deadline: now.Add(a.expiresIn), cadence: delay.NewCadence(a.interval),
	}
	l.follow(l.cadence.First(), now)
	l.emit(ctx, CodeIssued{
		UserCode: a.userCode, VerificationURI: a.uri, VerificationURIComplete: a.complete,
		ExpiresAt: l.deadline, Interval: a.interval,
	})
	return l, a, nil
}

// judgeAuthorization decides what the answer to the device authorization request means. Nothing is retried here: no code
// was shown, so the caller decides.
func (s *settings) judgeAuthorization(r *reply, now time.Time) (authorization, error) {
	switch {
	case errors.Is(r.bad, errTooLarge):
		return authorization{}, malformed(r, r.bad).err
	case r.status < 200 || r.status > 299 || hasError(r.members):
		return authorization{}, ended(ErrRejected, r, now, s.secrets).err
	case r.bad != nil:
		return authorization{}, malformed(r, r.bad).err
	}
	a, err := readAuthorization(r.members, s.strict)
	if err != nil {
		return authorization{}, malformed(r, err).err
	}
	return a, nil
}

// poll waits and polls until the login ends (RFC 8628, sections 3.4 and 3.5). No poll is sent for a dead code: the
// deadline is asked before each wait and after it.
func (l *login) poll(ctx context.Context) (*oauth2.Token, error) {
	if l.ended != nil {
		return nil, l.ended
	}
	pause := delay.Pause{
		Timers: l.timers, Kind: delay.KindDevicePoll,
		OnWait: func(w delay.Wait) { l.emit(ctx, Waiting{w}) },
	}
	if l.resumed {
		l.next = l.cadence.Rest(l.due.Sub(l.timers.Now()))
	}
	for {
		if err := delay.Ended(ctx); err != nil {
			return nil, interrupted(err)
		}
		if l.left() <= 0 {
			return nil, l.expire()
		}
		l.warn(ctx, &pause)
		if err := pause.Sleep(ctx, l.next.Within(l.left())); err != nil {
			return nil, interrupted(err)
		}
		if l.left() <= 0 {
			return nil, l.expire()
		}
		l.next, l.resumed = l.cadence.First(), false // if ctx ends this poll, the next Poll begins like the first

		token, again, err := l.attempt(ctx)
		if !again {
			return token, err
		}
	}
}

// attempt is one poll. again is true when there is to be another, after l.next.
func (l *login) attempt(ctx context.Context) (token *oauth2.Token, again bool, err error) {
	form := clone(l.tokenParams)
	form.Set("grant_type", grantType)
	form.Set("device_code", l.deviceCode)
	r, err := l.post(ctx, l.tokenURL, form, min(l.timeout, l.left()))
	now := l.timers.Now()
	l.follow(l.cadence.First(), now)
	l.polls++

	status := 0
	v := verdict{outcome: noAnswer, cause: err}
	if err == nil {
		status = r.status
		v = judge(r, l.strict, now, l.hide)
	}
	if v.outcome == granted {
		// The code is spent: nothing, not even the end of ctx, may lose the token now.
		l.ended = errHandedOut
		l.emit(ctx, Polled{Count: l.polls, Status: status, Outcome: v.said})
		l.emit(ctx, l.granted(v.token))
		return v.token, false, nil
	}
	if ended := delay.Ended(ctx); ended != nil {
		if err == nil && r.cut == nil {
			l.decide(v, status, now) // another Poll goes by an answer that has arrived
		}
		return nil, false, interrupted(ended)
	}
	if v.outcome == noAnswer {
		v.said = "no answer: " + v.cause.Error()
	}

	// All is decided before anybody is told, who may save the login as it then stands.
	why := l.decide(v, status, now)
	l.emit(ctx, Polled{Count: l.polls, Status: status, Outcome: v.said})
	if l.ended != nil {
		return nil, false, l.ended
	}
	if why != nil {
		l.emit(ctx, why)
	}
	return nil, true, nil
}

// decide decides what follows on a poll that brought no token, and returns the event that tells of it, if there is one.
func (l *login) decide(v verdict, status int, now time.Time) (why Event) {
	if v.outcome != noAnswer {
		l.failures, l.unanswered = 0, nil
	}
	switch v.outcome {
	case pending:
		l.follow(l.cadence.Pending(), now)
	case slowDown:
		from := l.cadence.Interval()
		l.follow(l.cadence.SlowDown(v.named), now)
		why = Slowed{From: from, To: l.cadence.Interval()}
	case throttled:
		l.follow(l.cadence.Throttled(v.after), now)
		why = Throttled{Status: status, RetryAfter: v.after}
	case noAnswer:
		if final := unreached(v.cause); final.Reason != ErrTransport {
			l.ended = final
			return nil
		}
		l.failures++
		l.unanswered = v.cause
		l.follow(l.cadence.Unreachable(), now)
		why = Unreachable{Failures: l.failures, Cause: v.cause.Error()}
	default:
		l.ended = v.err
		return nil
	}
	l.next.Cause = v.said
	return why
}

// follow sets what comes before the next poll, when the last answer came at that instant.
func (l *login) follow(w delay.Wait, at time.Time) { l.next, l.due = w, at.Add(w.For) }

// left is what is left of the code's life.
func (l *login) left() time.Duration { return l.deadline.Sub(l.timers.Now()) }

// warn tells once that the code has almost expired: now, or on the way through the wait that begins.
func (l *login) warn(ctx context.Context, p *delay.Pause) {
	p.OnMark = nil
	if l.warned || l.onEvent == nil && l.logger == nil {
		return
	}
	few := min(almostExpired, l.deadline.Sub(l.issued)/5)
	tell := func() {
		l.warned = true
		l.emit(ctx, AlmostExpired{Left: l.left()})
	}
	if l.left() <= few {
		tell()
		return
	}
	p.Mark, p.OnMark = l.deadline.Add(-few), tell
}

// expire ends a login whose code is dead.
func (l *login) expire() error {
	l.ended = &DeviceError{Reason: ErrExpired, Err: l.unanswered}
	return l.ended
}

func (l *login) granted(t *oauth2.Token) Granted {
	scopes, missing := grantedScopes(t, l.asked)
	return Granted{Scopes: scopes, NotGranted: missing, ExpiresAt: t.Expiry}
}

// emit tells whoever wants to know.
func (s *settings) emit(ctx context.Context, e Event) {
	if s.logger != nil {
		level, attrs := e.record()
		s.logger.LogAttrs(ctx, level, "auth: "+e.Name(), attrs...)
	}
	if s.onEvent != nil {
		s.onEvent(e)
	}
}

// unreached is the end of a login for which the server could not be reached.
func unreached(err error) *DeviceError {
	e := &DeviceError{Reason: ErrTransport, Err: err}
	if u, ok := errors.AsType[*unanswered](err); ok && u.final {
		e.Reason = ErrUnavailable
	}
	return e
}

// interrupted is the end of a login by its context.
func interrupted(err error) error { return fmt.Errorf("auth: the login was interrupted: %w", err) }

// clone copies parameters, for another request to add its own.
func clone(v url.Values) url.Values {
	c := make(url.Values, len(v)+4)
	for name, values := range v {
		c[name] = append([]string(nil), values...)
	}
	return c
}
