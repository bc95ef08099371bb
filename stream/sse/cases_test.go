package sse_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/cases"
	"github.com/heed-sdk/heed/stream/sse"
)

// outcome is what comes of a stream, in types that compare.
type outcome struct {
	Events  []event
	LastID  string
	Retry   time.Duration
	Retries bool
	Err     error // nil at the end of the stream
}

type event struct{ ID, Type, Data string }

func (o outcome) equal(p outcome) bool {
	return slices.Equal(o.Events, p.Events) && o.LastID == p.LastID && o.Retry == p.Retry && o.Retries == p.Retries &&
		(o.Err == nil) == (p.Err == nil) && (o.Err == nil || o.Err.Error() == p.Err.Error())
}

func decode(r io.Reader, opts sse.Options) outcome {
	dec := sse.NewDecoder(r, opts)
	var o outcome
	for {
		ev, err := dec.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				o.Err = err
			}
			o.LastID = dec.LastEventID()
			o.Retry, o.Retries = dec.Retry()
			return o
		}
		o.Events = append(o.Events, event{string(ev.ID), ev.Type, string(ev.Data)})
	}
}

// cutter returns its data in pieces of a length that next chooses, 0 too.
type cutter struct {
	data []byte
	next func() int
}

func (c *cutter) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.next())], c.data)
	c.data = c.data[n:]
	return n, nil
}

func oneByOne(data []byte) io.Reader { return &cutter{data, func() int { return 1 }} }

// atRandom cuts data into short pieces or, just as often, long ones.
func atRandom(data []byte, rnd *rand.Rand) io.Reader {
	return &cutter{data, func() int {
		if rnd.IntN(2) == 0 {
			return rnd.IntN(5)
		}
		return rnd.IntN(5000)
	}}
}

// random returns a source of a seed that it logs.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// sseCase is a case. What it leaves out it does not say; a retryMs of null says that there is none.
type sseCase struct {
	Name, Why, Input string
	Events           []struct{ ID, Type, Data *string }
	RetryMs          json.RawMessage
	LastEventID      *string
}

// TestCases runs the family sse. The transport's cases are a lane of the family streams, which package stream runs.
func TestCases(t *testing.T) {
	rnd := random(t)
	cases.Run(t, "sse", func(t *testing.T, c sseCase) {
		want := decode(strings.NewReader(c.Input), sse.Options{})
		whole := want
		want.Events = nil
		for _, ev := range c.Events {
			if ev.ID == nil || ev.Type == nil || ev.Data == nil {
				t.Fatalf("an event without id, type or data: %+v", ev)
			}
			want.Events = append(want.Events, event{*ev.ID, *ev.Type, *ev.Data})
		}
		if c.LastEventID != nil {
			want.LastID = *c.LastEventID
		}
		if c.RetryMs != nil {
			want.Retry, want.Retries = milliseconds(t, c.RetryMs)
		}
		want.Err = nil

		check := func(how string, got outcome) {
			t.Helper()
			if !got.equal(want) {
				t.Errorf("%s:\n got %+v\nwant %+v", how, got, want)
			}
		}
		check("whole", whole)
		check("one byte at a time", decode(oneByOne([]byte(c.Input)), sse.Options{}))
		for range 50 {
			check("cut at random", decode(atRandom([]byte(c.Input), rnd), sse.Options{}))
		}
	})
}

// milliseconds reads a number of any size as what a Duration can hold of it, and null as none.
func milliseconds(t *testing.T, raw json.RawMessage) (time.Duration, bool) {
	t.Helper()
	if string(raw) == "null" {
		return 0, false
	}
	ms, err := strconv.ParseInt(string(raw), 10, 64) // saturates as well
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		t.Fatal(err)
	}
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64, true
	}
	return time.Duration(ms) * time.Millisecond, true
}
