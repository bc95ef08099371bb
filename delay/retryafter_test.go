package delay_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// bad is the outcome of a value that cannot be used.
const bad = time.Duration(-1)

func checkReading(t *testing.T, name string, got delay.RetryAfter, want time.Duration) {
	t.Helper()
	if want == bad {
		if !got.Malformed() || got.Duration() != 0 {
			t.Errorf("%s reads as %v, want malformed", name, got)
		}
		return
	}
	if got.Malformed() || got.Duration() != want {
		t.Errorf("%s reads as %v, want %v", name, got, want)
	}
}

func TestReadForms(t *testing.T) {
	const (
		digits   = delay.Digits
		date     = delay.Date
		fraction = delay.Fraction
		saturate = 2147483647 * sec
	)
	const inOneMinute = "Sun, 29 Nov 2026 12:01:00 GMT"
	tests := []struct {
		forms delay.Forms
		value string
		want  time.Duration
	}{
		{digits, "1", sec},
		{digits, "120", 120 * sec},
		{digits, "007", 7 * sec},
		{digits, strings.Repeat("0", 400) + "7", 7 * sec},
		{digits, " \t7\t ", 7 * sec},
		{digits, "2147483646", 2147483646 * sec},
		{digits, "2147483647", saturate},
		{digits, "2147483648", saturate},
		{digits, "9223372036", saturate},          // the last that fits a Duration
		{digits, "9223372037", saturate},          // times 1e9 it would wrap below zero
		{digits, "18446744074", saturate},         // or to 290 ms
		{digits, "9223372036854775807", saturate}, // MaxInt64
		{digits, "9223372036854775808", bad},      // one more
		{digits, "9223372036854775810", bad},      // and where only the last step overflows
		{digits, "18446744073709551617", bad},     // 2^64+1: 1 when it wraps
		{digits, strings.Repeat("9", 100_000), bad},
		{digits, "0", bad},
		{digits, "000", bad},
		{digits, "", bad},
		{digits, " \t ", bad},
		{digits, "-1", bad},
		{digits, "+1", bad},
		{digits, "-0", bad},
		{digits, "1.5", bad},
		{digits, "1.", bad},
		{digits, "1,5", bad},
		{digits, "1, 5", bad},
		{digits, "1;q=1", bad},
		{digits, "1 5", bad},
		{digits, "1e3", bad},
		{digits, "0x10", bad},
		{digits, "1_000", bad},
		{digits, "10s", bad},
		{digits, "\u00a07", bad},
		{digits, "7\u00a0", bad},
		{digits, "\u30007", bad},
		{digits, "7\v", bad},
		{digits, "7\n", bad},
		{digits, "7\x00", bad},
		{digits, "٧", bad}, // a digit, not of ASCII
		{digits, "\xff", bad},
		{digits, "\"7\"", bad},
		{digits, inOneMinute, bad},

		{date, inOneMinute, 60 * sec},
		{date, " " + inOneMinute + "\t", 60 * sec},
		{date, "60", bad},
		{date, "60.0", bad},
		{digits | date, "60", 60 * sec},
		{digits | date, inOneMinute, 60 * sec},
		{digits | date, "60.0", bad},

		{fraction, "1.5", 1500 * ms},
		{fraction, "0.37", 370 * ms},
		{fraction, "0.5", 500 * ms},
		{fraction, "0.001", ms},
		{fraction, "0.0011", 2 * ms}, // up to the millisecond
		{fraction, "0.0019", 2 * ms},
		{fraction, "0.9991", sec},
		{fraction, "0.0001", ms},
		{fraction, "0." + strings.Repeat("0", 100_000) + "1", ms}, // every digit counts
		{fraction, "1.0000", sec},
		{fraction, "1.000", sec},
		{fraction, "007.250", 7250 * ms},
		{fraction, "2147483646.9991", saturate},
		{fraction, "2147483647.0", saturate},
		{fraction, "2147483647.5", saturate},
		{fraction, "9223372036854775807.9", saturate},
		{fraction, "9223372036854775808.5", bad},
		{fraction, "0.0", bad},
		{fraction, "0.000000", bad},
		{fraction, "1.", bad},
		{fraction, ".5", bad},
		{fraction, "1.5.5", bad},
		{fraction, "1.5s", bad},
		{fraction, "1.-5", bad},
		{fraction, "-1.5", bad},
		{fraction, "1,5", bad},
		{fraction, "1. 5", bad},
		{fraction, "1", bad}, // Digits are a form of their own
		{digits | fraction, "1", sec},
		{digits | fraction, "1.5", 1500 * ms},
		{digits | fraction, inOneMinute, bad},

		{0, "1", bad},
		{0, "1.5", bad},
		{0, inOneMinute, bad},
	}
	for _, tt := range tests {
		name := tt.value
		if len(name) > 50 {
			name = name[:50] + "..."
		}
		checkReading(t, tt.forms.String()+": "+name, tt.forms.Read(lines(tt.value), noon), tt.want)
	}
}

