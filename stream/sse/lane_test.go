package sse_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/cases"
	"github.com/heed-sdk/heed/internal/fakes"
)

// laneCase is a case of the family streams.
type laneCase struct {
	Name, Why, Lane string
	Jitter          float64
	Now             time.Time
	Script          []laneStep
	Expect          struct {
		Waits, WaitsTail []float64
		Messages         []string
		Error            string
		LastEventIDs     []string
		Fresh            bool `json:"freshCredentialEachAttempt"`
	}
}

type laneStep struct {
	Refuse       int
	RetryAfter   string
	Location     string
	Accept       bool
	Messages     []string
	Raw          *string
	ContentType  string
	AliveSeconds float64
	Then         fakes.Then
}

// testLane runs the cases of the family streams whose lane is sse. The others are run in package stream.
func testLane(t *testing.T) {
	passed, ran := 0, 0
	for name, data := range laneFiles(t) {
		ran++
		ok := t.Run(name, func(t *testing.T) {
			var c laneCase
			cases.Decode(t, data, &c)
			c.run(t)
		})
		if ok {
			passed++
		}
	}
	t.Logf("cases: %d of %d", passed, ran)
	if passed != ran || ran == 0 {
		t.Fail()
	}
}

// laneFiles are the cases of the lane sse, by name. Files that hold a list are cut.
func laneFiles(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	all := map[string]json.RawMessage{}
	for _, file := range cases.Files(t, "streams") {
		list := []json.RawMessage{file.Data}
		if strings.HasPrefix(strings.TrimSpace(string(file.Data)), "[") {
			if err := json.Unmarshal(file.Data, &list); err != nil {
				t.Fatal(err)
			}
		}
		for i, item := range list {
			var c struct{ Lane string }
			if err := json.Unmarshal(item, &c); err != nil {
				t.Fatal(err)
			}
			if c.Lane == "sse" {
				all[strings.TrimPrefix(file.Name, "streams/")+"#"+strconv.Itoa(i+1)] = item
			}
		}
	}
	return all
}

func (c laneCase) run(t *testing.T) {
	var script []answer
	stops := -1
	messages := 0
	for _, s := range c.Script {
		script = append(script, s.answer(t))
		messages += len(s.Messages)
		if s.Raw != nil {
			messages += len(reference([]byte(*s.Raw), "").Events)
		}
		if s.Then == fakes.Stop {
			stops = messages
		}
	}
	inWorld(t, c.Now, script, func(w *world) {
		cfg := w.config(w.dialer())
		cfg.Rand = pinned(c.Jitter)
		got, err := w.collect(cfg, stops)
		c.judge(w, texts(got), err)
	})
}

func (s laneStep) answer(t *testing.T) answer {
	t.Helper()
	if s.Accept == (s.Refuse != 0) || s.Messages != nil && s.Raw != nil {
		t.Fatalf("a step that is two things or none: %+v", s)
	}
	if !s.Accept {
		h := http.Header{}
		if s.RetryAfter != "" {
			h.Set("Retry-After", s.RetryAfter)
		}
		if s.Location != "" {
			h.Set("Location", s.Location)
		}
		return answer{status: s.Refuse, header: h}
	}
	switch s.Then {
	case "", fakes.Drop, fakes.End, fakes.Stop:
	default:
		t.Fatalf("unknown end %q", s.Then)
	}
	a := answer{contentType: s.ContentType, alive: time.Duration(s.AliveSeconds * float64(time.Second)), then: s.Then}
	if s.Raw != nil {
		a.raw = []string{*s.Raw}
	}
	for _, m := range s.Messages {
		a.raw = append(a.raw, "data: "+strings.ReplaceAll(m, "\n", "\ndata: ")+"\n\n")
	}
	return a
}

func (c laneCase) judge(w *world, messages []string, err error) {
	w.Helper()
	waits := w.waits
	wanted := c.Expect.Waits
	if tail := c.Expect.WaitsTail; tail != nil {
		wanted, waits = tail, waits[max(0, len(waits)-len(tail)):]
	}
	want(w, "waits", len(waits), len(wanted))
	for i := range min(len(waits), len(wanted)) {
		if off := waits[i] - time.Duration(wanted[i]*float64(time.Second)); off.Abs() > time.Microsecond {
			w.Errorf("wait %d: %v, want %v s", i+1, waits[i], wanted[i])
		}
	}
	if c.Expect.WaitsTail == nil {
		for i, gap := range w.server.gaps() {
			if i < len(waits) && (gap-waits[i]).Abs() > time.Millisecond {
				w.Errorf("the server waited %v, not %v", gap, waits[i])
			}
		}
	}
	if c.Expect.Messages != nil || len(messages) > 0 {
		want(w, "messages", fmt.Sprintf("%q", messages), fmt.Sprintf("%q", c.Expect.Messages))
	}
	reason := ""
	if err != nil {
		reason = reasonOf(err)
	}
	want(w, "error", reason, c.Expect.Error)
	want(w, "attempts", len(w.server.seen()), len(c.Script))
	if c.Expect.LastEventIDs != nil {
		want(w, "Last-Event-ID", fmt.Sprintf("%q", w.server.sent("Last-Event-ID")), fmt.Sprintf("%q", c.Expect.LastEventIDs))
	}
	if c.Expect.Fresh {
		for i, sent := range w.server.sent("Authorization") {
			want(w, "Authorization", sent, fmt.Sprintf("Bearer token-%d", i+1))
		}
	}
}
