// Package stream keeps one connection alive that a server streams over, and walks the pages of what was missed.
//
//	s := stream.Reconnect(stream.Config{
//		Dialer:     websocket.Dialer{URL: "wss://events.example.com/live"},
//		Credential: stream.Tokens(source), // an oauth2.TokenSource
//		Staleness:  45 * time.Second,      // the server pings every 15 s
//	})
//	for msg, err := range s.Messages(ctx) {
//		if err != nil {
//			return err // the one and last
//		}
//		handle(msg.Data)
//	}
//
// # The loop
//
// [Stream.Messages] connects at once and connects again whenever the connection ends, after a wait that package delay
// decides, row reconnect of its table: full jitter over the count of failed cycles, floored by the Retry-After of a refused
// handshake (RFC 9110, section 10.2.3). Everything happens on the goroutine that ranges: there is one attempt or one
// connection at a time, nothing is read while the loop's body runs, and nothing is left behind when it ends. A stop that
// somebody asked for yields no error; a failure for good yields one [*Error], whose [Reason] can be asked for with errors.Is.
//
//   - The count of failed cycles starts anew once a connection has proved itself: it delivered a message, or it lived at
//     least as long as the wait before it, as that was decided, and at least a second. Being accepted proves nothing, and a
//     clean end is a failed cycle too: a server that accepts and drops is not hammered.
//   - An unauthorized answer is no outage. The credential is obtained anew, as it is for every attempt, no header is read,
//     and the third refusal in a row ends the stream. One counter serves the source of credentials, the dial and the
//     disconnect, and only a connection that proved itself starts it anew.
//   - What time does not heal ends the stream at once: 400, 404, 410 and the like, a redirect, and an address that is
//     neither encrypted nor this machine's. [ClassOfStatus] has the list.
//   - Where the server drops everybody at once, the first draw is at least [Config.Spread] wide.
//   - A connection that is silent for longer than [Config.Staleness] is given up. The time for which the loop's body keeps a
//     message does not count against the server.
//   - [Stream.TryNow] cuts the wait under way; [Stream.Woken] and [Config.WakeCheck] deal with a machine that slept.
//   - [Stream.Close] returns at once in every state, and no request follows it.
//   - A ctx with a deadline that falls before the next attempt ends the loop right away, with [DeadlinePassed].
//
// # Transports
//
// A transport is a [Dialer] that makes a [Conn]. Package stream/websocket is one, on github.com/coder/websocket; the rules
// for writing another are with the interfaces. A transport classes its failures ([AttemptError], [DisconnectError]); the
// loop does the rest.
//
// # Walking pages
//
// [Walk] polls page after page until it has caught up, row poll-retry of the table: a poll that was refused waits exactly
// what Retry-After asks for, else a draw. [HTTPPoll] polls over HTTP.
//
// # Watching
//
// [Trace] has a callback for each thing that happens, and [Config.Logger] is told the same. No error, callback or log line
// has a token, a ticket or the query of an address in it.
package stream
