package auth_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// refreshServer is an authorization server on loopback that knows the refresh token "r1" and answers it with the tokens
// "new" and "r2", and an API that says which token it was called with. In an application, these are real servers.
func refreshServer() (tokenURL, apiURL string, stop func()) {
	as := &fakes.AuthServer{OddRefresh: odd(fakes.RefreshAnswer{
		AuthAnswer: fakes.AuthJSON(200, map[string]any{"access_token": "new", "refresh_token": "r2", "expires_in": 3600}), Spend: true,
	})}
	as.Login("old", "r1")
	mux := http.NewServeMux()
	mux.Handle(fakes.TokenPath, as)
	mux.HandleFunc("/api", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "called with ", r.Header.Get("Authorization"))
	})
	s := httptest.NewServer(mux)
	return s.URL + fakes.TokenPath, s.URL + "/api", s.Close
}

// A token source goes wherever the ecosystem takes one, such as the client of package oauth2. Here it lives in this process
// only.
func ExampleNewTokenSource() {
	tokenURL, apiURL, stop := refreshServer()
	defer stop()

	// In an application, what DeviceFlow.Login has returned, with NewCredential.
	login := auth.Credential{AccessToken: "old", RefreshToken: "r1", Expiry: time.Now().Add(-time.Minute)}
	source, err := auth.NewTokenSource(login, auth.SourceConfig{
		Refresher: auth.Refresher{Config: oauth2.Config{ClientID: "cli", Endpoint: oauth2.Endpoint{TokenURL: tokenURL}}},
		OnEvent:   func(e auth.Event) { fmt.Println(e.Name()) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := oauth2.NewClient(context.Background(), source)
	for range 2 {
		res, err := client.Get(apiURL)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Printf("%s\n", body)
	}
	// Output:
	// refreshed
	// called with Bearer new
	// called with Bearer new
}

// With a store, every process that is started finds the login, and one of them refreshes it for all.
func ExampleLoadTokenSource() {
	tokenURL, _, stop := refreshServer()
	defer stop()
	ctx, store, key := context.Background(), new(auth.MemStore), auth.Key{Issuer: "https://as.example", ClientID: "cli"}
	login := auth.Credential{AccessToken: "old", RefreshToken: "r1", Expiry: time.Now().Add(-time.Minute)}
	if err := store.Save(ctx, key, login); err != nil { // as after a login
		fmt.Println(err)
		return
	}

	for _, process := range []string{"first", "second"} {
		source, err := auth.LoadTokenSource(ctx, auth.SourceConfig{
			Refresher: auth.Refresher{Config: oauth2.Config{ClientID: "cli", Endpoint: oauth2.Endpoint{TokenURL: tokenURL}}},
			Store:     store, Key: key,
			OnEvent: func(e auth.Event) { fmt.Println(process, e.Name()) },
		})
		if err != nil {
			fmt.Println(err) // auth.ErrStoreNotFound: log in
			return
		}
		token, err := source.Token()
		if err != nil {
			fmt.Println(err) // an *auth.SessionExpired: log in again
			return
		}
		fmt.Println(process, token.AccessToken)
		if err := source.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// first refreshed
	// first new
	// second new
}
