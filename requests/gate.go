package requests

import (
	"container/heap"
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// gates are the throttles of a Transport, one for each host and credential that was told to wait.
type gates struct {
	count atomic.Int64 // of them all: what a request looks at when nothing is throttled

	mu      sync.Mutex
	all     map[gateID]*gate
	tickets uint64
	asked   int // requests since those that are over were looked for
}

// gateID is a host and a credential, of which a hash is kept and nothing else.
type gateID struct {
	origin string
	who    [sha256.Size]byte
}

// gate is one throttle, and who waits for it.
type gate struct {
	throttle delay.Throttle
	waiting  waiters
	coming   int // those that were told by their own answers, and sleep
}

// any reports whether there may be anything to wait for.
func (s *gates) any() bool { return s.count.Load() > 0 }

// told notes what a host asks for, and has those in line look again.
func (s *gates) told(e *exchange, id gateID, asked delay.RetryAfter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number(e)
	now := e.t.timers.Now()
	g := s.all[id]
	if g == nil {
		if s.all == nil {
			s.all = map[gateID]*gate{}
		}
		s.sweep(now)
		g = &gate{throttle: delay.Throttle{Rand: e.t.Rand}}
		s.all[id] = g
		s.count.Store(int64(len(s.all)))
	}
	e.told = g
	if g.throttle.Told(now, asked, e.plan().cap) {
		for _, w := range g.waiting {
			w.tell()
		}
	}
}

// number gives an exchange its place: it keeps it over its attempts, so that who was refused is before who came later.
func (s *gates) number(e *exchange) {
	if e.ticket == 0 {
		s.tickets++
		e.ticket = s.tickets
	}
}

// comes notes that an exchange sleeps until it comes back, or that it sleeps no longer.
func (s *gates) comes(g *gate, n int) {
	if g == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.coming += n
}

// join puts an exchange in line. There is no gate when there is none to wait for.
func (s *gates) join(e *exchange, id gateID) (*gate, *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.all[id]
	now := e.t.timers.Now()
	switch {
	case g == nil:
		s.sweep(now)
		return nil, nil
	case g.over(now):
		s.drop(id)
		return nil, nil
	}
	s.number(e)
	w := &waiter{ticket: e.ticket, news: make(chan struct{}, 1)}
	heap.Push(&g.waiting, w)
	return g, w
}

// next returns what a waiter has to wait for. The first in line leaves it when that is nothing.
func (s *gates) next(now time.Time, g *gate, w *waiter) (next delay.Wait, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, first = g.throttle.Next(now), g.waiting[0] == w
	if first && next.For == 0 {
		g.remove(w)
		g.throttle.Leave(now, len(g.waiting)+g.coming > 0)
	}
	return next, first
}

// leave takes out of the line who gives up.
func (s *gates) leave(g *gate, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.remove(w)
}

// answered notes that an attempt that left the line is under way no longer.
func (s *gates) answered(g *gate, served bool) {
	if g == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.throttle.Answered(served)
	g.news()
}

func (g *gate) over(now time.Time) bool { return len(g.waiting)+g.coming == 0 && g.throttle.Over(now) }

func (g *gate) remove(w *waiter) {
	heap.Remove(&g.waiting, w.index)
	g.news()
}

// news has the first in line look again.
func (g *gate) news() {
	if len(g.waiting) > 0 {
		g.waiting[0].tell()
	}
}

func (s *gates) drop(id gateID) {
	delete(s.all, id)
	s.count.Store(int64(len(s.all)))
}

// sweep drops the gates that are over. It looks at them all, so it does once for as many requests as there are gates.
func (s *gates) sweep(now time.Time) {
	if s.asked++; s.asked < len(s.all) {
		return
	}
	s.asked = 0
	maps.DeleteFunc(s.all, func(_ gateID, g *gate) bool { return g.over(now) })
	s.count.Store(int64(len(s.all)))
}

// gateOf names the host of a request and whom it is sent for.
func (t *Transport) gateOf(req *http.Request) gateID {
	id := gateID{origin: strings.ToLower(req.URL.Scheme + "://" + req.URL.Hostname() + ":" + port(req.URL))}
	var who [512]byte
	b := who[:0]
	if t.ThrottleBy != nil {
		b = append(b, t.ThrottleBy(req)...)
	} else {
		if req.URL.User != nil {
			b = append(b, req.URL.User.String()...)
		}
		b = appendCredentials(b, req.Header)
		if req.URL.RawQuery != "" {
			b = appendCredentials(b, req.URL.Query())
		}
	}
	id.who = sha256.Sum256(b)
	return id
}

// appendCredentials writes what may be a credential, by its name. To take too much for one only means to wait for nobody.
func appendCredentials(b []byte, fields map[string][]string) []byte {
	var few [8]string
	names := few[:0]
	for name := range fields {
		if !strings.EqualFold(name, idempotencyHeader) && slices.ContainsFunc(credentialWords, func(word string) bool { return containsFold(name, word) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range fields[name] {
			b = append(b, 0)
			b = append(b, name...)
			b = append(b, 0)
			b = append(b, v...)
		}
	}
	return b
}

// containsFold looks for a word of lower-case ASCII letters, whatever the case of the letters of s.
func containsFold(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

var credentialWords = []string{"auth", "token", "key", "cookie", "secret", "session", "sign", "sig", "credential", "password"}

// waiter is an exchange in line.
type waiter struct {
	ticket uint64
	news   chan struct{} // that there may be something new, for who is first
	index  int
}

func (w *waiter) tell() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// waiters is a heap by ticket.
type waiters []*waiter

func (q waiters) Len() int           { return len(q) }
func (q waiters) Less(i, j int) bool { return q[i].ticket < q[j].ticket }

func (q waiters) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *waiters) Push(x any) {
	w := x.(*waiter)
	w.index = len(*q)
	*q = append(*q, w)
}

func (q *waiters) Pop() any {
	old := *q
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return w
}
