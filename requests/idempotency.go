package requests

import (
	"context"
	"net/http"
)

const idempotencyHeader = "Idempotency-Key"

type (
	idempotencyKey struct{}
	maxAttemptsKey struct{}
)

// WithIdempotencyKey makes requests sent with the context carry the key as their Idempotency-Key header, the same on
// every attempt. To a policy such a request counts as marked idempotent, whatever its method. A key is for one thing to
// be done: derive a context for each, and the key from what identifies it, never from time or chance, so that the same
// work done again after a crash has the same key. An Idempotency-Key header that the request already has takes
// precedence, and an empty key is none.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, key)
}

func keyOf(ctx context.Context) string {
	key, _ := ctx.Value(idempotencyKey{}).(string)
	return key
}

// hasKey says whether the request carries a key of its own.
func hasKey(h http.Header) bool {
	return len(h[idempotencyHeader]) > 0 && h[idempotencyHeader][0] != ""
}

// WithMaxAttempts caps the number of attempts of requests sent with the context, the first included. It never raises
// what the operation or the policy allows. 1 or less is exactly one attempt.
func WithMaxAttempts(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, maxAttemptsKey{}, max(n, 1))
}

// maxAttempts is the caller's cap, or 0.
func maxAttempts(ctx context.Context) int {
	n, _ := ctx.Value(maxAttemptsKey{}).(int)
	return n
}
