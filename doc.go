// Package heed is the root of an SDK that does what a server asks of its clients: it logs in on devices without a
// browser, repeats requests only where that is safe, keeps streams alive, and waits exactly as long as it was told to.
//
// The work is done in four packages, each of use on its own:
//
//   - [github.com/heed-sdk/heed/auth] logs in with a code shown on another device (RFC 8628), keeps and refreshes the
//     tokens, and hands them out as an oauth2.TokenSource.
//   - [github.com/heed-sdk/heed/requests] is an http.RoundTripper that retries what may be retried, refreshes a refused
//     token once, and downloads through signed addresses.
//   - [github.com/heed-sdk/heed/stream] keeps a WebSocket or an event stream connected, and catches up by polling.
//   - [github.com/heed-sdk/heed/delay] decides every wait of the other three: how a Retry-After combines with the delay
//     that a loop would take on its own, by one table, on one clock that a test can replace.
//
// [New] puts them together for the usual case: an [App] logs in, keeps the login fresh and stored, and hands out an
// http.Client and a token source.
//
// The three upper packages do not know each other. They meet in the types that the Go ecosystem already has:
// oauth2.TokenSource, http.RoundTripper, *http.Client and context.Context.
package heed
