package delay_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
)

func TestOtherHeaders(t *testing.T) {
	at := noon.Add(250 * time.Millisecond)
	unix := noon.Unix()
	for value, want := range map[string][2]delay.RetryAfter{ // milliseconds, reset
		"1":                              {delay.Asked(time.Millisecond), delay.Asked(sec)},
		" 90\t":                          {delay.Asked(90 * time.Millisecond), delay.Asked(90 * sec)},
		"0":                              {delay.Asked(0), delay.Asked(0)},
		"-1":                             {delay.Asked(0), delay.Asked(0)},
		"1.5":                            {delay.Asked(0), delay.Asked(0)},
		"":                               {delay.Asked(0), delay.Asked(0)},
		"999999999":                      {delay.Asked(999999999 * time.Millisecond), delay.Asked(999999999 * sec)},
		"1000000000":                     {delay.Asked(1000000 * sec), delay.Asked(0)}, // long ago
		strconv.FormatInt(unix, 10):      {delay.Asked(time.Duration(unix) * time.Millisecond), delay.Asked(0)},
		strconv.FormatInt(unix+1, 10):    {delay.Asked(time.Duration(unix+1) * time.Millisecond), delay.Asked(sec)},
		strconv.FormatInt(unix*1000, 10): {delay.Asked(time.Duration(unix) * sec), delay.Asked(0)},
		strconv.FormatInt(unix*1000+1, 10): {
			delay.Asked(time.Duration(unix)*sec + time.Millisecond), delay.Asked(sec),
		},
		"9223372036854775807": {delay.Asked(delay.MaxWait), delay.Asked(delay.MaxWait)},
		"9223372036854775808": {delay.Asked(0), delay.Asked(0)},
	} {
		h := http.Header{"X-Wait": {value}}
		if got := delay.ReadMilliseconds(h, "x-wait"); got != want[0] {
			t.Errorf("%q as milliseconds: %v, want %v", value, got, want[0])
		}
		if got := delay.ReadReset(h, "x-wait", at); got != want[1] {
			t.Errorf("%q as a reset: %v, want %v", value, got, want[1])
		}
	}
	h := http.Header{"X-Wait": {"3", "x", "5", "4"}}
	if a, b := delay.ReadMilliseconds(h, "X-Wait"), delay.ReadReset(h, "X-Wait", at); a.Duration() != 5*time.Millisecond || b.Duration() != 5*sec {
		t.Errorf("of several lines: %v, %v", a, b)
	}
	if a, b := delay.ReadMilliseconds(h, "Other"), delay.ReadReset(h, "Other", at); a != none || b != none {
		t.Errorf("of none: %v, %v", a, b)
	}
}
