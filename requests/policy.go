package requests

import (
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/heed-sdk/heed/delay"
)

// Policy decides which answers and failures are repeated and how long the waits are. It is one of [Declared],
// [RefusedOnly] and [Throttled]; nil is Declared{}.
type Policy interface {
	// plan decides for one request. repeatable is what the first two gates say of it, and op is its operation.
	plan(repeatable bool, op Operation) plan
}

// Declared repeats what the request's operation declares (429 and 503 unless it says otherwise) and what got no answer,
// and only where that is safe: the method is idempotent, the operation is marked so, or the request carries an
// idempotency key. The wait is exponential from the operation's base, 1 s, to 30 s, with up to 100 ms of jitter on top;
// Retry-After replaces it.
type Declared struct {
	// Schedule, if not nil, makes the schedule of local waits for one request, given the operation's base delay.
	Schedule func(base time.Duration) backoff.BackOff
}

func (p Declared) plan(repeatable bool, op Operation) plan {
	if !repeatable {
		// Whatever the operation declares has no effect. The budget is still there for a replay after a 401.
		return plan{loop: delay.GeneratedRetry, attempts: defaultMax}
	}
	pl := plan{
		loop: delay.GeneratedRetry, attempts: op.attempts(), base: op.BaseDelay,
		statuses: op.statuses(), unanswered: true,
	}
	if p.Schedule != nil {
		base := op.BaseDelay
		if base <= 0 {
			base = delay.GeneratedRetry.Row().Local.Base
		}
		pl.schedule = p.Schedule(base)
	}
	return pl
}

// RefusedOnly repeats a 429 and nothing else, whatever the operation: the server refused before anything happened. A
// timeout, a broken connection and a 5xx are never repeated, because the request may have been processed, and a
// duplicate may cost money. The wait is Sleep times the number of the attempt; Retry-After replaces it.
//
// When the 429s run out, [RateLimited] has the wait that the server asked for, so that a queued job can release itself
// for that long. Every other failure is [TransportFailed] at once.
type RefusedOnly struct {
	// Times is how often a request is repeated at most. Zero turns repeating off.
	Times int
	// Sleep is the first wait. If it is zero, it is one second; if it is negative, there are no waits but the server's.
	Sleep time.Duration
}

func (p RefusedOnly) plan(bool, Operation) plan {
	sleep := p.Sleep
	if sleep == 0 {
		sleep = time.Second
	}
	return plan{
		loop: delay.GeneratedRetry, attempts: min(max(p.Times, 0), math.MaxInt-1) + 1,
		schedule: delay.Linear(max(sleep, 0)), statuses: refused, unsure: true,
	}
}

// Throttled repeats a 429 and nothing else, whatever the operation, with three attempts in all. The wait is 500 ms,
// doubled each time; Retry-After in seconds, fractions included, replaces it. To choose this policy is to opt into a cap
// on both: no wait is longer than 5 s, and the Wait says when it was cut.
type Throttled struct{}

const (
	throttledBase = 500 * time.Millisecond
	throttledCap  = 5 * time.Second
)

func (Throttled) plan(bool, Operation) plan {
	return plan{
		loop: delay.GeneratedRetry, attempts: 3, statuses: refused,
		schedule: delay.Exponential(throttledBase, throttledCap),
		cap:      throttledCap, forms: delay.Digits | delay.Fraction,
	}
}

// hop is the policy of a download's first hop, and of nothing else.
func hop() plan {
	return plan{loop: delay.Hop, attempts: defaultMax, statuses: unavailable, unanswered: true}
}

var (
	refused     = []int{http.StatusTooManyRequests}
	unavailable = []int{
		http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
)

// plan is what a policy decided for one request.
type plan struct {
	loop       delay.Loop
	attempts   int             // in all
	statuses   []int           // what is repeated of the answers
	unanswered bool            // whether a failure without an answer is repeated
	schedule   backoff.BackOff // of the local waits; nil is the row's own, from base
	base       time.Duration
	cap        time.Duration // cuts every wait, if positive
	forms      delay.Forms   // of Retry-After; zero is the row's
	unsure     bool          // after an answer that is no success and no 429, nobody knows what became of the request
}

// repeats says whether an answer is repeated: the third gate. What a policy declares does not open it for an answer that
// will be the same next time.
func (p *plan) repeats(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusNotFound, http.StatusUnprocessableEntity:
		return false
	}
	return slices.Contains(p.statuses, status)
}

// retries starts the count and the waits of the plan.
func (p *plan) retries(limit time.Duration, r delay.Rand) delay.Retries {
	var run *delay.Retries
	if p.schedule != nil {
		run = p.loop.Retries(p.schedule, p.attempts)
	} else {
		run = p.loop.OwnRetries(p.base, 0, p.attempts, r)
	}
	run.Limit, run.Cap = limit, p.cap
	return *run
}

// asked reads what the server asked for.
func (p *plan) asked(h http.Header, now time.Time) delay.RetryAfter {
	if p.forms != 0 {
		return p.forms.Read(h, now)
	}
	return p.loop.RetryAfter(h, now)
}
