package delay_test

import (
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// The grammar of RFC 9110, sections 5.6.7 and 10.2.3, once more and by other means.
var (
	digitsForm   = regexp.MustCompile(`^[0-9]+$`)
	fractionForm = regexp.MustCompile(`^([0-9]+)\.([0-9]+)$`)
	month        = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)`
	imfForm      = regexp.MustCompile(`^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} ` + month + ` [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$`)
	rfc850Form   = regexp.MustCompile(`^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, ([0-9]{2})-(` + month + `)-([0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2}) GMT$`)
	asctimeForm  = regexp.MustCompile(`^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ` + month + ` (?:[0-9]{2}| [0-9]) [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}$`)
)

// oracle reads one line as Read should: the wait, or 0 for malformed.
func oracle(forms delay.Forms, line string, now time.Time) time.Duration {
	s := strings.Trim(line, "\t ")
	limit := big.NewInt(2147483647)
	maxInt64 := new(big.Int).SetUint64(1<<63 - 1)
	saturated := func(n *big.Int) time.Duration {
		if n.Cmp(limit) > 0 {
			n = limit
		}
		return time.Duration(n.Int64()) * time.Second
	}
	if digitsForm.MatchString(s) {
		n, _ := new(big.Int).SetString(s, 10)
		if forms&delay.Digits == 0 || n.Cmp(maxInt64) > 0 {
			return 0
		}
		return saturated(n)
	}
	if parts := fractionForm.FindStringSubmatch(s); parts != nil {
		whole, _ := new(big.Int).SetString(parts[1], 10)
		if forms&delay.Fraction == 0 || whole.Cmp(maxInt64) > 0 {
			return 0
		}
		value, _ := new(big.Rat).SetString(s)
		value.Mul(value, big.NewRat(1000, 1))
		// Rounded up: the quotient of the numerator plus the denominator less one.
		millis := new(big.Int).Add(value.Num(), value.Denom())
		millis.Sub(millis, big.NewInt(1)).Quo(millis, value.Denom())
		if most := big.NewInt(2147483647000); millis.Cmp(most) > 0 {
			millis = most
		}
		return time.Duration(millis.Int64()) * time.Millisecond
	}
	if forms&delay.Date == 0 {
		return 0
	}
	at, ok := oracleDate(s, now)
	if !ok || !at.After(now) {
		return 0
	}
	// Rounded up, without a Duration, which ends at 292 years.
	n := at.Unix() - now.Unix()
	return saturated(big.NewInt(n))
}

// oracleDate leaves the calendar to package net/http, and keeps the grammar and the two-digit years to itself.
func oracleDate(s string, now time.Time) (time.Time, bool) {
	leap := time.Duration(0)
	parse := func(s string) (time.Time, bool) {
		if before, after, ok := strings.Cut(s, ":60 "); ok { // the RFC's leap second, which package time refuses
			s, leap = before+":59 "+after, time.Second
		}
		at, err := http.ParseTime(s)
		return at.Add(leap), err == nil
	}
	if imfForm.MatchString(s) || asctimeForm.MatchString(s) {
		return parse(s)
	}
	parts := rfc850Form.FindStringSubmatch(s)
	if parts == nil {
		return time.Time{}, false
	}
	// The latest year with these digits that is not more than 50 years ahead, part by part.
	now = now.UTC()
	horizon := []string{padded(now.Year() + 50), monthNumber(now.Month().String()[:3]), padded(now.Day())[2:], now.Format("15:04:05.000000000")}
	for year := now.Year() + 50; year > now.Year()-100; year-- {
		yyyy := padded(year)
		if yyyy[2:] != parts[3] {
			continue
		}
		if slices.Compare([]string{yyyy, monthNumber(parts[2]), parts[1], parts[4]}, horizon) > 0 {
			continue
		}
		return parse("Mon, " + parts[1] + " " + parts[2] + " " + yyyy + " " + parts[4] + " GMT")
	}
	return time.Time{}, false
}

func padded(n int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(0, 4-len(s))) + s
}

func monthNumber(name string) string {
	return strconv.Itoa(10 + strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", name)/3)
}

func FuzzRetryAfter(f *testing.F) {
	when := noon.Unix()
	for _, s := range []string{
		"120", "1", "0", "-5", "1.5", "0.37", "0.0001", "120junk", "", " 7 ", "\u00a07", "007", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "9223372037", "18446744074", "2147483647.5",
		"Sun, 29 Nov 2026 12:01:00 GMT", "Sunday, 29-Nov-26 12:01:00 GMT", "Sun Nov 29 12:01:00 2026", "Sun Nov  9 12:01:00 2036", "Sun, 29 Nov 2026 12:00:60 GMT", "Sunday, 29-Nov-76 12:00:00 GMT", "Sunday, 29-Nov-76 12:00:01 GMT",
		"Sunday, 29-Feb-28 12:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:60 GMT", "Sun, 31 Nov 2026 12:01:00 GMT", "Sun, 29 Nov 2026 24:00:00 GMT", "Sun, 29 Nov 2026 12:01:00 UTC", "2026-11-29T12:01:00Z",
	} {
		f.Add(s, when, int64(0))
		f.Add(s+"\n3", when, int64(900_000_000))
	}
	f.Add("Friday, 01-Jan-01 00:00:00 GMT", time.Date(2099, 6, 1, 0, 0, 0, 0, time.UTC).Unix(), int64(1))
	f.Fuzz(func(t *testing.T, text string, unix, nano int64) {
		// Years 1000 to 9000, so that both sides have four digits to write.
		const from, until = -30_610_224_000, 221_845_392_000
		now := time.Unix(from+((unix-from)%(until-from)+until-from)%(until-from), (nano%1e9+1e9)%1e9).UTC()
		values := strings.Split(text, "\n")
		if strings.Contains(text, "-") && now.Month() == time.February && now.Day() == 29 {
			return // 50 years from a leap day is a matter of taste
		}
		for forms := range delay.Digits | delay.Date | delay.Fraction + 1 {
			var want time.Duration
			for _, line := range values {
				want = max(want, oracle(forms, line, now))
			}
			got := forms.Read(lines(values...), now)
			if got.Duration() != want || got.Malformed() != (want == 0) {
				t.Fatalf("%v: %q at %v reads as %v, want %v", forms, values, now, got, want)
			}
			if got.Duration() < 0 || got.Duration() > delay.MaxWait {
				t.Fatalf("%v: %q is out of range: %v", forms, values, got)
			}
			for _, row := range delay.Table() {
				const local = 7 * time.Second
				w := row.Loop.Compose(local, got)
				if got.Malformed() && w.For != local {
					t.Fatalf("%v: a malformed %q makes a wait of %v", row.Loop, values, w.For)
				}
				if w.For < want {
					t.Fatalf("%v: %v is early for %q", row.Loop, w.For, values)
				}
			}
		}
		if delay.ParseRetryAfter(lines(values...), now) != (delay.Digits|delay.Date).Read(lines(values...), now) {
			t.Fatalf("ParseRetryAfter reads %q in other forms than digits and date", values)
		}
	})
}

// TestDatesAgainstOracle writes dates by the grammar, most of them with a slip, and near the instants at which they count.
func TestDatesAgainstOracle(t *testing.T) {
	r := seeded(t)
	valid := 0
	for range 20_000 {
		now := time.Unix(r.Int64N(8_000_000_000), r.Int64N(1e9)*r.Int64N(2)).UTC()
		ahead := [...]time.Duration{time.Minute, 24 * time.Hour, 50 * 366 * 24 * time.Hour, 200 * 365 * 24 * time.Hour}[r.IntN(4)]
		at := now.Add(time.Duration(r.Int64N(int64(ahead))))
		if r.IntN(8) == 0 {
			at = now.AddDate(50, 0, 0).Add(time.Duration(r.IntN(5)-2) * time.Second)
		}
		s := at.Format([...]string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}[r.IntN(3)])
		for range r.IntN(3) {
			i := r.IntN(len(s))
			const alphabet = "0123456789 :-,GMTabcdenouv"
			s = s[:i] + string(alphabet[r.IntN(len(alphabet))]) + s[i+r.IntN(2):]
		}
		if now.Month() == time.February && now.Day() == 29 {
			continue // 50 years from a leap day is a matter of taste
		}
		want := oracle(delay.Date, s, now)
		if want > 0 {
			valid++
		}
		if got := delay.Date.Read(lines(s), now); got.Duration() != want {
			t.Fatalf("%q at %v reads as %v, want %v", s, now, got, want)
		}
	}
	if valid < 5000 {
		t.Errorf("only %d of 20000 were valid", valid)
	}
}

func FuzzCompose(f *testing.F) {
	for loop := range uint8(5) {
		f.Add(loop, int64(50*time.Second), int64(time.Second), int64(time.Hour))
		f.Add(loop, int64(-1), int64(-1), int64(-1))
		f.Add(loop, int64(1<<63-1), int64(1<<63-1), int64(0))
	}
	f.Fuzz(func(t *testing.T, loop uint8, local, asked, left int64) {
		l := delay.Table()[loop%5].Loop
		after := delay.RetryAfter{}
		if asked != 0 {
			after = delay.Asked(time.Duration(asked))
		}
		w := l.Compose(time.Duration(local), after)

		// The table in other words.
		own, server := max(local, 0), min(max(asked, 0), 2147483647e9)
		want := own
		if server > 0 {
			switch l.String() {
			case "generated-retry", "hop", "poll-retry":
				want = server
			case "device-poll", "reconnect":
				if server > own {
					want = server
				}
			default:
				t.Fatalf("an unknown loop %v", l)
			}
		}
		if int64(w.For) != want || int64(w.Local) != own || int64(w.Server) != server || w.Bound != delay.Unbounded {
			t.Fatalf("%v composes %d and %v to %+v, want %d", l, local, after, w, want)
		}
		if again := l.Compose(time.Duration(local), after); again != w {
			t.Fatalf("%v composes the same twice, differently: %+v, %+v", l, w, again)
		}
		over := l.String() == "device-poll" && want > left
		if over {
			want = max(left, 0)
		}
		if cut := w.Within(time.Duration(left)); int64(cut.For) != want || (cut.Bound == delay.ByLifetime) != over {
			t.Fatalf("%+v within %d is %+v, want %d", w, left, cut, want)
		}
		if w.String() == "" || w.Explain() == "" {
			t.Fatal("a wait without an explanation")
		}
		if _, err := w.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
	})
}
