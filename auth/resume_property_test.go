package auth_test

import (
	"context"
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

// relay is a scripted server that knows when the next poll is due, whoever sends it. It knows nothing of package delay.
type relay struct {
	t                 *testing.T
	script            []scripted
	interval, backoff time.Duration
	life              time.Duration
	due, dead         time.Time
	resumed           time.Time // when the process that polls began to
	next              int
}

func (r *relay) RoundTrip(req *http.Request) (*http.Response, error) {
	s := scripted{status: 200}
	body := deviceWith(map[string]string{"interval": itoa(int(r.interval / time.Second)), "expires_in": itoa(int(r.life / time.Second))})
	poll := req.URL.Path == fakes.TokenPath
	if poll {
		want := r.due
		if r.resumed.After(want) {
			want = r.resumed
		}
		if now := time.Now(); !now.Equal(want) {
			r.t.Errorf("poll %d comes %v after it is due", r.next+1, now.Sub(want))
		}
		s = r.script[min(r.next, len(r.script)-1)]
		body = s.body()
		r.next++
	}
	answered := true
	late := time.NewTimer(s.latency)
	defer late.Stop()
	select {
	case <-late.C:
		answered = s.kind != "drop"
	case <-req.Context().Done():
		answered = false
	}
	now := time.Now()
	switch {
	case !poll:
		r.backoff, r.dead = r.interval, now.Add(r.life)
		r.due = now.Add(r.interval)
	case !answered && errors.Is(context.Cause(req.Context()), errKilled):
		r.due = now.Add(r.interval) // the server may have seen it
	case !answered:
		r.backoff = max(r.interval, min(2*r.backoff, time.Minute))
		r.due = now.Add(r.backoff)
	default:
		if s.kind == "slow" {
			r.interval = max(r.interval+5*time.Second, time.Duration(s.named)*time.Second)
		}
		r.backoff = r.interval
		r.due = now.Add(r.interval)
		if after := time.Duration(s.after) * time.Second; (s.kind == "throttled" || s.kind == "gateway") && after > r.interval {
			r.due = now.Add(after)
		}
	}
	if !answered {
		return nil, io.ErrUnexpectedEOF
	}
	h := http.Header{"Content-Type": {"application/json"}}
	if s.after > 0 {
		h.Set("Retry-After", itoa(s.after))
	}
	return &http.Response{StatusCode: s.status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
}

var errKilled = errors.New("the process ends")

// TestResumeAnywhere hands random logins from process to process, at random steps and moments: no poll is early, and
// none is later than it has to be.
func TestResumeAnywhere(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 40
	}
	first := rand.Uint64()
	t.Logf("seed %d", first)
	fakes.Bubble(t, noon, func(t *testing.T) {
		handed := 0
		for i := range n {
			rng := rand.New(rand.NewPCG(first, uint64(i)))
			r := &relay{
				t: t, script: randomScript(rng),
				interval: time.Duration(1+rng.IntN(20)) * time.Second, life: time.Duration(10+rng.IntN(600)) * time.Second,
			}
			handed += r.relayed(t, rng)
			if t.Failed() {
				t.Fatalf("script %d of seed %d: %+v", i, first, r.script)
			}
		}
		if handed < n {
			t.Errorf("only %d logins were handed on", handed)
		}
	})
}

// relayed runs one login in as many processes as it takes, and returns how many that were.
func (r *relay) relayed(t *testing.T, rng *rand.Rand) (processes int) {
	pause := func(most int) time.Duration {
		return time.Duration(rng.IntN(most))*time.Second + time.Duration(rng.IntN(1000)*1000+1) // ties with nothing
	}
	var data []byte
	for {
		var p *auth.Pending
		ctx, kill := context.WithCancelCause(t.Context())
		left := 1 + rng.IntN(8) // so many events, and this process is killed
		flow := flowWith(&http.Client{Transport: r})
		flow.OnEvent = func(e auth.Event) {
			if left--; left > 0 || p == nil {
				return
			}
			if saved, err := p.Save(); err == nil {
				data = saved
				kill(errKilled)
			}
		}
		r.resumed = time.Now()
		var err error
		if data == nil {
			p, err = flow.Start(t.Context())
		} else {
			p, err = flow.Resume(data)
		}
		if err == nil {
			processes++
			r.resumed = time.Now() // after what it took to start
			timer := time.AfterFunc(pause(40), func() { kill(errKilled) })
			_, err = p.Poll(ctx)
			timer.Stop()
			if saved, bad := p.Save(); errors.Is(err, errKilled) && left > 0 && bad == nil {
				data = saved
			}
		}
		switch {
		case err == nil:
			return processes
		case errors.Is(err, auth.ErrExpired):
			if time.Now().Before(r.dead) || r.due.Before(r.dead) && r.resumed.Before(r.dead) {
				t.Errorf("expired at %v: a poll was due at %v, and the code is good until %v", time.Now(), r.due, r.dead)
			}
			return processes
		case !errors.Is(err, errKilled):
			t.Errorf("%v", err)
			return processes
		}
		time.Sleep(pause(30))
		if data == nil {
			t.Error("nothing was saved")
			return processes
		}
	}
}