func TestReadLines(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  time.Duration
	}{
		{"none", nil, 0},
		{"one", []string{"3"}, 3 * sec},
		{"the longest wins", []string{"3", "10", "7"}, 10 * sec},
		{"the longest first", []string{"10", "3"}, 10 * sec},
		{"malformed ones do not count", []string{"junk", "3", ""}, 3 * sec},
		{"zero does not count", []string{"3", "0"}, 3 * sec},
		{"forms mixed", []string{"30", "Sun, 29 Nov 2026 12:01:00 GMT"}, 60 * sec},
		{"a date in the past", []string{"30", "Sun, 29 Nov 2026 11:59:00 GMT"}, 30 * sec},
		{"all malformed", []string{"junk", "0", "-1"}, bad},
		{"a list in one line is no line", []string{"3, 10"}, bad},
	}
	for _, tt := range tests {
		checkReading(t, tt.name, delay.ParseRetryAfter(lines(tt.lines...), noon), tt.want)
	}

	for name, h := range map[string]http.Header{"a nil header": nil, "another header": {"Retry-After-Ms": {"5"}}, "a key nobody canonicalised": {"retry-after": {"5"}}} {
		got := delay.ParseRetryAfter(h, noon)
		checkReading(t, name, got, 0)
		if got != (delay.RetryAfter{}) {
			t.Errorf("%s: %#v is not the zero value", name, got)
		}
	}
}

func TestReadByLoop(t *testing.T) {
	h := lines("Sun, 29 Nov 2026 12:01:00 GMT")
	for _, row := range delay.Table() {
		want := 60 * sec
		if row.Loop == delay.DevicePoll {
			want = bad // its deadline lives on the monotonic clock
		}
		checkReading(t, row.Loop.String()+", a date", row.Loop.RetryAfter(h, noon), want)
		checkReading(t, row.Loop.String()+", digits", row.Loop.RetryAfter(lines("60"), noon), 60*sec)
		checkReading(t, row.Loop.String()+", a fraction", row.Loop.RetryAfter(lines("1.5"), noon), bad)
	}
}

func TestAsked(t *testing.T) {
	tests := []struct {
		d    time.Duration
		want time.Duration
		text string
	}{
		{1, 1, "1ns"},
		{1500 * ms, 1500 * ms, "1.5s"},
		{delay.MaxWait, delay.MaxWait, "596523h14m7s"},
		{delay.MaxWait + 1, delay.MaxWait, "596523h14m7s"},
		{math.MaxInt64, delay.MaxWait, "596523h14m7s"},
		{0, bad, "malformed"},
		{-1, bad, "malformed"},
		{math.MinInt64, bad, "malformed"},
	}
	for _, tt := range tests {
		checkReading(t, tt.d.String(), delay.Asked(tt.d), tt.want)
		if got := delay.Asked(tt.d).String(); got != tt.text {
			t.Errorf("Asked(%v) prints as %q, want %q", tt.d, got, tt.text)
		}
	}
	if got := (delay.RetryAfter{}).String(); got != "absent" {
		t.Errorf("the zero RetryAfter prints as %q", got)
	}
	if delay.MaxWait != 2147483647*sec {
		t.Errorf("MaxWait is %v", delay.MaxWait)
	}
}

func TestFormsString(t *testing.T) {
	for f, want := range map[delay.Forms]string{
		0: "", delay.Digits: "seconds", delay.Date: "HTTP-date", delay.Fraction: "fractions",
		delay.Digits | delay.Fraction:              "seconds, fractions",
		delay.Digits | delay.Date | delay.Fraction: "seconds, HTTP-date, fractions",
	} {
		if got := f.String(); got != want {
			t.Errorf("Forms(%d) prints as %q, want %q", f, got, want)
		}
	}
}

