package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what the server does with one request.
type answer struct {
	status      int // 200 if zero
	header      http.Header
	contentType string // text/event-stream if empty, none if "-"
	raw         []string
	every       time.Duration // between two of raw
	then        fakes.Then
	handle      http.HandlerFunc // in place of all that
}

// request is what came.
type request struct {
	at, ended time.Time
	method    string
	query     string
	body      string
	header    http.Header
}

// server is an event stream that follows a script. A request beyond it fails the test.
type server struct {
	t        *testing.T
	mu       sync.Mutex
	script   []answer
	requests []request
	live     int
	most     int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	i := len(s.requests)
	s.requests = append(s.requests, request{at: time.Now(), method: r.Method, query: r.URL.RawQuery, body: string(body), header: r.Header})
	s.live++
	s.most = max(s.most, s.live)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.live--
		s.requests[i].ended = time.Now()
	}()
	if i >= len(s.script) {
		s.t.Errorf("request %d is beyond the script of %d", i+1, len(s.script))
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	s.script[i].serve(w, r)
}

func (a answer) serve(w http.ResponseWriter, r *http.Request) {
	if a.handle != nil {
		a.handle(w, r)
		return
	}
	maps.Copy(w.Header(), a.header)
	switch a.contentType {
	case "":
		w.Header().Set("Content-Type", "text/event-stream")
	case "-":
		w.Header()["Content-Type"] = nil
	default:
		w.Header().Set("Content-Type", a.contentType)
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
		return
	}
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for i, raw := range a.raw {
		if i > 0 && !pass(r.Context(), a.every) {
			return
		}
		_, _ = io.WriteString(w, raw)
		_ = http.NewResponseController(w).Flush()
	}
	switch a.then {
	case fakes.Stop:
		<-r.Context().Done()
	case fakes.Drop:
		panic(http.ErrAbortHandler)
	}
}

func pass(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *server) seen() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// atOnce returns how many requests were under way at once at most.
func (s *server) atOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// sent lists a header of each request.
func (s *server) sent(name string) []string {
	list := []string{}
	for _, r := range s.seen() {
		list = append(list, r.header.Get(name))
	}
	return list
}

// world is a bubble with a scripted server at sse.test.
type world struct {
	*testing.T
	net    *fakes.Network
	server *server
	timers *delay.Timers
	waits  []time.Duration
	stale  []stream.StaleInfo
}

func inWorld(t *testing.T, at time.Time, script []answer, f func(w *world)) {
	t.Helper()
	fakes.Bubble(t, at, func(t *testing.T) {
		w := &world{T: t, net: fakes.NewNetwork(t), server: &server{t: t, script: script}, timers: delay.TimersOn(clock.New())}
		w.net.Serve(t, "sse.test", w.server)
		f(w)
		if armed, _ := w.timers.Outstanding(); len(armed) > 0 {
			t.Errorf("%d timers left", len(armed))
		}
		if n := w.server.atOnce(); n > 1 {
			t.Errorf("%d connections at once", n)
		}
	})
}

func (w *world) dialer() sse.Dialer {
	return sse.Dialer{URL: "https://sse.test/stream", Client: w.net.Client()}
}

// clocked is the bubble's clock, with a registry that the test looks into.
type clocked struct {
	clock.Clock
	timers *delay.Timers
}

func (c clocked) Timers() *delay.Timers { return c.timers }

// config is a stream on a dialer whose draws are as long as they can be.
func (w *world) config(d stream.Dialer) stream.Config {
	return stream.Config{
		Dialer: d, Credential: tokens(), Rand: pinned(1), Clock: clocked{clock.New(), w.timers},
		Trace: &stream.Trace{
			Waiting: func(d delay.Wait) { w.waits = append(w.waits, d.For) },
			Stale:   func(i stream.StaleInfo) { w.stale = append(w.stale, i) },
		},
	}
}

// pinned draws that fraction of every range.
func pinned(fraction float64) delay.Rand {
	return func(n int64) int64 { return int64(math.Round(fraction * float64(n))) }
}

// tokens hands out a new token for each attempt.
func tokens() stream.CredentialFunc {
	n := 0
	return func(context.Context, stream.Credential) (stream.Credential, error) {
		n++
		return stream.Credential{Token: &oauth2.Token{AccessToken: fmt.Sprintf("token-%d", n)}}, nil
	}
}

// collect consumes a stream until it ends, or until the given number of messages came.
func (w *world) collect(c stream.Config, most int) (messages []stream.Message, err error) {
	for m, e := range stream.Reconnect(c).Messages(w.Context()) {
		if e != nil {
			err = e
			continue
		}
		if messages = append(messages, m); len(messages) == most {
			break
		}
	}
	return messages, err
}

func texts(messages []stream.Message) []string {
	list := []string{}
	for _, m := range messages {
		list = append(list, string(m.Data))
	}
	return list
}

func reasonOf(err error) string {
	if e, ok := errors.AsType[*stream.Error](err); ok {
		return string(e.Reason)
	}
	return fmt.Sprint(err)
}

func want[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}
