package address_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/stream/internal/address"
)

func TestParse(t *testing.T) {
	for s, allowed := range map[string]bool{
		"https://h/p?q":      true,
		"wss://h":            true,
		"ws://localhost":     true,
		"ws://LOCALHOST.:80": true,
		"ws://a.localhost":   true,
		"ws://127.1.2.3":     true,
		"http://[::1]:1":     true,
		"ws://h":             false,
		"http://h":           false,
		"ws://localhost.h":   false,
		"ws://10.0.0.1":      false,
		"ws://[fe80::1]":     false,
		"ws://0.0.0.0":       false,
		"file:///p":          false,
		"wss:///p":           false,
		"wss://:80/p":        false,
		"h/p":                false,
		"":                   false,
		"wss://h:port":       false,
		"wss://h:65536/p":    false,
		"wss://h:65535/p":    true,
		"wss://h:/p":         true,
	} {
		_, err := address.Parse(s)
		if (err == nil) != allowed {
			t.Errorf("%q: %v", s, err)
		}
		if err != nil && strings.Contains(err.Error(), "/p") {
			t.Errorf("%q shows in %q", s, err)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"https://h/a", "https://h/b?c", true},
		{"https://h", "https://H:443", true},
		{"http://h:80", "http://h", true},
		{"wss://h:443", "wss://h", true},
		{"https://h", "http://h", false},
		{"https://h", "https://h:444", false},
		{"https://h", "https://h.test", false},
		{"http://h:443", "https://h", false},
	} {
		a, _ := url.Parse(tt.a)
		b, _ := url.Parse(tt.b)
		if got := address.SameOrigin(a, b); got != tt.same {
			t.Errorf("%s and %s: %v", a, b, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("wss://h/p?q=1")
	f.Add("ws://127.0.0.1:80")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := address.Parse(s)
		if err != nil {
			return
		}
		if plain := u.Scheme == "ws" || u.Scheme == "http"; plain && !address.Loopback(u.Hostname()) {
			t.Errorf("%q is allowed", s)
		}
	})
}
