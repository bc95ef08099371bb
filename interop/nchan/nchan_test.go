//go:build unix

package nchan_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/interop/internal/line"
	"github.com/heed-sdk/heed/interop/nchan"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/sse"
)

const channel = "news"

// patience bounds whatever a test waits for.
const patience = 30 * time.Second

// staleness is two and a half heartbeats.
const staleness = 5 * nchan.PingInterval / 2

// follower consumes a stream in the test's own goroutine, with everything that was told of it.
type follower struct {
	t      *testing.T
	config stream.Config

	connected    []time.Time
	failures     []stream.FailedInfo
	disconnected []stream.DisconnectedInfo
	waits        []delay.Wait
	stale        []stream.StaleInfo

	// What a test does at these moments; any of them may be nil.
	onConnected    func(attempt int)
	onFailed       func(stream.FailedInfo)
	onDisconnected func(stream.DisconnectedInfo)
	onStale        func()
}

// follow returns a follower of an address. Its draws are short, so that the tests are.
func follow(t *testing.T, address string) *follower {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	f := &follower{t: t}
	f.config = stream.Config{
		Dialer:    sse.Dialer{URL: address, Client: &http.Client{Transport: transport}},
		Base:      50 * time.Millisecond,
		Ceiling:   200 * time.Millisecond,
		Staleness: staleness,
		Trace: &stream.Trace{
			Connected: func(i stream.ConnectedInfo) {
				f.connected = append(f.connected, time.Now())
				if f.onConnected != nil {
					f.onConnected(i.Attempt)
				}
			},
			Failed: func(i stream.FailedInfo) {
				f.failures = append(f.failures, i)
				if f.onFailed != nil {
					f.onFailed(i)
				}
			},
			Disconnected: func(i stream.DisconnectedInfo) {
				f.disconnected = append(f.disconnected, i)
				if f.onDisconnected != nil {
					f.onDisconnected(i)
				}
			},
			Stale: func(i stream.StaleInfo) {
				f.stale = append(f.stale, i)
				if f.onStale != nil {
					f.onStale()
				}
			},
			Waiting: func(w delay.Wait) { f.waits = append(f.waits, w) },
		},
	}
	return f
}

// read consumes n events, and calls each after every one with how many there have been. An error of the stream, or too
// few events in too long a time, fails the test.
func (f *follower) read(n int, each func(n int)) []event {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	var got []event
	for m, err := range stream.Reconnect(f.config).Messages(ctx) {
		if err != nil {
			f.t.Fatalf("after %d events: %v", len(got), err)
		}
		got = append(got, event{m.ID, m.Type, string(m.Data)})
		if each != nil {
			each(len(got))
		}
		if len(got) == n {
			break
		}
	}
	if len(got) != n {
		f.t.Fatalf("%d events, want %d: %v; disconnected: %+v", len(got), n, got, f.disconnected)
	}
	return got
}

// end consumes a stream that is to end with an error before there is an event, and returns that error.
func (f *follower) end() error {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for m, err := range stream.Reconnect(f.config).Messages(ctx) {
		if err == nil {
			f.t.Fatalf("an event: %s", m.Data)
		}
		return err
	}
	f.t.Fatal("no error")
	return nil
}

// event is what two readers have to agree on.
type event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data string `json:"data"`
}

var idForm = regexp.MustCompile(`^\d+:\d+$`)

// wantNumbers checks that the events are first to last, each once and in order, and that each has an id of its own.
func wantNumbers(t *testing.T, got []event, first, last int) {
	t.Helper()
	var numbers, want []string
	ids := map[string]bool{}
	for _, e := range got {
		numbers = append(numbers, e.Data)
		if !idForm.MatchString(e.ID) || ids[e.ID] {
			t.Errorf("the id of %s is %q", e.Data, e.ID)
		}
		ids[e.ID] = true
	}
	for n := first; n <= last; n++ {
		want = append(want, strconv.Itoa(n))
	}
	if !slices.Equal(numbers, want) {
		t.Errorf("received %v, want %d to %d", numbers, first, last)
	}
}

// publish publishes numbers from another goroutine, with a pause after each, and has the test wait for its end.
func publish(t *testing.T, s *nchan.Server, first, last int, pause time.Duration) {
	var all sync.WaitGroup
	all.Go(func() {
		for n := first; n <= last; n++ {
			s.Publish(channel, "", strconv.Itoa(n))
			time.Sleep(pause)
		}
	})
	t.Cleanup(all.Wait)
}

