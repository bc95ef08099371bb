package stream

import (
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// leastLife is how long a silent connection lives at least to prove itself, however short the wait before it was.
const leastLife = time.Second

// authorization counts how many times in a row a credential was refused, wherever: by the source of tickets, on a dial, with
// a disconnect or on a poll. Only a success that proves the credential starts it anew.
type authorization struct {
	refused   int
	threshold int
}

// spent reports whether the last refusal was one too many.
func (a *authorization) spent() bool { return a.refused >= a.threshold }

func (a *authorization) prove() { a.refused = 0 }

// outcome is how a cycle ended: what the verdict on the next one needs to know.
type outcome struct {
	reason   Reason // with which the stream ends if class is Permanent
	class    Class
	after    delay.RetryAfter
	everyone bool   // the server dropped everybody
	slept    bool   // the machine was asleep
	cause    string // in a word, for the wait
	err      error
}

// afterFailure is the outcome of an attempt that made no connection.
func afterFailure(reason Reason, e *AttemptError) outcome {
	return outcome{reason: reason, class: e.Class, after: e.RetryAfter, cause: e.cause(), err: e}
}

// afterDisconnect is the outcome of a connection that the server ended. A clean end is a failed cycle like any other.
func afterDisconnect(err error) outcome {
	o := outcome{reason: ProtocolFatal, class: Transient, cause: "connection lost", err: err}
	d, ok := errors.AsType[*DisconnectError](err)
	switch {
	case ok:
		o.class, o.everyone = d.Class, d.Everyone
		if d.Code != 0 {
			o.cause = "close " + strconv.Itoa(d.Code)
		}
	case errors.Is(err, io.EOF):
		o.cause = "stream ended"
	}
	return o
}

// ledger is what the loop remembers from cycle to cycle, and decides from.
type ledger struct {
	retries       *delay.Retries
	authorization *authorization
	spread        time.Duration
	rested        time.Duration // the wait before the present attempt, as it was decided
}

// proves reports whether a connection proved itself, and then starts both counts anew: it delivered a message, or lived at
// least as long as the wait that preceded it. Nothing else does, lest a server that accepts and drops at once be hammered.
func (l *ledger) proves(messages int, lived time.Duration) bool {
	if messages == 0 && lived < max(l.rested, leastLife) {
		return false
	}
	l.retries.Reset()
	l.authorization.prove()
	return true
}

// count counts the refusal of a credential, if it is one, and returns how many there were in a row.
func (l *ledger) count(o outcome) int {
	if o.class == Unauthorized {
		l.authorization.refused++
	}
	return l.authorization.refused
}

// verdict decides what follows a cycle that was counted: a wait, or the end.
func (l *ledger) verdict(o outcome) (delay.Wait, *Error) {
	var w delay.Wait
	switch {
	case o.class == Permanent:
		return w, &Error{Reason: o.reason, Err: o.err}
	case o.class == Unauthorized && l.authorization.spent():
		return w, &Error{Reason: AuthorizationFailed, Err: o.err}
	case o.class == Unauthorized:
		w, _ = l.retries.NextUnheeded()
	case o.slept:
		w, _ = l.retries.NextWoken()
	case o.everyone:
		w, _ = l.retries.NextSpread(l.spread)
	default:
		w, _ = l.retries.Next(o.after)
	}
	w.Cause = o.cause
	l.rested = w.For
	return w, nil
}
