package sse_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/stream/sse"
)

// pieces are what streams are made of, for seeds and for TestAgainstReference.
var pieces = []string{
	"\n", "\r", "\r\n", "\n\n", ":", " ", "\t", "\x00", "\uFEFF", "data", "data:", "data: ", "data: x", "data: {\"a\": [1, 2, 3]}", "Data: x",
	"datax: y", "event", "event:", "event: e", "event: a\tb", "id", "id:", "id: 1", "id: 2", "id: a\x00b", "id: é", "retry: 10", "retry: 1x", "retry:",
	"retry: 99999999999999999999999", ": comment", "é", "€", "😀", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xED\xA0\x80", "\xF4\x90\x80\x80",
	"\xC0\x80", "\xFF", "\xEF\xBB", "abcdefghijklmnopqrstuvwxyz", "\x0B\x0C\x0E\x1F\x7F",
}

func checkAgainstReference(t *testing.T, input []byte, position string, seed uint64) {
	t.Helper()
	want := reference(input, position)
	opts := sse.Options{LastEventID: position}
	if got := decode(bytes.NewReader(input), opts); !got.equal(want) {
		t.Fatalf("%q:\n got %+v\nwant %+v", input, got, want)
	}
	if got := decode(oneByOne(input), opts); !got.equal(want) {
		t.Fatalf("%q one byte at a time:\n got %+v\nwant %+v", input, got, want)
	}
	if got := decode(atRandom(input, rand.New(rand.NewPCG(seed, 1))), opts); !got.equal(want) {
		t.Fatalf("%q cut with seed %d:\n got %+v\nwant %+v", input, seed, got, want)
	}

	// With a limit the outcome is either the same or a prefix and the one error, and the cuts make no difference.
	opts.MaxBytes = 1 + int(seed%40)
	short := decode(bytes.NewReader(input), opts)
	var tooLong *sse.TooLongError
	if short.Err == nil {
		if !short.equal(want) {
			t.Fatalf("%q with a limit of %d:\n got %+v\nwant %+v", input, opts.MaxBytes, short, want)
		}
	} else if n := len(short.Events); !errors.As(short.Err, &tooLong) || tooLong.LastEventID != short.LastID || n > len(want.Events) ||
		!(outcome{Events: short.Events}).equal(outcome{Events: want.Events[:n]}) {
		t.Fatalf("%q with a limit of %d:\n got %+v\nwant a prefix of %+v", input, opts.MaxBytes, short, want)
	}
	for _, ev := range short.Events {
		if len(ev.Data) > opts.MaxBytes {
			t.Fatalf("%q with a limit of %d: %+v", input, opts.MaxBytes, ev)
		}
	}
	if got := decode(oneByOne(input), opts); !got.equal(short) {
		t.Fatalf("%q one byte at a time with a limit of %d:\n got %+v\nwant %+v", input, opts.MaxBytes, got, short)
	}
}

func FuzzDecoder(f *testing.F) {
	for i, p := range pieces {
		f.Add([]byte(p+"\n"+pieces[(i*7+3)%len(pieces)]+"\r\ndata: end\n\n"), "", uint64(i))
	}
	f.Add([]byte("id: 1\ndata: a\ndata: b\r\n: c\rdata: c\n\nid\ndata: d\n\n"), "5", uint64(39))
	f.Fuzz(func(t *testing.T, input []byte, position string, seed uint64) {
		checkAgainstReference(t, input, position, seed)
	})
}

// TestAgainstReference draws streams of what fuzzing takes long to find.
func TestAgainstReference(t *testing.T) {
	rnd := random(t)
	for range 3000 {
		var input []byte
		for range rnd.IntN(30) {
			input = append(input, pieces[rnd.IntN(len(pieces))]...)
			if rnd.IntN(2) == 0 {
				input = append(input, pieces[rnd.IntN(3)]...) // an end of a line
			}
		}
		position := ""
		if rnd.IntN(4) == 0 {
			position = "before"
		}
		checkAgainstReference(t, input, position, rnd.Uint64())
	}
}

// TestBadCharacterAnywhere has what is no character at every place of a block, with nothing but ASCII around.
func TestBadCharacterAnywhere(t *testing.T) {
	rnd := random(t)
	for _, bad := range []string{"\xC3", "\xE2\x82", "\xF0\x9F\x98", "\x80", "\xED\xA0\x80", "é\xFF", "\xC3\n\ndata: "} {
		for before := range 130 {
			text := strings.Repeat("x", before) + bad + strings.Repeat("y", 130)
			checkAgainstReference(t, []byte("data: "+text+"\n\ndata: z\n\n"), "", rnd.Uint64())
		}
	}
}

// TestLongStreams draws streams much longer than the buffer, so that events and lines lie across its moves.
func TestLongStreams(t *testing.T) {
	rnd := random(t)
	ends := []string{"\n", "\r\n", "\r"}
	for range 15 {
		var input []byte
		for len(input) < 200<<10 {
			end := ends[rnd.IntN(3)]
			for range rnd.IntN(6) {
				input = append(input, pieces[rnd.IntN(len(pieces))]...)
				input = append(input, bytes.Repeat([]byte("0123456789é"), rnd.IntN(1<<rnd.IntN(12)))...)
				input = append(input, end...)
				input = append(input, "data: "...)
				input = append(input, bytes.Repeat([]byte("x"), rnd.IntN(1<<rnd.IntN(15)))...)
				input = append(input, end...)
			}
			input = append(input, end...)
		}
		want := reference(input, "")
		for _, r := range []*cutter{
			{input, func() int { return len(input) }},
			{input, func() int { return rnd.IntN(9) }},
			{input, func() int { return rnd.IntN(20 << 10) }},
		} {
			if got := decode(r, sse.Options{}); !got.equal(want) {
				t.Fatalf("got %d events, want %d, or others", len(got.Events), len(want.Events))
			}
		}
	}
}
