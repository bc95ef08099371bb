package sse

import "fmt"

// Event is one event of a stream. ID and Data are borrowed from the decoder and hold until its next call of Next.
type Event struct {
	// ID is the position after this event: the last id that the stream has given, with this event or before. It is
	// empty if there is none.
	ID []byte
	// Type is what the event field said, and empty without one. A browser would call such an event "message".
	Type string
	// Data is the lines of data, joined by LF. It may be empty.
	Data []byte
}

// Clone returns an event that shares nothing with the decoder.
func (e Event) Clone() Event {
	own := make([]byte, 0, len(e.ID)+len(e.Data))
	own = append(own, e.ID...)
	own = append(own, e.Data...)
	id := len(e.ID)
	e.ID, e.Data = own[:id:id], own[id:]
	return e
}

// Part names what was too long.
type Part string

// The parts of a stream that a limit holds for.
const (
	// PartLine is one line of any kind, without its end.
	PartLine Part = "line"
	// PartData is the data of one event, its lines joined.
	PartData Part = "data"
)

// TooLongError reports a line or an event over the limit. Whoever connects again at LastEventID most likely meets the
// same event again, so that trying again mends nothing.
type TooLongError struct {
	Part        Part
	Limit       int
	LastEventID string // the position before the event that did not fit
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("sse: %s of an event longer than %d bytes", e.Part, e.Limit)
}