// TestDates reads dates against the instant that each is, from a second before it: the wait is 1 s, and a value that is
// read wrongly by a second or a century shows.
func TestDates(t *testing.T) {
	utc := func(year, month, day, hour, minute, second int) time.Time {
		return time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	}
	tests := []struct {
		name, value string
		at          time.Time
	}{
		{"the RFC's IMF-fixdate", "Sun, 06 Nov 1994 08:49:37 GMT", utc(1994, 11, 6, 8, 49, 37)},
		{"the RFC's rfc850-date", "Sunday, 06-Nov-94 08:49:37 GMT", utc(1994, 11, 6, 8, 49, 37)},
		{"the RFC's asctime-date", "Sun Nov  6 08:49:37 1994", utc(1994, 11, 6, 8, 49, 37)},
		{"asctime, two digits", "Wed Nov 16 08:49:37 1994", utc(1994, 11, 16, 8, 49, 37)},
		{"asctime, a leading zero", "Sun Nov 06 08:49:37 1994", utc(1994, 11, 6, 8, 49, 37)},
		{"a day that does not fit the date is still a day", "Mon, 06 Nov 1994 08:49:37 GMT", utc(1994, 11, 6, 8, 49, 37)},
		{"the last second of a day", "Thu, 31 Dec 2026 23:59:59 GMT", utc(2026, 12, 31, 23, 59, 59)},
		{"midnight", "Fri, 01 Jan 2027 00:00:00 GMT", utc(2027, 1, 1, 0, 0, 0)},
		{"a leap second", "Thu, 31 Dec 2026 23:59:60 GMT", utc(2027, 1, 1, 0, 0, 0)},
		{"a leap second, rfc850", "Thursday, 31-Dec-26 23:59:60 GMT", utc(2027, 1, 1, 0, 0, 0)},
		{"a leap second, asctime", "Thu Dec 31 23:59:60 2026", utc(2027, 1, 1, 0, 0, 0)},
		{"a leap day", "Tue, 29 Feb 2028 00:00:00 GMT", utc(2028, 2, 29, 0, 0, 0)},
		{"a leap day of a fourth century", "Tue, 29 Feb 2000 00:00:00 GMT", utc(2000, 2, 29, 0, 0, 0)},
		{"a leap day, rfc850", "Tuesday, 29-Feb-28 00:00:00 GMT", utc(2028, 2, 29, 0, 0, 0)},
		{"a leap day, asctime", "Tue Feb 29 00:00:00 2028", utc(2028, 2, 29, 0, 0, 0)},
		{"before the epoch", "Mon, 01 Jan 0001 00:00:01 GMT", utc(1, 1, 1, 0, 0, 1)},
		{"the last of four digits", "Fri, 31 Dec 9999 23:59:59 GMT", utc(9999, 12, 31, 23, 59, 59)},
	}
	add := func(value string, at time.Time) {
		tests = append(tests, struct {
			name, value string
			at          time.Time
		}{value, value, at})
	}
	for i, month := range []string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"} {
		add("Sun, 28 "+month+" 2027 12:34:56 GMT", utc(2027, i+1, 28, 12, 34, 56))
	}
	for _, day := range []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"} {
		add(day[:3]+", 02 Jan 2027 03:04:05 GMT", utc(2027, 1, 2, 3, 4, 5))
		add(day+", 02-Jan-27 03:04:05 GMT", utc(2027, 1, 2, 3, 4, 5))
		add(day[:3]+" Jan  2 03:04:05 2027", utc(2027, 1, 2, 3, 4, 5))
	}
	for _, tt := range tests {
		read := func(now time.Time) delay.RetryAfter { return delay.Date.Read(lines(tt.value), now) }
		checkReading(t, tt.name+", a second before", read(tt.at.Add(-sec)), sec)
		checkReading(t, tt.name+", almost a second before", read(tt.at.Add(-sec+1)), sec)
		checkReading(t, tt.name+", a nanosecond before", read(tt.at.Add(-1)), sec)
		checkReading(t, tt.name+", over a second before", read(tt.at.Add(-sec-1)), 2*sec)
		checkReading(t, tt.name+", now", read(tt.at), bad)
		checkReading(t, tt.name+", just over", read(tt.at.Add(1)), bad)
		// The zone in which the caller's clock shows its time has no part in it.
		checkReading(t, tt.name+", elsewhere", read(tt.at.Add(-sec).In(time.FixedZone("east", 14*3600))), sec)
	}
	checkReading(t, "a far date", delay.Date.Read(lines("Fri, 31 Dec 9999 23:59:59 GMT"), noon), delay.MaxWait)
}

