package sse

import (
	"io"
	"iter"
	"math/bits"
	"time"
	"unicode/utf8"
)

// DefaultMaxBytes is the limit of a line and of an event's data unless Options say otherwise: 1 MiB.
const DefaultMaxBytes = 1 << 20

// dataSpace is what most lines begin with: those are spared a call.
const dataSpace = "data: "

// Options are what a Decoder can be told. The zero value is usable.
type Options struct {
	// MaxBytes is the limit of one line, and of the data of one event. If MaxBytes is not positive, it is
	// DefaultMaxBytes.
	MaxBytes int
	// LastEventID is the position before the stream begins: what was sent as Last-Event-ID. It stays the position until
	// the stream gives an id. The standard's own text would forget it at the first event; browsers do not, and whoever
	// did would lose the position with the first connection that has no ids.
	LastEventID string
	// OnRead, if set, is called after each read that brought n bytes, n > 0, before they are decoded. It is how a
	// watchdog sees comments and heartbeats, of which no event comes.
	OnRead func(n int)
}

// Decoder reads the events of one stream. It is not safe for concurrent use.
type Decoder struct {
	r      io.Reader
	max    int
	onRead func(n int)
	err    error // of the reader, once what it brought before is decoded

	// buf[pos:end] is to be decoded, and searched up to found: there is a bit in marks for each byte, the lowest for that
	// at from, with which a line may end. So no byte is looked at twice, also if a line comes in many reads.
	buf      []byte
	pos, end int
	found    int
	from     int
	marks    uint64
	text     characters
	doubt    bool // the block that was searched last may not be UTF-8
	odd      bool // the line may not be
	nul      bool // the line has a NUL
	lazy     bool // Next does not read, but returns errMore
	edge     bool // the next read may begin with what is to be skipped: the mark, or once begun the LF of a CRLF
	begun    bool

	// The event under way.
	data   []byte // in buf, before pos; nil without a line of data
	unsure bool   // it may not be UTF-8
	typ    string
	newID  bool // the other of ids is its id, and not the position yet

	// One of ids is the position, the standard's last event ID string; the other its last event ID buffer.
	ids     [2][]byte
	at      int    // which of ids is the position
	idText  string // the position, as LastEventID last returned it
	retry   time.Duration
	retries bool
	types   interner
	mended  []byte // data that was not UTF-8
}

// NewDecoder returns a decoder of the stream that r reads. It reads ahead, and reads no more after an error.
func NewDecoder(r io.Reader, o Options) *Decoder {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	d := &Decoder{r: r, max: o.MaxBytes, onRead: o.OnRead, buf: make([]byte, firstBuffer), edge: true, idText: o.LastEventID}
	d.ids[0] = []byte(o.LastEventID)
	return d
}

// LastEventID returns the position: the id to connect again with.
func (d *Decoder) LastEventID() string {
	if id := d.ids[d.at]; string(id) != d.idText {
		d.idText = string(id)
	}
	return d.idText
}

// Retry returns the last reconnection time that the stream gave, and whether there was one. It is as the server said,
// down to 0 and up to what a Duration can hold.
func (d *Decoder) Retry() (time.Duration, bool) { return d.retry, d.retries }

// Next returns the next event. At the end of the stream the error is io.EOF; it is a *TooLongError where a limit was
// exceeded, and wraps the reader's own where reading failed. After an error Next returns the same one again.
func (d *Decoder) Next() (Event, error) {
	for {
		if d.marks == 0 {
			if !d.search() {
				if d.lazy {
					return Event{}, errMore
				}
				if err := d.fill(); err != nil {
					return Event{}, err
				}
			}
			continue
		}
		at := d.from + bits.TrailingZeros64(d.marks)
		d.marks &= d.marks - 1
		if at < d.pos {
			continue // the LF of a CRLF
		}
		line := d.buf[d.pos:at]
		switch d.buf[at] {
		case '\n':
			d.pos = at + 1
		case '\r':
			d.pos = at + 1
			d.afterCR()
		case 0:
			d.nul = true
			continue
		default: // most likely a tab
			continue
		}
		if len(line) > d.max {
			return Event{}, d.tooLong(PartLine)
		}
		if len(line) > 0 {
			if len(line) >= len(dataSpace) && string(line[:len(dataSpace)]) == dataSpace {
				d.addData(line[len(dataSpace):])
			} else {
				d.field(line)
			}
			d.odd, d.nul = d.doubt, false
			if len(d.data) > d.max {
				return Event{}, d.tooLong(PartData)
			}
			continue
		}
		if d.data == nil { // a blank line without an event, but its id counts
			d.typ = ""
			d.commit()
			continue
		}
		// Section 9.2.6, "dispatch the event".
		data, typ := d.data, d.typ
		if d.unsure && !utf8.Valid(data) {
			d.mended = appendUTF8(d.mended[:0], data)
			if data = d.mended; len(data) > d.max {
				return Event{}, d.tooLong(PartData)
			}
		}
		d.commit()
		d.data, d.unsure, d.typ = nil, false, ""
		return Event{ID: d.ids[d.at], Type: typ, Data: data}, nil
	}
}

// Events returns an iterator over the events that Next returns. It ends without an error at the end of the stream, and
// any other error comes last.
func (d *Decoder) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			ev, err := d.Next()
			if err == io.EOF || !yield(ev, err) || err != nil { //nolint:errorlint // Next returns it bare
				return
			}
		}
	}
}

// commit makes the id of the event under way the position.
func (d *Decoder) commit() {
	if d.newID {
		d.at ^= 1
		d.newID = false
	}
}

// tooLong ends the stream.
func (d *Decoder) tooLong(p Part) error {
	d.err = &TooLongError{Part: p, Limit: d.max, LastEventID: d.LastEventID()}
	d.pos, d.found, d.marks = d.end, d.end, 0 // nothing more is decoded
	return d.err
}
