// Package storetest checks whether an [auth.Store] keeps the promises of its interface. Call [Run] from a test of the
// store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func() auth.Store { return mystore.New(t.TempDir()) })
//	}
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
)

// Run checks the stores that open returns; each call of it returns an empty one. A store that is also an [auth.Locker] or
// an [auth.Prober] is checked as such. Of a store that cannot be written to, what can be checked is.
func Run(t *testing.T, open func() auth.Store) {
	t.Helper()
	checks := []struct {
		name  string
		check func(*testing.T, auth.Store)
	}{
		{"Empty", empty},
		{"RoundTrip", roundTrip},
		{"Copies", copies},
		{"Replaces", replaces},
		{"Keys", keys},
		{"CanonicalKeys", canonicalKeys},
		{"Delete", deletes},
		{"InvalidKey", invalidKey},
		{"NothingToKeep", nothingToKeep},
		{"EndedContext", endedContext},
		{"Concurrent", concurrent},
		{"Lock", lock},
		{"Probe", probe},
		{"ShowsNoSecret", showsNoSecret},
	}
	if readOnly(t, open()) {
		return
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.check(t, open()) })
	}
}

const secret = "storetest-secret-"

var key = auth.Key{Issuer: "https://as.example", ClientID: "storetest"}

// full is a credential in which every field is set.
func full() auth.Credential {
	at := time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC)
	c := auth.Credential{
		AccessToken:  secret + "access",
		TokenType:    "DPoP",
		RefreshToken: secret + "refresh",
		Expiry:       at.Add(time.Hour),
		Obtained:     at,
		Scope:        "read write:é",
		Resources:    []string{"https://api.example/", "urn:example:two"},
		IDToken:      secret + "id",
		Extra:        map[string]any{"tenant": "t<1>&", "list": []any{"a", 1.5, nil, true}},
	}
	c.Present(at.Add(time.Minute))
	return c
}

func plain(token string) auth.Credential { return auth.Credential{AccessToken: secret + token} }

// readOnly checks a store that refuses to be written to, and reports whether it is one.
func readOnly(t *testing.T, s auth.Store) bool {
	t.Helper()
	err := s.Save(t.Context(), key, full())
	if !errors.Is(err, auth.ErrStoreReadOnly) {
		return false
	}
	wants(t, err, auth.OpSave, auth.ErrStoreReadOnly)
	wants(t, s.Delete(t.Context(), key), auth.OpDelete, auth.ErrStoreReadOnly)
	if _, err := s.Load(t.Context(), key); err != nil {
		wants(t, err, auth.OpLoad, auth.ErrStoreNotFound)
	}
	t.Run("InvalidKey", func(t *testing.T) { invalidKey(t, s) })
	return true
}

func empty(t *testing.T, s auth.Store) {
	c, err := s.Load(t.Context(), key)
	wants(t, err, auth.OpLoad, auth.ErrStoreNotFound)
	if c.AccessToken != "" {
		t.Error("an empty store has a login")
	}
}

func roundTrip(t *testing.T, s auth.Store) {
	long := plain(strings.Repeat("x", 10_000)) // longer than a keyring's entry may be
	for name, c := range map[string]auth.Credential{
		"full": full(), "plain": plain("plain"), "refresh only": {RefreshToken: secret + "only"}, "long": long,
	} {
		save(t, s, key, c)
		if got := load(t, s, key); text(got) != text(c) {
			t.Errorf("%s: what was loaded is not what was saved", name)
		}
	}
}

func copies(t *testing.T, s auth.Store) {
	given := full()
	save(t, s, key, given)
	given.Resources[0], given.Extra["tenant"], given.Presented.Digest = "changed", "changed", "changed"
	got := load(t, s, key)
	if text(got) != text(full()) {
		t.Error("changing what was saved has changed what is stored")
	}
	got.Resources[0], got.Extra["tenant"], got.Presented.Digest = "changed", "changed", "changed"
	if text(load(t, s, key)) != text(full()) {
		t.Error("changing what was loaded has changed what is stored")
	}
}

func replaces(t *testing.T, s auth.Store) {
	save(t, s, key, full())
	save(t, s, key, plain("second"))
	if got := load(t, s, key); text(got) != text(plain("second")) {
		t.Error("Save has not replaced the whole login")
	}
}

