package sse_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/heed-sdk/heed/stream/sse"
)

const answerBody = `: welcome
retry: 2500

id: 41
event: price
data: {"symbol": "HEED",
data:  "price": 12}

data: no id of its own

id: 42
data: cut off`

func ExampleDecoder() {
	dec := sse.NewDecoder(strings.NewReader(answerBody), sse.Options{})
	for {
		ev, err := dec.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %q %q\n", ev.ID, ev.Type, ev.Data) // borrowed: ev.Clone() is for keeping
	}
	retry, _ := dec.Retry()
	fmt.Printf("go on after %s, in %v\n", dec.LastEventID(), retry)
	// Output:
	// 41 "price" "{\"symbol\": \"HEED\",\n \"price\": 12}"
	// 41 "" "no id of its own"
	// go on after 41, in 2.5s
}

func ExampleDecoder_Events() {
	for ev, err := range sse.NewDecoder(strings.NewReader("data: a\n\ndata: b\n\n"), sse.Options{}).Events() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", ev.Data)
	}
	// Output:
	// a
	// b
}

func ExampleTooLongError() {
	body := strings.NewReader("id: 7\ndata: short\n\ndata: " + strings.Repeat("long ", 100) + "\n\n")
	for ev, err := range sse.NewDecoder(body, sse.Options{MaxBytes: 100}).Events() {
		if tooLong, ok := errors.AsType[*sse.TooLongError](err); ok {
			fmt.Printf("after %s: %v\n", tooLong.LastEventID, err)
			return
		}
		fmt.Printf("%s\n", ev.Data)
	}
	// Output:
	// short
	// after 7: sse: line of an event longer than 100 bytes
}
