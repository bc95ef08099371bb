package auth_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// scripted is one answer of a random script; the zero kind is an answer without any.
type scripted struct {
	kind    string
	status  int
	after   int // Retry-After, in seconds
	named   int // the interval that slow_down names
	latency time.Duration
}

func (s scripted) body() string {
	switch s.kind {
	case "pending":
		return `{"error":"authorization_pending"}`
	case "slow":
		if s.named > 0 {
			return `{"error":"slow_down","interval":` + itoa(s.named) + `}`
		}
		return `{"error":"slow_down"}`
	case "throttled":
		return `{"error":"too_many_requests"}`
	case "token":
		return `{"access_token":"at"}`
	}
	return "<html>"
}

// randomScript makes a script that ends in a token. Latencies end in half a second, so that they never tie with a
// timeout or a deadline.
func randomScript(r *rand.Rand) []scripted {
	var script []scripted
	for range r.IntN(12) {
		s := scripted{latency: time.Duration(r.IntN(12))*time.Second + time.Second/2}
		switch r.IntN(7) {
		case 0, 1:
			s.kind, s.status, s.after = "pending", []int{200, 400, 403, 428, 429}[r.IntN(5)], r.IntN(100)
		case 2:
			s.kind, s.status, s.after = "slow", []int{200, 400, 429}[r.IntN(3)], r.IntN(100)
			if r.IntN(2) == 0 {
				s.named = r.IntN(40)
			}
		case 3:
			s.kind, s.status, s.after = "throttled", 429, r.IntN(60)
		case 4:
			s.kind, s.status, s.after = "gateway", 502+r.IntN(3), r.IntN(60)
		case 5:
			s.kind, s.latency = "drop", time.Duration(r.IntN(3))*time.Second+time.Second/2
		case 6:
			s.kind, s.latency = "pending", 40*time.Second+time.Second/2 // too late
			s.status = 400
		}
		script = append(script, s)
	}
	return append(script, scripted{kind: "token", status: 200, latency: time.Second / 2})
}

// oracle says what the waits have to be, and whether the login ends in a token. It knows nothing of package delay.
func oracle(script []scripted, interval, life time.Duration) (waits []float64, token bool) {
	var now time.Duration
	wait, backoff := interval, interval
	for _, s := range script {
		if now >= life {
			return waits, false
		}
		waits = append(waits, min(wait, life-now).Seconds())
		if now += wait; now >= life {
			return waits, false
		}
		timeout := min(30*time.Second, life-now)
		if s.kind == "drop" || s.latency > timeout {
			now += min(s.latency, timeout)
			backoff = max(interval, min(2*backoff, time.Minute))
			wait = backoff
			continue
		}
		now += s.latency
		switch s.kind {
		case "token":
			return waits, true
		case "slow":
			interval = max(interval+5*time.Second, time.Duration(s.named)*time.Second)
		}
		wait, backoff = interval, interval
		if s.kind == "throttled" || s.kind == "gateway" {
			wait = max(interval, time.Duration(s.after)*time.Second)
		}
	}
	return waits, false
}

// TestRandomScripts compares the waits of random logins with the oracle's: no poll is early, and none is late.
func TestRandomScripts(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 50
	}
	first := rand.Uint64()
	t.Logf("seed %d", first)
	fakes.Bubble(t, noon, func(t *testing.T) {
		for i := range n {
			r := rand.New(rand.NewPCG(first, uint64(i)))
			script := randomScript(r)
			interval, life := time.Duration(1+r.IntN(20))*time.Second, time.Duration(10+r.IntN(600))*time.Second

			var ended time.Time
			var seen []float64
			next := 0
			client := &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				s := scripted{status: 200}
				body := deviceWith(map[string]string{"interval": itoa(int(interval / time.Second)), "expires_in": itoa(int(life / time.Second))})
				if req.URL.Path == fakes.TokenPath {
					seen = append(seen, time.Since(ended).Seconds())
					s = script[next]
					body = s.body()
					next++
				}
				late := time.NewTimer(s.latency)
				defer late.Stop()
				select {
				case <-late.C:
				case <-req.Context().Done():
					ended = time.Now()
					return nil, req.Context().Err()
				}
				ended = time.Now()
				if s.kind == "drop" {
					return nil, io.ErrUnexpectedEOF
				}
				h := http.Header{"Content-Type": {"application/json"}}
				if s.after > 0 {
					h.Set("Retry-After", itoa(s.after))
				}
				return &http.Response{StatusCode: s.status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
			})}
			var told []float64
			flow := flowWith(client)
			flow.OnEvent = func(e auth.Event) {
				if w, ok := e.(auth.Waiting); ok {
					told = append(told, w.Wait.For.Seconds())
				}
			}
			var shown bytes.Buffer
			flow.Prompter = auth.Lines(&shown)
			tok, err := flow.Login(t.Context())

			waits, token := oracle(script, interval, life)
			if !near(told, waits) || len(seen) > len(waits) || !near(seen, waits[:len(seen)]) || token != (err == nil) || token != (tok != nil) || !token && !errors.Is(err, auth.ErrExpired) {
				t.Fatalf("script %d of seed %d, interval %v, life %v: %+v\nwaits told %v\nseen       %v\nwant       %v\ntoken %v: %v",
					i, first, interval, life, script, told, seen, waits, token, err)
			}
		}
	})
}
