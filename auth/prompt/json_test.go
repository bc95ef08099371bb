package prompt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/prompt"
	"github.com/heed-sdk/heed/internal/fakes"
)

// TestJSON has each event of a login, and of one that was resumed.
func TestJSON(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		var out syncBuffer
		d := prompt.JSON(&out)
		r := newRig(t, d, pending, slowDown, fakes.Throttle(30), fakes.Throttle(0), drop, token)
		r.server.Device = device(130, complete)
		r.flow.Browser = func(context.Context, string) error { return errors.New("no display <here>") }
		if _, err := r.flow.Login(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.server.Polls = []fakes.AuthAnswer{token}
		p, err := r.flow.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		saved, err := p.Save()
		if err != nil {
			t.Fatal(err)
		}
		r.flow.OnEvent = nil // in the other process nobody has seen the code
		d = prompt.JSON(&out)
		r.flow.Prompter, r.flow.OnEvent, r.flow.Browser = d, d.OnEvent, nil
		if p, err = r.flow.Resume(saved); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.Wait()
		got := out.String()
		for line := range strings.Lines(got) {
			var e struct{ Event string }
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Event == "" {
				t.Errorf("%s: %v", line, err)
			}
		}
		if strings.Contains(got, "canary") {
			t.Error("the device code or the token was printed")
		}
		golden(t, "events.jsonl", got)
	})
}

// An event that this package does not know is told in words.
func TestJSONOfOtherEvents(t *testing.T) {
	for want, e := range map[string]auth.Event{
		`{"event":"polled","text":"poll 7: x"}`:                         other{auth.Polled{Count: 7, Outcome: "x"}},
		`{"event":"granted","scopes":[],"not_granted":[]}`:              auth.Granted{},
		`{"event":"browser","opened":true}`:                             auth.Browser{Opened: true},
		`{"event":"throttled","status":503,"retry_after":null}`:         auth.Throttled{Status: 503},
		`{"event":"almost_expired","left":59.5}`:                        auth.AlmostExpired{Left: 59500 * time.Millisecond},
		`{"event":"unreachable","failures":2,"cause":"a \"b\"\n<c>"}`:   auth.Unreachable{Failures: 2, Cause: "a \"b\"\n<c>"},
		`{"event":"polled","count":1,"status":0,"outcome":"\u001b[2J"}`: auth.Polled{Count: 1, Outcome: "\x1b[2J"},
	} {
		if got := string(prompt.Encode(e)); got != want+"\n" {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

type other struct{ auth.Event }

// The code has to be written; what comes later may be lost.
func TestJSONUnwritten(t *testing.T) {
	gone := errors.New("the pipe is closed")
	for good, want := range []error{gone, nil} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, prompt.JSON(&breaking{good: good, err: gone}), token)
			if _, err := r.flow.Login(t.Context()); !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("after %d lines: %v", good, err)
			}
		})
	}
	var out bytes.Buffer
	d := prompt.JSON(&out)
	for range 2 { // without the events
		if err := d.Prompt(t.Context(), auth.Prompt{UserCode: "A", VerificationURI: uri, ExpiresAt: noon}); err != nil {
			t.Fatal(err)
		}
	}
	if want := `{"event":"code_issued","user_code":"A","verification_uri":"` + uri + `","expires_at":"2026-11-29T12:00:00Z"}` + "\n"; out.String() != want {
		t.Errorf("%s", out.String())
	}
}
