package auth

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxExpiresIn is the longest lifetime of a token that is believed.
const maxExpiresIn = 1<<31 - 1

// maxSeconds bounds the lifetime and the interval of a code: the most that a host with 32-bit timers in milliseconds can
// schedule.
const maxSeconds = 2_147_483

// wholeNumber reads the literal of a JSON number (RFC 8259, section 6) as a whole number from 0 to most. It is exact: no
// float has a part in it, so that neither 1e400 nor a fraction too fine for one is taken for something else.
func wholeNumber(literal string, most int64) (int64, error) {
	rest, negative := strings.CutPrefix(literal, "-")
	intPart, rest := digits(rest)
	if intPart == "" || len(intPart) > 1 && intPart[0] == '0' {
		return 0, errNoNumber
	}
	var fraction string
	if after, ok := strings.CutPrefix(rest, "."); ok {
		if fraction, rest = digits(after); fraction == "" {
			return 0, errNoNumber
		}
	}
	exponent := 0
	if rest != "" {
		if rest[0] != 'e' && rest[0] != 'E' {
			return 0, errNoNumber
		}
		sign := 1
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			if rest[0] == '-' {
				sign = -1
			}
			rest = rest[1:]
		}
		power, after := digits(rest)
		if power == "" || after != "" {
			return 0, errNoNumber
		}
		n, err := strconv.Atoi(power)
		if err != nil || n > 1<<30 {
			n = 1 << 30 // beyond any body's number of digits
		}
		exponent = sign * n
	}

	all := strings.TrimLeft(intPart+fraction, "0")
	exponent -= len(fraction)
	short := strings.TrimRight(all, "0")
	exponent += len(all) - len(short)
	switch {
	case short == "":
		return 0, nil
	case negative:
		return 0, errors.New("is negative")
	case exponent < 0:
		return 0, errors.New("is no whole number")
	case len(short)+exponent > 18: // digits of any int64
		return 0, fmt.Errorf("is more than %d", most)
	}
	n, err := strconv.ParseInt(short+strings.Repeat("0", exponent), 10, 64)
	if err != nil || n > most {
		return 0, fmt.Errorf("is more than %d", most)
	}
	return n, nil
}

var errNoNumber = errors.New("is no number")

// digits cuts the leading digits off.
func digits(s string) (lead, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	return s[:len(s)-len(rest)], rest
}
