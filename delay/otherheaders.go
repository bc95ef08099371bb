package delay

import (
	"net/http"
	"time"
)

// ReadMilliseconds reads a header with a wait in milliseconds, by the rules of Retry-After: 1*DIGIT and more than 0, of
// several lines the longest valid one, saturating at MaxWait.
func ReadMilliseconds(h http.Header, name string) RetryAfter {
	return longest(h.Values(name), func(s string) (time.Duration, bool) {
		ms, rest, ok := digits(s)
		if !ok || rest != "" || ms <= 0 {
			return 0, false
		}
		return time.Duration(min(ms, MaxWait.Milliseconds())) * time.Millisecond, true
	})
}

// epoch tells the instants of a reset from its distances: as a number of seconds it is September 2001, or 31 years.
const epoch = 1_000_000_000

// ReadReset reads a header that says when a limit is renewed, by the rules of Retry-After: in so many seconds, or at an
// instant in seconds, or milliseconds, since 1970. An instant counts from now, the wall clock, rounded up to a whole
// second; one that has passed is malformed.
func ReadReset(h http.Header, name string, now time.Time) RetryAfter {
	return longest(h.Values(name), func(s string) (time.Duration, bool) {
		n, rest, ok := digits(s)
		switch {
		case !ok || rest != "":
			return 0, false
		case n < epoch:
			return seconds(n)
		case n < 1000*epoch:
			return seconds(n - now.Unix())
		}
		return seconds((n-1)/1000 + 1 - now.Unix())
	})
}