// mixed are events of all the forms that this server sends.
var mixed = []event{
	{Data: "plain"},
	{Type: "order", Data: "typed"},
	{Data: "two\nlines"},
	{Type: "order", Data: "\nblank\n\nlines in between"},
	{Data: ": no comment"},
	{Data: "data: no field\nid: 7"},
	{Data: "  spaces  "},
	{Data: "\tПривет, мир 😀"},
	{Type: "ping", Data: "a type like a heartbeat's, with data"},
	{Data: strings.Repeat("long ", 4000)},
	{Type: "order", Data: `{"last":true}`},
}

// TestAgree has the SDK and npm eventsource read the same channel, while events are published, heartbeats come and the line
// is cut: both have received the same, event by event.
func TestAgree(t *testing.T) {
	t.Parallel()
	s := nchan.Start(t, nchan.Config{})
	p := line.New(t, s.Addr())
	node := startNode(t, p.Through(s.Stream(channel)), len(mixed), "order", "ping")
	<-node.open
	f := follow(t, p.Through(s.Stream(channel)))
	f.onConnected = func(attempt int) {
		if attempt == 1 {
			s.Publish(channel, mixed[0].Type, mixed[0].Data)
		}
	}
	ours := f.read(len(mixed), func(n int) {
		switch n {
		case 1:
			// Two heartbeats, and nothing else.
			time.AfterFunc(5*nchan.PingInterval/2, func() { s.Publish(channel, mixed[1].Type, mixed[1].Data) })
		case 2:
			p.Cut()
			for _, e := range mixed[2:6] {
				s.Publish(channel, e.Type, e.Data)
			}
			p.Up()
		case 6:
			for _, e := range mixed[6:] {
				s.Publish(channel, e.Type, e.Data)
			}
		}
	})
	for i, e := range ours {
		if e.Type != mixed[i].Type || e.Data != mixed[i].Data || !idForm.MatchString(e.ID) {
			t.Errorf("event %d: %q, want %q", i+1, e, mixed[i])
		}
		if e.Type == "" {
			ours[i].Type = "message" // as browsers call it
		}
	}
	theirs := node.events(t)
	if len(theirs) != len(ours) {
		t.Fatalf("npm eventsource has %d events, we have %d", len(theirs), len(ours))
	}
	for i := range ours {
		if ours[i] != theirs[i] {
			t.Errorf("event %d: we have %q, npm eventsource has %q", i+1, ours[i], theirs[i])
		}
	}
	if len(f.stale) != 0 || len(f.connected) != 2 {
		t.Errorf("connected %d times, stale: %+v", len(f.connected), f.stale)
	}
}

// node is npm eventsource on a stream.
type node struct {
	open chan struct{} // closed once it is connected
	got  chan []event
}

func startNode(t *testing.T, address string, count int, types ...string) *node {
	t.Helper()
	if _, err := os.Stat(filepath.Join("eventsource", "node_modules", "eventsource")); err != nil {
		t.Fatal("nchan: node_modules is missing: run `npm ci` in interop/nchan/eventsource")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cmd := exec.CommandContext(ctx, "node", append([]string{"read.mjs", address, strconv.Itoa(count)}, types...)...)
	cmd.Dir = "eventsource"
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("nchan: Node.js 20 or later is needed: %v", err)
	}
	n := &node{open: make(chan struct{}), got: make(chan []event, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var got []event
		opened := false
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if lines.Text() == "open" {
				if !opened {
					close(n.open)
				}
				opened = true
				continue
			}
			var e event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Errorf("npm eventsource printed %q", lines.Text())
			}
			got = append(got, e)
		}
		if !opened {
			close(n.open)
		}
		n.got <- got
		cmd.Wait()
	}()
	t.Cleanup(func() {
		stdin.Close()
		cancel()
		<-done
	})
	return n
}

func (n *node) events(t *testing.T) []event {
	t.Helper()
	select {
	case got := <-n.got:
		return got
	case <-time.After(patience):
		t.Fatal("npm eventsource did not come to its end")
		return nil
	}
}

