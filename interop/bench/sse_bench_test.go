// Package bench compares the SDK with its peers.
package bench

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	peer "github.com/tmaxmax/go-sse"

	"github.com/heed-sdk/heed/stream/sse"
)

const sseStreamSize = 64 << 20

// sseShapes are what servers send. The first is a language model's tokens.
var sseShapes = []struct {
	name  string
	event func(b *bytes.Buffer, n int)
}{
	{"json", func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, "data: {\"id\":\"c-%07d\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"}}]}\n\n", n)
	}},
	{"typed-ids", func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, "id: %d\nevent: %s\ndata: {\"seq\":%d,\"kind\":\"message\",\"body\":\"the quick brown fox\"}\n\n", n, []string{"created", "updated", "deleted"}[n%3], n)
	}},
	{"multi-line", func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, "event: log\ndata: {\ndata:   \"seq\": %d,\ndata:   \"level\": \"info\",\ndata:   \"text\": \"the quick brown fox jumps over the lazy dog\"\ndata: }\n\n", n)
	}},
	{"crlf", func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, "id: %d\r\ndata: {\"seq\":%d,\"kind\":\"message\",\"body\":\"the quick brown fox\"}\r\n\r\n", n, n)
	}},
	{"heartbeats", func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, ": ping\n\n: ping\n\nid: %d\ndata: {\"seq\":%d}\n\n", n, n)
	}},
	{"utf8", func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, "data: {\"seq\":%d,\"body\":\"Привет, мир — ça va très bien 😀\"}\n\n", n)
	}},
	{"cyrillic", func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, "data: {\"seq\":%d,\"body\":\"Съешь же ещё этих мягких французских булок, да выпей чаю. Съешь же ещё этих мягких французских булок\"}\n\n", n)
	}},
	{"chinese", func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, "data: {\"seq\":%d,\"body\":\"春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。\"}\n\n", n)
	}},
	{"long", func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, "id: %d\ndata: %s\n\n", n, strings.Repeat("0123456789abcdef", 4<<10))
	}},
}

// result is what both must find in a stream.
type result struct{ events, bytes, ids, types int }

func heedDecode(r io.Reader) (res result, err error) {
	dec := sse.NewDecoder(r, sse.Options{})
	for {
		ev, err := dec.Next()
		if err == io.EOF {
			return res, nil
		}
		if err != nil {
			return res, err
		}
		res.events++
		res.bytes += len(ev.Data)
		res.ids += len(ev.ID)
		res.types += len(ev.Type)
	}
}

func peerDecode(r io.Reader) (res result, err error) {
	for ev, err := range peer.Read(r, &peer.ReadConfig{MaxEventSize: 1 << 20}) {
		if err != nil {
			return res, err
		}
		if ev.Data == "" { // it yields events of an id or a comment alone
			continue
		}
		res.events++
		res.bytes += len(ev.Data)
		res.ids += len(ev.LastEventID)
		res.types += len(ev.Type)
	}
	return res, nil
}

// BenchmarkSSE decodes the same 64 MiB with the SDK and with github.com/tmaxmax/go-sse, in turn, so that what the machine does
// besides comes to both. The figure to look at is times-go-sse, the median of how many times as long the other takes.
func BenchmarkSSE(b *testing.B) {
	for _, shape := range sseShapes {
		var stream bytes.Buffer
		stream.Grow(sseStreamSize + 1<<17)
		for n := 0; stream.Len() < sseStreamSize; n++ {
			shape.event(&stream, n)
		}
		want, err := heedDecode(bytes.NewReader(stream.Bytes()))
		if err != nil {
			b.Fatal(err)
		}
		b.Run("shape="+shape.name, func(b *testing.B) {
			allocs := map[string]uint64{}
			timed := func(lib string, decode func(io.Reader) (result, error)) time.Duration {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				got, err := decode(bytes.NewReader(stream.Bytes()))
				took := time.Since(began)
				runtime.ReadMemStats(&after)
				allocs[lib] += after.Mallocs - before.Mallocs
				if err != nil || got != want {
					b.Fatalf("%s: got %+v, %v, want %+v", lib, got, err, want)
				}
				return took
			}
			var times []float64
			least := time.Duration(math.MaxInt64)
			for b.Loop() {
				ours, theirs := timed("heed", heedDecode), timed("go-sse", peerDecode)
				times = append(times, theirs.Seconds()/ours.Seconds())
				least = min(least, ours)
			}
			slices.Sort(times)
			perEvent := func(x float64) float64 { return x / float64(want.events) }
			b.ReportMetric(0, "ns/op") // it is of both together
			b.ReportMetric(times[len(times)/2], "times-go-sse")
			b.ReportMetric(perEvent(float64(least)), "ns/event")
			for lib, n := range allocs {
				b.ReportMetric(perEvent(float64(n)/float64(b.N)), lib+"-allocs/event")
			}
		})
	}
}
