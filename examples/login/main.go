// Command login logs in by device flow and says who the token is good for.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

func main() {
	if err := login(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// begin: login
func login(ctx context.Context) error {
	flow := auth.DeviceFlow{
		Config: oauth2.Config{
			ClientID: os.Getenv("CLIENT_ID"),
			Scopes:   []string{"read"},
			Endpoint: oauth2.Endpoint{
				DeviceAuthURL: "https://as.example.com/device_authorization",
				TokenURL:      "https://as.example.com/token",
			},
		},
		Prompter: auth.Lines(os.Stderr), // shows the address and the code
	}
	token, err := flow.Login(ctx) // polls as the server asks until the user has decided
	if err != nil {
		return err // an *auth.DeviceError: errors.Is(err, auth.ErrAccessDenied) ...
	}
	fmt.Println("logged in until", token.Expiry)
	return nil
}

// end: login
