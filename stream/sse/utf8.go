package sse

import "unicode/utf8"

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
