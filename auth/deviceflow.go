package auth

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/benbjohnson/clock"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// DeviceFlow logs a user in with a code that is approved on another device (RFC 8628). It is configuration only: one
// value serves any number of logins, one after another or at once. Only the client id and the two endpoints have to be
// set, and the Prompter for Login.
type DeviceFlow struct {
	// Config has ClientID, ClientSecret, Scopes, Endpoint.DeviceAuthURL and Endpoint.TokenURL; RedirectURL and
	// Endpoint.AuthURL are not used. Endpoints must be https, or http on loopback.
	//
	// If Endpoint.AuthStyle is AuthStyleAutoDetect, the client authenticates with HTTP Basic when it has a secret and
	// sends its id alone when it has none. Nothing is ever probed: one request is one request.
	Config oauth2.Config

	// Prompter shows the code. Login needs it, Start does not.
	Prompter Prompter

	// Browser, if not nil, is asked by Login and Finish to open the address, the one with the code in it where there is
	// one, after the code was shown. It must not wait for the user. If it fails, that is a remark, the event [Browser], and
	// not the end of the login. Package auth/prompt has one.
	Browser func(ctx context.Context, address string) error

	// HTTPClient has the Transport that carries the requests. If it or its Transport is nil, http.DefaultTransport does.
	// Nothing else of it is used: redirects are refused whatever its CheckRedirect says.
	HTTPClient *http.Client

	// Params are extra parameters of the device authorization request, such as audience, resource or a PKCE challenge.
	Params url.Values

	// TokenParams are extra parameters of each poll, such as resource or a PKCE verifier.
	TokenParams url.Values

	// PKCE gives each login a proof key (RFC 7636) of its own, so that a device code is of no use to whoever intercepts it.
	// RFC 8628 does not ask for it; some servers enforce it, and those that do not know it ignore it.
	PKCE bool

	// Strict reads answers as the RFC writes them, without the leniencies that real servers need: see the package
	// documentation.
	Strict bool

	// RequestTimeout bounds each request; a poll is bounded by what is left of the code, too. If it is zero, 30 s.
	RequestTimeout time.Duration

	// Clock is what waits and deadlines run on. If it is nil, the real one.
	Clock clock.Clock

	// OnEvent, if not nil, is told each step of the login, from the goroutine that called Login, Start or Poll. It must
	// not block.
	OnEvent func(Event)

	// Logger, if not nil, logs each step: polls and waits at level debug. It is never given a secret.
	Logger *slog.Logger

	asked []string // scopes that are among Params, under the provider's name for them
}

// Login asks for a code, has the Prompter show it, and polls until the user has decided. It returns a *ConfigError
// before anything is sent, a *DeviceError when the login ended without a token, and an error that is ctx's own (by
// errors.Is) when ctx ended it. When ctx has a deadline that falls before the end of a wait, it returns right away with
// an error that is context.DeadlineExceeded.
func (f *DeviceFlow) Login(ctx context.Context) (*oauth2.Token, error) {
	s, err := f.settings(toLogIn)
	if err != nil {
		return nil, err
	}
	p, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	return p.Finish(ctx)
}

// Validate reports what Login would find wrong with the configuration: nil, or a *ConfigError with all mistakes. Nothing is
// sent.
func (f *DeviceFlow) Validate() error {
	_, err := f.settings(toLogIn)
	return err
}

// Start asks for a code. Nothing is shown, and nothing is polled before Poll is called.
func (f *DeviceFlow) Start(ctx context.Context) (*Pending, error) {
	s, err := f.settings(toStart)
	if err != nil {
		return nil, err
	}
	return s.start(ctx)
}

// Format prints the flow without its secret, whatever the verb is.
func (f DeviceFlow) Format(w fmt.State, _ rune) { fmt.Fprint(w, f.describe()) }

// LogValue is the flow without its secret.
func (f DeviceFlow) LogValue() slog.Value { return slog.StringValue(f.describe()) }

