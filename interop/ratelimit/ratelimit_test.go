//go:build unix

package ratelimit_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/interop/ratelimit"
	"github.com/heed-sdk/heed/requests"
)

// patience bounds whatever a test waits for.
const patience = time.Minute

// asked is what the server of most tests asks for. In that time a full bucket becomes empty, so that who comes back alone
// and in time is served.
const asked = time.Second

var tenPerSecond = ratelimit.Config{Rate: 10, Burst: 9, Status: http.StatusTooManyRequests, RetryAfter: "1"}

// wire stamps what goes out and what comes back as refused.
type wire struct {
	base *http.Transport

	mu      sync.Mutex
	sent    []time.Time
	refused []time.Time
}

func newWire(t *testing.T, s *ratelimit.Server) *wire {
	w := &wire{base: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.Roots}, ForceAttemptHTTP2: true}}
	t.Cleanup(w.base.CloseIdleConnections)
	return w
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.sent = append(w.sent, time.Now())
	w.mu.Unlock()
	resp, err := w.base.RoundTrip(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		w.mu.Lock()
		w.refused = append(w.refused, time.Now())
		w.mu.Unlock()
	}
	return resp, err
}

// early are the requests that were sent less than asked after somebody was refused. An instant that was stamped on an
// answer is before the one that Transport counts from.
func (w *wire) early() (early []time.Time) {
	for _, sent := range w.sent {
		if slices.ContainsFunc(w.refused, func(at time.Time) bool { return sent.After(at) && sent.Before(at.Add(asked)) }) {
			early = append(early, sent)
		}
	}
	return early
}

// get returns the status of an answer that was read to its end.
func get(ctx context.Context, t *testing.T, client *http.Client, url string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

func refusals(all []ratelimit.Request) (n int) {
	for _, r := range all {
		if r.Status != http.StatusOK {
			n++
		}
	}
	return n
}

// TestOne sends thirty requests one after the other, as fast as they go: nginx serves ten of them before it refuses.
func TestOne(t *testing.T) {
	t.Parallel()
	const n = 30
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		s := ratelimit.Start(t, tenPerSecond)
		client := &http.Client{Transport: newWire(t, s)}
		for range n {
			get(t.Context(), t, client, s.URL())
		}
		if got := refusals(s.Requests(n)); got < n/2 {
			t.Errorf("without us, %d of %d requests were refused", got, n)
		}
	})
	t.Run("heeded", func(t *testing.T) {
		t.Parallel()
		s := ratelimit.Start(t, tenPerSecond)
		w := newWire(t, s)
		waits := 0
		client := &http.Client{Transport: &requests.Transport{Base: w, Hooks: requests.Hooks{OnWait: func(w delay.Wait) {
			waits++
			if w.For != asked || w.Server != asked {
				t.Errorf("the wait is %v", w)
			}
		}}}}
		for range n {
			if status := get(t.Context(), t, client, s.URL()); status != http.StatusOK {
				t.Errorf("status %d", status)
			}
		}
		// Each wait empties the bucket, which then takes ten.
		got := refusals(s.Requests(n + waits))
		if got != waits || got == 0 || got > n/10 {
			t.Errorf("%d refusals and %d waits", got, waits)
		}
		if early := w.early(); len(early) > 0 {
			t.Errorf("too early: %v; refused: %v", early, w.refused)
		}
	})
}

