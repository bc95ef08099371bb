package requests_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/heed-sdk/heed/requests"
)

// memory is a RoundTripper that answers at once: 200, or first a 503 where every is positive and divides the count.
type memory struct {
	every int
	n     int
	ok    http.Response
	busy  http.Response
}

func newMemory(every int) *memory {
	return &memory{
		every: every,
		ok:    http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody},
		busy:  http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody},
	}
}

func (m *memory) RoundTrip(req *http.Request) (*http.Response, error) {
	m.n++
	resp := m.ok
	if m.every > 0 && m.n%m.every != 0 {
		resp = m.busy
	}
	resp.Request = req
	return &resp, nil
}

func bench(b *testing.B, rt http.RoundTripper) {
	client := &http.Client{Transport: rt}
	req := get()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := client.Do(req)
		if err != nil || resp.StatusCode != 200 {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}

func BenchmarkSuccess(b *testing.B) {
	b.Run("net-http", func(b *testing.B) { bench(b, newMemory(0)) })
	b.Run("transport", func(b *testing.B) { bench(b, &requests.Transport{Base: newMemory(0)}) })
	b.Run("operations", func(b *testing.B) {
		bench(b, &requests.Transport{Base: newMemory(0), Operations: requests.MustOperations(map[string]requests.Operation{
			"GET /{$}": {Max: 5}, "POST /todos/{id}/completion": {Idempotent: true},
		})})
	})
	b.Run("tokens", func(b *testing.B) { bench(b, &requests.Transport{Base: newMemory(0), Tokens: fixed{}}) })
}

// byHand is the loop that people write: two attempts, and a wait that takes no time here.
type byHand struct {
	base http.RoundTripper
	wait time.Duration
}

func (l byHand) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, err := l.base.RoundTrip(req.Clone(req.Context()))
		if err != nil || resp.StatusCode != 503 || attempt == 2 {
			return resp, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if l.wait > 0 {
			time.Sleep(l.wait)
		}
	}
}

// atOnce waits for nothing.
var atOnce = requests.Declared{Schedule: func(time.Duration) backoff.BackOff { return &backoff.ZeroBackOff{} }}

// BenchmarkRetry makes one exchange of two attempts, with no wait between them.
func BenchmarkRetry(b *testing.B) {
	b.Run("by-hand", func(b *testing.B) { bench(b, byHand{base: newMemory(2)}) })
	b.Run("transport", func(b *testing.B) { bench(b, &requests.Transport{Base: newMemory(2), Policy: atOnce}) })
}

// BenchmarkRatio compares the quickest of many short runs that take turns, so that it says something on a busy machine.
func BenchmarkRatio(b *testing.B) {
	b.Run("success", func(b *testing.B) { ratio(b, newMemory(0), &requests.Transport{Base: newMemory(0)}) })
	b.Run("retry", func(b *testing.B) {
		ratio(b, byHand{base: newMemory(2)}, &requests.Transport{Base: newMemory(2), Policy: atOnce})
	})
}

func ratio(b *testing.B, plain, ours http.RoundTripper) {
	quickest := [2]time.Duration{time.Hour, time.Hour}
	clients := [2]*http.Client{{Transport: plain}, {Transport: ours}}
	req := get()
	for b.Loop() {
		for i, client := range clients {
			began := time.Now()
			for range 100 {
				resp, err := client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			quickest[i] = min(quickest[i], time.Since(began))
		}
	}
	b.ReportMetric(float64(quickest[1])/float64(quickest[0]), "ours/plain")
	b.ReportMetric(0, "ns/op")
}

// The success path adds no allocation, whatever the table of operations is.
func TestSuccessAllocatesNothing(t *testing.T) {
	req := get()
	m := newMemory(0)
	count := func(rt http.RoundTripper) float64 {
		return testing.AllocsPerRun(100, func() {
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		})
	}
	plain := count(m)
	local := &requests.Transport{Base: m}
	req.URL.Scheme, req.URL.Host = "http", "127.0.0.1:8080"
	if got := count(local); got > plain {
		t.Errorf("%v allocations to this machine, and %v without Transport", got, plain)
	}
	req = get()
	tr := &requests.Transport{Base: m, Operations: requests.MustOperations(map[string]requests.Operation{"GET /{$}": {Max: 5}})}
	if got := count(tr); got > plain {
		t.Errorf("%v allocations, and %v without Transport", got, plain)
	}
	// With tokens a request is copied, but nothing is looked up.
	with := &requests.Transport{Base: m, Tokens: fixed{}, Operations: tr.Operations}
	without := &requests.Transport{Base: m, Tokens: fixed{}}
	if a, b := count(with), count(without); a > b {
		t.Errorf("%v allocations with a table of operations, and %v without", a, b)
	}
}
