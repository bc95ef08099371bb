package auth_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

func ExampleNewCredential() {
	received := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	token := &oauth2.Token{AccessToken: "secret", RefreshToken: "secret", Expiry: received.Add(time.Hour)}
	c := auth.NewCredential(token, received)
	fmt.Println(c.Lifetime())
	fmt.Printf("%+v\n", c)
	// Output:
	// 1h0m0s
	// credential(Bearer, refreshable, expires 2026-11-29T13:00:00Z)
}

// Before a refresh token goes out to the server, a note is saved, so that whoever starts after a crash knows that it may be
// spent.
func ExampleCredential_Present() {
	store, key := new(auth.MemStore), auth.Key{Issuer: "https://as.example", ClientID: "cli"}
	c := auth.Credential{AccessToken: "old", RefreshToken: "r1"}
	c.Present(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	if err := store.Save(context.Background(), key, c); err != nil {
		fmt.Println(err)
	}

	// The process crashes here. The next one finds the note:
	c, _ = store.Load(context.Background(), key)
	at, unanswered := c.Unanswered()
	fmt.Println(unanswered, at.Format(time.TimeOnly))
	// Output: true 12:00:00
}

func ExampleKey() {
	key := auth.Key{Issuer: "https://AS.example/", ClientID: "cli", Account: "work"}
	canonical, err := key.Canonical()
	fmt.Println(canonical, err)
	fmt.Println(key.Name() == canonical.Name())
	// Output:
	// account work, client cli at https://as.example <nil>
	// true
}

func ExampleFileStore() {
	dir, err := os.MkdirTemp("", "heed")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, key := context.Background(), auth.Key{Issuer: "https://as.example", ClientID: "cli"}
	store := &auth.FileStore{Dir: dir} // without Dir, in the user's configuration directory

	_, err = store.Load(ctx, key)
	fmt.Println(errors.Is(err, auth.ErrStoreNotFound))
	fmt.Println(store.Save(ctx, key, auth.Credential{AccessToken: "secret", Scope: "read"}))
	c, err := store.Load(ctx, key)
	fmt.Println(c, err)
	// Output:
	// true
	// <nil>
	// credential(Bearer, scope "read") <nil>
}

func ExampleMemStore() {
	ctx, key := context.Background(), auth.Key{Issuer: "https://as.example", ClientID: "cli"}
	var store auth.MemStore
	fmt.Println(store.Save(ctx, key, auth.Credential{AccessToken: "secret"}))
	fmt.Println(store.Delete(ctx, key))
	_, err := store.Load(ctx, key)
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
	// auth: no login is stored (load); log in
}

func ExampleEnvStore() {
	os.Setenv("MY_TOKEN", "secret")
	ctx, key := context.Background(), auth.Key{Issuer: "https://as.example", ClientID: "cli"}
	store := &auth.EnvStore{Variable: "MY_TOKEN"}
	c, err := store.Load(ctx, key)
	fmt.Println(c, err)
	fmt.Println(store.Delete(ctx, key))
	// Output:
	// credential(Bearer) <nil>
	// auth: the store cannot be written to (delete): the token comes from MY_TOKEN: unset it to log in or out; choose another store
}

func ExampleStorePolicy() {
	ctx, key := context.Background(), auth.Key{Issuer: "https://as.example", ClientID: "cli"}
	policy := auth.StorePolicy{
		Keyring: nil, // &keyring.Store{}, where there is a keyring
		File:    new(auth.MemStore),
		Env:     &auth.EnvStore{Variable: "NOT_SET"},
	}
	choice, err := policy.Choose(ctx, key) // before the login
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("The token will be kept in the", choice)
	// Output: The token will be kept in the file: there is no keyring to keep it in, so it is kept unencrypted, for your eyes only
}
