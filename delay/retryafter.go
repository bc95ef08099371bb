package delay

import (
	"net/http"
	"strings"
	"time"
)

// MaxWait is where a readable Retry-After saturates: 2 147 483 647 s, the largest number of seconds that every timer
// API can schedule. It bounds the arithmetic, it is no policy.
const MaxWait = (1<<31 - 1) * time.Second

const header = "Retry-After"

// RetryAfter is what a server asked for: nothing (the zero value), something unusable, or a wait. Only code that
// retries is given one.
type RetryAfter struct {
	asked     time.Duration
	malformed bool
}

// Asked returns the RetryAfter of a server that asked for d by other means than the header. It saturates at MaxWait; a d
// that is not positive is malformed.
func Asked(d time.Duration) RetryAfter {
	if d <= 0 {
		return RetryAfter{malformed: true}
	}
	return RetryAfter{asked: min(d, MaxWait)}
}

// Duration returns the wait asked for, 0 when there is no usable one.
func (r RetryAfter) Duration() time.Duration { return r.asked }

// Malformed reports whether the server sent a value that cannot be used.
func (r RetryAfter) Malformed() bool { return r.malformed }

// String returns the wait, "absent" or "malformed".
func (r RetryAfter) String() string {
	switch {
	case r.malformed:
		return "malformed"
	case r.asked == 0:
		return "absent"
	}
	return r.asked.String()
}

// Forms is a set of written forms of Retry-After.
type Forms uint8

// The written forms. Fraction is not HTTP's: some services send it, and a caller opts in by choosing a policy that
// reads it.
const (
	// Digits is delay-seconds (RFC 9110, section 10.2.3): 1*DIGIT, more than 0.
	Digits Forms = 1 << iota
	// Date is HTTP-date (RFC 9110, section 5.6.7), in its three forms, GMT only.
	Date
	// Fraction is seconds with a decimal fraction, rounded up to the millisecond.
	Fraction
)

// String lists the forms.
func (f Forms) String() string {
	var names []string
	for _, x := range []struct {
		form Forms
		name string
	}{{Digits, "seconds"}, {Date, "HTTP-date"}, {Fraction, "fractions"}} {
		if f&x.form != 0 {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, ", ")
}

// ParseRetryAfter reads Retry-After as RFC 9110, section 10.2.3 writes it: digits or a date. A date counts from now, the
// wall clock, rounded up to a whole second. Of several lines the longest valid one is taken, so that no attempt is early.
func ParseRetryAfter(h http.Header, now time.Time) RetryAfter {
	return (Digits | Date).Read(h, now)
}

// RetryAfter reads the header in the forms of the loop's row.
func (l Loop) RetryAfter(h http.Header, now time.Time) RetryAfter {
	return l.Row().Forms.Read(h, now)
}

// Read reads Retry-After in the given forms only; any other form is malformed.
func (f Forms) Read(h http.Header, now time.Time) RetryAfter {
	return longest(h[header], func(s string) (time.Duration, bool) { return f.parse(s, now) })
}

// longest takes the longest valid line, so that no attempt is early.
func longest(lines []string, parse func(string) (time.Duration, bool)) (r RetryAfter) {
	for _, line := range lines {
		d, ok := parse(strings.Trim(line, " \t"))
		r.asked = max(r.asked, d)
		r.malformed = r.malformed || !ok
	}
	if r.asked > 0 {
		r.malformed = false
	}
	return r
}

func (f Forms) parse(s string, now time.Time) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	if s[0] >= '0' && s[0] <= '9' {
		whole, rest, ok := digits(s)
		switch {
		case !ok:
			return 0, false
		case rest == "" && f&Digits != 0:
			return seconds(whole)
		case rest == "" || f&Fraction == 0:
			return 0, false
		}
		return fraction(whole, rest)
	}
	if f&Date == 0 {
		return 0, false
	}
	at, ok := httpDate(s, now)
	if !ok {
		return 0, false
	}
	// A date is a whole second, so dropping now's fraction from the difference rounds it up.
	return seconds(at.Unix() - now.Unix())
}

// digits reads the leading digits; ok is false when they do not fit int64.
func digits(s string) (n int64, rest string, ok bool) {
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return n, s[i:], true
		}
		d := int64(c - '0')
		if n > (1<<63-1-d)/10 {
			return 0, "", false
		}
		n = n*10 + d
	}
	return n, "", true
}

func seconds(n int64) (time.Duration, bool) {
	if n <= 0 {
		return 0, false
	}
	return time.Duration(min(n, int64(MaxWait/time.Second))) * time.Second, true
}

// fraction reads the part from the decimal point on; every digit counts towards rounding up.
func fraction(whole int64, rest string) (time.Duration, bool) {
	if len(rest) < 2 || rest[0] != '.' {
		return 0, false
	}
	ms := int64(0)
	up := false
	for i := 1; i < len(rest); i++ {
		c := rest[i]
		switch {
		case c < '0' || c > '9':
			return 0, false
		case i <= 3:
			ms = ms*10 + int64(c-'0')
		case c != '0':
			up = true
		}
	}
	for i := len(rest); i <= 3; i++ {
		ms *= 10
	}
	if up {
		ms++
	}
	d := time.Duration(min(whole, int64(MaxWait/time.Second)))*time.Second + time.Duration(ms)*time.Millisecond
	return min(d, MaxWait), d > 0
}
