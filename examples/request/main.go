// Command request gets something from an API that throttles.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/requests"
)

func main() {
	tokens := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: os.Getenv("TOKEN")})
	if err := request(context.Background(), tokens); err != nil {
		log.Fatal(err)
	}
}

// begin: request
func request(ctx context.Context, tokens oauth2.TokenSource) error {
	client, err := requests.NewClient("https://api.example.com", &requests.Transport{Tokens: tokens})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com/projects", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req) // repeats what may be repeated, and waits as the server asks
	if limited, ok := errors.AsType[*requests.RateLimited](err); ok {
		return fmt.Errorf("come back in %v", limited.RetryAfter)
	} else if err != nil {
		return err // a *requests.Error
	}
	defer res.Body.Close()
	_, err = io.Copy(os.Stdout, res.Body)
	return err
}

// end: request
