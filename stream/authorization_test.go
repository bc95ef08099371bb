package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream"
)

func TestUnauthorizedThrice(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(refused(401, time.Hour), refused(403, time.Hour), refused(401, 0))
		l, err := follow(t, c, d)
		wantDurations(t, "waits", l.waited(), s(1, 2))
		wantList(t, "reasons", l.reasons(), []delay.Reason{delay.Unheeded, delay.Unheeded})
		want(t, "is authorization_failed", errors.Is(err, stream.AuthorizationFailed), true)
		a, ok := errors.AsType[*stream.AttemptError](err)
		want(t, "status of the cause", ok && a.Status == 401, true)
		want(t, "attempts", d.count(), 3)
		want(t, "unauthorized", l.failed[2].Unauthorized, 3)
	})
}

// One counter serves everything that can refuse a credential, and what is no success does not reset it.
func TestUnauthorizedSharesOneCounter(t *testing.T) {
	unauthorized := &stream.DisconnectError{Class: stream.Unauthorized, Code: 4401}
	for _, tt := range []struct {
		name   string
		script []step
		waits  []time.Duration
		ends   bool
	}{
		{"dial, disconnect, dial", []step{refused(401, 0), {end: unauthorized}, refused(403, 0)}, s(1, 2), true},
		{"outages in between", []step{refused(401, 0), refused(503, 0), refused(401, 0), {}, refused(401, 0)}, s(1, 2, 4, 8), true},
		{"a connection that proved nothing", []step{refused(401, 0), refused(401, 0), {alive: time.Second}, refused(401, 0)}, s(1, 2, 4), true},
		{"a message in between", []step{refused(401, 0), refused(401, 0), {messages: []string{"a"}}, refused(401, 0), refused(401, 0), last}, s(1, 2, 1, 2, 4), false},
		{"a life in between", []step{refused(401, 0), refused(401, 0), {alive: time.Minute}, refused(401, 0), refused(401, 0), last}, s(1, 2, 1, 2, 4), false},
		{"the token expires now and then", []step{{messages: []string{"a"}, end: unauthorized}, {messages: []string{"a"}, end: unauthorized}, {messages: []string{"a"}, end: unauthorized}, last}, s(1, 1, 1), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c watched) {
				l, err := follow(t, c, dials(tt.script...))
				wantDurations(t, "waits", l.waited(), tt.waits)
				want(t, "ends", errors.Is(err, stream.AuthorizationFailed), tt.ends)
			})
		})
	}
}

func TestUnauthorizedByTicketDisconnectAndDial(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		asked := 0
		d := dials(step{end: &stream.DisconnectError{Class: stream.Unauthorized}}, refused(401, 0), last)
		l, err := follow(t, c, d, func(c *stream.Config) {
			c.Credential = func(context.Context, stream.Credential) (stream.Credential, error) {
				if asked++; asked == 1 {
					return stream.Credential{}, retrieve(401, "", "")
				}
				return stream.Credential{URL: "ticket"}, nil
			}
		})
		want(t, "ends", errors.Is(err, stream.AuthorizationFailed), true)
		want(t, "dials", d.count(), 2)
		wantDurations(t, "waits", l.waited(), s(1, 2))
	})
}

func TestAuthorizationThreshold(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		d := dials(refused(401, 0))
		_, err := follow(t, c, d, func(c *stream.Config) { c.AuthorizationThreshold = 1 })
		want(t, "ends", errors.Is(err, stream.AuthorizationFailed), true)
		want(t, "attempts", d.count(), 1)
	})
}
