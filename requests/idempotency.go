package requests

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
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
	for name, values := range h {
		if len(values) > 0 && values[0] != "" && strings.EqualFold(name, idempotencyHeader) {
			return true
		}
	}
	return false
}

// KeyFrom derives an idempotency key from stable identifiers of the caller's, such as the name of what is to be done and
// the numbers of the records it is done for. The same parts give the same key on every machine, in every process and in
// every version of this package, so that work that is done again after a crash comes to the same resource; other parts,
// or the same text divided otherwise, give another. Never put a time or anything random in: that would make it new work.
//
// The key has the form of a UUID, which every service takes, and nothing of the parts can be read from it. It is empty,
// which is no key, if there are no parts.
func KeyFrom(parts ...string) string {
	if len(parts) == 0 {
		return ""
	}
	h := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = h.Write(length[:])
		_, _ = h.Write([]byte(part))
	}
	u := h.Sum(nil)[:16]
	u[6] = u[6]&0x0f | 0x80 // RFC 9562, section 5.8: version 8, of the application's own making
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
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
