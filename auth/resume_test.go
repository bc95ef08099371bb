package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// saving starts a login and saves it at once; call it in a bubble.
func saving(t *testing.T, r *rig) []byte {
	t.Helper()
	p, err := r.flow.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Save()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// elsewhere is the flow as another process has it.
func elsewhere(r *rig) *auth.DeviceFlow {
	return &auth.DeviceFlow{
		Config: oauth2.Config{ClientID: "c", Endpoint: oauth2.Endpoint{TokenURL: "https://as.test" + fakes.TokenPath}},
		// Another connection, and another registry of timers, to which no instant of the first means anything.
		HTTPClient: r.net.Client(),
		OnEvent:    func(e auth.Event) { r.events = append(r.events, e) },
	}
}

func TestResume(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // between the two processes
		polls []fakes.AuthAnswer
		waits []float64
		want  string
	}{
		{"at once", 0, []fakes.AuthAnswer{pending, tokenAnswer}, []float64{5, 5}, "token"},
		{"before the first poll is due", 3 * time.Second, []fakes.AuthAnswer{pending, tokenAnswer}, []float64{2, 5}, "token"},
		{"long after", time.Minute, []fakes.AuthAnswer{slowDown, tokenAnswer}, []float64{0, 10}, "token"},
		{"just before the end", 898 * time.Second, []fakes.AuthAnswer{pending, tokenAnswer}, []float64{0, 2}, "expired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newRig(t, tt.polls...)
				data := saving(t, r)
				r.events = nil
				time.Sleep(tt.after)
				p, err := elsewhere(r).Resume(data)
				if err != nil {
					t.Fatal(err)
				}
				if p.UserCode != "WDJB-MJHT" || p.VerificationURI != "https://as.test/device" || p.Interval != 5*time.Second || !p.ExpiresAt.Equal(noon.Add(15*time.Minute)) {
					t.Errorf("%+v", p)
				}
				tok, err := p.Poll(t.Context())
				if got := reason(t, tok, err); got != tt.want || !near(r.waits(), tt.waits) {
					t.Errorf("%s after waits %v, want %s after %v: %v", got, r.waits(), tt.want, tt.waits, err)
				}
				if v := r.server.Violations(); len(v) > 0 {
					t.Error(v)
				}
			})
		})
	}
}

// What slow_down, Retry-After and silence have come to goes on in the other process.
func TestResumeInTheMiddle(t *testing.T) {
	throttled := fakes.Throttle(60)
	for _, tt := range []struct {
		name  string
		polls []fakes.AuthAnswer
		until int // this poll has been answered
		after time.Duration
		want  []float64 // the waits in the other process
	}{
		{"slowed", []fakes.AuthAnswer{slowDown, pending, tokenAnswer}, 1, 4 * time.Second, []float64{6, 10}},
		{"throttled", []fakes.AuthAnswer{throttled, pending, tokenAnswer}, 1, 10 * time.Second, []float64{50, 5}},
		{"unreachable", []fakes.AuthAnswer{drop, drop, drop, tokenAnswer}, 2, 7 * time.Second, []float64{13, 40}},
		{"unreachable and slow", []fakes.AuthAnswer{slowDown, drop, drop, pending, tokenAnswer}, 2, time.Hour / 10, []float64{0, 40, 10}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				r := newRig(t, tt.polls...)
				// The first process ends as it begins a wait.
				ctx, cancel := context.WithCancel(t.Context())
				var p *auth.Pending
				var data []byte
				r.flow.OnEvent = func(e auth.Event) {
					if w, ok := e.(auth.Waiting); ok && w.Wait.Attempt == tt.until {
						data = must(p.Save())
						cancel()
					}
				}
				p, err := r.flow.Start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Poll(ctx); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				r.events = nil
				time.Sleep(tt.after)
				if p, err = elsewhere(r).Resume(data); err != nil {
					t.Fatal(err)
				}
				if _, err := p.Poll(t.Context()); err != nil || !near(r.waits(), tt.want) {
					t.Errorf("waits %v, want %v: %v", r.waits(), tt.want, err)
				}
				if v := r.server.Violations(); len(v) > 0 {
					t.Error(v)
				}
				last := r.events[len(r.events)-2].(auth.Polled)
				if last.Count != len(tt.polls) {
					t.Errorf("%d polls are told of", last.Count)
				}
			})
		})
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// The proof key of a login goes on with it, and that of the flow that resumes has no part in it.
func TestResumeWithProofKey(t *testing.T) {
	for _, with := range []struct{ start, resume bool }{{true, true}, {true, false}, {false, true}} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			r := newRig(t, tokenAnswer)
			r.flow.PKCE = with.start
			data := saving(t, r)
			flow := elsewhere(r)
			flow.PKCE = with.resume
			p, err := flow.Resume(data)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			challenge, verifier := r.server.Requests()[0].Form.Get("code_challenge"), r.polls()[0].Form.Get("code_verifier")
			if (verifier != "") != with.start || verifier != "" && oauth2.S256ChallengeFromVerifier(verifier) != challenge {
				t.Errorf("%+v: verifier %q of challenge %q", with, verifier, challenge)
			}
		})
	}
}

