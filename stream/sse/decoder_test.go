package sse_test

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/heed-sdk/heed/stream/sse"
)

// TestDecoder holds what the shared cases have no room for, or cannot write: most of it is not UTF-8.
func TestDecoder(t *testing.T) {
	one := func(data string) []event { return []event{{Data: data}} }
	tests := []struct {
		name, input, position string
		want                  outcome
	}{
		{name: "one mark only", input: "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", want: outcome{Events: one("b")}},
		{name: "a mark inside", input: "\n\xEF\xBB\xBFdata: a\n\n"},
		{name: "half a mark", input: "\xEF\xBBdata: a\n\ndata: b\n\n", want: outcome{Events: one("b")}},
		{name: "nothing but a mark", input: "\xEF\xBB\xBF"},
		{name: "nothing but half a mark", input: "\xEF\xBB"},
		{name: "a mark in data", input: "data: \xEF\xBB\xBFa\n\n", want: outcome{Events: one("\uFEFFa")}},
		{name: "a lone continuation", input: "data: a\x80\x80b\n\n", want: outcome{Events: one("a\uFFFD\uFFFDb")}},
		{name: "a sequence cut short is one", input: "data: \xE2\x82x\xF0\x9F\x98\n\n", want: outcome{Events: one("\uFFFDx\uFFFD")}},
		{name: "overlong", input: "data: \xC0\x80\xE0\x80\x80\n\n", want: outcome{Events: one("\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD")}},
		{name: "a surrogate", input: "data: \xED\xA0\x80\n\n", want: outcome{Events: one("\uFFFD\uFFFD\uFFFD")}},
		{name: "beyond the last code point", input: "data: \xF4\x90\x80\x80\n\n", want: outcome{Events: one("\uFFFD\uFFFD\uFFFD\uFFFD")}},
		{name: "a replacement character that was sent", input: "data: \uFFFD\n\n", want: outcome{Events: one("\uFFFD")}},
		{
			name: "id and type are text too", input: "id: \xFF\nevent: \xFF\ndata\n\n",
			want: outcome{Events: []event{{"\uFFFD", "\uFFFD", ""}}, LastID: "\uFFFD"},
		},
		{name: "a NUL in data", input: "data: a\x00b\n\n", want: outcome{Events: one("a\x00b")}},
		{name: "a NUL in an id", input: "id: 1\nid: a\x00b\ndata: x\n\n", want: outcome{Events: []event{{"1", "", "x"}}, LastID: "1"}},
		{name: "an id alone is the position", input: "id: 1\n\n", want: outcome{LastID: "1"}},
		{name: "an id cut off is not", input: "id: 1\ndata: a\n\nid: 2\ndata: b\n", want: outcome{Events: []event{{"1", "", "a"}}, LastID: "1"}},
		{name: "an id cut off before it ends", input: "id: 12", position: "1", want: outcome{LastID: "1"}},
		{name: "the position before", input: "data: a\n\n", position: "7", want: outcome{Events: []event{{"7", "", "a"}}, LastID: "7"}},
		{name: "the position before, reset", input: "id\n\n", position: "7"},
		{name: "a type without data is dropped", input: "event: e\n\ndata: a\n\n", want: outcome{Events: one("a")}},
		{name: "an empty type", input: "event: e\nevent\ndata: a\n\n", want: outcome{Events: one("a")}},
		{name: "names are exact", input: "Data: a\ndata : b\n data: c\ndatas: d\n\n"},
		{name: "data alone, twice", input: "data\ndata\n\n", want: outcome{Events: one("\n")}},
		{name: "empty lines of data", input: "data: a\ndata\ndata:\ndata: \ndata: b\n\n", want: outcome{Events: one("a\n\n\n\nb")}},
		{name: "other fields between", input: "data: a\n: c\nid: 1\nfoo\ndata: b\n\n", want: outcome{Events: []event{{"1", "", "a\nb"}}, LastID: "1"}},
		{name: "tabs are no ends", input: "data:\ta\x0B\x0Cb\x0E\tc\n\n", want: outcome{Events: one("\ta\x0B\x0Cb\x0E\tc")}},
		{name: "LF CR is two ends", input: "data: a\n\rdata: b\n\n", want: outcome{Events: []event{{"", "", "a"}, {"", "", "b"}}}},
		{name: "retry zero", input: "retry: 0\n", want: outcome{Retries: true}},
		{name: "retry, the last valid", input: "retry: 5\nretry: 6\nretry: -7\nretry: 8 \nretry:  9\nretry\nretry: ٣\n", want: outcome{Retry: 6 * time.Millisecond, Retries: true}},
		{name: "retry with zeros before", input: "retry: " + strings.Repeat("0", 30) + "7\n", want: outcome{Retry: 7 * time.Millisecond, Retries: true}},
		{name: "retry saturates", input: "retry: 9223372036855\n", want: outcome{Retry: math.MaxInt64, Retries: true}},
		{name: "retry up to there", input: "retry: 9223372036854\n", want: outcome{Retry: 9223372036854 * time.Millisecond, Retries: true}},
		{name: "retry of many digits", input: "retry: " + strings.Repeat("9", 1000) + "\n", want: outcome{Retry: math.MaxInt64, Retries: true}},
		{name: "retry of many digits and one that is none", input: "retry: " + strings.Repeat("9", 1000) + "x\n"},
		{name: "retry cut off", input: "retry: 40"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := sse.Options{LastEventID: tt.position}
			for how, r := range map[string]io.Reader{
				"whole": strings.NewReader(tt.input), "one by one": oneByOne([]byte(tt.input)), "with the end": iotest.DataErrReader(strings.NewReader(tt.input)),
			} {
				if got := decode(r, opts); !got.equal(tt.want) {
					t.Errorf("%s:\n got %+v\nwant %+v", how, got, tt.want)
				}
			}
		})
	}
}

