package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

// login is a device login with everything that was seen of it.
type login struct {
	t    *testing.T
	flow auth.DeviceFlow
	wire *wire

	// decide is what the user does, in a goroutine that the Prompter starts with what it is shown. If nil, nothing.
	decide func(ctx context.Context, address, userCode string) error
	// ready says after which event the user does it. If nil, at once.
	ready func(auth.Event) bool
	// typed has the user open the address without the code in it.
	typed bool

	events []auth.Event
	log    bytes.Buffer
}

// newLogin returns a login that is yet to run, which asks for what every test looks at.
func newLogin(t *testing.T, config oauth2.Config) *login {
	l := &login{t: t, wire: newWire(t)}
	l.flow = auth.DeviceFlow{
		Config:     config,
		HTTPClient: &http.Client{Transport: l.wire},
		Logger:     slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	return l
}

// run logs in, and waits until the user has done what there was to do.
func (l *login) run() (*oauth2.Token, error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	ready := make(chan struct{})
	if l.ready == nil {
		close(ready)
	}
	l.flow.OnEvent = func(e auth.Event) {
		l.events = append(l.events, e)
		if l.ready != nil && l.ready(e) {
			l.ready = nil
			close(ready)
		}
	}
	var decided chan error
	l.flow.Prompter = auth.PrompterFunc(func(_ context.Context, p auth.Prompt) error {
		address := p.VerificationURIComplete
		if l.typed {
			address = p.VerificationURI
		}
		decided = make(chan error, 1)
		// Not on the Prompter's context: the token may be there before the user has seen the last page.
		go func() {
			select {
			case <-ready:
			case <-ctx.Done():
			}
			if l.decide == nil {
				decided <- nil
				return
			}
			decided <- l.decide(ctx, address, p.UserCode)
		}()
		return nil
	})
	token, err := l.flow.Login(ctx)
	if decided != nil {
		if l.ready != nil {
			cancel() // what the user was to wait for has not come
		}
		if err := <-decided; err != nil {
			l.t.Errorf("the user: %v", err)
		}
	}
	l.wantNoLeak(err)
	return token, err
}

// wantNoLeak checks that nothing that is shown or logged has a secret in it.
func (l *login) wantNoLeak(err error) {
	l.t.Helper()
	l.wire.wantNoSecret(l.t, "the log", l.log.String())
	l.wire.wantNoSecret(l.t, "the error", fmt.Sprintf("%v %+v %#v", err, err, err))
	l.wire.wantNoSecret(l.t, "the flow", fmt.Sprintf("%v %+v %#v", l.flow, l.flow, l.flow))
	for _, e := range l.events {
		l.wire.wantNoSecret(l.t, "the event "+e.Name(), fmt.Sprintf("%v %+v %#v", e, e, e))
	}
}

// firstPending is a login that has been told to wait, once.
func firstPending(e auth.Event) bool {
	p, ok := e.(auth.Polled)
	return ok && p.Outcome == "authorization_pending"
}

// outcomes are those of the polls, in their order.
func (l *login) outcomes() string {
	var all []string
	for _, e := range l.events {
		if p, ok := e.(auth.Polled); ok {
			all = append(all, p.Outcome)
		}
	}
	return strings.Join(all, " ")
}

// waits are those of the login, in their order.
func (l *login) waits() []time.Duration {
	var all []time.Duration
	for _, e := range l.events {
		if w, ok := e.(auth.Waiting); ok {
			all = append(all, w.Wait.For)
		}
	}
	return all
}

// wantWaits checks that the login has said of each of its waits that it was as long as it had to be.
func (l *login) wantWaits(least ...time.Duration) {
	l.t.Helper()
	waits := l.waits()
	if len(waits) != len(least) {
		l.t.Errorf("the waits were %v, want %d of them", waits, len(least))
		return
	}
	for i, w := range waits {
		if w < least[i] {
			l.t.Errorf("wait %d was %v, want at least %v", i+1, w, least[i])
		}
	}
}

// wantEnd checks how a login ended that has no token.
func wantEnd(t *testing.T, token *oauth2.Token, err error, reason auth.Reason, status int, code string) {
	t.Helper()
	e, ok := errors.AsType[*auth.DeviceError](err)
	if !ok || token != nil || !errors.Is(err, reason) {
		t.Fatalf("the login ended with token %v and error %v, want %s", token != nil, err, string(reason))
	}
	if e.Reason != reason || e.Status != status || e.Code != code {
		t.Errorf("the login ended with %s, %d %q, want %s, %d %q: %v",
			string(e.Reason), e.Status, e.Code, string(reason), status, code, err)
	}
}
