package redact_test

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/stream/internal/redact"
)

func TestError(t *testing.T) {
	quoted := &url.Error{Op: "Get", URL: "https://h.test/p?ticket=s3cret", Err: io.ErrUnexpectedEOF}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"nothing to hide", io.EOF, "EOF"},
		{"a quoted address", quoted, "unexpected EOF"},
		{"deeper", fmt.Errorf("minting: %w", quoted), `minting: Get "https://h.test": unexpected EOF`},
		{"twice", &url.Error{URL: "https://h.test/?s3cret", Err: quoted}, "unexpected EOF"},
		{"joined", errors.Join(io.EOF, quoted), "EOF\nGet \"https://h.test\": unexpected EOF"},
		{"a secret in a text", errors.New("bad s3cret"), "bad [redacted]"},
		{"in the cause", &url.Error{URL: "https://h.test", Err: errors.New("bad s3cret")}, "bad [redacted]"},
		{"an address in a text of its own", fmt.Errorf("asking s3cret: %w", &url.Error{Op: "Get", URL: "%%%", Err: io.EOF}), `asking [redacted]: Get "an address": EOF`},
	} {
		got := redact.Error(tt.err, []string{"s3cret", "", "a"})
		if got.Error() != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := redact.Error(io.EOF, nil); !errors.Is(got, io.EOF) {
		t.Errorf("an error without a secret became %v", got)
	}
	if got := redact.Error(fmt.Errorf("x: %w", quoted), nil); !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	if got := redact.Error(nil, nil); got != nil {
		t.Errorf("nil became %v", got)
	}
}

func TestSecrets(t *testing.T) {
	u, _ := url.Parse("wss://me:pa%3Ass@h.test/p?ticket=a%2Fb+c&plain=w%26v#fragment")
	secrets := redact.Secrets(u)
	for _, s := range []string{"ticket=a%2Fb+c&plain=w%26v", "a/b c", "a%2Fb+c", "w&v", "me:pa%3Ass", "pa:ss", "fragment"} {
		if !slices.Contains(secrets, s) {
			t.Errorf("%q is not among %q", s, secrets)
		}
	}
	u, _ = url.Parse("wss://h.test/?a=l%2fwer&b=1;c=semicolon&alone")
	secrets = redact.Secrets(u)
	for _, s := range []string{"l%2fwer", "semicolon", "alone"} {
		if !slices.Contains(secrets, s) {
			t.Errorf("%q is not among %q", s, secrets)
		}
	}
}

func TestText(t *testing.T) {
	u, _ := url.Parse("wss://me:pa%3Ass@h.test/p?ticket=a%2Fb+c&plain=w%26v#fragment")
	secrets := redact.Secrets(u)
	if got := redact.Text("dialling "+u.String(), secrets); strings.Contains(got, "pa%3Ass") || strings.Contains(got, "a%2Fb") {
		t.Error(got)
	}
	if got := redact.Text("a s3cretive one", []string{"s3cret", "s3cretive"}); got != "a [redacted] one" {
		t.Error(got)
	}
}
