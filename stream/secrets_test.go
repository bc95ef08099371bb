package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

const canary = "c4n4ry"

// sink writes down whatever a trace is told, with every verb.
func sink(out *bytes.Buffer) *stream.Trace {
	note := func(v any) {
		for _, verb := range []string{"%v", "%+v", "%#v"} {
			fmt.Fprintf(out, verb+"\n", v)
		}
	}
	return &stream.Trace{
		Connecting:   func(i stream.ConnectingInfo) { note(i) },
		Connected:    func(i stream.ConnectedInfo) { note(i) },
		Failed:       func(i stream.FailedInfo) { note(i); note(i.Err); note(*i.Err); chain(out, i.Err) },
		Stale:        func(i stream.StaleInfo) { note(i) },
		Disconnected: func(i stream.DisconnectedInfo) { note(i); chain(out, i.Err) },
		Waiting:      func(w delay.Wait) { note(w); b, _ := w.MarshalJSON(); out.Write(b) },
		Served:       func(i stream.ServedInfo) { note(i) },
	}
}

// chain writes down every error of a chain: one that is found by errors.As may be printed by itself. The text of an
// oauth2.RetrieveError is golang.org/x/oauth2's affair.
func chain(out *bytes.Buffer, err error) {
	for ; err != nil; err = errors.Unwrap(err) {
		if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok && errors.Is(r, err) {
			return
		}
		fmt.Fprintf(out, "%v\n%+v\n%T\n", err, err, err)
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				chain(out, e)
			}
		}
	}
}

// Ticket, token and query, in every kind of failure, never show: not in an error, not in a trace, not in the log.
func TestSecretsNeverShow(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no "+canary, http.StatusNotFound) },
		"unavailable": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no "+canary, http.StatusServiceUnavailable)
		},
		"unauthorized": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no "+canary, http.StatusUnauthorized) },
		"redirected": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://ws.test/elsewhere?ticket="+canary, http.StatusFound)
		},
		"dropped": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"malformed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Sec-WebSocket-Accept", canary)
			w.WriteHeader(http.StatusSwitchingProtocols)
		},
		"closed with an echo": func(w http.ResponseWriter, r *http.Request) {
			c, err := ws.Accept(w, r, nil)
			if err != nil {
				return
			}
			_ = c.Close(4000, "bad "+canary)
		},
		"closed for good": func(w http.ResponseWriter, r *http.Request) {
			c, err := ws.Accept(w, r, nil)
			if err != nil {
				return
			}
			_ = c.Close(1002, "bad "+canary)
		},
		"garbage": func(w http.ResponseWriter, r *http.Request) {
			c, err := ws.Accept(w, r, nil)
			if err != nil {
				return
			}
			_ = c.Write(r.Context(), ws.MessageText, make([]byte, 2<<20)) // over the limit
			<-c.CloseRead(context.Background()).Done()
		},
	}
	token := &oauth2.Token{AccessToken: canary, RefreshToken: canary}
	addresses := map[string]string{
		"served":     "wss://ws.test/%s?ticket=" + canary,
		"unknown":    "wss://nobody.test/%s?ticket=" + canary,
		"no TLS":     "wss://plain.test/%s?ticket=" + canary,
		"plain":      "ws://ws.test/%s?ticket=" + canary,
		"odd scheme": "odd://ws.test/%s?ticket=" + canary,
		"unreadable": "wss://ws.test/%%zz%s?ticket=" + canary,
		"logging in": "wss://me:" + canary + "@ws.test/%s",
	}
	for path, h := range handlers {
		for name, address := range addresses {
			if name != "served" && path != "refused" {
				continue
			}
			t.Run(path+", "+name, func(t *testing.T) {
				fakes.Bubble(t, time.Time{}, func(t *testing.T) {
					net := fakes.NewNetwork(t)
					net.Serve(t, "ws.test", h)
					net.ServePlain(t, "plain.test:443", h) // answers the client's hello with an HTTP error
					showsNothing(t, websocket.Dialer{Client: net.Client()}, func(context.Context, stream.Credential) (stream.Credential, error) {
						return stream.Credential{Token: token, URL: fmt.Sprintf(address, path)}, nil
					})
					if name == "served" {
						showsNothing(t, websocket.Dialer{URL: fmt.Sprintf(address, path), Client: net.Client(), Header: http.Header{"Authorization": {canary}}}, nil)
					}
				})
			})
		}
	}
	for name, fail := range map[string]func(asked error) error{
		"url":         func(asked error) error { return asked },
		"wrapped url": func(asked error) error { return fmt.Errorf("minting: %w", asked) },
		"joined url":  func(asked error) error { return errors.Join(errors.New("minting"), asked) },
		"retrieve": func(error) error {
			return &oauth2.RetrieveError{Response: &http.Response{StatusCode: 400, Status: "400"}, Body: []byte(canary)}
		},
	} {
		t.Run("minting, "+name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				net := fakes.NewNetwork(t)
				showsNothing(t, websocket.Dialer{URL: "wss://nobody.test/", Client: net.Client()}, func(context.Context, stream.Credential) (stream.Credential, error) {
					_, err := net.Client().Get("https://nobody.test/ticket?secret=" + canary)
					return stream.Credential{}, fail(err)
				})
			})
		})
	}
}

