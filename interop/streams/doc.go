// Package streams runs a WebSocket server that is not ours: github.com/centrifugal/centrifuge, in the test's own process,
// on a port of its own that stays the same when it is killed and started again.
//
// # The protocol
//
// Centrifuge speaks JSON in text frames. A frame holds one message or several, one a line, in both directions. The client
// sends commands with an id of its choice that is not zero:
//
//	{"id":1,"connect":{}}                          first, within 15 s
//	{"id":2,"subscribe":{"channel":"news"}}        not before connect, but it may be in the same frame
//	{"id":2,"subscribe":{"channel":"news","recover":true,"offset":7,"epoch":"xvZx"}}
//
// and the server answers each with the same id, and tells of what was published without one:
//
//	{"id":1,"connect":{"client":"…","ping":25,"pong":true}}
//	{"id":2,"subscribe":{"recoverable":true,"epoch":"xvZx","offset":7,"positioned":true}}
//	{"push":{"channel":"news","pub":{"data":{"n":1},"offset":8}}}
//
// A message of the server that is just {} is a ping, and must be answered by {} as long as connect said "pong":true;
// otherwise the server closes with 3012 "no pong". The first ping comes after half to one interval.
//
// After a reconnect, subscribe with "recover" and the last position replays what was missed: the answer has
// "was_recovering":true, "recovered":true and "publications". With another epoch ([Server.RestartEmpty]) or a history that
// is too short, it has "was_recovering":true alone: there is a gap. Without "recover" nothing is replayed.
//
// A command that cannot be carried out is answered by {"id":2,"error":{"code":105,"message":"already subscribed"}}. A frame
// that is not JSON, or a command before connect, closes with 3501 "bad request". Close codes from 3000 to 3499 and from
// 4000 to 4499 ask the client to reconnect, from 3500 to 3999 and from 4500 to 4999 not to.
//
// # The handshake
//
// What happens before the protocol is ours: see [Config].
package streams
