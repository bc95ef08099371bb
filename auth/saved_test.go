package auth_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// savedWith is a saved login with members replaced by JSON, or taken out when the value is "".
func savedWith(members map[string]string) string {
	all := map[string]string{
		"version": `1`, "user_code": `"WDJB-MJHT"`, "verification_uri": `"https://as.test/device"`,
		"issued_at": `"2026-11-29T12:00:00Z"`, "expires_at": `"2026-11-29T12:15:00Z"`, "saved_at": `"2026-11-29T12:01:00Z"`,
		"next_poll_at": `"2026-11-29T12:01:05Z"`, "interval": `5`, "polls": `3`, "unanswered": `1`, "client_id": `"c"`,
		"token_endpoint": `"https://as.test/token"`, "auth_style": `"auto"`, "device_code": `"canary-device-code"`,
	}
	maps.Copy(all, members)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != "" {
			parts = append(parts, `"`+name+`":`+all[name])
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestSavedMembers has what a saved login may hold, and what makes it one that cannot be read.
func TestSavedMembers(t *testing.T) {
	type m = map[string]string
	for _, tt := range []struct {
		name    string
		members m
		wrong   string // the members to blame; "all" is the whole
	}{
		{"ordinary", nil, ""},
		{"with all there is", m{"verification_uri_complete": `"https://as.test/?c=1"`, "scopes": `["a"]`, "token_params": `{"resource":["r"]}`, "auth_style": `"params"`}, ""},
		{"due in the past", m{"next_poll_at": `"2026-11-29T12:00:10Z"`}, ""},
		{"no version", m{"version": ""}, "all"},
		{"null version", m{"version": "null"}, "all"},
		{"version a string", m{"version": `"1"`}, "all"},
		{"a member that is not known", m{"backoff": "7"}, "all"},
		{"a member of another type", m{"polls": `"canary"`}, "all"},
		{"no time", m{"issued_at": `"canary"`}, "all"},
		{"no device code", m{"device_code": ""}, "device_code"},
		{"no user code", m{"user_code": `""`}, "user_code"},
		{"user code that steers a terminal", m{"user_code": `"\u001b[2J"`}, "user_code"},
		{"no address", m{"verification_uri": ""}, "verification_uri"},
		{"address that is none", m{"verification_uri": `"javascript:canary"`, "verification_uri_complete": `"http://as.test/canary"`}, "verification_uri verification_uri_complete"},
		{"no endpoint", m{"token_endpoint": ""}, "token_endpoint"},
		{"endpoint that is not https", m{"token_endpoint": `"http://as.test/token"`}, "token_endpoint"},
		{"no client", m{"client_id": ""}, "client_id"},
		{"no times", m{"issued_at": "", "expires_at": "", "saved_at": "", "next_poll_at": ""}, "expires_at saved_at"},
		{"no issue", m{"issued_at": ""}, "expires_at saved_at"},
		{"no end", m{"expires_at": ""}, "expires_at saved_at"},
		{"a life that no server gives", m{"expires_at": `"2027-11-29T12:15:00Z"`}, "expires_at"},
		{"no saving", m{"saved_at": ""}, "saved_at"},
		{"saved when it was dead", m{"saved_at": `"2026-11-29T12:15:00Z"`}, "saved_at"},
		{"no next poll", m{"next_poll_at": ""}, "next_poll_at"},
		{"no interval", m{"interval": ""}, "interval"},
		{"interval 0", m{"interval": "0"}, "interval"},
		{"interval negative", m{"interval": "-5"}, "interval"},
		{"interval beyond every timer", m{"interval": "2147483648"}, "interval"},
		{"polls negative", m{"polls": "-1", "unanswered": "-1"}, "polls"},
		{"more failures than polls", m{"unanswered": "4"}, "polls"},
		{"no style", m{"auth_style": ""}, "auth_style"},
		{"a style of its own", m{"auth_style": `"canary"`}, "auth_style"},
		{"a bad scope", m{"scopes": `["a b"]`}, "scopes"},
		{"a parameter that is the login's", m{"token_params": `{"client_id":["canary"],"device_code":["canary"]}`}, "token_params token_params"},
	} {
		flow := flowWith(nobody(t))
		flow.Config.Endpoint.TokenURL, flow.Config.Endpoint.DeviceAuthURL = "https://as.test/token", ""
		flow.Clock = fakes.NewClock(noon.Add(time.Minute))
		p, err := flow.Resume([]byte(savedWith(tt.members)))
		var wrong []string
		if e, ok := errors.AsType[*auth.ResumeError](err); ok {
			for _, p := range e.Problems {
				wrong = append(wrong, p.Field)
			}
			if len(wrong) == 0 {
				wrong = []string{"all"}
			}
		}
		if got := strings.Join(wrong, " "); got != tt.wrong || errors.Is(err, auth.ErrSavedMalformed) != (tt.wrong != "") || (p == nil) != (err != nil) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
		if err != nil && (strings.Contains(err.Error(), "canary") || !strings.HasPrefix(err.Error(), "auth: ") || !strings.Contains(err.Error(), "start a new one")) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, data := range []string{"", "null", "[]", "{}", "1", "canary", savedWith(nil) + "{}", savedWith(nil)[:50], strings.Repeat(" ", 1<<20) + savedWith(nil)} {
		if _, err := flowWith(nobody(t)).Resume([]byte(data)); !errors.Is(err, auth.ErrSavedMalformed) {
			t.Errorf("%.60s: %v", data, err)
		}
	}
	for _, version := range []string{"0", "2", "-1"} {
		_, err := flowWith(nobody(t)).Resume([]byte(savedWith(m{"version": version, "something": `"new"`})))
		if !errors.Is(err, auth.ErrSavedVersion) || errors.Is(err, auth.ErrSavedMalformed) {
			t.Errorf("version %s: %v", version, err)
		}
	}
}

// stopped is a clock that stands still.
type stopped struct {
	clock.Clock
	at time.Time
}

func (c stopped) Now() time.Time { return c.at }

func FuzzResume(f *testing.F) {
	f.Add([]byte(savedWith(nil)))
	f.Add([]byte(savedWith(map[string]string{"token_params": `{"resource":["r"]}`, "scopes": `["a","b"]`, "next_poll_at": `"9999-11-29T12:01:05Z"`})))
	f.Add([]byte(savedWith(map[string]string{"issued_at": `"0001-01-01T00:00:00Z"`, "expires_at": `"0001-01-01T00:00:09Z"`, "saved_at": `"0001-01-01T00:00:01Z"`})))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		flow := &auth.DeviceFlow{Clock: stopped{clock.New(), noon.Add(time.Minute)}}
		p, err := flow.Resume(data)
		if err != nil {
			_, ok := errors.AsType[*auth.ResumeError](err)
			if !ok && !errors.Is(err, auth.ErrExpired) || strings.IndexFunc(err.Error(), unicode.IsControl) >= 0 {
				t.Errorf("%v", err)
			}
			return
		}
		if p.UserCode == "" || strings.IndexFunc(p.UserCode+p.VerificationURI+p.VerificationURIComplete, unicode.IsControl) >= 0 {
			t.Errorf("%q would be shown", p.UserCode)
		}
		if left := p.Prompt().ExpiresIn; left <= 0 || left > 2_147_483*time.Second || p.Interval < time.Second {
			t.Errorf("%v left, interval %v", left, p.Interval)
		}
		// What was read is what is written, and neither gains any time.
		again, err := p.Save()
		if err != nil {
			t.Fatal(err)
		}
		q, err := flow.Resume(again)
		if err != nil {
			t.Fatalf("%v: %s", err, again)
		}
		if twice, err := q.Save(); err != nil || !bytes.Equal(again, twice) {
			t.Errorf("%v: %s%s", err, again, twice)
		}
	})
}