// TestNoWaiting decodes from a reader that fails the test when it is read from too early: what has arrived must be handed
// over before the next read, which on a connection may block for hours.
func TestNoWaiting(t *testing.T) {
	for _, input := range []string{"data: a\n\n", "data: a\r\r", "data: a\r\n\r", "data: a\r\n\n"} {
		for _, cut := range []int{1, 1000} {
			rest := []byte(input)
			dec := sse.NewDecoder(readerFunc(func(p []byte) (int, error) {
				if len(rest) == 0 {
					t.Fatalf("%q: read again before the event was handed over", input)
				}
				n := copy(p[:min(cut, len(p))], rest)
				rest = rest[n:]
				return n, nil
			}), sse.Options{})
			if ev, err := dec.Next(); err != nil || string(ev.Data) != "a" {
				t.Errorf("%q: %+v, %v", input, ev, err)
			}
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestReaderFails(t *testing.T) {
	broken := errors.New("connection reset")
	dec := sse.NewDecoder(io.MultiReader(strings.NewReader("id: 1\ndata: a\n\nid: 2\ndata: b\n"), iotest.ErrReader(broken)), sse.Options{})
	if ev, err := dec.Next(); err != nil || string(ev.Data) != "a" {
		t.Fatalf("%+v, %v", ev, err)
	}
	for range 2 {
		if _, err := dec.Next(); !errors.Is(err, broken) || err.Error() != "sse: read: connection reset" {
			t.Errorf("got %v", err)
		}
	}
	if id := dec.LastEventID(); id != "1" {
		t.Errorf("the position is %q", id)
	}

	for name, read := range map[string]readerFunc{
		"nothing, for ever": func([]byte) (int, error) { return 0, nil },
		"too much":          func(p []byte) (int, error) { return len(p) + 1, nil },
		"less than nothing": func([]byte) (int, error) { return -1, nil },
	} {
		if _, err := sse.NewDecoder(read, sse.Options{}).Next(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnRead(t *testing.T) {
	var reads []int
	input := []byte(": hb\n\n\n:\nid: 1\nda")
	dec := sse.NewDecoder(&cutter{input, func() int { return 6 }}, sse.Options{OnRead: func(n int) { reads = append(reads, n) }})
	if _, err := dec.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	total := 0
	for _, n := range reads {
		total += n
	}
	if total != len(input) || len(reads) != (len(input)+5)/6 {
		t.Errorf("reads %v of %d bytes", reads, len(input))
	}
}

func TestEvents(t *testing.T) {
	var got []string
	for ev, err := range sse.NewDecoder(strings.NewReader("data: a\n\ndata: b\n\n"), sse.Options{}).Events() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(ev.Data))
	}
	if strings.Join(got, ",") != "a,b" {
		t.Errorf("got %q", got)
	}

	dec := sse.NewDecoder(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n\n"), iotest.ErrReader(io.ErrUnexpectedEOF)), sse.Options{})
	for range dec.Events() {
		break
	}
	var last error
	n := 0
	for _, err := range dec.Events() { // goes on where the first was left
		n, last = n+1, err
	}
	if n != 2 || !errors.Is(last, io.ErrUnexpectedEOF) {
		t.Errorf("%d more, the last with %v", n, last)
	}
}

func TestClone(t *testing.T) {
	dec := sse.NewDecoder(oneByOne([]byte("id: 1\nevent: e\ndata: aa\n\nid: 2\nevent: f\ndata: bb\n\nid: 3\ndata: cc\n\n")), sse.Options{})
	var events []sse.Event
	for ev, err := range dec.Events() {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev.Clone())
	}
	for i, want := range []event{{"1", "e", "aa"}, {"2", "f", "bb"}, {"3", "", "cc"}} {
		ev := events[i]
		if (event{string(ev.ID), ev.Type, string(ev.Data)}) != want {
			t.Errorf("event %d is %+v, want %+v", i, ev, want)
		}
	}
	if id := append(events[0].ID, 'x'); string(events[0].Data) != "aa" {
		t.Errorf("appending to the id, %q, changed the data", id)
	}
}

func TestTooLong(t *testing.T) {
	const limit = 100
	x := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name, input string
		part        sse.Part // empty: fits
		id          string
	}{
		{name: "a line that fits", input: "data: " + x(limit-6) + "\n\n"},
		{name: "a line", input: "id: 1\ndata: a\n\nid: 2\ndata: " + x(limit-5) + "\n\n", part: sse.PartLine, id: "1"},
		{name: "a line without an end", input: "id: 1\n\n" + x(limit+1), part: sse.PartLine, id: "1"},
		{name: "a line that might still end", input: "id: 1\n\n" + x(limit), id: "1"},
		{name: "a comment", input: ":" + x(limit) + "\n", part: sse.PartLine},
		{name: "data that fits", input: strings.Repeat("data: xxxx\n", limit/5) + "data\n\n"},
		{name: "data", input: "id: 1\n\nid: 2\n" + strings.Repeat("data: xxxx\n", limit/5) + "data: x\n\n", part: sse.PartData, id: "1"},
		{name: "data that grows when it is mended", input: "id: 1\n\nid: 2\ndata: " + strings.Repeat("\xFF", limit/3+1) + "\n\n", part: sse.PartData, id: "1"},
		{name: "many short fields", input: strings.Repeat("event: e\nid: 1\n: c\nfoo\n", limit) + "data: a\n\n", id: "1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{"whole": strings.NewReader(tt.input), "one by one": oneByOne([]byte(tt.input))} {
				got := decode(r, sse.Options{MaxBytes: limit})
				var tooLong *sse.TooLongError
				switch {
				case tt.part == "":
					if got.Err != nil || got.LastID != tt.id {
						t.Errorf("%s: %+v", how, got)
					}
				case !errors.As(got.Err, &tooLong) || *tooLong != sse.TooLongError{Part: tt.part, Limit: limit, LastEventID: tt.id}:
					t.Errorf("%s: %+v", how, got.Err)
				}
			}
		})
	}

	dec := sse.NewDecoder(strings.NewReader("data: "+x(limit)+"\n\ndata: a\n\n"), sse.Options{MaxBytes: limit})
	_, first := dec.Next()
	if ev, again := dec.Next(); first == nil || !errors.Is(again, first) {
		t.Errorf("after %v came %+v, %v", first, ev, again)
	}
}
