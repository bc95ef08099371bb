package delay_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/cases"
)

// reading is the right reading of a case: whole seconds, or "malformed".
type reading struct {
	seconds   int64
	malformed bool
}

func (r *reading) UnmarshalJSON(data []byte) error {
	if string(data) == `"malformed"` {
		r.malformed = true
		return nil
	}
	var err error
	if r.seconds, err = strconv.ParseInt(string(data), 10, 64); err != nil {
		return fmt.Errorf("an outcome that this runner does not know: %s", data)
	}
	return nil
}

func TestCases(t *testing.T) {
	type retryAfter struct {
		Value   *string   `json:"value"`
		Lines   []string  `json:"lines"`
		Now     time.Time `json:"now"`
		Seconds *reading  `json:"seconds"`
		Why     string    `json:"why"`
	}
	cases.Run(t, "retryafter", func(t *testing.T, c retryAfter) {
		if (c.Value == nil) == (c.Lines == nil) || c.Now.IsZero() || c.Seconds == nil {
			t.Fatal("a case has a value or lines, the time, and the right reading")
		}
		h := lines(c.Lines...)
		if c.Value != nil {
			h = lines(*c.Value)
		}
		got := delay.ParseRetryAfter(h, c.Now)
		want := time.Duration(c.Seconds.seconds) * time.Second
		if got.Duration() != want || got.Malformed() != c.Seconds.malformed {
			t.Errorf("%q at %v reads as %v, want %v, malformed %v", h.Values("Retry-After"), c.Now, got, want, c.Seconds.malformed)
		}
	})
}
