package sse_test

import (
	"math/big"
	"strings"
	"time"
)

// reference decodes a whole stream as the standard's text says, step by step and slowly. It shares no idea with the
// decoder: it decodes UTF-8 first, splits into lines, and works on strings. The position before the stream is an argument, see
// Options.LastEventID.
func reference(input []byte, position string) outcome {
	var (
		o           outcome
		dataBuffer  []byte
		typeBuffer  string
		idBuffer    = position
		lastEventID = position
	)
	for _, line := range lines(decodeUTF8(input)) {
		switch {
		case line == "": // dispatch the event
			lastEventID = idBuffer
			if len(dataBuffer) == 0 {
				typeBuffer = ""
				continue
			}
			data := strings.TrimSuffix(string(dataBuffer), "\n")
			o.Events = append(o.Events, event{lastEventID, typeBuffer, data})
			dataBuffer, typeBuffer = nil, ""
			continue
		case strings.HasPrefix(line, ":"):
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			typeBuffer = value
		case "data":
			dataBuffer = append(append(dataBuffer, value...), '\n')
		case "id":
			if !strings.Contains(value, "\x00") {
				idBuffer = value
			}
		case "retry":
			if value == "" || strings.Trim(value, "0123456789") != "" {
				continue
			}
			ms, _ := new(big.Int).SetString(value, 10)
			ns := ms.Mul(ms, big.NewInt(int64(time.Millisecond)))
			o.Retry, o.Retries = 1<<63-1, true
			if ns.IsInt64() {
				o.Retry = time.Duration(ns.Int64())
			}
		}
	}
	o.LastID = lastEventID
	return o
}

// lines splits at every end of a line (section 9.2.5, end-of-line). What follows the last one is no line: it is the
// pending data that is discarded at the end of the stream.
func lines(s string) []string {
	var all []string
	start := 0
	for i := 0; i < len(s); i++ {
		if s[i] == '\r' || s[i] == '\n' {
			all = append(all, s[start:i])
			if strings.HasPrefix(s[i:], "\r\n") {
				i++
			}
			start = i + 1
		}
	}
	return all
}

// decodeUTF8 is the Encoding standard's "UTF-8 decode" (section 6) with the decoder of section 8.1.1, in its variables.
func decodeUTF8(p []byte) string {
	if len(p) >= 3 && p[0] == 0xEF && p[1] == 0xBB && p[2] == 0xBF {
		p = p[3:]
	}
	var (
		out          strings.Builder
		codePoint    rune
		seen, needed int
		lower, upper byte = 0x80, 0xBF
	)
	for i := 0; i < len(p); i++ {
		b := p[i]
		if needed == 0 {
			switch {
			case b <= 0x7F:
				out.WriteRune(rune(b))
			case b >= 0xC2 && b <= 0xDF:
				needed, codePoint = 1, rune(b&0x1F)
			case b >= 0xE0 && b <= 0xEF:
				if b == 0xE0 {
					lower = 0xA0
				}
				if b == 0xED {
					upper = 0x9F
				}
				needed, codePoint = 2, rune(b&0xF)
			case b >= 0xF0 && b <= 0xF4:
				if b == 0xF0 {
					lower = 0x90
				}
				if b == 0xF4 {
					upper = 0x8F
				}
				needed, codePoint = 3, rune(b&0x7)
			default:
				out.WriteString("\uFFFD")
			}
			continue
		}
		if b < lower || b > upper {
			codePoint, needed, seen, lower, upper = 0, 0, 0, 0x80, 0xBF
			i-- // restore the byte
			out.WriteString("\uFFFD")
			continue
		}
		lower, upper = 0x80, 0xBF
		codePoint = codePoint<<6 | rune(b&0x3F)
		if seen++; seen == needed {
			out.WriteRune(codePoint)
			codePoint, needed, seen = 0, 0, 0
		}
	}
	if needed != 0 {
		out.WriteString("\uFFFD")
	}
	return out.String()
}
