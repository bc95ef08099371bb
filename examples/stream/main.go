// Command stream follows a WebSocket for as long as it runs.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tokens := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: os.Getenv("TOKEN")})
	if err := follow(ctx, tokens); err != nil {
		log.Print(err)
	}
}

// begin: stream
func follow(ctx context.Context, tokens oauth2.TokenSource) error {
	s := stream.Reconnect(stream.Config{
		Dialer:     websocket.Dialer{URL: "wss://events.example.com/live"},
		Credential: stream.Tokens(tokens), // asked anew for each attempt
	})
	for msg, err := range s.Messages(ctx) { // comes back whenever the connection ends
		if err != nil {
			return err // a *stream.Error, once and last
		}
		fmt.Printf("%s\n", msg.Data)
	}
	return nil
}

// end: stream
