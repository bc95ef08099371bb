package stream_test

import (
	"context"
	"encoding/json"
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
	"github.com/heed-sdk/heed/internal/cases"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/sse"
	"github.com/heed-sdk/heed/stream/websocket"
)

// streamCase is a file of the family streams.
type streamCase struct {
	Name   string       `json:"name"`
	Why    string       `json:"why"`
	Lane   string       `json:"lane"`
	Jitter float64      `json:"jitter"`
	Now    time.Time    `json:"now"`
	Script []scriptStep `json:"script"`
	Expect struct {
		Waits     []float64 `json:"waits"`
		WaitsTail []float64 `json:"waitsTail"`
		Messages  []string  `json:"messages"`
		Events    []any     `json:"events"`
		Error     string    `json:"error"`
		LastIDs   []string  `json:"lastEventIDs"`
		Fresh     bool      `json:"freshCredentialEachAttempt"`
	} `json:"expect"`
}

type scriptStep struct {
	Refuse       int      `json:"refuse"`
	RetryAfter   string   `json:"retryAfter"`
	Location     string   `json:"location"`
	Accept       bool     `json:"accept"`
	Messages     []string `json:"messages"`
	Raw          *string  `json:"raw"`
	ContentType  string   `json:"contentType"`
	AliveSeconds float64  `json:"aliveSeconds"`
	Then         string   `json:"then"`
	Status       int      `json:"status"`
	Events       []any    `json:"events"`
	Drop         bool     `json:"drop"`
}

// TestCases runs every case of the family, whatever its lane. Those of the lane reconnect hold for any transport, so they run
// over three.
func TestCases(t *testing.T) {
	cases.Run(t, "streams", func(t *testing.T, c streamCase) {
		for i, s := range c.Script {
			s.check(t, c.Lane, i == len(c.Script)-1)
		}
		switch c.Lane {
		case "reconnect":
			t.Run("dialer", c.overDialer)
			t.Run("websocket", func(t *testing.T) { c.overNetwork(t, webSocket) })
			t.Run("sse", func(t *testing.T) { c.overNetwork(t, eventStream) })
		case "sse":
			c.overNetwork(t, eventStream)
		case "poll":
			c.overHTTP(t)
		default:
			t.Fatalf("unknown lane %q", c.Lane)
		}
	})
}

// credentials hands out a new token for each attempt.
func credentials() stream.CredentialFunc {
	n := 0
	return func(context.Context, stream.Credential) (stream.Credential, error) {
		n++
		return stream.Credential{Token: &oauth2.Token{AccessToken: fmt.Sprintf("token-%d", n)}}, nil
	}
}

func (c streamCase) config(d stream.Dialer, clk watched, l *log) stream.Config {
	return stream.Config{Dialer: d, Credential: credentials(), Rand: pinned(c.Jitter), Clock: clk, Trace: l.trace()}
}

// stops is how many messages come in all, if the consumer breaks out after the last one.
func (c streamCase) stops() int {
	n := 0
	for _, s := range c.Script {
		n += len(s.Messages)
		if s.Raw != nil {
			for range sse.NewDecoder(strings.NewReader(*s.Raw), sse.Options{}).Events() {
				n++
			}
		}
		if s.Then == string(fakes.Stop) {
			return n
		}
	}
	return -1
}

