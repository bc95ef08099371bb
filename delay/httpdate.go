package delay

import (
	"strings"
	"time"
)

// httpDate reads the three forms of RFC 9110, section 5.6.7, to the letter. http.ParseTime is laxer: it looks zone names
// up on the host and takes offsets and fractions.
func httpDate(s string, now time.Time) (time.Time, bool) {
	if t, ok := imfFixdate(s); ok {
		return t, true
	}
	if t, ok := rfc850Date(s, now); ok {
		return t, true
	}
	return asctimeDate(s)
}

const (
	shortDays = "Sun Mon Tue Wed Thu Fri Sat "
	longDays  = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday "
	months    = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec "
)

func isName(s, names string) bool {
	return s != "" && strings.IndexByte(s, ' ') < 0 && (strings.HasPrefix(names, s+" ") || strings.Contains(names, " "+s+" "))
}

// Sun, 06 Nov 1994 08:49:37 GMT.
func imfFixdate(s string) (time.Time, bool) {
	if len(s) != 29 || !isName(s[:3], shortDays) || s[3:5] != ", " || s[7] != ' ' || s[11] != ' ' || s[16] != ' ' || s[25:] != " GMT" {
		return time.Time{}, false
	}
	return date(number(s[12:16]), s[8:11], number(s[5:7]), s[17:25])
}

// Sunday, 06-Nov-94 08:49:37 GMT.
func rfc850Date(s string, now time.Time) (time.Time, bool) {
	day, rest, ok := strings.Cut(s, ", ")
	if !ok || !isName(day, longDays) || len(rest) != 22 || rest[2] != '-' || rest[6] != '-' || rest[9] != ' ' || rest[18:] != " GMT" {
		return time.Time{}, false
	}
	yy := number(rest[7:9])
	if yy < 0 {
		return time.Time{}, false
	}
	// A two-digit year that appears to be more than 50 years ahead is the most recent one in the past with the same
	// digits; so it is the latest year that is not.
	horizon := now.UTC().AddDate(50, 0, 0)
	year := horizon.Year() - horizon.Year()%100 + yy
	if year > horizon.Year() {
		year -= 100
	}
	t, ok := date(year, rest[3:6], number(rest[:2]), rest[10:18])
	if year == horizon.Year() && ok && t.After(horizon) {
		t, ok = date(year-100, rest[3:6], number(rest[:2]), rest[10:18])
	}
	return t, ok
}

// Sun Nov  6 08:49:37 1994.
func asctimeDate(s string) (time.Time, bool) {
	if len(s) != 24 || !isName(s[:3], shortDays) || s[3] != ' ' || s[7] != ' ' || s[10] != ' ' || s[19] != ' ' {
		return time.Time{}, false
	}
	day := s[8:10]
	if day[0] == ' ' {
		day = day[1:]
	}
	return date(number(s[20:]), s[4:7], number(day), s[11:19])
}

func date(year int, month string, day int, clock string) (time.Time, bool) {
	if year < 0 || !isName(month, months) || day < 1 || clock[2] != ':' || clock[5] != ':' {
		return time.Time{}, false
	}
	m := time.Month(strings.Index(months, month)/4 + 1)
	hour, minute, second := number(clock[:2]), number(clock[3:5]), number(clock[6:])
	// second = 2DIGIT with 60 for a leap second, which time.Date carries into the next minute.
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return time.Time{}, false
	}
	if t := time.Date(year, m, day, 0, 0, 0, 0, time.UTC); t.Day() != day {
		return time.Time{}, false
	}
	return time.Date(year, m, day, hour, minute, second, 0, time.UTC), true
}

// number reads all digits, or returns -1.
func number(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}