func TestDatesMalformed(t *testing.T) {
	// Each of these is one slip away from a date in the future.
	for _, value := range []string{
		// IMF-fixdate
		"sun, 29 Nov 2026 12:01:00 GMT", "SUN, 29 Nov 2026 12:01:00 GMT", "Son, 29 Nov 2026 12:01:00 GMT", "n M, 29 Nov 2026 12:01:00 GMT",
		"Sun, 29 nov 2026 12:01:00 GMT", "Sun, 29 NOV 2026 12:01:00 GMT", "Sun, 29 Okt 2026 12:01:00 GMT", "Sun, 29 n D 2026 12:01:00 GMT",
		"Sun, 29 Nov 2026 12:01:00 gmt", "Sun, 29 Nov 2026 12:01:00 UTC", "Sun, 29 Nov 2026 12:01:00 UT", "Sun, 29 Nov 2026 12:01:00 Z",
		"Sun, 29 Nov 2026 12:01:00 CET", "Sun, 29 Nov 2026 12:01:00 EST", "Sun, 29 Nov 2026 12:01:00 GMT+1", "Sun, 29 Nov 2026 12:01:00 GMT-8",
		"Sun, 29 Nov 2026 12:01:00 +0000", "Sun, 29 Nov 2026 12:01:00 GMT+01:00", "Sun, 29 Nov 2026 12:01:00 ", "Sun, 29 Nov 2026 12:01:00",
		"Sun 29 Nov 2026 12:01:00 GMT", "Sun,29 Nov 2026 12:01:00 GMT", "Sun,  29 Nov 2026 12:01:00 GMT", "Sun; 29 Nov 2026 12:01:00 GMT",
		"Sun, 29-Nov-2026 12:01:00 GMT", "Sun, 29 Nov 2026T12:01:00 GMT", "Sun, 29 Nov 2026  12:01:00 GMT", "Sun, 29 Nov 2026 12.01.00 GMT",
		"Sun, 29 Nov 2026 12:01.00 GMT", "Sun, 29 Nov 2026 12.01:00 GMT", "Sun, 29_Nov 2026 12:01:00 GMT", "Sun, 29 Nov_2026 12:01:00 GMT",
		"Sun, 29 Nov 2026_12:01:00 GMT", "Sun, 29 Nov 2026 12:01:00_GMT", "Sun,_29 Nov 2026 12:01:00 GMT",
		"Sun, 29 Nov 2026 12:01 GMT", "Sun, 29 Nov 2026 12:01:00.5 GMT", "Sun, 29 Nov 2026 12:01:00,5 GMT", "Sun, 29 Nov 2026 24:00:00 GMT",
		"Sun, 29 Nov 2026 12:60:00 GMT", "Sun, 29 Nov 2026 12:01:61 GMT", "Sun, 29 Nov 2026 -1:01:00 GMT", "Sun, 29 Nov 2026 +1:01:00 GMT",
		"Sun, 29 Nov 2026 12:-1:00 GMT", "Sun, 29 Nov 2026 12:01:-1 GMT", "Sun, 29 Nov 2026  2:01:00 GMT", "Sun, 29 Nov 2026 2:01:00 GMT",
		"Sun, 29 Nov 26 12:01:00 GMT", "Sun, 29 Nov 02026 12:01:00 GMT", "Sun, 29 Nov 20x6 12:01:00 GMT", "Sun, 29 Nov -026 12:01:00 GMT",
		"Sun, 9 Dec 2026 12:01:00 GMT", "Sun,  9 Dec 2026 12:01:00 GMT", "Sun, +9 Dec 2026 12:01:00 GMT", "Sun, 00 Dec 2026 12:01:00 GMT",
		"Sun, 31 Nov 2026 12:01:00 GMT", "Sun, 32 Dec 2026 12:01:00 GMT", "Mon, 29 Feb 2027 12:01:00 GMT", "Mon, 29 Feb 2100 12:01:00 GMT", "Mon, 30 Feb 2028 12:01:00 GMT",
		"29 Nov 2026 12:01:00 GMT", "Sunday, 29 Nov 2026 12:01:00 GMT", "Sun, 29 Nov 2026 12:01:00 GMT, 5", "Sun, 29 Nov 2026 12:01:00 GMT;", "\"Sun, 29 Nov 2026 12:01:00 GMT\"",
		"Sun, 29 Nov 2026 12:01:00\u00a0GMT", "Sun, 29\u00a0Nov 2026 12:01:00 GMT", "Sun, ２９ Nov 2026 12:01:00 GMT", "Sun, 29 November 2026 12:01:00 GMT",
		// rfc850-date
		"sunday, 29-Nov-26 12:01:00 GMT", "Sun, 29-Nov-26 12:01:00 GMT", "Sunday 29-Nov-26 12:01:00 GMT", "Sunday,29-Nov-26 12:01:00 GMT", ", 29-Nov-26 12:01:00 GMT",
		"day Monday, 29-Nov-26 12:01:00 GMT", "Sunday Monday, 29-Nov-26 12:01:00 GMT", "Tues, 29-Nov-26 12:01:00 GMT", "Sunday, 29 Nov 26 12:01:00 GMT", "Sunday, 29-nov-26 12:01:00 GMT",
		"Sunday, 29/Nov-26 12:01:00 GMT", "Sunday, 29-Nov/26 12:01:00 GMT", "Sunday, 29-Nov-26T12:01:00 GMT", "Sunday, 29-Nov-2026 12:01:00 GMT", "Sunday, 29-Nov-6 12:01:00 GMT",
		"Sunday, 29-Nov-2x 12:01:00 GMT", "Sunday, 29-Nov--1 12:01:00 GMT", "Sunday, 29-Nov-26 12:01:00 UTC", "Sunday, 29-Nov-26 12:01:00 gmt", "Sunday, 29-Nov-26 12:01:00 +0000",
		"Sunday, 29-Nov-26 12:01:00", "Sunday, 9-Dec-26 12:01:00 GMT", "Sunday,  9-Dec-26 12:01:00 GMT", "Sunday, 31-Nov-26 12:01:00 GMT", "Sunday, 29-Feb-27 12:01:00 GMT",
		"Sunday, 29-Nov-26 24:01:00 GMT", "Sunday, 29-Nov-26 12:01:61 GMT", "Sunday, 29-Nov-26 12:61:00 GMT", "Sunday, 29-Nov-26 12:01:00.0 GMT",
		// asctime-date
		"sun Nov 29 12:01:00 2026", "Sunday Nov 29 12:01:00 2026", "Sun, Nov 29 12:01:00 2026", "Sun nov 29 12:01:00 2026", "Sun Nov 29 12:01:00 2026 GMT", "Sun Nov 29 12:01:00 GMT 2026",
		"Sun Nov 29 12:01:00 26", "Sun Nov 29 12:01:00  2026", "Sun Nov 29 12:01 2026", "Sun Dec 9 12:01:00 2026", "Sun Dec   9 12:01:00 2026", "Sun Dec 9  12:01:00 2026",
		"Sun Dec  0 12:01:00 2026", "Sun Dec 00 12:01:00 2026", "Sun Dec    12:01:00 2026", "Sun Nov 31 12:01:00 2026", "Sun Nov 29 24:01:00 2026", "Sun Nov 29 12:01:61 2026", "Sun Nov 29 12:61:00 2026",
		"Sun_Nov 29 12:01:00 2026", "Sun Nov_29 12:01:00 2026", "Sun Nov 29_12:01:00 2026", "Sun Nov 29 12:01:00_2026", "Sun Nov 29 12:01:00 202x", "Sun Nov 29 12-01-00 2026", "Sun Nov 2x 12:01:00 2026",
		// Others
		"2026-11-29T12:01:00Z", "2026-11-29 12:01:00", "11/29/2026 12:01:00", "Sun, 29 Nov 2026", "12:01:00", "tomorrow", "Sun", "Sun, ", "GMT",
	} {
		checkReading(t, value, (delay.Digits|delay.Date|delay.Fraction).Read(lines(value), noon), bad)
	}
}