func keys(t *testing.T, s auth.Store) {
	all := []auth.Key{
		key,
		{Issuer: "https://other.example", ClientID: "storetest"},
		{Issuer: "https://as.example/path", ClientID: "storetest"},
		{Issuer: "https://as.example:8443", ClientID: "storetest"},
		{Issuer: "https://as.example", ClientID: "another"},
		{Issuer: "https://as.example", ClientID: "storetest", Account: "work"},
		{Issuer: "https://as.example", ClientID: "storetest", Account: "Work"},
		{Issuer: "https://as.example", ClientID: "storetest", Account: "../work"},
		{Issuer: "https://as.example", ClientID: "store", Account: "test"},
	}
	for i, k := range all {
		save(t, s, k, plain(fmt.Sprint(i)))
	}
	for i, k := range all {
		if got := load(t, s, k); got.AccessToken != secret+fmt.Sprint(i) {
			t.Errorf("the login of key %d is another one's", i)
		}
	}
	if err := s.Delete(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	load(t, s, all[1])
}

func canonicalKeys(t *testing.T, s auth.Store) {
	save(t, s, key, full())
	for _, issuer := range []string{"https://as.example/", "HTTPS://AS.Example:443"} {
		load(t, s, auth.Key{Issuer: issuer, ClientID: key.ClientID})
	}
}

func deletes(t *testing.T, s auth.Store) {
	if err := s.Delete(t.Context(), key); err != nil {
		t.Errorf("Delete of what is not there: %v", err)
	}
	save(t, s, key, full())
	for range 2 {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	_, err := s.Load(t.Context(), key)
	wants(t, err, auth.OpLoad, auth.ErrStoreNotFound)
	save(t, s, key, plain("again"))
	load(t, s, key)
}

func invalidKey(t *testing.T, s auth.Store) {
	for _, k := range []auth.Key{{}, {Issuer: "as.example", ClientID: "c"}, {Issuer: key.Issuer}, {Issuer: key.Issuer, ClientID: "c", Account: "a\nb"}} {
		_, err := s.Load(t.Context(), k)
		wants(t, err, auth.OpLoad, auth.ErrStoreFailed)
		wants(t, s.Save(t.Context(), k, full()), auth.OpSave, auth.ErrStoreFailed)
		wants(t, s.Delete(t.Context(), k), auth.OpDelete, auth.ErrStoreFailed)
	}
}

func nothingToKeep(t *testing.T, s auth.Store) {
	save(t, s, key, full())
	wants(t, s.Save(t.Context(), key, auth.Credential{Scope: "read"}), auth.OpSave, auth.ErrStoreFailed)
	wants(t, s.Save(t.Context(), key, auth.Credential{AccessToken: "\xff"}), auth.OpSave, auth.ErrStoreFailed)
	if text(load(t, s, key)) != text(full()) {
		t.Error("a Save that was refused has changed what is stored")
	}
}

func endedContext(t *testing.T, s auth.Store) {
	save(t, s, key, full())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Load(ended, key)
	isEnded(t, "Load", err)
	isEnded(t, "Save", s.Save(ended, key, plain("late")))
	isEnded(t, "Delete", s.Delete(ended, key))
	if l, ok := s.(auth.Locker); ok {
		unlock, err := l.Lock(ended, key)
		isEnded(t, "Lock", err)
		if err == nil {
			unlock()
		}
	}
	if p, ok := s.(auth.Prober); ok {
		isEnded(t, "Probe", p.Probe(ended))
	}
	if text(load(t, s, key)) != text(full()) {
		t.Error("a method with an ended context has changed what is stored")
	}
}

func isEnded(t *testing.T, method string, err error) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%s with an ended context: %v", method, err)
	}
}

func showsNoSecret(t *testing.T, s auth.Store) {
	save(t, s, key, full())
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("store", "store", s)
	shown := fmt.Sprintf("%v %+v %#v %s %x", s, s, s, s, s) + log.String()
	if hex := fmt.Sprintf("%x", secret); strings.Contains(shown, secret) || strings.Contains(shown, hex) {
		t.Error("printing the store shows a secret")
	}
}

func save(t *testing.T, s auth.Store, k auth.Key, c auth.Credential) {
	t.Helper()
	if err := s.Save(t.Context(), k, c); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, s auth.Store, k auth.Key) auth.Credential {
	t.Helper()
	c, err := s.Load(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// text is a form of a credential that can be compared.
func text(c auth.Credential) string {
	b, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// wants checks an error's type, its fields, and that it says nothing that it should not.
func wants(t *testing.T, err error, op auth.StoreOp, reason auth.StoreReason) {
	t.Helper()
	failed, ok := errors.AsType[*auth.StoreError](err)
	switch {
	case !ok:
		t.Errorf("%s: %v is no *auth.StoreError", op, err)
	case failed.Op != op || failed.Reason != reason || !errors.Is(err, reason):
		t.Errorf("%s: %v, want %s", op, err, reason)
	case strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret):
		t.Errorf("%s: the error shows a secret", op)
	}
}
