package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// The other machine's clock, or this one's after somebody has set it, gives nothing more time.
func TestResumeByAnotherClock(t *testing.T) {
	var data []byte
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		p, err := r.flow.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		data = must(p.Save())
	})
	for _, tt := range []struct {
		ahead      time.Duration // of when it was saved
		left, rest time.Duration
	}{
		{0, 898 * time.Second, 3 * time.Second},
		{time.Second, 897 * time.Second, 2 * time.Second},
		{-time.Hour, 898 * time.Second, 3 * time.Second},
		{-50 * 365 * 24 * time.Hour, 898 * time.Second, 3 * time.Second},
		{10 * time.Minute, 298 * time.Second, 0},
		{898*time.Second - 1, 1, 0},
		{898 * time.Second, 0, 0},
		{200 * 365 * 24 * time.Hour, 0, 0},
	} {
		clk := fakes.NewClock(noon.Add(2*time.Second + tt.ahead))
		flow := flowWith(nobody(t))
		flow.Clock = clk
		p, err := flow.Resume(data)
		if tt.left == 0 {
			if !errors.Is(err, auth.ErrExpired) {
				t.Errorf("%v ahead: %v", tt.ahead, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v ahead: %v", tt.ahead, err)
			continue
		}
		if left := p.Prompt().ExpiresIn; left != tt.left {
			t.Errorf("%v ahead: %v left, want %v", tt.ahead, left, tt.left)
		}
		var again struct {
			NextPollAt time.Time `json:"next_poll_at"`
			ExpiresAt  time.Time `json:"expires_at"`
			IssuedAt   time.Time `json:"issued_at"`
		}
		if err := json.Unmarshal(must(p.Save()), &again); err != nil {
			t.Fatal(err)
		}
		if rest := again.NextPollAt.Sub(clk.Now()); rest != tt.rest || again.ExpiresAt.Sub(again.IssuedAt) != 15*time.Minute {
			t.Errorf("%v ahead: the next poll in %v, want %v: %+v", tt.ahead, rest, tt.rest, again)
		}
	}
}

// Once a resumed login has polled, it is one like any other: another Poll begins with a wait.
func TestResumeAndPollAgain(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, hang, tokenAnswer)
		p, err := elsewhere(r).Resume(saving(t, r))
		if err != nil {
			t.Fatal(err)
		}
		r.events = nil
		for _, d := range []time.Duration{2 * time.Second, 7 * time.Second} { // in the wait, and in the poll
			if _, err := p.Poll(after(t, d, nil)); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if _, err := p.Poll(t.Context()); err != nil || !near(r.waits(), []float64{5, 2, 5}) {
			t.Errorf("waits %v: %v", r.waits(), err)
		}
	})
}

// Finish shows the code again, with the time that is left of it.
func TestFinish(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		r := newRig(t, tokenAnswer)
		data := saving(t, r)
		time.Sleep(time.Minute)
		flow := elsewhere(r)
		shown := &waiting{}
		flow.Prompter = shown
		p, err := flow.Resume(data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if shown.prompt.ExpiresIn != 14*time.Minute || shown.prompt.UserCode != "WDJB-MJHT" || !shown.waited {
			t.Errorf("%+v", shown)
		}
		if _, err := p.Finish(t.Context()); err == nil || shown.prompts != 1 {
			t.Errorf("a login that is over was shown again: %v", err)
		}
	})
}

// waiting is a Prompter that leaves something running until its context ends.
type waiting struct {
	prompt  auth.Prompt
	prompts int
	done    chan struct{}
	waited  bool
}

func (w *waiting) Prompt(ctx context.Context, p auth.Prompt) error {
	w.prompt = p
	w.prompts++
	w.done = make(chan struct{})
	go func() {
		<-ctx.Done()
		time.Sleep(time.Millisecond)
		close(w.done)
	}()
	return nil
}

func (w *waiting) Wait() {
	<-w.done
	w.waited = true
}
