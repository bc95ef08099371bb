package requests_test

import (
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// BenchmarkThrottle measures what a throttle costs: those that it does not concern, and those that it holds.
func BenchmarkThrottle(b *testing.B) {
	const goroutines = 500
	elsewhere := func(b *testing.B, throttle requests.Throttle) {
		clk := fakes.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		tr := &requests.Transport{Clock: clk, MaxAttempts: 1, Throttle: throttle, Base: allowanceOn(clk.Now, 0, time.Hour, 0)}
		if status, err := trip(tr, as(b.Context(), "a", "/")); status != http.StatusTooManyRequests || err != nil {
			b.Fatal(status, err)
		}
		m := newMemory(0)
		tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
			resp := m.ok
			resp.Request = req
			return &resp, nil
		})
		req := as(b.Context(), "b", "/")
		b.ReportAllocs()
		b.SetParallelism(goroutines)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := tr.RoundTrip(req); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.Run("off", func(b *testing.B) { elsewhere(b, requests.ThrottleOff) })
	b.Run("of-another-credential", func(b *testing.B) { elsewhere(b, requests.ThrottleWait) })
	b.Run("of-500", func(b *testing.B) {
		b.ReportAllocs()
		refusals := 0
		for b.Loop() {
			clk := fakes.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			host := allowanceOn(clk.Now, 60, time.Minute, 0)
			tr := &requests.Transport{Clock: clk, Base: host}
			var served atomic.Int64
			var all sync.WaitGroup
			for range goroutines {
				all.Go(func() {
					if status, err := trip(tr, as(b.Context(), "a", "/")); status != http.StatusOK || err != nil {
						b.Error(status, err)
					}
					served.Add(1)
				})
			}
			for served.Load() < goroutines {
				runtime.Gosched() // the others go first; how long it all takes by the clock is TestThrottleOfManyAtOnce's
				if next, _ := clk.Timers().Outstanding(); len(next) > 0 {
					clk.Advance(next[0].Deadline().Sub(clk.Now()))
				}
			}
			all.Wait()
			refusals += len(host.refused["Bearer a"])
		}
		b.ReportMetric(float64(refusals)/float64(b.N), "refusals/op")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/goroutines, "ns/request")
	})
}