// TestBadLine reads over lines that are bad in all ways, while events are published. All of them are replayed, so all of
// them arrive, once and in order.
func TestBadLine(t *testing.T) {
	t.Parallel()
	const events = 100
	tests := []struct {
		name string
		// spoil makes the line bad and says what happens after each event.
		spoil func(t *testing.T, p *line.Line, f *follower) func(n int)
		// cuts is how many connections are lost at least.
		cuts int
	}{
		{"delay", func(_ *testing.T, p *line.Line, _ *follower) func(int) {
			p.Add("latency", map[string]any{"latency": 300, "jitter": 200})
			return nil
		}, 0},
		{"throttle", func(_ *testing.T, p *line.Line, _ *follower) func(int) {
			p.Add("bandwidth", map[string]any{"rate": 2})
			return nil
		}, 0},
		{"slices", func(_ *testing.T, p *line.Line, _ *follower) func(int) {
			p.Add("slicer", map[string]any{"average_size": 7, "size_variation": 5, "delay": 2000})
			return nil
		}, 0},
		{"cut", func(_ *testing.T, p *line.Line, _ *follower) func(int) {
			return func(n int) {
				if n%20 == 0 && n < events {
					p.Cut()
					time.AfterFunc(100*time.Millisecond, p.Up)
				}
			}
		}, 4},
		// Every connection ends somewhere in an event. What came of it is no event, and its id no position.
		{"cut short", func(_ *testing.T, p *line.Line, _ *follower) func(int) {
			p.Add("limit_data", map[string]any{"bytes": 1011})
			return nil
		}, 2},
		{"reset_peer", func(_ *testing.T, p *line.Line, f *follower) func(int) {
			f.onDisconnected = func(i stream.DisconnectedInfo) {
				if i.By != stream.ByConsumer {
					p.Remove("reset_peer")
				}
			}
			return func(n int) {
				if n == 30 || n == 60 {
					p.Add("reset_peer", map[string]any{"timeout": 0})
				}
			}
		}, 2},
		{"blackhole", func(_ *testing.T, p *line.Line, f *follower) func(int) {
			f.onStale = func() { p.Remove("timeout") }
			return func(n int) {
				if n == 30 {
					p.Add("timeout", map[string]any{"timeout": 0})
				}
			}
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := nchan.Start(t, nchan.Config{})
			p := line.New(t, s.Addr())
			f := follow(t, p.Through(s.Stream(channel)))
			each := tt.spoil(t, p, f)
			publish(t, s, 1, events, 20*time.Millisecond)
			wantNumbers(t, f.read(events, each), 1, events)
			if cuts := len(f.disconnected) - 1; cuts < tt.cuts {
				t.Errorf("%d connections were lost, want at least %d", cuts, tt.cuts)
			}
			if tt.name == "blackhole" && len(f.stale) != 1 || tt.name != "blackhole" && len(f.stale) != 0 {
				t.Errorf("stale: %+v", f.stale)
			}
			t.Logf("%d connections, %d failed attempts", len(f.connected), len(f.failures))
		})
	}
}

// TestKilled kills the server, with which goes all that it has kept, what the client has missed included. The server that
// comes back takes the client's position as if all were well: the gap is silent. Whoever cannot bear that needs a feed with
// a poll lane.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := nchan.Start(t, nchan.Config{})
	p := line.New(t, s.Addr())
	f := follow(t, p.Through(s.Stream(channel)))
	publish(t, s, 1, 2, 0)
	got := f.read(3, func(n int) {
		if n != 2 {
			return
		}
		p.Cut()
		s.Publish(channel, "", "3") // nobody hears it
		s.Kill()
		s.Restart()
		// Within the second of the client's position, the new server's ids could be the old one's.
		time.Sleep(1100 * time.Millisecond)
		s.Publish(channel, "", "4")
		p.Up()
	})
	if len(got) != 3 || got[0].Data != "1" || got[1].Data != "2" || got[2].Data != "4" {
		t.Errorf("received %v, want 1, 2 and 4", got)
	}
	if len(f.stale) != 0 || len(f.connected) != 2 {
		t.Errorf("connected %d times, stale: %+v", len(f.connected), f.stale)
	}
}

// TestRefused has the server refuse an attempt with a Retry-After of either form: nobody comes back a moment too early.
func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		class  stream.Class
		dated  bool
	}{
		{429, stream.Throttled, false},
		{503, stream.Transient, true},
	}
	for _, tt := range tests {
		t.Run(strconv.Itoa(tt.status), func(t *testing.T) {
			t.Parallel()
			date := time.Now().Add(4 * time.Second).Truncate(time.Second)
			header := "1"
			if tt.dated {
				header = date.UTC().Format(http.TimeFormat)
			}
			s := nchan.Start(t, nchan.Config{Refusal: tt.status, RetryAfter: header})
			s.Refuse(true)
			s.Publish(channel, "", "1")
			f := follow(t, s.Stream(channel))
			var refused time.Time
			f.onFailed = func(stream.FailedInfo) {
				refused = time.Now()
				s.Refuse(false)
			}
			wantNumbers(t, f.read(1, nil), 1, 1)
			if len(f.failures) != 1 || f.failures[0].Err.Status != tt.status || f.failures[0].Err.Class != tt.class {
				t.Fatalf("failures: %+v", f.failures)
			}
			due, at := refused.Add(time.Second-10*time.Millisecond), f.connected[0] // it was told a moment later
			if tt.dated {
				due = date
			}
			if at.Before(due) || at.After(due.Add(3*time.Second)) {
				t.Errorf("connected at %v, %v after it was due", at, at.Sub(due))
			}
			if len(f.waits) != 1 || f.waits[0].Server <= 0 {
				t.Errorf("waits: %v", f.waits)
			}
		})
	}
}

