package websocket_test

import (
	"context"
	"fmt"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

// A ticket is asked for before each attempt, and its address dialled as it is.
func ExampleDialer() {
	ticket := func(ctx context.Context, refused stream.Credential) (stream.Credential, error) {
		return stream.Credential{URL: "ws://events.example.com/live?ticket=secret"}, nil
	}
	s := stream.Reconnect(stream.Config{Dialer: websocket.Dialer{}, Credential: ticket})
	for _, err := range s.Messages(context.Background()) {
		fmt.Println(err)
	}
	// Output:
	// stream: dial_failed: ws://events.example.com is not encrypted, which is allowed to this machine alone; check the address, and that it is a stream of this kind
}

// This server says with a code of its own that it is full. It is wrong to give up then, and right to try with another
// token when it says that the token is of no use.
func ExampleDialer_closeClass() {
	d := websocket.Dialer{
		URL: "wss://events.example.com/live",
		CloseClass: func(code int, reason string) stream.Class {
			switch code {
			case 4100:
				return stream.Unauthorized
			case 4404:
				return stream.Permanent
			}
			return stream.Transient
		},
	}
	fmt.Println(d, websocket.ClassOfClose(4100, "", d.CloseClass), websocket.ClassOfClose(4200, "full", d.CloseClass))
	fmt.Println(stream.Credential{Token: &oauth2.Token{AccessToken: "secret"}})
	// Output:
	// websocket.Dialer(wss://events.example.com) unauthorized transient
	// redacted
}
