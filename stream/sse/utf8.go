package sse

import "unicode/utf8"

// characters follows the characters of a text from block to block: what the last byte of one asks of the next one. The zero
// value is between two characters.
type characters struct{ four, three, two, high, low uint64 }

// between reports whether the last block ended between two characters: else one byte more, at least, continues the last one.
func (c *characters) between() bool { return c.two == 0 }

// scan returns the marks of a block, as mark does, and whether it goes on with valid UTF-8 where the one before ended.
//
// There is no branch in it: none could be foreseen in text whose characters are of several lengths. The rules of RFC 3629,
// section 4, are applied to all bytes of the block at once.
func (c *characters) scan(p *[block]byte) (marks uint64, ok bool) {
	b0, b1, b2, b3, b4, b5, b6, b7 := planes(p)
	marks = inOrder(^(b7 | b6 | b5 | b4 | b3&b2&b1))

	// Bytes that begin with as many ones, or more, have others to continue them.
	two := b7 & b6
	three := two & b5
	four := three & b4
	afterFour := after(four, c.four)
	threeLeft := three | afterFour
	twoLeft := two | after(threeLeft, c.three)
	bad := after(twoLeft, c.two) ^ b7&^b6

	// C0, C1 and what is above F4 are in no character.
	nibble := b3 | b2 | b1 | b0
	bad |= two&^(b5|b4|b3|b2|b1) | four&(b3|b2&(b1|b0))

	// After E0 and F0 the second byte is not one of the lower ones, which would be overlong; after ED and F4 not one of
	// the higher ones: surrogates, and more than U+10FFFF.
	high := three &^ nibble
	low := three&^b4&b3&b2&^b1&b0 | four&b2
	isHigh := b5 | b4&afterFour
	bad |= after(high, c.high)&^isHigh | after(low, c.low)&isHigh

	c.four, c.three, c.two, c.high, c.low = last(four), last(threeLeft), last(twoLeft), last(high), last(low)
	return marks, bad == 0
}

// unfinished returns how many of the last bytes begin a character that is not all there.
func unfinished(p []byte) int {
	for n := 1; n <= min(3, len(p)); n++ {
		long := 1
		switch c := p[len(p)-n]; {
		case c >= 0xF0:
			long = 4
		case c >= 0xE0:
			long = 3
		case c >= 0xC0:
			long = 2
		case c >= 0x80:
			continue
		}
		if long > n {
			return n
		}
		return 0
	}
	return 0
}

// appendUTF8 appends p to dst with U+FFFD in place of what is not UTF-8. As the Encoding standard's decoder does (section
// 8.1.1), and unlike package strings, it replaces each maximal prefix of a valid sequence by one, and every other byte
// by one of its own.
func appendUTF8(dst, p []byte) []byte {
	for len(p) > 0 {
		good := 0
		for good < len(p) {
			r, size := utf8.DecodeRune(p[good:])
			if r == utf8.RuneError && size <= 1 {
				break
			}
			good += size
		}
		dst = append(dst, p[:good]...)
		if p = p[good:]; len(p) == 0 {
			break
		}
		// A prefix that could still become a rune is no full rune yet.
		bad := 1
		for bad < len(p) && !utf8.FullRune(p[:bad+1]) {
			bad++
		}
		dst = utf8.AppendRune(dst, utf8.RuneError)
		p = p[bad:]
	}
	return dst
}
