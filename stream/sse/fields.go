package sse

import (
	"math"
	"time"
)

// field processes a line that is not blank (section 9.2.6, "process the field").
func (d *Decoder) field(line []byte) {
	switch line[0] {
	case 'd':
		if value, ok := cut(line, "data"); ok {
			d.addData(value)
		}
	case 'e':
		if value, ok := cut(line, "event"); ok {
			d.typ = d.types.intern(value)
		}
	case 'i':
		if value, ok := cut(line, "id"); ok {
			d.setID(value)
		}
	case 'r':
		if value, ok := cut(line, "retry"); ok {
			d.reconnectionTime(value)
		}
	}
}

// cut returns the value of a line if its field has the name.
func cut(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return nil, false
	}
	value := line[len(name):]
	if len(value) == 0 {
		return value, true
	}
	if value[0] != ':' {
		return nil, false
	}
	value = value[1:]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return value, true
}

// setID makes a value the id of the event under way, unless there is a NUL in it.
func (d *Decoder) setID(value []byte) {
	if d.nul {
		return
	}
	next := &d.ids[d.at^1]
	if d.odd {
		*next = appendUTF8((*next)[:0], value)
	} else {
		*next = append((*next)[:0], value...)
	}
	d.newID = true
}

// addData adds a line of data to the event under way. The first stays where it is in the buffer. The others are appended
// to it in place: that moves them down and never past their own place, because the name of the field lies between.
func (d *Decoder) addData(value []byte) {
	d.unsure = d.unsure || d.odd
	if d.data == nil {
		d.data = value
	} else {
		n := len(d.data)
		d.data = d.data[:n+1+len(value)]
		d.data[n] = '\n'
		copy(d.data[n+1:], value)
	}
}

// reconnectionTime reads the value of retry: ASCII digits only, milliseconds.
func (d *Decoder) reconnectionTime(value []byte) {
	const most = math.MaxInt64/10 - 1 // it saturates there, and goes on to look for other bytes than digits
	var ms int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
		ms = min(ms, most)*10 + int64(c-'0')
	}
	if len(value) == 0 {
		return
	}
	d.retries = true
	if d.retry = math.MaxInt64; ms <= math.MaxInt64/int64(time.Millisecond) {
		d.retry = time.Duration(ms) * time.Millisecond
	}
}
