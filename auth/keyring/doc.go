// Package keyring keeps logins under the protection of the operating system's keyring: the Keychain of macOS, the
// Credential Manager of Windows, and the Secret Service of Linux and its like.
//
//	store := &keyring.Store{}
//	policy := auth.StorePolicy{Keyring: store}
//	choice, err := policy.Choose(ctx, key) // before the login: says where the token will go
//
// A keyring has little room: 2 560 bytes to an entry on Windows, about 3 000 on macOS, and there are longer tokens. So an
// entry holds a random 32-byte key, and the login lies in a file beside those of auth.FileStore, sealed with that key
// (AES-256-GCM; the key's id and the login's auth.Key are authenticated with it). A file alone is worth nothing, nor is an
// entry alone.
//
// A keyring can wait for a human to answer a prompt, and knows no context. Therefore every call is bounded, by 3 s unless
// [Store.Timeout] says otherwise. What hangs is one goroutine to a Store, which it owns: no other call to the keyring is
// begun before that one has returned, and until then each fails after its own bound. Nothing can end such a goroutine but
// the keyring, or the end of the process.
package keyring
