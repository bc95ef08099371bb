// Package websocket is the WebSocket transport (RFC 6455) of package stream, on github.com/coder/websocket.
//
//	s := stream.Reconnect(stream.Config{Dialer: websocket.Dialer{URL: "wss://events.example.com/live"}})
//
// The token of an attempt is sent as a bearer token with the handshake; a ticket address takes the place of
// [Dialer.URL], exactly as it was returned. Redirects are refused, and so is an address that is neither encrypted nor this
// machine's. Text and binary messages are delivered alike, up to [Dialer.ReadLimit].
//
// A larger one ends the connection while it is read, with [ErrTooLarge], and the stream connects again: a WebSocket knows no
// position, so what comes then is not that message once more. (An event stream does know one, which is why package sse ends
// there.) A protocol on top that asks for what it missed is sent the message again, and should make a permanent error of it.
//
// # Close codes
//
// Who closed, and why, is known and not inferred: a code that this side sent and the server echoed is not its word. Of the
// server's codes
//
//   - 1000, 1001, 1005, 1006, 1011, 1012, 1013 and 1014 are transient, and after 1001 and 1012, with which a server drops
//     everybody, the first draw is wide;
//   - 1002, 1003, 1007, 1009 and 1010 are permanent;
//   - 1008 and 3000 to 4999 are classed by [Dialer.CloseClass], or else by [DefaultCloseClass].
//
// # Cost
//
// A connection has one context and its reads have none. With [Dialer.ReuseBuffer] a message costs no allocation, without it
// costs one of its own size. Whatever comes in, pings and parts of messages included, is a sign of life for
// stream.Config.Staleness, and costs the same however many messages come at once. While they come in a flood, and not over TLS,
// 32 KiB are read at a time.
//
// Close sends a close frame if that takes no time, and does not wait for the server's.
package websocket
