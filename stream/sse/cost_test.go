package sse_test

import (
	"bytes"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/stream/sse"
)

// repeated is a stream of the same bytes over and over.
type repeated struct {
	unit []byte
	left int64
	at   int
	most int // the largest read asked for
}

func (r *repeated) Read(p []byte) (int, error) {
	r.most = max(r.most, len(p))
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) {
		m := copy(p[n:], r.unit[r.at:])
		r.at = (r.at + m) % len(r.unit)
		n += m
	}
	r.left -= int64(n)
	return n, nil
}

// drain decodes a stream to its end.
func drain(dec *sse.Decoder) {
	for err := error(nil); err == nil; {
		_, err = dec.Next()
	}
}

// held returns how much memory a decoder holds on to.
func held(dec *sse.Decoder) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	runtime.KeepAlive(dec)
	runtime.GC() // the caller has no more use for it
	runtime.ReadMemStats(&after)
	return int64(before.HeapAlloc) - int64(after.HeapAlloc)
}

// TestMemory sends what makes a decoder hold on to most memory.
func TestMemory(t *testing.T) {
	const limit = 1 << 20
	for name, unit := range map[string]string{
		"a line without an end": "x",
		"data without an end":   "data: xxxxxxxxxx\n",
		"data and a long line":  "data: " + strings.Repeat("x", limit-10) + "\n",
		"empty data":            "data\n",
		"not UTF-8":             "data: " + strings.Repeat("\xFF", limit-10) + "\n\n",
		"long types":            "event: " + strings.Repeat("x", limit-10) + "\ndata\n\n",
		"long ids":              "id: " + strings.Repeat("x", limit-10) + "\ndata\n\n",
		"no event ever":         ": x\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := &repeated{unit: []byte(unit), left: 16 << 20}
			dec := sse.NewDecoder(r, sse.Options{})
			drain(dec)
			if n := held(dec); n > 10*limit {
				t.Errorf("the decoder held %d bytes", n)
			}
			if r.most > 4*limit {
				t.Errorf("a read of %d bytes", r.most)
			}
		})
	}
}

// TestTypesAreBounded sends a new type with each event.
func TestTypesAreBounded(t *testing.T) {
	var input bytes.Buffer
	for i := range 20000 {
		input.WriteString("event: " + strings.Repeat("t", 100) + strconv.Itoa(i) + "\ndata\n\n")
	}
	dec := sse.NewDecoder(&input, sse.Options{})
	drain(dec)
	input = bytes.Buffer{}
	if n := held(dec); n > 128<<10 {
		t.Errorf("the decoder held %d bytes", n)
	}
}

// TestAllocations decodes events of every kind, and allows none of them an allocation.
func TestAllocations(t *testing.T) {
	for name, unit := range map[string]string{
		"short":       "data: {\"a\":1}\n\n",
		"ids, types":  "id: 1\nevent: created\ndata: a\n\nid: 2\nevent: deleted\ndata: b\n\nid: 333333\nevent: updated\ndata: c\n\n",
		"types alike": "event: abca\ndata\n\nevent: acba\ndata\n\nevent: aaaa\ndata\n\n",
		"multi-line":  "data: a\ndata: b\n: c\ndata: d\n\n",
		"CRLF":        "id: 1\r\ndata: a\r\ndata: b\r\n\r\n",
		"CR":          "id: 1\rdata: a\rdata: b\r\r",
		"UTF-8":       "id: é\nevent: €\ndata: 😀\n\n",
		"heartbeats":  ": hb\n\n: hb\n\ndata: a\n\n",
		"retry":       "retry: 1000\ndata: a\n\n",
		"not UTF-8":   "data: \xFF\n\n",
		"long":        "id: 1\ndata: " + strings.Repeat("x", 100<<10) + "\n\n",
	} {
		dec := sse.NewDecoder(&repeated{unit: []byte(unit), left: math.MaxInt64}, sse.Options{OnRead: func(int) {}})
		next := func() {
			if _, err := dec.Next(); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 { // the buffer has its size, the types are known
			next()
		}
		if n := testing.AllocsPerRun(1000, next); n != 0 {
			t.Errorf("%s: %v allocations for an event", name, n)
		}
	}
}

// TestLinear decodes what would cost most if bytes were looked at twice, in two sizes: eight times the input may not take
// much more than eight times as long. What is quadratic takes 64 times as long.
func TestLinear(t *testing.T) {
	const small, factor = 32 << 10, 8
	for name, tt := range map[string]struct {
		unit string
		cut  int
	}{
		"one line, one byte at a time":         {"x", 1},
		"one line":                             {"x", 1 << 20},
		"one event, one byte at a time":        {"data: x\n", 1},
		"one event of empty lines":             {"data\n", 7},
		"ends of CR":                           {"data: x\r", 1 << 20},
		"ends of LF":                           {"data: x\n", 1 << 20},
		"comments within an event":             {"data\n: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", 3},
		"blank lines":                          {"\n", 1 << 20},
		"tabs":                                 {"\t", 1 << 20},
		"not UTF-8":                            {"data: \xF0\x9F\x98\n", 1 << 20},
		"digits":                               {"retry: 9999999999999\n", 1 << 20},
		"short events, a few bytes at a time":  {"data: x\n\n", 5},
		"short events, all of them in a while": {"data: x\n\n", 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			took := func(size int) time.Duration {
				input := []byte(strings.Repeat(tt.unit, size/len(tt.unit)))
				best := time.Duration(math.MaxInt64)
				for range 3 {
					dec := sse.NewDecoder(&cutter{input, func() int { return tt.cut }}, sse.Options{})
					began := time.Now()
					drain(dec)
					best = min(best, time.Since(began))
				}
				return best
			}
			var a, b time.Duration
			for range 3 { // the machine may have been busy
				if a, b = took(small), took(small*factor); b <= 4*factor*a+100*time.Millisecond {
					return
				}
			}
			t.Errorf("%d bytes took %v, and %d bytes %v", small, a, small*factor, b)
		})
	}
}
