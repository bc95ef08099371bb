// Package sse reads event streams, text/event-stream, as the WHATWG's HTML standard defines them in section 9.2
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). [Dialer] is the transport of package stream, which
// connects again by itself:
//
//	s := stream.Reconnect(stream.Config{Dialer: sse.Dialer{URL: "https://api.example.com/events"}})
//	for m, err := range s.Messages(ctx) {
//		...
//	}
//
// [Decoder] reads the events of one answer, whoever has asked for it; see its example.
//
// # The rules it keeps
//
// The grammar and the processing of lines are the standard's, sections 9.2.5 and 9.2.6, to the letter:
//
//   - One byte order mark at the beginning is skipped. Lines end in CR, LF or CRLF, wherever the reads are cut, and a
//     lone CR ends its line at once: an event never waits for the byte after it.
//   - A field without a colon has an empty value; of the space after a colon one is dropped; other fields are ignored.
//   - An id stays the position until another replaces it, an empty one resets it, and one with a NUL is ignored. It
//     counts from the blank line after it on, also if no event came of it, and never before.
//   - The type belongs to its event alone. Without data there is no event; one empty line of data is data.
//   - What the end of the stream cuts off is dropped, and its id is not the position.
//   - retry counts at once, if it is all digits. It saturates, and it is the schedule that clamps it.
//   - Bytes that are not UTF-8 become U+FFFD, as many as the Encoding standard says (section 4.1).
//
// There is one exception. The standard's text forgets the position when a connection begins, so that the first event
// without an id on it would reset what is sent as Last-Event-ID. Here, as in browsers, the position stays until the
// server sends another.
//
// # What it costs
//
// Bytes are searched once, so the time is linear in the input however it is cut, and no event costs an allocation. A line,
// or an event's data, over the limit ends the stream with a [TooLongError], and the memory held stays within a small
// multiple of the limit, whatever the server sends.
//
// # What it does not do
//
// The decoder does not connect or wait, and knows no clock. Comments and heartbeats are no events: a watchdog sees them
// through [Options.OnRead]. Neither compressed answers nor redirects are followed up.
package sse
