// Package auth logs a user in from a device without a browser, or without a keyboard worth the name: a command, a
// television, a server reached over SSH. It shows a code, the user approves it in the browser of another device, and a
// token comes back (RFC 8628, the device authorization grant).
//
//	flow := &auth.DeviceFlow{
//		Config: oauth2.Config{
//			ClientID: "my-app",
//			Scopes:   []string{"files"},
//			Endpoint: oauth2.Endpoint{DeviceAuthURL: "https://…/device", TokenURL: "https://…/token"},
//		},
//		Prompter: auth.Lines(os.Stderr),
//	}
//	token, err := flow.Login(ctx)
//
// The token is a golang.org/x/oauth2 Token, for whatever in the Go ecosystem takes one. Whoever shows the code by other
// means calls [DeviceFlow.Start], and then [Pending.Poll]. Package auth/prompt has Prompters for terminals and for programs.
//
// # Start here, finish elsewhere
//
// A login that was started can be saved and finished by another process: [Pending.Save] and [DeviceFlow.Resume]. What is
// saved has absolute times, so that the code does not live longer for it and no poll comes before the next one was due.
// It is as good as the token to whoever reads it.
//
// # Before and after
//
// [Discovery] finds the endpoints in what a server publishes about itself, and [Profile] has those of providers that
// publish none. A [Store] keeps the login as a [Credential]; [StorePolicy] chooses one before the login begins, and package
// auth/keyring has the system's keyring. A [TokenSource] hands the token out for as long as the login lasts: it refreshes
// ahead of the expiry, once among all goroutines and processes, and stores a rotated token before anybody sees it. When
// only another login helps, its error is a [SessionExpired]. A [Revoker] ends what a login has left at the server. Package
// heed puts these together.
//
// # What a poll means
//
// Each wait is decided by package delay, row device-poll: it begins when the last answer has ended, and no poll is sent
// for a code that is dead.
//
//   - authorization_pending and slow_down are answers: not yet (RFC 8628, section 3.5). The next poll comes after the
//     interval, which slow_down lengthens by 5 s for good, or to the interval that it names. Retry-After is not read.
//   - 429 with too_many_requests is a refusal to serve, and so is any other 429 that holds no error of the protocol, 502,
//     503 and 504: the poll is repeated after the longer of the interval and Retry-After, once.
//   - No answer: the poll is repeated after a backoff that doubles from the interval up to a minute. Any answer resets it.
//   - access_denied, expired_token, every other error and every other status end the login with a [DeviceError]. So does
//     an answer that cannot be used, which is not asked for again: the code's token was handed out with it.
//   - A token that has arrived is returned, even if the context ends at that moment or the connection breaks behind it.
//
// # What is tolerated
//
// Servers differ from the RFC in ways that do no harm, and these are accepted: errors with status 200, numbers in quotes,
// an interval of 0, a token's lifetime of 0 (none is known), a scope that is an array, verification_url, form-encoded
// answers that say that they are, authorization_pending and slow_down in a message member. Whatever could do harm is
// malformed: numbers that are negative, fractional or beyond every timer, an address that is not https, and a code or an
// address that would steer a terminal.
//
// [DeviceFlow.Strict] takes protocol errors with 4xx only, retries 429 with too_many_requests only, and wants numbers that
// are numbers and not 0 and a scope that is a string.
//
// # What is kept secret
//
// No device code, token, client secret or body gets into an error, an event, a log line or the printed form of a type of
// this package, not even when the server writes it into an error description. Redirects are refused on every request, so
// that none of them is carried elsewhere; endpoints are https, or http on loopback.
//
// # What it does not do
//
// It probes nothing: how the client authenticates is configured, and one request is one request. It waits for no key, opens
// no browser unless [DeviceFlow.Browser] does, and does not ask again for a code that expired: that is for the caller to
// decide.
package auth
