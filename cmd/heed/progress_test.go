package main

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

// endless answers with a body of zeros that takes its time, and says how much memory there was in the midst of it.
type endless struct {
	size, left int64
	pause      time.Duration // before each piece
	stall      time.Duration // before the fourth piece
	pieces     int
	peak       uint64
}

func (e *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	e.left = e.size
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: e.size, Body: e, Request: r}, nil
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if e.pause > 0 {
		time.Sleep(e.pause)
	}
	if e.pieces++; e.pieces == 4 {
		time.Sleep(e.stall)
	}
	n := min(int64(len(p)), e.left)
	clear(p[:n])
	before := e.left >> 26
	if e.left -= n; e.left>>26 != before {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		e.peak = max(e.peak, m.HeapAlloc)
	}
	return int(n), nil
}

func (*endless) Close() error { return nil }

func TestDownloadConstantMemory(t *testing.T) {
	size := int64(1 << 30)
	if raceEnabled || testing.Short() {
		size = 128 << 20
	}
	t.Chdir(t.TempDir())
	e := &endless{size: size}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	h := tool{transport: e, disk: func(io.Writer) io.Writer { return io.Discard }}
	r := h.run(t.Context(), "download", "https://api.test/f")
	runtime.ReadMemStats(&after)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	const most = 8 << 20
	if grown := after.TotalAlloc - before.TotalAlloc; grown > most {
		t.Errorf("%d bytes were allocated for a file of %d", grown, size)
	}
	if e.peak > before.HeapAlloc+most {
		t.Errorf("the heap grew from %d to %d bytes", before.HeapAlloc, e.peak)
	}
}

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		watched bool
		args    string
		says    []string
	}{
		{true, "", []string{"32.0 KiB of 320.0 KiB, 10 %", "96.0 KiB of 320.0 KiB, 30 %, 64.0 KiB/s, 3s left", "\r\x1b[K"}},
		{true, " --json", nil},
		{false, "", nil},
	} {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			t.Chdir(t.TempDir())
			e := &endless{size: 320 << 10, pause: 500 * time.Millisecond}
			r := tool{transport: e, watched: c.watched}.run(t.Context(), strings.Fields("download https://api.test/f"+c.args)...)
			if r.code != 0 || c.says == nil && r.stderr != "" || strings.Contains(r.stderr, "\n") {
				t.Errorf("exit %d, stderr %q", r.code, r.stderr)
			}
			for _, s := range c.says {
				if !strings.Contains(r.stderr, s) {
					t.Errorf("stderr does not say %q: %q", s, r.stderr)
				}
			}
		})
	}
}

// TestProgressStalls has nothing come for a while: no rate and no time left are shown that are no longer true, and both
// come back with the bytes.
func TestProgressStalls(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		t.Chdir(t.TempDir())
		e := &endless{size: 320 << 10, pause: 500 * time.Millisecond, stall: 59800 * time.Millisecond}
		r := tool{transport: e, watched: true}.run(t.Context(), "download", "https://api.test/f")
		if r.code != 0 {
			t.Errorf("exit %d, stderr %q", r.code, r.stderr)
		}
		lines := strings.Split(r.stderr, "\r\x1b[K")
		var told []string
		for _, line := range lines {
			if after, ok := strings.CutPrefix(line, "96.0 KiB of 320.0 KiB, 30 %"); ok {
				told = append(told, after)
			}
		}
		// The rate falls, and then there is none: one line for each second.
		want := []string{", 64.0 KiB/s, 3s left", ", 32.0 KiB/s, 7s left", ", 24.0 KiB/s, 9s left"}
		for s := 3; s < 60; s++ {
			want = append(want, fmt.Sprintf(", stalled for %ds", s))
		}
		if !slices.Equal(told, want) {
			t.Errorf("while nothing came: %q", told)
		}
		if last := lines[len(lines)-2]; last != "320.0 KiB of 320.0 KiB, 100 %, 64.0 KiB/s, 0s left" {
			t.Errorf("at the end: %q", last)
		}
	})
}
