package stream

import (
	"errors"
	"log/slog"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// The defaults of a [Config] and of a [Walk].
const (
	DefaultHandshakeDeadline      = 10 * time.Second
	DefaultSendDeadline           = 10 * time.Second
	DefaultSpread                 = 5 * time.Second
	DefaultAuthorizationThreshold = 3
	DefaultPollTimeout            = 30 * time.Second
)

// Config says what to connect to, and how. Only Dialer is needed.
type Config struct {
	// Dialer makes the connections.
	Dialer Dialer

	// Credential obtains a fresh credential for each attempt. If nil, attempts carry none.
	Credential CredentialFunc

	// Position is where the first attempt goes on, on transports that have positions. If empty, at the present.
	Position string

	// Base and Ceiling bound the draw of a wait: uniform(0, min(Ceiling, Base·2^(n-1))) after n failed cycles. If zero, they
	// are those of the table, 1 s and 60 s.
	Base, Ceiling time.Duration

	// Spread is the least width of the first draw after the server dropped all its clients at once. If zero, 5 s; if
	// negative, that draw is like any other.
	Spread time.Duration

	// HandshakeDeadline bounds an attempt from the dial to the server's answer. If zero, 10 s; if negative, nothing does.
	HandshakeDeadline time.Duration

	// SendDeadline bounds how long Send waits for the server to take a message in. If zero, 10 s; if negative, only the
	// context of Send does.
	SendDeadline time.Duration

	// Staleness is how long the server may be silent before the connection is given up. If zero, for ever: not every
	// server speaks when it has nothing to say. Two or three times the interval of its pings is a good value.
	Staleness time.Duration

	// WakeCheck is how often the loop looks whether the machine was asleep. If zero, it does not look: a wait then ends
	// late by as long as the machine slept, unless [Stream.Woken] is called. A few seconds are a good value on machines
	// that sleep.
	WakeCheck time.Duration

	// AuthorizationThreshold is how many times in a row a credential may be refused until the stream ends. If zero, 3.
	AuthorizationThreshold int

	// Rand draws the waits. If nil, math/rand/v2 does.
	Rand delay.Rand

	// Clock is what time it is. If nil, the real one.
	Clock clock.Clock

	// Trace, if set, is told what happens.
	Trace *Trace

	// Logger, if set, is told the same.
	Logger *slog.Logger
}

// Validate reports all mistakes of the configuration, and those of the Dialer if it has a method Validate() error, joined into
// one error. [Stream.Messages] does it too, before anything
// is sent, and ends with a [Usage] error.
func (c Config) Validate() error {
	var all []error
	if c.Dialer == nil {
		all = append(all, &ConfigError{"Dialer", "is missing: there is nothing to connect with"})
	}
	if v, ok := c.Dialer.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			all = append(all, err)
		}
	}
	all = append(all, schedule(c.Base, c.Ceiling)...)
	if c.Staleness < 0 {
		all = append(all, &ConfigError{"Staleness", "is negative: leave it zero to have none"})
	}
	if c.WakeCheck < 0 {
		all = append(all, &ConfigError{"WakeCheck", "is negative: leave it zero to have none"})
	}
	if c.AuthorizationThreshold < 0 {
		all = append(all, &ConfigError{"AuthorizationThreshold", "is negative"})
	}
	return errors.Join(all...)
}

func schedule(base, ceiling time.Duration) []error {
	var all []error
	if base < 0 {
		all = append(all, &ConfigError{"Base", "is negative"})
	}
	if ceiling < 0 {
		all = append(all, &ConfigError{"Ceiling", "is negative"})
	}
	return all
}

// withDefaults resolves the zero values.
func (c Config) withDefaults() Config {
	if c.HandshakeDeadline == 0 {
		c.HandshakeDeadline = DefaultHandshakeDeadline
	}
	if c.SendDeadline == 0 {
		c.SendDeadline = DefaultSendDeadline
	}
	if c.Spread == 0 {
		c.Spread = DefaultSpread
	}
	if c.AuthorizationThreshold == 0 {
		c.AuthorizationThreshold = DefaultAuthorizationThreshold
	}
	return c
}

// ConfigError is one mistake in a configuration.
type ConfigError struct {
	Field   string
	Mistake string
}

// Error returns the field and what is wrong with it.
func (e *ConfigError) Error() string { return e.Field + " " + e.Mistake }
