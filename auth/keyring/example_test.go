package keyring_test

import (
	"context"
	"fmt"
	"os"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/keyring"
)

func ExampleStore() {
	dir, err := os.MkdirTemp("", "heed")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store := &keyring.Store{
		Dir:  dir,       // left out, the user's configuration directory
		Ring: new(ring), // left out, the operating system's keyring
	}
	policy := auth.StorePolicy{Keyring: store, RequireKeyring: true, Env: &auth.EnvStore{Variable: "NOT_SET"}}

	ctx, key := context.Background(), auth.Key{Issuer: "https://as.example", ClientID: "cli"}
	choice, err := policy.Choose(ctx, key) // before the login
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(choice)
	fmt.Println(choice.Store.Save(ctx, key, auth.Credential{AccessToken: "secret"}))
	fmt.Println(choice.Store.Load(ctx, key))
	// Output:
	// keyring: the keyring works
	// <nil>
	// credential(Bearer) <nil>
}
