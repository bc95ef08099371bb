package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	ws "github.com/coder/websocket"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

func ExampleStream_Messages() {
	connections := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := ws.Accept(w, r, nil)
		if err != nil {
			return
		}
		connections++
		_ = c.Write(r.Context(), ws.MessageText, fmt.Appendf(nil, "message %d", connections))
		_ = c.Close(ws.StatusServiceRestart, "deploying")
	}))
	defer server.Close()

	s := stream.Reconnect(stream.Config{
		Dialer: websocket.Dialer{URL: "ws" + strings.TrimPrefix(server.URL, "http")},
		Rand:   func(int64) int64 { return 0 }, // an example should not take long
		Trace: &stream.Trace{
			Disconnected: func(i stream.DisconnectedInfo) {
				if i.By == stream.ByServer {
					fmt.Println(i.Err)
				}
			},
			Waiting: func(w delay.Wait) { fmt.Println(w) },
		},
	})
	for msg, err := range s.Messages(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", msg.Data)
		if string(msg.Data) == "message 2" {
			break
		}
	}
	// Output:
	// message 1
	// closed by the server with code 1012 "deploying"
	// reconnect attempt 1 (close 1012): wait 0s, local 0s: the server dropped everybody: a wider first draw
	// message 2
}

func ExampleReason() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	s := stream.Reconnect(stream.Config{Dialer: websocket.Dialer{URL: "ws" + strings.TrimPrefix(server.URL, "http")}})
	for _, err := range s.Messages(context.Background()) {
		fmt.Println(err)
		if errors.Is(err, stream.DialFailed) {
			refusal, _ := errors.AsType[*stream.AttemptError](err)
			fmt.Println(refusal.Status)
		}
	}
	// Output:
	// stream: dial_failed: refused with 404 Not Found; check the address, and that it is a stream of this kind
	// 404
}

func ExampleWalk_Pages() {
	polls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch polls++; r.URL.Query().Get("after") {
		case "0":
			fmt.Fprint(w, `{"items": ["one", "two"], "next": "2"}`)
		case "2":
			if polls == 2 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			fmt.Fprint(w, `{"items": ["three"]}`)
		}
	}))
	defer server.Close()

	walk := stream.Walk[string]{
		Poll: stream.HTTPPoll[string]{
			Request: func(ctx context.Context, position string) (*http.Request, error) {
				return http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"?after="+position, nil)
			},
			Decode: func(_ http.Header, body []byte) (stream.Page[string], error) {
				var answer struct {
					Items []string
					Next  string
				}
				err := json.Unmarshal(body, &answer)
				return stream.Page[string]{Events: answer.Items, Next: answer.Next}, err
			},
		}.Poll,
		Rand:  func(int64) int64 { return 0 },
		Trace: &stream.Trace{Waiting: func(w delay.Wait) { fmt.Println(w) }},
	}
	for page, err := range walk.Pages(context.Background(), "0") {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, item := range page.Events {
			fmt.Println(item)
		}
	}
	// Output:
	// one
	// two
	// poll-retry attempt 1 (502): wait 0s, local 0s: the loop's own delay: no Retry-After
	// three
}