// What a poll sends is what was saved, and the secret is the one of the flow that polls.
func TestResumeSends(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, fakes.AuthJSON(200, map[string]any{"access_token": "at", "scope": "a"}))
		r.server.ClientSecret = "canary-secret"
		r.flow.Config.ClientSecret = "canary-secret"
		r.flow.Config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
		r.flow.Config.Scopes = []string{"a", "b"}
		r.flow.TokenParams = url.Values{"code_verifier": {"canary-verifier"}, "resource": {"https://one", "https://two"}}
		data := saving(t, r)
		if bytes.Contains(data, []byte("canary-secret")) {
			t.Errorf("the secret was saved: %s", data)
		}
		var members map[string]any
		if err := json.Unmarshal(data, &members); err != nil || bytes.Count(data, []byte("\n")) != 1 {
			t.Fatalf("%v: %s", err, data)
		}
		for name, want := range map[string]any{
			"version": 1.0, "issued_at": "2026-11-29T12:00:00Z", "expires_at": "2026-11-29T12:15:00Z", "next_poll_at": "2026-11-29T12:00:05Z",
			"interval": 5.0, "device_code": "canary-device-code", "user_code": "WDJB-MJHT", "auth_style": "params",
		} {
			if members[name] != want {
				t.Errorf("%s is %v, want %v", name, members[name], want)
			}
		}

		flow := elsewhere(r)
		flow.Config.ClientSecret = "canary-secret"
		flow.TokenParams = url.Values{"code_verifier": {"another"}}
		out := &spill{}
		p, err := flow.Resume(data)
		if err != nil {
			t.Fatal(err)
		}
		out.add(p, *p)
		if strings.Contains(out.String(), "canary") {
			t.Errorf("leaked: %s", out.String())
		}
		if _, err := p.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		form := r.polls()[0].Form
		if got := form.Get("client_secret") + " " + form.Get("code_verifier") + " " + strings.Join(form["resource"], " "); got != "canary-secret canary-verifier https://one https://two" {
			t.Errorf("sent %s", got)
		}
		granted, ok := r.events[len(r.events)-1].(auth.Granted)
		if !ok || len(granted.NotGranted) != 1 || granted.NotGranted[0] != "b" {
			t.Errorf("%+v", r.events)
		}
	})
}

func TestResumeElsewhere(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		data := saving(t, r)
		for _, tt := range []struct {
			id, endpoint, secret string
			wrong                string
		}{
			{"c", "https://as.test" + fakes.TokenPath, "", ""},
			{"", "", "", ""},
			{"c", "", "", ""},
			{"d", "", "", "client_id"},
			{"d", "https://as.test/other", "", "client_id token_endpoint"},
			{"c", "https://as.test" + fakes.TokenPath + "?tenant=a", "", "token_endpoint"},
			{"c", "", "canary-secret", "token_endpoint"}, // which would be sent where the file says
			{"", "https://as.test" + fakes.TokenPath, "canary-secret", "client_id"},
		} {
			flow := elsewhere(r)
			flow.Config.ClientID, flow.Config.ClientSecret, flow.Config.Endpoint.TokenURL = tt.id, tt.secret, tt.endpoint
			flow.HTTPClient = nobody(t)
			_, err := flow.Resume(data)
			var wrong []string
			if e, ok := errors.AsType[*auth.ResumeError](err); ok {
				for _, p := range e.Problems {
					wrong = append(wrong, p.Field)
				}
			}
			if strings.Join(wrong, " ") != tt.wrong || errors.Is(err, auth.ErrSavedElsewhere) != (tt.wrong != "") {
				t.Errorf("%+v: %v", tt, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("leaked: %v", err)
			}
		}
		flow := elsewhere(r)
		flow.RequestTimeout = -1
		if _, err := flow.Resume(data); err == nil || err.Error() != "auth: mistakes in the configuration: RequestTimeout is negative" {
			t.Errorf("%v", err)
		}
	})
}

// A login that is over is not saved, and one whose code has died is not resumed.
func TestSaveOfTheDead(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		p, err := r.flow.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		data := must(p.Save())
		if _, err := p.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if data, err := p.Save(); data != nil || err == nil || !strings.Contains(err.Error(), "handed out its token") {
			t.Errorf("%s, %v", data, err)
		}
		time.Sleep(15 * time.Minute)
		flow := elsewhere(r)
		flow.HTTPClient = nobody(t)
		if _, err := flow.Resume(data); !errors.Is(err, auth.ErrExpired) {
			t.Errorf("%v", err)
		}
	})
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, fakes.OAuthError(400, "access_denied"))
		p, err := r.flow.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other, err := r.flow.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.Poll(t.Context())
		if data, err := p.Save(); data != nil || !errors.Is(err, auth.ErrAccessDenied) {
			t.Errorf("%s, %v", data, err)
		}
		time.Sleep(15 * time.Minute)
		if data, err := other.Save(); data != nil || !errors.Is(err, auth.ErrExpired) {
			t.Errorf("%s, %v", data, err)
		}
	})
}
