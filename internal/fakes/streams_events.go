package fakes

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/coder/websocket"

	"github.com/heed-sdk/heed/delay"
)

// Event is what an EventServer sends, as JSON.
type Event struct {
	ID   int    `json:"id"`
	Data string `json:"data"`
}

// EventServer sends numbered events over WebSocket, and serves the same events to polls: GET with ?after=ID answers
// {"events": [...], "position": "ID", "next": "ID"}, where next is absent from the last page. It restarts and throttles
// when it is told to, and is otherwise a server as good as any.
type EventServer struct {
	// Authorize, if set, decides on the bearer token of each request.
	Authorize func(bearer string) bool
	// PageSize is how many events a page has at most. If zero, 100.
	PageSize int

	timers *delay.Timers
	live   liveConns

	mu       sync.Mutex
	closed   bool
	events   []Event
	more     chan struct{} // closed when there is something new: an event, or the end
	restarts int
	code     int    // with which the connections from before the last restart end
	refusals int    // handshakes that are yet to be refused
	throttle bool   // the next poll is throttled
	asked    string // Retry-After of both
	publish  *delay.Timer
}

// NewEventServer returns a server on a clock; nil is the real one. It must be closed.
func NewEventServer(c clock.Clock) *EventServer {
	return &EventServer{timers: delay.TimersOn(c), more: make(chan struct{})}
}

// Publish sends an event to every connection and returns it.
func (s *EventServer) Publish(data string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Event{ID: len(s.events) + 1, Data: data}
	s.events = append(s.events, e)
	s.tell()
	return e
}

// PublishEvery publishes an event every so often until the server is closed.
func (s *EventServer) PublishEvery(d time.Duration, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.publish = s.timers.After("publish", d, func() {
		s.Publish(data)
		s.PublishEvery(d, data)
	})
}

// Restart ends every connection, with the close code or, if it is 0, by breaking it; then it refuses that many handshakes
// with 503 and Retry-After, where a wait of less than a second is not announced.
func (s *EventServer) Restart(code, refusals int, retryAfter time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals, s.asked = refusals, wholeSeconds(retryAfter)
	s.restarts, s.code = s.restarts+1, code
	s.tell()
}

// tell wakes every connection. The caller holds mu.
func (s *EventServer) tell() {
	close(s.more)
	s.more = make(chan struct{})
}

// ThrottleOnce answers the next poll with 429 and Retry-After.
func (s *EventServer) ThrottleOnce(retryAfter time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.throttle, s.asked = true, wholeSeconds(retryAfter)
}

// Alive returns how many connections are alive.
func (s *EventServer) Alive() int { return s.live.count() }

// MostAlive returns how many connections were alive at once at most.
func (s *EventServer) MostAlive() int { return s.live.peak() }

// Close ends every connection and stops publishing.
func (s *EventServer) Close() error {
	s.mu.Lock()
	s.closed = true
	publish := s.publish
	s.tell()
	s.mu.Unlock()
	publish.Stop()
	s.live.close()
	return nil
}

// ServeHTTP answers a handshake or a poll.
func (s *EventServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	upgrade := strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
	s.mu.Lock()
	status := 0
	switch {
	case s.Authorize != nil && !s.Authorize(bearer):
		status = http.StatusUnauthorized
	case upgrade && s.refusals > 0:
		s.refusals--
		status = http.StatusServiceUnavailable
	case !upgrade && s.throttle:
		s.throttle = false
		status = http.StatusTooManyRequests
	}
	asked := s.asked
	s.mu.Unlock()
	switch {
	case status != 0:
		if status != http.StatusUnauthorized {
			setHeaders(w, map[string]string{"Retry-After": asked})
		}
		w.WriteHeader(status)
	case upgrade:
		s.stream(w, r)
	default:
		s.page(w, r)
	}
}

// stream sends events from now on, until the client is gone or the server restarts.
func (s *EventServer) stream(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	next, restarts := len(s.events), s.restarts
	s.mu.Unlock()
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has been answered
	}
	gone := c.CloseRead(context.Background())
	s.live.add(c)
	defer func() { _ = c.CloseNow() }()
	defer s.live.remove(c)
	for {
		s.mu.Lock()
		events, more := s.events[next:len(s.events):len(s.events)], s.more
		closed, restarted, code := s.closed, s.restarts != restarts, s.code
		s.mu.Unlock()
		for _, e := range events {
			b, _ := json.Marshal(e) // a number and a string
			if c.Write(gone, websocket.MessageText, b) != nil {
				return
			}
		}
		next += len(events)
		if restarted && code != 0 {
			s.live.remove(c) // before the client can know: what it dials next is not a second one
			_ = c.Close(websocket.StatusCode(code), "restarting")
		}
		if restarted || closed {
			return
		}
		select {
		case <-more:
		case <-gone.Done():
			return
		}
	}
}

func (s *EventServer) page(w http.ResponseWriter, r *http.Request) {
	size := s.PageSize
	if size <= 0 {
		size = 100
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after, _ := strconv.Atoi(r.URL.Query().Get("after")) // anything else is the beginning
	after = min(max(after, 0), len(s.events))
	end := min(after+size, len(s.events))
	page := struct {
		Events   []Event `json:"events"`
		Position string  `json:"position"`
		Next     string  `json:"next,omitempty"`
	}{Events: s.events[after:end:end], Position: strconv.Itoa(end)}
	if end < len(s.events) {
		page.Next = page.Position
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page)
}

func wholeSeconds(d time.Duration) string {
	if d < time.Second {
		return ""
	}
	return strconv.Itoa(int(d / time.Second))
}
