package requests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// Health is an [http.RoundTripper] that knows how the hosts fare that it sends to, by their answers: any part of a program
// can ask it at any time. It changes nothing about requests and answers. Around a Transport it sees what a request came
// to in the end; as its Base it sees each attempt.
//
// The zero value is ready to use, and any number of goroutines may use it at once; do not copy or change it after its
// first request.
type Health struct {
	// Base sends the requests. If it is nil, it is http.DefaultTransport.
	Base http.RoundTripper
	// ReadWait is that of the Transport, if it has one.
	ReadWait WaitReader
	// Clock is the clock of what is noted. If it is nil, it is the real one.
	Clock clock.Clock

	once   sync.Once
	timers *delay.Timers
	mu     sync.RWMutex
	hosts  map[string]*ailing
}

// Condition is how a host fares.
type Condition uint8

// The conditions.
const (
	ConditionHealthy   Condition = iota // it answers, or nobody has asked yet
	ConditionThrottled                  // it asked, by a 429 or 503, for no requests until an instant
	ConditionFailing                    // it has answered with 500 and above, or not at all, since an instant
)

// String returns the condition in a word.
func (c Condition) String() string {
	switch c {
	case ConditionHealthy:
		return "healthy"
	case ConditionThrottled:
		return "throttled"
	case ConditionFailing:
		return "failing"
	}
	return "unknown"
}

// HostHealth is how a host fares at the moment it was asked for.
type HostHealth struct {
	Condition Condition
	Until     time.Time // when a throttled host is expected to serve again
	Since     time.Time // of a failing host: its first failure in a row
	Cause     string    // the last refusal or failure: a status, "timeout", "no answer", or "not sent" as by ErrThrottled
}

// String describes it in a line.
func (h HostHealth) String() string {
	switch h.Condition {
	case ConditionThrottled:
		return fmt.Sprintf("throttled until %s (%s)", h.Until.Format(time.RFC3339), h.Cause)
	case ConditionFailing:
		return fmt.Sprintf("failing since %s (%s)", h.Since.Format(time.RFC3339), h.Cause)
	}
	return h.Condition.String()
}

// ailing is a host that is not healthy. Those that are need no memory.
type ailing struct {
	throttle delay.Throttle
	told     time.Time // when it last asked to wait
	since    time.Time
	cause    string
}

// RoundTrip sends a request, and notes what it says of its host.
func (h *Health) RoundTrip(req *http.Request) (*http.Response, error) {
	h.once.Do(func() { h.timers = delay.TimersOn(h.Clock) })
	base := h.Base
	if base == nil {
		base = http.DefaultTransport
	}
	began := h.timers.Now()
	resp, err := base.RoundTrip(req)
	h.note(req, resp, err, began)
	return resp, err
}

// CloseIdleConnections closes those of Base, if it can; http.Client calls it.
func (h *Health) CloseIdleConnections() {
	if c, ok := h.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Of returns how a host fares, such as "api.example.com", or "localhost:8080" with its port.
func (h *Health) Of(host string) HostHealth {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if a := h.hosts[strings.ToLower(host)]; a != nil {
		return a.at(h.timers.Now())
	}
	return HostHealth{}
}

// Ailing returns the hosts that are throttled or failing.
func (h *Health) Ailing() map[string]HostHealth {
	h.mu.RLock()
	defer h.mu.RUnlock()
	all := map[string]HostHealth{}
	for host, a := range h.hosts {
		if now := a.at(h.timers.Now()); now.Condition != ConditionHealthy {
			all[host] = now
		}
	}
	return all
}

func (a *ailing) at(now time.Time) HostHealth {
	if w := a.throttle.Next(now); w.Reason == delay.Held {
		return HostHealth{Condition: ConditionThrottled, Until: now.Add(w.For), Cause: a.cause}
	}
	if !a.since.IsZero() {
		return HostHealth{Condition: ConditionFailing, Since: a.since, Cause: a.cause}
	}
	return HostHealth{}
}

// note draws from an outcome what it says of the host.
func (h *Health) note(req *http.Request, resp *http.Response, err error, began time.Time) {
	if req.URL == nil {
		return
	}
	if late, ok := errors.AsType[*attemptTimeout](context.Cause(req.Context())); ok && err != nil {
		err = late // whatever the base calls it
	}
	host, now := hostOf(req.URL), h.timers.Now()
	asked, failed, known := h.read(req, resp, err, now)
	switch {
	case !known:
		return
	case asked.Duration() == 0 && !failed:
		h.recovered(host, began, now)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.hosts[host]
	if a == nil {
		if h.hosts == nil {
			h.hosts = map[string]*ailing{}
		}
		a = &ailing{}
		h.hosts[host] = a
	}
	a.cause = "not sent"
	if resp != nil || failed {
		a.cause = cause(resp, err)
	}
	if failed {
		if a.since.IsZero() {
			a.since = now
		}
		return
	}
	a.told = now
	a.throttle.Told(now, asked, 0)
}

// read tells what an outcome says: that the host asked to wait, that it failed, that it works, or nothing of the host.
func (h *Health) read(req *http.Request, resp *http.Response, err error, now time.Time) (asked delay.RetryAfter, failed, known bool) {
	if limited, ok := errors.AsType[*RateLimited](err); ok {
		return delay.Asked(limited.RetryAfter), false, limited.RetryAfter > 0 // by another's answer, which is noted
	}
	switch {
	case err != nil:
		ended := errors.Is(err, context.Canceled) || req.Context().Err() != nil
		ours := is[*Error](err) || ended && !is[*attemptTimeout](err)
		return asked, true, !ours
	case resp == nil:
		return asked, false, false
	case refusal(resp.StatusCode):
		p := Declared{}.plan(false, Operation{})
		read := WaitReader(p.asked)
		if h.ReadWait != nil {
			read = FirstOf(h.ReadWait, read)
		}
		asked = read(resp.Header, now)
	}
	return asked, resp.StatusCode >= http.StatusInternalServerError && asked.Duration() == 0, true
}

// recovered notes that a host works. What was sent before it asked to wait says nothing against that.
func (h *Health) recovered(host string, began, now time.Time) {
	h.mu.RLock()
	a := h.hosts[host]
	h.mu.RUnlock()
	if a == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.throttle.Next(now).Reason == delay.Held && !began.After(a.told) {
		a.since = time.Time{}
		return
	}
	if h.hosts[host] == a {
		delete(h.hosts, host)
	}
	maps.DeleteFunc(h.hosts, func(_ string, a *ailing) bool { return a.at(now).Condition == ConditionHealthy })
}

// hostOf is a URL's host as Of takes it.
func hostOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if u.Port() == "" || u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return host
}
