package auth_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/auth"
)

func TestKeyCanonical(t *testing.T) {
	for issuer, want := range map[string]string{
		"https://as.test":              "https://as.test",
		"https://as.test/":             "https://as.test",
		"HTTPS://AS.test:443/":         "https://as.test",
		"http://127.0.0.1:80":          "http://127.0.0.1",
		"http://[::1]:8080/a":          "http://[::1]:8080/a",
		"https://as.test:80":           "https://as.test:80",
		"https://as.test/Realm":        "https://as.test/Realm",
		"https://as.test/realm/":       "https://as.test/realm/",
		"https://as.test/%7Erealm/%2F": "https://as.test/%7Erealm/%2F",
	} {
		got, err := auth.Key{Issuer: issuer, ClientID: "c"}.Canonical()
		if err != nil || got.Issuer != want {
			t.Errorf("%s: %s, %v, want %s", issuer, got.Issuer, err, want)
		}
		if again, err := got.Canonical(); err != nil || again != got {
			t.Errorf("%s: the canonical form has another one: %v", issuer, again)
		}
	}
}

func TestKeyMistakes(t *testing.T) {
	for _, issuer := range []string{
		"", "as.test", "//as.test", "https:as.test", "https://", "https://:443", "ftp://as.test", "https://as.test?q", "https://as.test?",
		"https://as.test#f", "https://as.test#", "https://user:canary@as.test", "https://@as.test", "https://as.test/a b", `https://as.test\x`,
		"https://as.test/\n", "https://as.test:canary", "https://as.test/\xff", "https://" + strings.Repeat("a", 3000),
	} {
		_, err := auth.Key{Issuer: issuer, ClientID: "c"}.Canonical()
		if _, ok := errors.AsType[*auth.ConfigError](err); !ok {
			t.Errorf("%q: %v", issuer, err)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("the error shows the issuer: %v", err)
		}
	}
	_, err := auth.Key{Issuer: "x", Account: "a\x00"}.Canonical()
	if e, ok := errors.AsType[*auth.ConfigError](err); !ok || len(e.Problems) != 3 {
		t.Errorf("not all mistakes: %v", err)
	}
}

func TestKeyName(t *testing.T) {
	// The names are part of what is stored: they must never change.
	for want, key := range map[string]auth.Key{
		"9ce8043f00ef32e6df3b7c1e3a7bc732": {Issuer: "https://as.test", ClientID: "cli"},
		"4dabfb6b4207244e7adcbb5108aaa14c": {Issuer: "https://as.test", ClientID: "cli", Account: "work"},
	} {
		if got := key.Name(); got != want {
			t.Errorf("%v: %s, want %s", key, got, want)
		}
	}
	seen := map[string]auth.Key{}
	for _, k := range []auth.Key{
		{Issuer: "https://as.test", ClientID: "a", Account: "bc"},
		{Issuer: "https://as.test", ClientID: "ab", Account: "c"},
		{Issuer: "https://as.test", ClientID: "a"},
		{Issuer: "https://as.test/a", ClientID: "a"},
		{Issuer: "https://as.test", ClientID: "A"},
		{},
		{Issuer: "x"},
		{ClientID: "x"},
	} {
		name := k.Name()
		if other, ok := seen[name]; ok {
			t.Errorf("%v and %v have one name", k, other)
		}
		seen[name] = k
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(name) {
			t.Errorf("%q is not safe everywhere", name)
		}
	}
	if a, b := (auth.Key{Issuer: "HTTPS://AS.test/", ClientID: "c"}), (auth.Key{Issuer: "https://as.test", ClientID: "c"}); a.Name() != b.Name() {
		t.Error("two forms of one key have two names")
	}
}
