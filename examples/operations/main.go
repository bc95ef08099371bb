// Command operations completes a todo, and repeats that as the API's OpenAPI document declares.
package main

import (
	"context"
	"log"
	"net/http"

	"github.com/heed-sdk/heed/requests"
)

//go:generate go run ../../cmd/heed operations openapi.yaml -o operations.go

func main() {
	if err := complete(context.Background(), "7"); err != nil {
		log.Fatal(err)
	}
}

// begin: operations
func complete(ctx context.Context, todo string) error {
	client, err := requests.NewClient("https://api.example.com", &requests.Transport{Operations: Operations})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.example.com/v1/todos/"+todo+"/completion", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req) // up to five times on 429, 500 and 503, though it is a POST
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// end: operations