// check fails the test at a step that is not of the lane, or that says two things or none.
func (s scriptStep) check(t *testing.T, lane string, last bool) {
	t.Helper()
	poll := lane == "poll"
	if lane != "sse" && (s.Raw != nil || s.ContentType != "") {
		t.Fatalf("raw and contentType are of the lane sse: %+v", s)
	}
	dial := s.Refuse != 0 || s.Accept
	if poll && (dial || s.Location != "" || s.Messages != nil || s.Then != "" || s.AliveSeconds != 0) ||
		!poll && (!dial || s.Status != 0 || s.Events != nil || s.Drop) {
		t.Fatalf("a step of another lane: %+v", s)
	}
	if poll && (s.Status != 0) == s.Drop || !poll && (s.Refuse != 0) == s.Accept || s.Messages != nil && s.Raw != nil {
		t.Fatalf("a step that is two things or none: %+v", s)
	}
	switch fakes.Then(s.Then) {
	case "", fakes.Drop, fakes.End:
	case fakes.Stop:
		if !last {
			t.Fatal("a consumer that breaks out before the last step")
		}
	default:
		t.Fatalf("unknown end %q", s.Then)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// judge compares what happened with what the case expects.
func (c streamCase) judge(t *testing.T, waits []time.Duration, err error) {
	t.Helper()
	wanted, tail := c.Expect.Waits, c.Expect.WaitsTail
	switch {
	case tail != nil && len(tail) <= len(waits):
		wanted, waits = tail, waits[len(waits)-len(tail):]
	case tail != nil:
		wanted = tail
	}
	want := []time.Duration{}
	for _, w := range wanted {
		want = append(want, seconds(w))
	}
	wantDurations(t, "waits", waits, want)
	reason := ""
	if e, ok := errors.AsType[*stream.Error](err); ok {
		reason = string(e.Reason)
	} else if err != nil {
		t.Errorf("an error of another type: %v", err)
	}
	if reason != c.Expect.Error {
		t.Errorf("error: %q (%v), want %q", reason, err, c.Expect.Error)
	}
}

func (c streamCase) judgeAttempts(t *testing.T, tokens, positions []string) {
	t.Helper()
	if len(tokens) != len(c.Script) {
		t.Errorf("%d attempts, want %d", len(tokens), len(c.Script))
	}
	if c.Expect.Fresh {
		for i, token := range tokens {
			if want := fmt.Sprintf("Bearer token-%d", i+1); token != want {
				t.Errorf("attempt %d: %q, want %q", i+1, token, want)
			}
		}
	}
	if c.Expect.LastIDs != nil {
		wantList(t, "positions", positions, c.Expect.LastIDs)
	}
}

func webSocket(client *http.Client) stream.Dialer {
	return websocket.Dialer{URL: "wss://stream.test/", Client: client}
}

func eventStream(client *http.Client) stream.Dialer {
	return sse.Dialer{URL: "https://stream.test/", Client: client}
}

// overNetwork runs a case over a real transport, against a server in the bubble.
func (c streamCase) overNetwork(t *testing.T, transport func(*http.Client) stream.Dialer) {
	fakes.Bubble(t, c.Now, func(t *testing.T) {
		var script []fakes.StreamStep
		for _, s := range c.Script {
			made := fakes.StreamStep{
				Refuse: s.Refuse, RetryAfter: s.RetryAfter, Location: s.Location,
				Messages: s.Messages, ContentType: s.ContentType, Alive: seconds(s.AliveSeconds), Then: fakes.Then(s.Then),
			}
			if s.Raw != nil {
				made.Raw = *s.Raw
			}
			script = append(script, made)
		}
		net := fakes.NewNetwork(t)
		server := scripted(t, script...)
		net.Serve(t, "stream.test", server)
		clk, l := newWatched(), &log{}
		messages, err := c.collect(t, c.config(transport(net.Client()), clk, l), l)
		synctest.Wait() // the server has seen the end
		c.judge(t, l.waited(), err)
		wantList(t, "messages", messages, c.Expect.Messages)
		c.judge(t, fakes.Waited(server.Attempts()), err)
		var tokens, positions []string
		for _, a := range server.Attempts() {
			tokens, positions = append(tokens, a.Authorization), append(positions, a.LastEventID)
		}
		c.judgeAttempts(t, tokens, positions)
		wantList(t, "violations", server.Violations(), nil)
		if n := server.MostAlive(); n > 1 {
			t.Errorf("%d connections at once", n)
		}
		wantList(t, "timers left", clk.kinds(), []delay.Kind{})
	})
}

// collect consumes a stream until the consumer is to break out, or the script is over: the wait after that is none of the
// case's.
func (c streamCase) collect(t *testing.T, cfg stream.Config, l *log) ([]string, error) {
	t.Helper()
	ctx, over := context.WithCancel(t.Context())
	defer over()
	cfg.Trace.Waiting = func(w delay.Wait) {
		if l.connecting == len(c.Script) {
			over()
			return
		}
		l.record(func() { l.waits = append(l.waits, w) })
	}
	return collect(ctx, stream.Reconnect(cfg), c.stops())
}

// overDialer runs a case over a scripted dialer.
func (c streamCase) overDialer(t *testing.T) {
	fakes.Bubble(t, c.Now, func(t *testing.T) {
		var script []step
		for _, s := range c.Script {
			made := step{messages: s.Messages, alive: seconds(s.AliveSeconds), open: s.Then == "stop"}
			if s.Then == "end" {
				made.end = io.EOF
			}
			if s.Refuse != 0 {
				res := &http.Response{StatusCode: s.Refuse, Header: http.Header{}}
				if s.RetryAfter != "" {
					res.Header.Set("Retry-After", s.RetryAfter)
				}
				made.err = stream.Attempt{}.Refused(res)
			}
			script = append(script, made)
		}
		clk, l, d := newWatched(), &log{}, dials(script...)
		messages, err := c.collect(t, c.config(d, clk, l), l)
		c.judge(t, l.waited(), err)
		wantList(t, "messages", messages, c.Expect.Messages)
		var tokens, positions []string
		for _, a := range d.attempts {
			tokens, positions = append(tokens, "Bearer "+a.Credential.Token.AccessToken), append(positions, a.Position)
		}
		c.judgeAttempts(t, tokens, positions)
		if d.most > 1 || d.live > 0 {
			t.Errorf("%d connections at once, %d left", d.most, d.live)
		}
		wantList(t, "timers left", clk.kinds(), []delay.Kind{})
	})
}

// overHTTP runs a case of the lane poll.
func (c streamCase) overHTTP(t *testing.T) {
	fakes.Bubble(t, c.Now, func(t *testing.T) {
		var script []fakes.PollStep
		for _, s := range c.Script {
			script = append(script, fakes.PollStep{Status: s.Status, RetryAfter: s.RetryAfter, Events: s.Events, Drop: s.Drop})
		}
		net := fakes.NewNetwork(t)
		server := fakes.NewPollServer(script...)
		net.Serve(t, "api.test", server)
		clk, l := newWatched(), &log{}
		walk := stream.Walk[any]{
			Poll:       poller(net.Client(), "https://api.test/events").Poll,
			Credential: credentials(), Rand: pinned(c.Jitter), Clock: clk, Trace: l.trace(),
		}
		var events []any
		var err error
		for page, e := range walk.Pages(t.Context(), "") {
			events, err = append(events, page.Events...), e
		}
		c.judge(t, l.waited(), err)
		c.judge(t, c.failedOnly(fakes.Waited(server.Polls())), err)
		if fmt.Sprint(events) != fmt.Sprint(c.Expect.Events) {
			t.Errorf("events: %v, want %v", events, c.Expect.Events)
		}
		wantList(t, "violations", server.Violations(), nil)
		var tokens []string
		for _, p := range server.Polls() {
			tokens = append(tokens, p.Authorization)
		}
		c.judgeAttempts(t, tokens, nil)
		wantList(t, "timers left", clk.kinds(), []delay.Kind{})
	})
}

// failedOnly leaves out what came after a served page: the next poll follows at once.
func (c streamCase) failedOnly(gaps []time.Duration) []time.Duration {
	waits := []time.Duration{}
	for i, gap := range gaps {
		if c.Script[i].Status != http.StatusOK || gap != 0 {
			waits = append(waits, gap)
		}
	}
	return waits
}

// poller polls pages of the form {"events": [...], "next": "..."}.
func poller(client *http.Client, address string) stream.HTTPPoll[any] {
	return stream.HTTPPoll[any]{
		Client: client,
		Request: func(ctx context.Context, position string) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, address+"?after="+position, nil)
		},
		Decode: func(_ http.Header, body []byte) (page stream.Page[any], err error) {
			var read struct {
				Events []any
				Next   string
			}
			err = json.Unmarshal(body, &read)
			return stream.Page[any]{Events: read.Events, Next: read.Next, Position: read.Next}, err
		},
	}
}