// Pending is a device login that was started: the code to show, and the polling still to do. It belongs to one goroutine.
// Its fields are for reading. Printing it, in whatever way, does not print the device code.
type Pending struct {
	UserCode                string
	VerificationURI         string
	VerificationURIComplete string        // "" when there is none
	ExpiresAt               time.Time     // of the code
	Interval                time.Duration // between polls, as the server named it

	login *login // a pointer, which prints as an address wherever Format is not asked
}

func (s *settings) start(ctx context.Context) (*Pending, error) {
	l, a, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	return &Pending{
		UserCode: a.userCode, VerificationURI: a.uri, VerificationURIComplete: a.complete,
		ExpiresAt: l.deadline, Interval: a.interval, login: l,
	}, nil
}

// Prompt returns what a Prompter shows, with the time that is left now.
func (p *Pending) Prompt() Prompt {
	return Prompt{
		UserCode: p.UserCode, VerificationURI: p.VerificationURI, VerificationURIComplete: p.VerificationURIComplete,
		ExpiresAt: p.ExpiresAt, ExpiresIn: max(p.login.left(), 0),
	}
}

// Finish does what Login does once there is a code: the flow's Prompter shows it, if there is one, the flow's Browser
// opens the address, if there is one, and then it polls as Poll does.
func (p *Pending) Finish(ctx context.Context) (*oauth2.Token, error) {
	l := p.login
	if l.ended != nil || l.left() <= 0 {
		return p.Poll(ctx) // which says so: there is nothing to show
	}
	if l.prompter != nil {
		shown, done := context.WithCancel(ctx) // ends with the login, for what the prompter leaves running
		defer func() {
			done()
			if w, ok := l.prompter.(interface{ Wait() }); ok {
				w.Wait()
			}
		}()
		if err := p.show(shown); err != nil {
			return nil, err
		}
	}
	if l.browser != nil && l.left() > 0 && delay.Ended(ctx) == nil { // showing it takes time
		p.open(ctx)
	}
	return p.Poll(ctx)
}

func (p *Pending) show(ctx context.Context) error {
	if err := p.login.prompter.Prompt(ctx, p.Prompt()); err != nil {
		if ended := delay.Ended(ctx); ended != nil {
			return interrupted(ended)
		}
		return fmt.Errorf("auth: the code could not be shown: %w", err)
	}
	p.login.emit(ctx, CodeShown{Left: max(p.login.left(), 0)})
	return nil
}

// open has the browser open the address. Whether it does is a remark.
func (p *Pending) open(ctx context.Context) {
	address := p.VerificationURIComplete
	if address == "" {
		address = p.VerificationURI
	}
	e := Browser{Opened: true}
	if err := p.login.browser(ctx, address); err != nil {
		e = Browser{Cause: p.login.hide.clean(err.Error())}
	}
	p.login.emit(ctx, e)
}

// Poll polls until the user has decided, the code expires or ctx ends. The first poll comes one interval after Poll is
// called, or, of a login that was resumed, when its next poll was due. After ctx has ended it, Poll may be called again while the code lives: it begins with a wait again, so that it
// never polls sooner than the server allows.
func (p *Pending) Poll(ctx context.Context) (*oauth2.Token, error) { return p.login.poll(ctx) }

// describe is what printing a Pending shows.
func (p Pending) describe() string {
	return fmt.Sprintf("auth.Pending{code %s, %s, expires %s, interval %v}",
		p.UserCode, withoutQuery(p.VerificationURI), p.ExpiresAt.UTC().Format(time.RFC3339), p.Interval)
}

// Format prints what may be shown, whatever the verb is.
func (p Pending) Format(w fmt.State, _ rune) { fmt.Fprint(w, p.describe()) }

// LogValue is what may be logged; the user code is not, because whoever reads the log could approve the login.
func (p Pending) LogValue() slog.Value {
	return slog.GroupValue(slog.String("verification_uri", withoutQuery(p.VerificationURI)), slog.Time("expires_at", p.ExpiresAt))
}