// TestTwoDigitYears is the rule of RFC 9110, section 5.6.7: what appears to be more than 50 years ahead is the most recent
// year in the past with the same digits.
func TestTwoDigitYears(t *testing.T) {
	at := func(s string) time.Time {
		when, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	tests := []struct {
		name, now, value, is string // is empty: in the past, or no date
	}{
		{"this year", "2026-11-29T12:00:00Z", "Sunday, 29-Nov-26 12:01:00 GMT", "2026-11-29T12:01:00Z"},
		{"next year", "2026-11-29T12:00:00Z", "Sunday, 29-Nov-27 12:00:00 GMT", "2027-11-29T12:00:00Z"},
		{"last year", "2026-11-29T12:00:00Z", "Sunday, 29-Nov-25 12:00:00 GMT", ""},
		{"49 years ahead", "2026-11-29T12:00:00Z", "Sunday, 29-Nov-75 12:00:00 GMT", "2075-11-29T12:00:00Z"},
		{"a second less than 50 years", "2026-11-29T12:00:00Z", "Sunday, 29-Nov-76 11:59:59 GMT", "2076-11-29T11:59:59Z"},
		{"50 years to the second", "2026-11-29T12:00:00Z", "Sunday, 29-Nov-76 12:00:00 GMT", "2076-11-29T12:00:00Z"},
		{"50 years to the second, by a clock behind", "2026-11-29T11:59:59.999Z", "Sunday, 29-Nov-76 12:00:00 GMT", ""},
		{"50 years and a second", "2026-11-29T12:00:00Z", "Sunday, 29-Nov-76 12:00:01 GMT", ""},
		{"50 years and a second, by a clock ahead", "2026-11-29T12:00:00.999Z", "Sunday, 29-Nov-76 12:00:01 GMT", ""},
		{"50 years and a day", "2026-11-29T12:00:00Z", "Sunday, 30-Nov-76 12:00:00 GMT", ""},
		{"51 years", "2026-11-29T12:00:00Z", "Sunday, 29-Nov-77 12:00:00 GMT", ""},
		{"the end of the century is past", "2026-11-29T12:00:00Z", "Sunday, 29-Nov-99 12:00:00 GMT", ""},
		{"a leap second at 50 years", "2026-12-31T23:59:59Z", "Thursday, 31-Dec-76 23:59:60 GMT", ""},
		{"over the turn of the century", "2099-12-31T23:59:59Z", "Friday, 01-Jan-00 00:00:00 GMT", "2100-01-01T00:00:00Z"},
		{"well over it", "2099-06-01T00:00:00Z", "Friday, 01-Jan-01 00:00:00 GMT", "2101-01-01T00:00:00Z"},
		{"49 years over it", "2099-06-01T00:00:00Z", "Friday, 01-Jan-49 00:00:00 GMT", "2149-01-01T00:00:00Z"},
		{"just 50 years over it", "2099-06-01T00:00:00Z", "Friday, 01-Jun-49 00:00:00 GMT", "2149-06-01T00:00:00Z"},
		{"more than 50 years over it", "2099-06-01T00:00:00Z", "Friday, 02-Jun-49 00:00:00 GMT", ""},
		{"last year, in the last of a century", "2099-06-01T00:00:00Z", "Friday, 01-Jan-98 00:00:00 GMT", ""},
		{"the last of a century", "2099-06-01T00:00:00Z", "Friday, 01-Dec-99 00:00:00 GMT", "2099-12-01T00:00:00Z"},
		{"the first of a century", "2000-01-01T00:00:00Z", "Saturday, 01-Jan-00 00:00:01 GMT", "2000-01-01T00:00:01Z"},
		{"half way, where http.ParseTime says 1970", "2026-11-29T12:00:00Z", "Wednesday, 01-Jan-70 00:00:00 GMT", "2070-01-01T00:00:00Z"},
		{"a horizon in the next century", "2060-01-01T00:00:00Z", "Friday, 01-Jan-10 00:00:00 GMT", "2110-01-01T00:00:00Z"},
		{"and over it", "2060-01-01T00:00:00Z", "Friday, 02-Jan-10 00:00:00 GMT", ""},
		{"a leap day that its year has", "2096-01-01T00:00:00Z", "Monday, 29-Feb-04 00:00:00 GMT", "2104-02-29T00:00:00Z"},
		{"a leap day that its year has not", "2096-01-01T00:00:00Z", "Monday, 29-Feb-00 00:00:00 GMT", ""},
		{"now in another zone", "2099-12-31T23:59:59-10:00", "Friday, 01-Jan-50 09:59:59 GMT", "2150-01-01T09:59:59Z"},
		{"and over it in another zone", "2099-12-31T23:59:59-10:00", "Friday, 01-Jan-50 10:00:00 GMT", ""},
	}
	for _, tt := range tests {
		now := at(tt.now)
		want := bad
		if tt.is != "" {
			want = time.Duration(at(tt.is).Unix()-now.Unix()) * sec
		}
		checkReading(t, tt.name, delay.Date.Read(lines(tt.value), now), want)
	}
}
