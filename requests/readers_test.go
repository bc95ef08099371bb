package requests_test

import (
	"math/big"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

func TestReaders(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 250_000_000, time.UTC)
	at := strconv.FormatInt(now.Unix()+90, 10)
	h := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	absent, malformed := delay.RetryAfter{}, delay.Asked(0)
	ms := func(n int) delay.RetryAfter { return delay.Asked(time.Duration(n) * time.Millisecond) }
	for _, c := range []struct {
		name string
		read requests.WaitReader
		h    http.Header
		want delay.RetryAfter
	}{
		{"nothing", requests.ReadMilliseconds, h("Retry-After", "1"), absent},
		{"milliseconds", requests.ReadMilliseconds, h("retry-after-ms", "1500"), ms(1500)},
		{"the other name", requests.ReadMilliseconds, h("x-ms-retry-after-ms", " 20\t"), ms(20)},
		{"the longer of both", requests.ReadMilliseconds, h("Retry-After-Ms", "30", "X-Ms-Retry-After-Ms", "20"), ms(30)},
		{"the longest of the lines", requests.ReadMilliseconds, h("Retry-After-Ms", "30", "Retry-After-Ms", "x", "Retry-After-Ms", "40"), ms(40)},
		{"one of both malformed", requests.ReadMilliseconds, h("Retry-After-Ms", "-1", "X-Ms-Retry-After-Ms", "20"), ms(20)},
		{"both malformed", requests.ReadMilliseconds, h("Retry-After-Ms", "1e3", "X-Ms-Retry-After-Ms", ""), malformed},
		{"zero", requests.ReadMilliseconds, h("Retry-After-Ms", "0"), malformed},
		{"a fraction", requests.ReadMilliseconds, h("Retry-After-Ms", "1.5"), malformed},
		{"an NBSP", requests.ReadMilliseconds, h("Retry-After-Ms", "15\u00a0"), malformed},
		{"saturated", requests.ReadMilliseconds, h("Retry-After-Ms", "9223372036854775807"), delay.Asked(delay.MaxWait)},
		{"too large", requests.ReadMilliseconds, h("Retry-After-Ms", "9223372036854775808"), malformed},

		{"something remains", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "9"), absent},
		{"nobody says what remains", requests.ReadRateLimitReset, h("X-RateLimit-Reset", "9"), absent},
		{"another's remaining", requests.ReadRateLimitReset, h("RateLimit-Remaining", "0", "X-RateLimit-Reset", "9"), absent},
		{"no reset", requests.ReadRateLimitReset, h("RateLimit-Remaining", "0"), absent},
		{"seconds", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9"), ms(9000)},
		{"without X", requests.ReadRateLimitReset, h("RateLimit-Remaining", "0", "RateLimit-Reset", "9"), ms(9000)},
		{"fractions remain", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0.0", "X-RateLimit-Reset", "9"), ms(9000)},
		{"a fraction remains", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0.5", "X-RateLimit-Reset", "9"), absent},
		{"no number remains", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", ".", "X-RateLimit-Reset", "9"), absent},
		{"an instant", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", at), ms(90_000)},
		{"an instant in milliseconds", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", at+"000"), ms(90_000)},
		{"rounded up", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", at+"001"), ms(91_000)},
		{"an instant that has passed", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1700000000"), malformed},
		{"now", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(now.Unix(), 10)), malformed},
		{"a date", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "2026-11-29T12:00:09Z"), malformed},
		{"both, the longer", requests.ReadRateLimitReset, h("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9", "RateLimit-Remaining", "0", "RateLimit-Reset", "11"), ms(11_000)},

		{"the first decides", requests.FirstOf(requests.ReadMilliseconds, requests.ReadRateLimitReset), h("Retry-After-Ms", "1", "RateLimit-Remaining", "0", "RateLimit-Reset", "11"), ms(1)},
		{"or the next", requests.FirstOf(requests.ReadMilliseconds, requests.ReadRateLimitReset), h("Retry-After-Ms", "x", "RateLimit-Remaining", "0", "RateLimit-Reset", "11"), ms(11_000)},
		{"or it is malformed", requests.FirstOf(requests.ReadMilliseconds, requests.ReadRateLimitReset), h("Retry-After-Ms", "x"), malformed},
		{"or absent", requests.FirstOf(requests.ReadMilliseconds, requests.ReadRateLimitReset), h(), absent},
		{"none", requests.FirstOf(), h("Retry-After-Ms", "1"), absent},
	} {
		if got := c.read(c.h, now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// In front of Retry-After, a reader decides if it can; what it cannot use does not hide the header.
func TestReadersInFront(t *testing.T) {
	for _, c := range []struct {
		ms, after string
		want      time.Duration
	}{
		{"1500", "7", 1500 * time.Millisecond},
		{"x", "7", 7 * time.Second},
		{"x", "y", time.Second},
		{"x", "", time.Second},
		{"", "7", 7 * time.Second},
	} {
		h := http.Header{}
		if c.ms != "" {
			h.Set("Retry-After-Ms", c.ms)
		}
		if c.after != "" {
			h.Set("Retry-After", c.after)
		}
		quick(t, []reply{{status: 503, header: h}, {status: 200}}, func(t *testing.T, tr *requests.Transport, b *base) {
			tr.ReadWait = requests.ReadMilliseconds
			_, _ = trip(tr, get())
			if got := b.sent[1].at.Sub(b.sent[0].at); got != c.want {
				t.Errorf("%+v: waited %v", c, got)
			}
		})
	}
}

func FuzzReaders(f *testing.F) {
	for _, s := range []string{"0", "1500", "-1", "9223372036854775807", "9223372036854775808", "1795953690", "1795953690001", "1.5", " 7\t", "", "7\u00a0"} {
		f.Add(s, s)
	}
	now := time.Date(2026, 11, 29, 12, 0, 0, 1, time.UTC)
	f.Fuzz(func(t *testing.T, a, b string) {
		h := http.Header{"Retry-After-Ms": {a}, "X-Ms-Retry-After-Ms": {b}, "Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {a, b}}
		for name, read := range map[string]requests.WaitReader{"ms": requests.ReadMilliseconds, "reset": requests.ReadRateLimitReset} {
			r := read(h, now)
			if r.Duration() < 0 || r.Duration() > delay.MaxWait || (r.Duration() > 0) == r.Malformed() {
				t.Fatalf("%s of %q and %q is %v", name, a, b, r)
			}
			if name == "reset" && r.Duration()%time.Second != 0 {
				t.Fatalf("the reset of %q and %q is %v", a, b, r)
			}
		}
		// What is plainly a number of milliseconds is never made shorter.
		n, ok := new(big.Int).SetString(a, 10)
		if ok && strconv.Itoa(int(n.Int64())) == a && n.IsInt64() && n.Sign() > 0 {
			want := new(big.Int).Mul(n, big.NewInt(int64(time.Millisecond)))
			if want.Cmp(big.NewInt(int64(delay.MaxWait))) > 0 {
				want.SetInt64(int64(delay.MaxWait))
			}
			if got := requests.ReadMilliseconds(h, now).Duration(); want.Cmp(big.NewInt(int64(got))) > 0 {
				t.Fatalf("%q ms is %v", a, got)
			}
		}
	})
}
