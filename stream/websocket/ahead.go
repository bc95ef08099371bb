package websocket

const (
	aheadAfter  = 16 // reads in a row that brought all they had room for
	aheadBuffer = 32 << 10
	aheadWorth  = 16 << 10 // a read that brings less is the last one ahead
)

// ahead reads more at once than it is asked for, while there is a flood: a read of the network costs as much as several small
// messages. A stream that is idle holds no buffer for that.
type ahead struct {
	buf  []byte
	rest []byte // of what is in buf, that nobody has asked for yet
	err  error  // what came after rest
	full int    // reads in a row that brought all they had room for
}

func (a *ahead) read(p []byte, network func([]byte) (int, error)) (int, error) {
	if len(a.rest) == 0 {
		if err := a.err; err != nil {
			a.err = nil
			return 0, err
		}
		if len(p) >= aheadBuffer || a.full < aheadAfter {
			n, err := network(p)
			if a.full++; n < len(p) {
				a.full = 0
			}
			return n, err
		}
		if a.buf == nil {
			a.buf = make([]byte, aheadBuffer)
		}
		n, err := network(a.buf)
		a.rest, a.err = a.buf[:n], err
		if n < aheadWorth {
			a.full = 0
		}
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	if len(a.rest) == 0 && a.full == 0 {
		a.buf, a.rest = nil, nil
	}
	return n, nil
}
