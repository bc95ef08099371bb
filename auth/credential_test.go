package auth_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

var obtained = time.Date(2026, 11, 29, 13, 0, 0, 0, time.FixedZone("CET", 3600))

// keptLogin is a credential in which every field is set, the secret ones to marked values.
func keptLogin() auth.Credential {
	c := auth.Credential{
		AccessToken:  "canary-access",
		TokenType:    "Bearer",
		RefreshToken: "canary-refresh",
		Expiry:       obtained.Add(time.Hour).UTC(),
		Obtained:     obtained.UTC(),
		Scope:        "read write",
		Resources:    []string{"https://api.test/"},
		IDToken:      "canary-id",
		Extra:        map[string]any{"device_secret": "canary-extra", "n": 2.0},
	}
	c.Present(obtained)
	return c
}

func TestCredentialFromToken(t *testing.T) {
	token := func(raw any) *oauth2.Token {
		tok := &oauth2.Token{AccessToken: "a", TokenType: "bearer", RefreshToken: "r", Expiry: obtained.Add(time.Hour)}
		return tok.WithExtra(raw)
	}
	tests := []struct {
		name  string
		token *oauth2.Token
		want  auth.Credential
	}{
		{"no members", token(nil), auth.Credential{}},
		{"members", token(map[string]any{"scope": "a b", "resource": "urn:x", "id_token": "i", "tenant": "t", "other": "o"}), auth.Credential{
			Scope: "a b", Resources: []string{"urn:x"}, IDToken: "i", Extra: map[string]any{"tenant": "t"},
		}},
		{"lists", token(map[string]any{"scope": []any{"a", "b"}, "resource": []any{"urn:x", "urn:y"}}), auth.Credential{
			Scope: "a b", Resources: []string{"urn:x", "urn:y"},
		}},
		{"null and empty", token(map[string]any{"scope": nil, "resource": "", "tenant": nil}), auth.Credential{}},
		{"a form", token(url.Values{"scope": {"123"}, "tenant": {"t"}}), auth.Credential{Scope: "123", Extra: map[string]any{"tenant": "t"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.AccessToken, tt.want.TokenType, tt.want.RefreshToken = "a", "bearer", "r"
			tt.want.Expiry, tt.want.Obtained = obtained.Add(time.Hour).UTC(), obtained.UTC()
			if got := auth.NewCredential(tt.token, obtained, "tenant", "access_token"); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("another credential: scope %q, resources %q, extra %v", got.Scope, got.Resources, got.Extra)
			}
		})
	}
}

func TestCredentialExpiryFromExpiresIn(t *testing.T) {
	for seconds, want := range map[int64]time.Duration{0: 0, -1: 0, 60: time.Minute, math.MaxInt32: math.MaxInt32 * time.Second, math.MaxInt64: 0} {
		c := auth.NewCredential(&oauth2.Token{AccessToken: "a", ExpiresIn: seconds}, obtained)
		if got := c.Lifetime(); got != want {
			t.Errorf("expires_in %d: a lifetime of %v, want %v", seconds, got, want)
		}
	}
	if got := (auth.Credential{Expiry: obtained}).Lifetime(); got != 0 {
		t.Errorf("a lifetime of %v that nobody knows", got)
	}
	if got := (auth.Credential{Expiry: obtained, Obtained: obtained.Add(1)}).Lifetime(); got != 0 {
		t.Errorf("a lifetime of %v", got)
	}
}

func TestCredentialAsToken(t *testing.T) {
	c := keptLogin()
	tok := c.Token()
	if tok.AccessToken != c.AccessToken || tok.RefreshToken != c.RefreshToken || !tok.Expiry.Equal(c.Expiry) || tok.Type() != "Bearer" {
		t.Error("the token has other fields")
	}
	for name, want := range map[string]any{"scope": "read write", "resource": "https://api.test/", "id_token": "canary-id", "n": 2.0} {
		if got := tok.Extra(name); got != want {
			t.Errorf("%s is another", name)
		}
	}
	c.Resources = append(c.Resources, "urn:y")
	back := auth.NewCredential(c.Token(), obtained, "device_secret", "n")
	back.Presented = c.Presented
	if !reflect.DeepEqual(back, c) {
		t.Error("the credential has not come back")
	}
	if _, ok := c.Extra["scope"]; ok {
		t.Error("Token has changed the credential")
	}
}

func TestPresentedNote(t *testing.T) {
	c := auth.Credential{AccessToken: "a"}
	c.Present(obtained)
	if _, ok := c.Unanswered(); ok {
		t.Error("no refresh token has been presented")
	}
	c.RefreshToken = "r1"
	c.Present(obtained)
	if at, ok := c.Unanswered(); !ok || at != obtained.UTC() {
		t.Errorf("presented at %v, %v", at, ok)
	}
	if strings.Contains(c.Presented.Digest, "r1") {
		t.Error("the note holds the token")
	}
	c.RefreshToken = "r2"
	if _, ok := c.Unanswered(); ok {
		t.Error("the note about a token that was replaced counts for the new one")
	}
}

