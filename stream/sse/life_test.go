package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/sse"
)

// Comments and blank lines are signs of life; silence is none.
func TestStaleness(t *testing.T) {
	script := []answer{
		{raw: strings.SplitAfter(strings.Repeat(": hb\n", 10)+strings.Repeat("\n", 10), "\n"), every: 3 * time.Second, then: fakes.Stop},
		{status: 204},
	}
	inWorld(t, time.Time{}, script, func(w *world) {
		c := w.config(w.dialer())
		c.Staleness = 4 * time.Second
		began := time.Now()
		alive := []time.Duration{}
		c.Trace.Alive = func() { alive = append(alive, time.Since(began)) }
		_, err := w.collect(c, 1)
		want(w, "error", err, nil)
		want(w, "stale", len(w.stale), 1)
		for i, at := range alive {
			want(w, "a sign of life after", at, time.Duration(i)*3*time.Second)
		}
		want(w, "signs of life", len(alive), 20)
		r := w.server.seen()[0]
		want(w, "lived", r.ended.Sub(began).Round(time.Second), 19*3*time.Second+4*time.Second)
	})
}

// The handshake deadline ends an attempt, and never a stream.
func TestHandshakeDeadline(t *testing.T) {
	script := []answer{
		{handle: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{raw: []string{"data: a\n\n", "data: b\n\n"}, every: time.Hour, then: fakes.Stop},
	}
	inWorld(t, time.Time{}, script, func(w *world) {
		messages, err := w.collect(w.config(w.dialer()), 2)
		want(w, "error", err, nil)
		want(w, "messages", texts(messages), []string{"a", "b"})
		first := w.server.seen()[0]
		want(w, "the first lived", first.ended.Sub(first.at), 10*time.Second)
	})
}

// Close ends every state at once, and nothing follows.
func TestClose(t *testing.T) {
	hang := answer{handle: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
	for name, script := range map[string][]answer{
		"dialling":          {hang},
		"open":              {{then: fakes.Stop}},
		"in an event":       {{raw: []string{"data: a\ndata"}, then: fakes.Stop}},
		"waiting":           {{status: 503, header: http.Header{"Retry-After": {"600"}}}},
		"with much to read": {{raw: []string{strings.Repeat(":\n", 1<<20)}, then: fakes.Stop}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, time.Time{}, script, func(w *world) {
				c := w.config(w.dialer())
				c.HandshakeDeadline = -1
				s := stream.Reconnect(c)
				done := make(chan error)
				go func() {
					defer close(done)
					for _, err := range s.Messages(context.Background()) {
						done <- err
					}
				}()
				synctest.Wait()
				began := time.Now()
				_ = s.Close()
				if err, ok := <-done; ok {
					t.Errorf("got %v", err)
				}
				want(w, "took", time.Since(began), 0)
				time.Sleep(time.Hour)
				want(w, "requests", len(w.server.seen()), 1)
			})
		})
	}
}

// Close may come from any goroutine, more than once, and while Receive is under way.
func TestConnClose(t *testing.T) {
	inWorld(t, time.Time{}, []answer{{raw: []string{"data: a\n\n"}, then: fakes.Stop}}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		conn, err := w.dialer().Dial(ctx, stream.Attempt{})
		if err != nil {
			t.Fatal(err)
		}
		cancel() // the dial's alone
		m, err := conn.Receive()
		want(w, "message", string(m.Data)+fmt.Sprint(err), "a<nil>")
		for range 2 {
			go func() { _ = conn.Close() }()
		}
		if _, err := conn.Receive(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
		_ = conn.Close()
	})
}

