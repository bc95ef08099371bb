package auth_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/heed-sdk/heed/auth"
)

// seed adds every answer of the project's own cases.
func seed(f *testing.F, add func(body string)) {
	files, err := filepath.Glob("../testdata/cases/deviceflow/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no cases: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var c struct {
			Device struct{ Body json.RawMessage }
			Polls  []struct{ Body json.RawMessage }
		}
		if err := json.Unmarshal(data, &c); err != nil {
			f.Fatal(err)
		}
		add(string(c.Device.Body))
		for _, p := range c.Polls {
			add(string(p.Body))
		}
	}
}

func contentType(form bool) string {
	if form {
		return "application/x-www-form-urlencoded"
	}
	return "application/json"
}

func FuzzDeviceAnswer(f *testing.F) {
	seed(f, func(body string) { f.Add(body, false, false); f.Add(body, true, true) })
	f.Add("device_code=d&user_code=u&verification_uri=https%3A%2F%2Fas.test&expires_in=900&interval=5", true, true)
	f.Fuzz(func(t *testing.T, body string, form, strict bool) {
		flow := flowWith(answering(200, contentType(form), body))
		flow.Strict = strict
		p, err := flow.Start(t.Context())
		if err != nil {
			e, ok := errors.AsType[*auth.DeviceError](err)
			if !ok || e.Reason != auth.ErrMalformed && e.Reason != auth.ErrRejected {
				t.Errorf("%v", err)
			}
			return
		}
		if p.Interval < time.Second || p.Interval > 2_147_483*time.Second || p.Interval%time.Second != 0 {
			t.Errorf("interval %v", p.Interval)
		}
		if left := p.Prompt().ExpiresIn; left <= 0 || left > 2_147_483*time.Second {
			t.Errorf("%v left", left)
		}
		for _, shown := range []string{p.UserCode, p.VerificationURI, p.VerificationURIComplete} {
			for _, r := range shown {
				if unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Errorf("%q would be shown", shown)
				}
			}
		}
		for _, address := range []string{p.VerificationURI, p.VerificationURIComplete} {
			if address == "" && address == p.VerificationURIComplete {
				continue
			}
			u, err := url.Parse(address)
			if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
				t.Errorf("%q would be opened", address)
			}
		}
		if p.UserCode == "" {
			t.Error("no user code")
		}
	})
}

func FuzzTokenAnswer(f *testing.F) {
	seed(f, func(body string) { f.Add(200, body, false, false, false); f.Add(400, body, true, true, true) })
	f.Add(200, "access_token=at&token_type=bearer&scope=repo&expires_in=3600", true, false, false)
	f.Fuzz(func(t *testing.T, status int, body string, form, cut, strict bool) {
		tok, said, err := auth.Judge(status, contentType(form), []byte(body), cut, strict, noon, "canary")
		if tok != nil && err != nil || said == "" && (tok != nil || err != nil) {
			t.Fatalf("%v, %q, %v", tok, said, err)
		}
		if strings.Contains(said, "canary") || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("a secret in %q or %v", said, err)
		}
		if tok == nil {
			return
		}
		if status != 200 || tok.AccessToken == "" || tok.TokenType == "" || tok.ExpiresIn < 0 || tok.ExpiresIn > 2_147_483_647 {
			t.Errorf("status %d: %+v", status, tok)
		}
		if tok.ExpiresIn == 0 != tok.Expiry.IsZero() || tok.ExpiresIn > 0 && tok.Expiry.Sub(noon) != time.Duration(tok.ExpiresIn)*time.Second {
			t.Errorf("expires_in %d, expiry %v", tok.ExpiresIn, tok.Expiry)
		}
		if scope := tok.Extra("scope"); scope != nil {
			if _, ok := scope.(string); !ok {
				t.Errorf("scope %T", scope)
			}
		}
	})
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{
		"0", "-0", "0.0", "5", "05", "+5", " 5", "5 ", "5.", ".5", "5.0", "5.5", "50e-1", "5e0", "5E+2", "5e-1", "0e9999999999", "1e400", "1e-400",
		"9e18", "2147483647", "2147483648", "-1", "-1e-400", "NaN", "Infinity", "0x10", "1_000", "", "-", "1e", "1e+", "२", "5.00000000000000000000000001",
	} {
		f.Add(s)
	}
	const most = 2_147_483_647
	f.Fuzz(func(t *testing.T, s string) {
		if _, exponent, _ := strings.Cut(strings.ToLower(s), "e"); len(exponent) > 5 || len(s) > 2000 {
			t.Skip("the oracle writes numbers out")
		}
		n, err := auth.WholeNumber(s, most)
		// The oracle: JSON's grammar, and rational numbers.
		want := false
		var r big.Rat
		if json.Valid([]byte(s)) && strings.TrimSpace(s) == s && strings.ContainsAny(s, "0123456789") && !strings.ContainsAny(s, `"{[`) {
			r.SetString(s)
			want = r.IsInt() && r.Sign() >= 0 && r.Cmp(big.NewRat(most, 1)) <= 0
		}
		if want != (err == nil) || want && r.Cmp(big.NewRat(n, 1)) != 0 {
			t.Errorf("%q is %d, %v", s, n, err)
		}
	})
}

func TestWholeNumber(t *testing.T) {
	for s, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "5": "5", "5.0": "5", "50e-1": "5", "1e3": "1000", "1.5E+1": "15", "0e99999999999999999999": "0",
		"05": "is no number", "+5": "is no number", " 5": "is no number", "5.": "is no number", ".5": "is no number", "": "is no number", "NaN": "is no number",
		"-1": "is negative", "-1e-400": "is negative", "1.5": "is no whole number", "1e-99999999999999999999": "is no whole number",
		"2147483648": "is more than 2147483647", "1e100": "is more than 2147483647", "1e99999999999999999999": "is more than 2147483647",
		"9223372036854775808": "is more than 2147483647", "1" + strings.Repeat("0", 100): "is more than 2147483647",
	} {
		n, err := auth.WholeNumber(s, 2_147_483_647)
		got := itoa(int(n))
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("the code GmRh is wrong", "GmRh")
	f.Add("Gm\u200bRh\n\x1b[2J https://as.test/?code=GmRh", "GmRh")
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := auth.Clean(text, secret)
		if utf8.RuneCountInString(got) > 201 || strings.IndexFunc(got, unicode.IsControl) >= 0 {
			t.Errorf("%q", got)
		}
		// A secret made of parts of the mark that replaces it is no secret.
		if secret != "" && !strings.Contains("[redacted]…https://", secret) && len(secret) > 3 && utf8.ValidString(secret) && strings.Contains(got, secret) && !strings.Contains(secret, "[redacted]") {
			t.Errorf("%q is in %q", secret, got)
		}
	})
}
