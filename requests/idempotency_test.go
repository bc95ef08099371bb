package requests_test

import (
	"regexp"
	"testing"

	"github.com/heed-sdk/heed/requests"
)

func TestKeyFrom(t *testing.T) {
	// The same in every version: a flow that is run again after an upgrade has to come to the same resource.
	if got, want := requests.KeyFrom("invoice", "2026-11", "42"), "2a5e0611-c5a3-88b5-9ad7-887e6120f607"; got != want {
		t.Errorf("the key is now %s, and was %s", got, want)
	}
	if got := requests.KeyFrom(); got != "" {
		t.Errorf("no parts make %q", got)
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string][]string{}
	for _, parts := range [][]string{
		{""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a,b"}, {"a\x00b"}, {"a", "b", ""}, {"ab", "c"}, {"a", "bc"}, {"é"}, {"e\u0301"}, {"\xff"},
	} {
		key := requests.KeyFrom(parts...)
		if !uuid.MatchString(key) {
			t.Errorf("%q make %q", parts, key)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q make the same key", parts, other)
		}
		seen[key] = parts
		if again := requests.KeyFrom(parts...); again != key {
			t.Errorf("%q make %q and %q", parts, key, again)
		}
	}
}

func FuzzKeyFrom(f *testing.F) {
	f.Add("a", "b", 1)
	f.Fuzz(func(t *testing.T, a, b string, cut int) {
		// However a text is divided, the key is another.
		text := a + b
		if cut < 0 || cut > len(text) || cut == len(a) {
			return
		}
		if requests.KeyFrom(a, b) == requests.KeyFrom(text[:cut], text[cut:]) {
			t.Fatalf("%q divided at %d and %d", text, len(a), cut)
		}
	})
}