// TestBearer has the hub ask for a bearer: a bad one is replaced at the next attempt, and the third in a row is the last.
func TestBearer(t *testing.T) {
	t.Parallel()
	s := nchan.Start(t, nchan.Config{})
	bearer := func(goodFrom int) (stream.CredentialFunc, *int) {
		n := 0
		return func(context.Context, stream.Credential) (stream.Credential, error) {
			token := nchan.GoodBearer
			if n++; n < goodFrom {
				token = fmt.Sprintf("secret-%d", n)
			}
			return stream.Credential{Token: &oauth2.Token{AccessToken: token}}, nil
		}, &n
	}

	f := follow(t, s.Guarded(channel))
	f.config.Credential, _ = bearer(3)
	f.onConnected = func(int) { s.Publish(channel, "", "1") }
	wantNumbers(t, f.read(1, nil), 1, 1)
	if len(f.failures) != 2 || f.failures[1].Err.Status != 401 || f.failures[1].Unauthorized != 2 {
		t.Errorf("failures: %+v", f.failures)
	}

	f = follow(t, s.Guarded(channel))
	var minted *int
	f.config.Credential, minted = bearer(100)
	err := f.end()
	refused, _ := errors.AsType[*stream.AttemptError](err)
	if !errors.Is(err, stream.AuthorizationFailed) || refused == nil || refused.Status != 401 || *minted != 3 {
		t.Errorf("%d credentials, and the end was %v", *minted, err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "secret-") {
		t.Errorf("the error has the bearer in it: %v", err)
	}
}

// TestGone deletes the channel under a client: the stream ends in good order, and the client comes back for what is
// published next. An answer of 410 ends it for good.
func TestGone(t *testing.T) {
	t.Parallel()
	s := nchan.Start(t, nchan.Config{})
	f := follow(t, s.Stream(channel))
	publish(t, s, 1, 1, 0)
	wantNumbers(t, f.read(2, func(n int) {
		if n == 1 {
			s.Delete(channel)
			// In another second, or its id could be that of the first.
			time.AfterFunc(1100*time.Millisecond, func() { s.Publish(channel, "", "2") })
		}
	}), 1, 2)
	if len(f.disconnected) < 2 || f.disconnected[0].By != stream.ByServer || !f.disconnected[0].Healthy {
		t.Errorf("disconnected: %+v", f.disconnected)
	}

	f = follow(t, s.Gone())
	err := f.end()
	refused, _ := errors.AsType[*stream.AttemptError](err)
	if !errors.Is(err, stream.DialFailed) || refused == nil || refused.Status != 410 || len(f.waits) != 0 {
		t.Errorf("the end was %v after the waits %v", err, f.waits)
	}
}

// TestFrozen stops the server's processes: its connections stay, and say nothing. The silence is noticed, an attempt at a
// server that accepts and does not answer is given up, and when it goes on so does the client, at its position.
func TestFrozen(t *testing.T) {
	t.Parallel()
	s := nchan.Start(t, nchan.Config{})
	f := follow(t, s.Stream(channel))
	f.config.HandshakeDeadline = time.Second
	frozenAndThawed(t, s, f)
}

func frozenAndThawed(t *testing.T, s *nchan.Server, f *follower) {
	t.Helper()
	f.onFailed = func(stream.FailedInfo) {
		if len(f.failures) == 1 {
			s.Thaw()
			publish(t, s, 4, 6, 0)
		}
	}
	publish(t, s, 1, 3, 0)
	var frozen time.Time
	noticed := time.Duration(0)
	f.onStale = func() { noticed = time.Since(frozen) }
	wantNumbers(t, f.read(6, func(n int) {
		if n == 3 {
			s.Freeze()
			frozen = time.Now()
		}
	}), 1, 6)
	if len(f.stale) != 1 || f.disconnected[0].By != stream.ByWatchdog || len(f.failures) != 1 {
		t.Fatalf("stale: %+v; failures: %+v; disconnected: %+v", f.stale, f.failures, f.disconnected)
	}
	if noticed < staleness-100*time.Millisecond || noticed > staleness+2*time.Second {
		t.Errorf("the silence was noticed after %v", noticed)
	}
	t.Logf("noticed after %v", noticed)
}