// TestDate is refused by 503, with a date.
func TestDate(t *testing.T) {
	t.Parallel()
	date := time.Now().Truncate(time.Second).Add(3 * time.Second)
	s := ratelimit.Start(t, ratelimit.Config{
		Rate: 1, Status: http.StatusServiceUnavailable, RetryAfter: date.UTC().Format(http.TimeFormat),
	})
	w := newWire(t, s)
	client := &http.Client{Transport: &requests.Transport{Base: w}}
	for range 2 {
		if status := get(t.Context(), t, client, s.URL()); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	if len(w.sent) != 3 || len(w.refused) != 1 || w.sent[2].Before(date) || w.sent[2].After(date.Add(3*time.Second)) {
		t.Errorf("sent %v, refused %v, to come back at %v", w.sent, w.refused, date)
	}
	if all := s.Requests(3); all[1].Status != http.StatusServiceUnavailable || all[2].At.Before(date) {
		t.Errorf("the server has answered %+v", all)
	}
}

// TestMany has sixty callers share one Transport: far more than nginx takes at once.
func TestMany(t *testing.T) {
	t.Parallel()
	const callers = 60
	// crowd sends one request for each caller, all at once, and returns when each of them has been served.
	crowd := func(t *testing.T, w *wire, url string, throttle requests.Throttle, told bool) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		waiting := make(chan struct{})
		var once sync.Once
		client := &http.Client{Transport: &requests.Transport{
			Base: w, Throttle: throttle,
			Operations: requests.MustOperations(map[string]requests.Operation{"GET /api/": {Max: 50}}),
			Hooks:      requests.Hooks{OnWait: func(delay.Wait) { once.Do(func() { close(waiting) }) }},
		}}
		var all sync.WaitGroup
		if told {
			all.Go(func() {
				for told := false; !told; {
					if status := get(ctx, t, client, url); status != http.StatusOK {
						t.Errorf("status %d", status)
					}
					select {
					case <-waiting:
						told = true
					default:
					}
				}
			})
			<-waiting
		}
		for range callers {
			all.Go(func() {
				if status := get(ctx, t, client, url); status != http.StatusOK {
					t.Errorf("status %d", status)
				}
			})
		}
		all.Wait()
	}

	var off, on []ratelimit.Request
	t.Run("all", func(t *testing.T) {
		t.Run("wait", func(t *testing.T) {
			t.Parallel()
			s := ratelimit.Start(t, tenPerSecond)
			w := newWire(t, s)
			crowd(t, w, s.URL(), requests.ThrottleWait, true)
			if early := w.early(); len(early) > 0 {
				t.Errorf("too early: %v; refused: %v", early, w.refused)
			}
			on = s.Requests(len(w.sent))
			var back time.Time
			for i, r := range on {
				// The clock of the log may lag by what the server does in one go.
				if r.At.Before(back.Add(-100 * time.Millisecond)) {
					t.Errorf("request %d came at %v, before %v: %+v", i+1, r.At, back, on)
				}
				if r.Status != http.StatusOK {
					back = r.At.Add(asked)
				}
			}
			t.Logf("%d requests for %d callers, %d of them refused", len(on), callers, refusals(on))
		})
		t.Run("off", func(t *testing.T) {
			t.Parallel()
			s := ratelimit.Start(t, tenPerSecond)
			w := newWire(t, s)
			crowd(t, w, s.URL(), requests.ThrottleOff, true)
			off = s.Requests(len(w.sent))
			t.Logf("%d requests for %d callers, %d of them refused", len(off), callers, refusals(off))
		})
		// What is under way when the first refusal comes cannot know of it; over HTTP/2, on one connection.
		t.Run("at once", func(t *testing.T) {
			t.Parallel()
			s := ratelimit.Start(t, tenPerSecond)
			w := newWire(t, s)
			crowd(t, w, s.TLSURL(), requests.ThrottleWait, false)
			first := w.refused[0].Add(asked)
			wave, early := 0, w.early()
			for _, sent := range w.sent {
				if sent.Before(first) {
					wave++
				}
			}
			if wave > callers || len(early) > 0 && !slices.MaxFunc(early, time.Time.Compare).Before(first) {
				t.Errorf("%d requests in the first wave; too early: %v; refused: %v", wave, early, w.refused)
			}
			all := s.Requests(len(w.sent))
			for _, r := range all {
				if r.Protocol != "HTTP/2.0" {
					t.Fatalf("the protocol is %s", r.Protocol)
				}
			}
			later := 0
			for _, at := range w.refused {
				if at.After(first) {
					later++
				}
			}
			if later > callers/4 {
				t.Errorf("%d refusals after the first wave", later)
			}
			t.Logf("%d requests for %d callers, %d refused, %d of them after the first wave", len(all), callers, refusals(all), later)
		})
	})
	if on == nil || off == nil {
		return
	}
	// Ten leave the bucket each second, and each second without the throttle all those who wait come for them.
	if got := refusals(on); got > callers/4 {
		t.Errorf("%d refusals although they waited for each other", got)
	}
	if got := refusals(off); got < 2*callers || got < 5*refusals(on) {
		t.Errorf("%d refusals when each learns by its own, %d when they wait for each other", got, refusals(on))
	}
}
