package main

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/coder/websocket"

	"github.com/heed-sdk/heed/delay"
)

// restartingServer sends some events, restarts, is not ready yet, and goes on with the events.
type restartingServer struct {
	clock         clock.Clock
	token         string
	before, after int
	retryAfter    int // seconds

	mu        sync.Mutex
	attempts  int
	readyAt   time.Time
	complains []string
}

func (s *restartingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.attempts++
	attempt := s.attempts
	if r.Header.Get("Authorization") != "Bearer "+s.token {
		s.complains = append(s.complains, "a handshake without the token")
	}
	switch attempt {
	case 2:
		s.readyAt = s.clock.Now().Add(time.Duration(s.retryAfter) * time.Second)
	case 3:
		if s.clock.Now().Before(s.readyAt) {
			s.complains = append(s.complains, "a handshake before its time")
		}
	}
	s.mu.Unlock()
	if attempt == 2 {
		w.Header().Set("Retry-After", strconv.Itoa(s.retryAfter))
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	gone := conn.CloseRead(r.Context())
	from, to := 1, s.before
	if attempt > 1 {
		from, to = s.before+1, s.before+s.after
	}
	timers := delay.TimersOn(s.clock)
	for n := from; n <= to; n++ {
		if conn.Write(gone, websocket.MessageText, fmt.Appendf(nil, "event %d", n)) != nil {
			return
		}
		next := make(chan struct{})
		t := timers.After("next-event", time.Second, func() { close(next) })
		select {
		case <-next:
		case <-gone.Done():
			t.Stop()
			return
		}
	}
	if attempt == 1 {
		_ = conn.Close(websocket.StatusServiceRestart, "restarting")
		return
	}
	<-gone.Done()
}

func (s *restartingServer) violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.complains...)
}
