package requests

import (
	"net/http"
	"strings"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// WaitReader reads from an answer's header how long its server asks to wait. It returns the zero RetryAfter where the
// server asks for nothing. What it finds is taken as a Retry-After is: it replaces the local delay, exactly.
type WaitReader func(h http.Header, now time.Time) delay.RetryAfter

// FirstOf makes a reader of several: the first that finds a wait that can be used decides. If none does, what cannot be
// used is malformed, as a Retry-After would be, and costs the local delay.
func FirstOf(readers ...WaitReader) WaitReader {
	return func(h http.Header, now time.Time) (unusable delay.RetryAfter) {
		for _, read := range readers {
			switch r := read(h, now); {
			case r.Duration() > 0:
				return r
			case r.Malformed():
				unusable = r
			}
		}
		return unusable
	}
}

// ReadMilliseconds reads Retry-After-Ms and X-Ms-Retry-After-Ms, by which services of Azure and OpenAI ask for less than
// a second. Of both, the longer one counts.
func ReadMilliseconds(h http.Header, _ time.Time) delay.RetryAfter {
	a, b := delay.ReadMilliseconds(h, "Retry-After-Ms"), delay.ReadMilliseconds(h, "X-Ms-Retry-After-Ms")
	return longer(a, b)
}

// ReadRateLimitReset reads X-RateLimit-Reset, if X-RateLimit-Remaining says that nothing remains, and RateLimit-Reset with
// RateLimit-Remaining likewise. A reset is so many seconds away, or an instant in seconds or milliseconds since 1970,
// whatever its size makes plausible. Of both, the longer one counts.
func ReadRateLimitReset(h http.Header, now time.Time) (longest delay.RetryAfter) {
	for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
		if exhausted(h.Values(prefix + "Remaining")) {
			longest = longer(longest, delay.ReadReset(h, prefix+"Reset", now))
		}
	}
	return longest
}

// exhausted reports whether one of a number of limits has nothing left. Some services count in fractions.
func exhausted(remaining []string) bool {
	for _, s := range remaining {
		whole, fraction, _ := strings.Cut(strings.Trim(s, " \t"), ".")
		if whole != "" && strings.Trim(whole+fraction, "0") == "" {
			return true
		}
	}
	return false
}

// longer prefers a wait to what is malformed, and that to nothing.
func longer(a, b delay.RetryAfter) delay.RetryAfter {
	if b.Duration() > a.Duration() || a == (delay.RetryAfter{}) {
		return b
	}
	return a
}