// TestSecretsOfACarelessTransport has the loop hide what a transport of the user's own does not.
func TestSecretsOfACarelessTransport(t *testing.T) {
	careless := errors.New("refused " + canary)
	for name, s := range map[string]step{
		"dial":             {err: careless},
		"attempt":          {err: &stream.AttemptError{Status: 503, Err: careless}},
		"end for good":     {err: &stream.AttemptError{Class: stream.Permanent, Err: careless}},
		"disconnect":       {end: &stream.DisconnectError{Text: "bad " + canary, Code: 4000}},
		"disconnect cause": {end: &stream.DisconnectError{Class: stream.Permanent, Err: careless}},
		"broken":           {end: careless},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ watched) {
				showsNothing(t, dials(s), func(context.Context, stream.Credential) (stream.Credential, error) {
					return stream.Credential{URL: "wss://ws.test/?ticket=" + canary}, nil
				})
			})
		})
	}
}

// showsNothing runs a stream for a minute and searches all that it shows.
func showsNothing(t *testing.T, d stream.Dialer, credential stream.CredentialFunc) {
	t.Helper()
	var out bytes.Buffer
	cfg := stream.Config{
		Dialer: d, Credential: credential, Trace: sink(&out), Staleness: 10 * time.Second,
		Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if _, ours := d.(websocket.Dialer); ours {
		fmt.Fprintf(&out, "%v %+v %#v\n%v %+v\n", d, d, d, cfg, cfg)
	}
	stm := stream.Reconnect(cfg)
	fmt.Fprintf(&out, "%v %+v\n", stm, stm)
	end := time.AfterFunc(time.Minute, func() { _ = stm.Close() })
	defer end.Stop()
	for _, err := range stm.Messages(t.Context()) {
		if err != nil {
			fmt.Fprintf(&out, "%+v %#v\n", err, err)
			chain(&out, err)
		}
	}
	if i := strings.Index(out.String(), canary); i >= 0 {
		t.Errorf("the secret shows: …%s…", out.String()[max(0, i-300):min(out.Len(), i+100)])
	}
	if !strings.Contains(out.String(), "attempt") {
		t.Error("nothing was told at all")
	}
}

// TestSecretsNotInPanics runs this test once more as a process that panics with what it was told, and reads what that leaves
// behind.
func TestSecretsNotInPanics(t *testing.T) {
	const variable = "HEED_TEST_PANICS"
	if where := os.Getenv(variable); where != "" {
		panics(t, where)
		return
	}
	for _, where := range []string{"Failed", "Disconnected", "the loop's body", "the credential"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSecretsNotInPanics$")
		cmd.Env = append(os.Environ(), variable+"="+where, "GOTRACEBACK=all")
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("panic: ")) || !bytes.Contains(out, []byte("goroutine ")) {
			t.Errorf("%s: no panic: %v\n%s", where, err, out)
		}
		if bytes.Contains(out, []byte(canary)) {
			t.Errorf("%s: the secret shows:\n%s", where, out)
		}
	}
}

func panics(t *testing.T, where string) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		net := fakes.NewNetwork(t)
		server := scripted(t, fakes.StreamStep{Refuse: 503}, fakes.StreamStep{Then: fakes.End, Code: 4000, Reason: canary}, fakes.StreamStep{Refuse: 404})
		net.Serve(t, "ws.test", server)
		credential := stream.Credential{Token: &oauth2.Token{AccessToken: canary}, URL: "wss://ws.test/?ticket=" + canary}
		cfg := stream.Config{
			Dialer:     websocket.Dialer{Client: net.Client(), Header: http.Header{"X-Key": {canary}}},
			Credential: func(context.Context, stream.Credential) (stream.Credential, error) { return credential, nil },
			Trace:      &stream.Trace{},
		}
		switch where {
		case "Failed":
			cfg.Trace.Failed = func(i stream.FailedInfo) { panic(i.Err) }
		case "Disconnected":
			cfg.Trace.Disconnected = func(i stream.DisconnectedInfo) { panic(i.Err) }
		case "the credential":
			cfg.Trace.Connected = func(stream.ConnectedInfo) { panic(credential) }
		}
		for _, err := range stream.Reconnect(cfg).Messages(t.Context()) {
			panic(err)
		}
	})
}