// A body that ends in good order because it is closed is no stream that the server has ended.
func TestConnCloseIsNoEnd(t *testing.T) {
	body, server := io.Pipe()
	client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: struct {
				io.Reader
				io.Closer
			}{body, server},
		}, nil
	})}
	conn, err := sse.Dialer{URL: "https://sse.test/", Client: client}.Dial(t.Context(), stream.Attempt{})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err := conn.Receive(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestDialCancelled(t *testing.T) {
	hang := answer{handle: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
	inWorld(t, time.Time{}, []answer{hang}, func(w *world) {
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(w.Context())
		time.AfterFunc(time.Second, func() { cancel(reason) })
		began := time.Now()
		_, err := w.dialer().Dial(ctx, stream.Attempt{})
		want(w, "took", time.Since(began), time.Second)
		if !errors.Is(err, reason) {
			t.Errorf("got %v", err)
		}
	})
}

const canary = "c4n4ry"

// Neither token, ticket, query nor header shows in an error, in a trace, or when a dialer is printed.
func TestSecretsNeverShow(t *testing.T) {
	h := http.Header{"Location": {"https://sse.test/?t=" + canary}, "X-Echo": {canary}}
	for name, a := range map[string]answer{
		"not found":  {status: 404, header: h},
		"redirected": {status: 302, header: h},
		"odd type":   {contentType: "text/" + canary},
		"dropped":    {handle: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"cut":        {raw: []string{"id: 1\ndata: a\n\n"}, then: fakes.Drop},
	} {
		for _, target := range []string{"https://sse.test/s?ticket=" + canary, "https://nobody.test/?ticket=" + canary, "http://sse.test/?ticket=" + canary} {
			t.Run(name, func(t *testing.T) {
				inWorld(t, time.Time{}, []answer{a, a, {status: 204}}, func(w *world) {
					d := w.dialer()
					d.URL, d.Header = target, http.Header{"X-Key": {canary}}
					d.Client.Transport = talker{d.Client.Transport}
					var shown strings.Builder
					note := func(v any) { fmt.Fprintf(&shown, "%v %+v %#v\n", v, v, v) }
					note(d)
					c := w.config(d)
					c.Credential = func(context.Context, stream.Credential) (stream.Credential, error) {
						return stream.Credential{Token: &oauth2.Token{AccessToken: "token-" + canary}}, nil // not what else is to be hidden
					}
					credential, _ := c.Credential(w.Context(), stream.Credential{})
					conn, err := d.Dial(w.Context(), stream.Attempt{Credential: credential})
					note(err)
					for err == nil {
						_, err = conn.Receive()
						note(err)
					}
					if conn != nil {
						_ = conn.Close()
					}
					ctx, cancel := context.WithCancel(w.Context())
					c.Trace = &stream.Trace{
						Failed:       func(i stream.FailedInfo) { note(i); note(i.Err); note(i.Err.Err); cancel() },
						Disconnected: func(i stream.DisconnectedInfo) { note(i); note(i.Err); cancel() },
						Waiting:      func(d delay.Wait) { note(d) },
					}
					for _, err := range stream.Reconnect(c).Messages(ctx) {
						for ; err != nil; err = errors.Unwrap(err) {
							note(err)
						}
					}
					cancel()
					if strings.Contains(shown.String(), canary) {
						t.Errorf("shown: %s", &shown)
					}
				})
			})
		}
	}
}

// talker is a transport whose errors say what was asked for.
type talker struct{ http.RoundTripper }

func (t talker) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, talk(r, err)
	}
	res.Body = talkingBody{res.Body, r}
	return res, nil
}

type talkingBody struct {
	io.ReadCloser
	request *http.Request
}

func (b talkingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = talk(b.request, err)
	}
	return n, err
}

func talk(r *http.Request, err error) error {
	return fmt.Errorf("%s, sent with %s: %w", r.URL, r.Header.Get("Authorization"), err)
}

// TestHTTP2 holds over the other protocol what depends on it: that a connection outlives its dial, and that Close ends it
// at once although much is left to read. That protocol has goroutines of its own, so there is no bubble.
func TestHTTP2(t *testing.T) {
	network := fakes.NewNetwork(t)
	listener, err := network.Listen("localhost:80")
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 1\ndata: "+r.Proto+"\n\n")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat(": hb\n", 100))
			_ = http.NewResponseController(w).Flush()
		}
	})}
	served := make(chan error)
	go func() { served <- srv.Serve(listener) }()
	transport := &http.Transport{Protocols: protocols, DialContext: network.DialContext}
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := sse.Dialer{URL: "http://localhost/", Client: &http.Client{Transport: transport}}.Dial(ctx, stream.Attempt{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	m, err := conn.Receive()
	want(t, "message", string(m.Data)+fmt.Sprint(err), "HTTP/2.0<nil>")
	_ = conn.Close()
	<-gone
	if _, err := conn.Receive(); err == nil {
		t.Error("a message after the end")
	}
	transport.CloseIdleConnections()
	_ = srv.Close()
	<-served
}
