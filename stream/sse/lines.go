package sse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	firstBuffer   = 512      // most streams are idle most of the time
	fastBuffer    = 16 << 10 // reads that bring more than they asked for make the buffer grow up to this
	maxEmptyReads = 100      // as package bufio
)

var byteOrderMark = []byte("\xEF\xBB\xBF")

// block is how many bytes are searched at once.
const block = 64

// search looks in the next block for control characters up to CR, of which text has few besides the ends of its lines. It
// returns false if all is searched. Finding several ends before the first is used leaves the processor free to work on
// several lines at once.
func (d *Decoder) search() bool {
	if d.end-d.found < block {
		return d.searchLast()
	}
	p := (*[block]byte)(d.buf[d.found:])
	d.from = d.found
	d.found += block
	var ok bool
	if d.marks, ok = mark(p); !ok || !d.text.between() {
		d.marks, ok = d.text.scan(p)
	}
	d.doubt = !ok
	d.odd = d.odd || d.doubt
	return true
}

// searchLast is search for the less than a block that is left, but for a character that is not all there yet.
func (d *Decoder) searchLast() bool {
	left := d.buf[d.found:d.end]
	n := len(left) - unfinished(left)
	if n == 0 {
		return false
	}
	var p [block]byte
	copy(p[:], left[:n])
	d.from = d.found
	d.found += n
	var ok bool
	if d.marks, ok = mark(&p); !ok || !d.text.between() {
		d.marks, ok = d.text.scan(&p)
	}
	d.marks &= 1<<n - 1
	d.doubt = !ok
	d.odd = d.odd || d.doubt
	return true
}

// mark returns a bit for each byte that is less than 0x0E, the lowest for the first, if the block is ASCII.
func mark(p *[block]byte) (marks uint64, ascii bool) {
	a, b := binary.LittleEndian.Uint64(p[0:]), binary.LittleEndian.Uint64(p[8:])
	c, d := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
	e, f := binary.LittleEndian.Uint64(p[32:]), binary.LittleEndian.Uint64(p[40:])
	g, h := binary.LittleEndian.Uint64(p[48:]), binary.LittleEndian.Uint64(p[56:])
	if (a|b|c|d|e|f|g|h)&top != 0 {
		return 0, false
	}
	return mark8(a) | mark8(b)<<8 | mark8(c)<<16 | mark8(d)<<24 | mark8(e)<<32 | mark8(f)<<40 | mark8(g)<<48 | mark8(h)<<56, true
}

const (
	each = 0x0101010101010101
	top  = each << 7
)

// mark8 is mark for eight bytes.
func mark8(x uint64) uint64 {
	more := (x | top) - each*0x0E | x                    // has its top bit in each byte that is 0x0E or more
	return (top &^ more >> 7) * 0x0102040810204080 >> 56 // gathers the other top bits in the highest byte
}

// afterCR makes the LF of a CRLF part of it. If the CR was all there is, the line has ended all the same: an event does
// not wait for a byte that may never come.
func (d *Decoder) afterCR() {
	if d.pos == d.end {
		d.edge = true
	} else if d.buf[d.pos] == '\n' {
		d.pos++
	}
}

// fill reads until there is more to decode.
func (d *Decoder) fill() error {
	if d.end-d.pos > d.max {
		return d.tooLong(PartLine)
	}
	for {
		if d.err != nil {
			return d.err
		}
		d.makeRoom()
		d.read()
		if d.pos < d.end && (!d.edge || d.skip()) {
			return nil
		}
	}
}

// skip passes the byte order mark that the stream may begin with, and later the LF of a CR that was the last byte there
// was. It returns false while it cannot be told yet whether there is a mark.
func (d *Decoder) skip() bool {
	rest := d.buf[d.pos:d.end]
	switch {
	case d.begun:
		if rest[0] == '\n' {
			d.pos++
		}
	case bytes.HasPrefix(rest, byteOrderMark):
		d.pos += len(byteOrderMark)
	case bytes.HasPrefix(byteOrderMark, rest):
		return false
	}
	d.begun, d.edge = true, false
	return true
}

// read reads once, but for reads that bring nothing.
func (d *Decoder) read() {
	for range maxEmptyReads {
		n, err := d.r.Read(d.buf[d.end:])
		if n < 0 || n > len(d.buf)-d.end {
			n, err = 0, errors.New("the reader returned an impossible count")
		}
		if err == io.EOF { //nolint:errorlint // as io.Reader says: the error itself, not one that wraps it
			d.err = err
		} else if err != nil {
			d.err = fmt.Errorf("sse: read: %w", err)
		}
		d.end += n
		if n > 0 && d.onRead != nil {
			d.onRead(n)
		}
		if n > 0 || err != nil {
			return
		}
	}
	d.err = fmt.Errorf("sse: read: %w", io.ErrNoProgress)
}

// makeRoom makes room to read into. What is kept is the data of the event under way and what is to be decoded. Unless
// that is less than half, the buffer doubles, so that moving it down costs less than reading the rest did. A small one
// doubles also when a read has filled it: there was more to be had.
func (d *Decoder) makeRoom() {
	data := len(d.data)
	keep := data + d.end - d.pos
	if keep > 0 && d.end < len(d.buf) {
		return
	}
	into := d.buf
	if keep > len(d.buf)/2 || d.end == len(d.buf) && len(d.buf) < fastBuffer {
		into = make([]byte, 2*len(d.buf))
	}
	copy(into, d.data)
	copy(into[data:], d.buf[d.pos:d.end])
	if d.data != nil {
		d.data = into[:data]
	}
	unsearched := d.end - d.found
	d.buf, d.pos, d.end = into, data, keep
	d.found = keep - unsearched
}