func TestCredentialJSON(t *testing.T) {
	big := keptLogin()
	big.Extra["huge"] = json.Number("1e999") // no float64 holds it
	for name, c := range map[string]auth.Credential{"full": keptLogin(), "least": {AccessToken: "a"}, "refresh only": {RefreshToken: "r"}, "huge number": big} {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var got auth.Credential
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, c) {
			t.Errorf("%s: another one came back", name)
		}
	}
	b, _ := json.Marshal(auth.Credential{AccessToken: "a", Expiry: obtained})
	if want := `{"v":1,"access_token":"a","expiry":"2026-11-29T12:00:00Z"}`; string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestCredentialNotWritten(t *testing.T) {
	for name, c := range map[string]auth.Credential{
		"no token":       {Scope: "canary"},
		"not UTF-8":      {AccessToken: "canary\xff"},
		"an odd member":  {AccessToken: "canary", Extra: map[string]any{"x": make(chan int)}},
		"an odd marshal": {AccessToken: "canary", Extra: map[string]any{"x": badMarshaler{}}},
		"a far expiry":   {AccessToken: "canary", Expiry: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a far past":     {AccessToken: "canary", Obtained: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		b, err := json.Marshal(c)
		if err == nil {
			t.Errorf("%s: written as %d bytes", name, len(b))
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error shows a secret", name)
		}
	}
}

type badMarshaler struct{}

func (badMarshaler) MarshalJSON() ([]byte, error) { return nil, errors.New("canary") }

func TestCredentialNotRead(t *testing.T) {
	for _, data := range []string{
		``, `null`, `[]`, `{}`, `{"access_token":"canary"}`, `{"v":0,"access_token":"canary"}`, `{"v":-1,"access_token":"canary"}`,
		`{"v":"canary","access_token":"a"}`, `{"v":1.5,"access_token":"a"}`, `{"v":1}`, `{"v":1,"access_token":"canary"`,
		`{"v":1,"access_token":12345678}`, `{"v":1,"access_token":"a","expiry":"canary"}`, `{"v":1,"access_token":"a","extra":["canary"]}`,
		`{"v":1,"access_token":"a","expiry":"0000-01-01T00:00:00Z"}`, `{"v":1,"access_token":"a","expiry":"9999-12-31T23:59:59-01:00"}`,
		`{"v":1,"access_token":"a","presented":"canary"}`, `{"v":1,"access_token":"a","resources":{"canary":1}}`,
	} {
		c := keptLogin()
		err := c.UnmarshalJSON([]byte(data))
		if !errors.Is(err, auth.ErrMalformedCredential) {
			t.Errorf("%s: %v", data, err)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error quotes it", data)
		}
		if !reflect.DeepEqual(c, keptLogin()) {
			t.Errorf("%s: half read", data)
		}
	}
}

func TestCredentialOfNewerVersion(t *testing.T) {
	var c auth.Credential
	err := json.Unmarshal([]byte(`{"v":2,"access_token":{"canary":true}}`), &c)
	newer, ok := errors.AsType[*auth.VersionError](err)
	if !ok || newer.Version != 2 {
		t.Fatal(err)
	}
	if strings.Contains(err.Error(), "canary") {
		t.Error("the error quotes it")
	}
}

func TestCredentialShowsNoSecret(t *testing.T) {
	c := keptLogin()
	var out bytes.Buffer
	for _, v := range []any{c, &c, []auth.Credential{c}, map[string]*auth.Credential{"x": &c}, struct{ C auth.Credential }{c}, c.Presented} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb, v)
		}
		fmt.Fprintln(&out, v)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("m", "c", c, "p", &c, "token type", c.TokenType)
	}
	out.WriteString(c.String() + c.GoString())
	shown := out.String()
	for _, bad := range []string{"canary", fmt.Sprintf("%x", "canary"), fmt.Sprintf("%X", "canary")} {
		if strings.Contains(shown, bad) {
			t.Errorf("a secret shows in: %s", shown)
		}
	}
	if want := `credential(Bearer, refreshable, expires 2026-11-29T13:00:00Z, scope "read write", presented 2026-11-29T12:00:00Z and not answered)`; c.String() != want {
		t.Errorf("got  %s\nwant %s", c, want)
	}
	if got := (auth.Credential{RefreshToken: "r"}).String(); got != "credential(Bearer, no access token, refreshable)" {
		t.Error(got)
	}
}

func FuzzCredentialJSON(f *testing.F) {
	b, err := json.Marshal(keptLogin())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"v":1,"access_token":"a","extra":{"x":1e999,"y":[{}]}}`))
	f.Add([]byte(`{"v":1,"refresh_token":"r","expiry":"2026-11-29T12:00:00.5+23:59","presented":{"digest":"d"}}`))
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c auth.Credential
		if err := c.UnmarshalJSON(data); err != nil {
			if _, newer := errors.AsType[*auth.VersionError](err); !newer && !errors.Is(err, auth.ErrMalformedCredential) {
				t.Errorf("an untyped error: %v", err)
			}
			return
		}
		first, err := c.MarshalJSON()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		var again auth.Credential
		if err := again.UnmarshalJSON(first); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		second, err := again.MarshalJSON()
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("it changes when written again:\n%s\n%s\n%v", first, second, err)
		}
		_, _ = c.Token(), c.String()
	})
}
