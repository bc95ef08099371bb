// Package requests sends HTTP requests that wait as the server asks, and repeats them only where that is safe.
//
// [Transport] is an [http.RoundTripper], so that it goes into any client: an [http.Client], generated code, somebody
// else's SDK. [Client] is a thin layer over it that returns an [*Error] for each request that failed, and downloads
// files.
//
//	client := &http.Client{Transport: &requests.Transport{Tokens: source}}
//
// # Three gates
//
// An answer or a failure leads to another attempt only if three gates let it through:
//
//  1. the method: GET, HEAD, PUT, DELETE, OPTIONS and TRACE may be repeated (RFC 9110, section 9.2.2), or else
//  2. the operation: it is marked idempotent in the table of [Operations], or the request carries an idempotency key, such
//     as that of [WithIdempotencyKey] (see [KeyFrom]); and in either case
//  3. the failure: the operation's set of statuses, which is exhaustive, has this one (429 and 503 unless it says
//     otherwise), or the transport failed without an answer. 400, 401, 403, 404 and 422 are never repeated, nor is what
//     the caller cancelled, nor a certificate that does not verify.
//
// A [Policy] may decide otherwise: [Declared] is the one above; [RefusedOnly] and [Throttled] repeat a 429 and nothing
// else, for every operation. The attempts are counted in all, the first included, and the caller may cap them
// ([WithMaxAttempts]).
//
// # Waits
//
// Every wait is one of package delay's, row generated-retry: a Retry-After replaces the local delay, exactly as it was
// sent. A wait runs on the caller's context and ends with it. One that would end after the caller's deadline, or that is
// longer than Transport.Limit, is not begun: the answer in hand is returned at once. [Hooks] see each wait before it
// begins, with its explanation.
//
// A host that has told one request to wait, by a 429 or 503 with a Retry-After, is not asked by others with the same
// credential before that moment: they wait for it too ([Throttle]), and then leave one after the other, the oldest first, at
// drawn distances. What is under way when the first refusal comes cannot know of it.
//
// Servers that ask by other headers are understood through Transport.ReadWait: [ReadMilliseconds], [ReadRateLimitReset].
//
// When there are no attempts left, a Transport returns the last answer with its body unread, as any RoundTripper does,
// and a Client an *Error with the wait that the server asked for.
//
// # Credentials
//
// Each attempt is given its token after the wait. A 401 leads to one refresh and one replay, if the source is a
// [Refresher] and an attempt is left. Nothing is sent without TLS except to loopback addresses, and Authorization does not
// cross to another origin, whatever redirects. A download goes in two hops, authenticated to the API and then without
// credentials to the signed address that it redirected to. No token and no query is in an error, a log line or a hook.
//
// # What it goes into
//
// The folder interop/plugs has examples, compiled and run, with go-github, with a client of oapi-codegen whose table of
// operations comes from the same document, and with otelhttp: around a Transport it makes one span of a request with all
// its waits, and as Base one of each attempt. It writes whole addresses into its spans, those that a download is
// redirected to included.
//
// # What it does not do
//
// It caches nothing, limits no rate ahead of the first refusal, and does not repeat a body that broke off: that is the caller's to see.
// Concerns such as metrics or tracing are RoundTrippers around a Transport, or hooks inside it; [Health] is one, which knows
// how each host fares.
package requests
