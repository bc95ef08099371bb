package fakes

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/coder/websocket"

	"github.com/heed-sdk/heed/delay"
)

// Then says how a scripted connection ends.
type Then string

// The ends of a connection.
const (
	Drop Then = "drop" // the network breaks
	End  Then = "end"  // the server closes it in good order
	Stop Then = "stop" // the server leaves it open until the client ends it
)

// StreamStep is what a scripted stream server does with one attempt to connect.
type StreamStep struct {
	// Refuse, if set, is the status that the handshake is refused with, along with the two headers where they are set.
	Refuse     int
	RetryAfter string
	Location   string

	// Otherwise it is accepted: the messages are sent, the connection lives on for Alive, and then ends by Then. Those who
	// accept an event stream are sent events, and after them Raw as it is.
	Messages    []string
	Raw         string
	ContentType string // of an event stream, if it is not text/event-stream
	Binary      bool
	Ping        time.Duration // sends a ping this often meanwhile
	Alive       time.Duration
	Then        Then
	Code        int // with End; 1000 if zero
	Reason      string
}

// StreamAttempt is one attempt as the server saw it.
type StreamAttempt struct {
	At, Ended     time.Time // the arrival, and the refusal or the end of the connection
	Query         string
	Authorization string
	LastEventID   string
	Accepted      bool
}

// Waited returns the time from the end of each attempt to the next attempt.
func Waited(attempts []StreamAttempt) []time.Duration {
	waits := []time.Duration{}
	for i := 1; i < len(attempts); i++ {
		waits = append(waits, attempts[i].At.Sub(attempts[i-1].Ended))
	}
	return waits
}

// StreamServer is a server of WebSockets and event streams that follows a script, one step for each attempt. The last step
// does not repeat: an attempt beyond the script is a violation, and is refused with a 501.
type StreamServer struct {
	// Clock is the clock of the connections' lives and of what is recorded. If it is nil, it is the real one.
	Clock clock.Clock

	watch
	live     liveConns
	script   []StreamStep
	attempts []StreamAttempt
}

// NewStreamServer returns a server with a script. It must be closed.
func NewStreamServer(script ...StreamStep) *StreamServer { return &StreamServer{script: script} }

// Attempts lists the attempts so far.
func (s *StreamServer) Attempts() []StreamAttempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.attempts)
}

// Alive returns how many connections are alive.
func (s *StreamServer) Alive() int { return s.live.count() }

// MostAlive returns how many connections were alive at once at most.
func (s *StreamServer) MostAlive() int { return s.live.peak() }

// Close breaks every connection.
func (s *StreamServer) Close() error {
	s.live.close()
	return nil
}

// ServeHTTP answers one attempt.
func (s *StreamServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	timers := s.on(s.Clock)
	i, step := s.next(r, timers.Now())
	if step.Refuse != 0 {
		setHeaders(w, map[string]string{"Retry-After": step.RetryAfter, "Location": step.Location})
		w.WriteHeader(step.Refuse)
		s.ended(i, timers.Now())
		return
	}
	if r.Header.Get("Accept") == eventStream {
		s.serveEvents(w, r, i, step)
		return
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		s.violated("attempt %d is no handshake: %v", i+1, err)
		s.ended(i, timers.Now())
		return
	}
	gone := c.CloseRead(context.Background())
	s.accepted(i, c)
	step.serve(gone, c, timers)
	s.live.remove(c) // before the client can know: what it dials next is not a second one
	s.ended(i, timers.Now())
	if step.Then == End && gone.Err() == nil {
		code := websocket.StatusNormalClosure
		if step.Code != 0 {
			code = websocket.StatusCode(step.Code)
		}
		_ = c.Close(code, step.Reason)
	}
	_ = c.CloseNow()
}

// serve returns when the connection is to end, or has ended.
func (step StreamStep) serve(gone context.Context, c *websocket.Conn, timers *delay.Timers) {
	ctx, cancel := context.WithCancel(gone)
	pinging := make(chan struct{})
	go func() {
		defer close(pinging)
		for step.Ping > 0 && pass(ctx, timers, step.Ping) == nil && c.Ping(ctx) == nil {
		}
	}()
	defer func() {
		cancel()
		<-pinging
	}()
	kind := websocket.MessageText
	if step.Binary {
		kind = websocket.MessageBinary
	}
	for _, m := range step.Messages {
		if c.Write(ctx, kind, []byte(m)) != nil {
			return
		}
	}
	if step.Then == Stop {
		<-gone.Done()
		return
	}
	_ = pass(ctx, timers, step.Alive) // or until the client is gone
}

func (s *StreamServer) next(r *http.Request, now time.Time) (int, StreamStep) {
	s.mu.Lock()
	i := len(s.attempts)
	s.attempts = append(s.attempts, StreamAttempt{
		At: now, Query: r.URL.RawQuery,
		Authorization: r.Header.Get("Authorization"), LastEventID: r.Header.Get("Last-Event-ID"),
	})
	s.mu.Unlock()
	if i >= len(s.script) {
		s.violated("attempt %d is beyond the script of %d", i+1, len(s.script))
		return i, StreamStep{Refuse: http.StatusNotImplemented}
	}
	return i, s.script[i]
}

func (s *StreamServer) accepted(i int, c liveConn) {
	s.live.add(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[i].Accepted = true
}

func (s *StreamServer) ended(i int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[i].Ended = now
}

// PollStep is what a scripted poll server does with one poll.
type PollStep struct {
	Status     int
	RetryAfter string
	Events     []any
	Drop       bool // the connection breaks without an answer
}

// PollServer is an HTTP server that follows a script, one step for each poll, as [StreamServer] does. A page is
// {"events": [...], "next": "2"}, and next is absent from the last one.
type PollServer struct {
	// Clock is the clock of what is recorded. If it is nil, it is the real one.
	Clock clock.Clock

	watch
	script []PollStep
	polls  []StreamAttempt
}

// NewPollServer returns a server with a script.
func NewPollServer(script ...PollStep) *PollServer { return &PollServer{script: script} }

// Polls lists the polls so far.
func (s *PollServer) Polls() []StreamAttempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.polls)
}

// ServeHTTP answers one poll.
func (s *PollServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := s.on(s.Clock).Now() // an answer takes no time
	s.mu.Lock()
	i := len(s.polls)
	s.polls = append(s.polls, StreamAttempt{At: now, Ended: now, Query: r.URL.RawQuery, Authorization: r.Header.Get("Authorization")})
	s.mu.Unlock()
	if i >= len(s.script) {
		s.violated("poll %d is beyond the script of %d", i+1, len(s.script))
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	step := s.script[i]
	if step.Drop {
		panic(http.ErrAbortHandler)
	}
	setHeaders(w, map[string]string{"Retry-After": step.RetryAfter})
	if step.Status != http.StatusOK {
		w.WriteHeader(step.Status)
		return
	}
	page := map[string]any{"events": step.Events}
	if i+1 < len(s.script) {
		page["next"] = strconv.Itoa(i + 1)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page)
}

func setHeaders(w http.ResponseWriter, h map[string]string) {
	for name, value := range h {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
}

// liveConn is a connection that can be broken.
type liveConn interface{ CloseNow() error }

// liveConns are the connections of a server that are open.
type liveConns struct {
	mu    sync.Mutex
	conns map[liveConn]bool
	most  int
}

func (l *liveConns) add(c liveConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		l.conns = map[liveConn]bool{}
	}
	l.conns[c] = true
	l.most = max(l.most, len(l.conns))
}

func (l *liveConns) remove(c liveConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *liveConns) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

func (l *liveConns) peak() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

func (l *liveConns) all() []liveConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []liveConn
	for c := range l.conns {
		all = append(all, c)
	}
	return all
}

func (l *liveConns) close() {
	for _, c := range l.all() {
		_ = c.CloseNow()
	}
}
