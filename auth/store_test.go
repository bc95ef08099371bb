package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/storetest"
)

// storeKey is the key of the tests of stores.
var storeKey = auth.Key{Issuer: "https://as.test", ClientID: "cli"}

func TestMemStore(t *testing.T) {
	storetest.Run(t, func() auth.Store { return new(auth.MemStore) })
}

func TestFileStore(t *testing.T) {
	storetest.Run(t, func() auth.Store { return &auth.FileStore{Dir: t.TempDir()} })
}

func TestEnvStore(t *testing.T) {
	t.Setenv("HEED_TEST_TOKEN", "")
	storetest.Run(t, func() auth.Store { return &auth.EnvStore{Variable: "HEED_TEST_TOKEN"} })
}

func TestEnvStoreLends(t *testing.T) {
	s := &auth.EnvStore{}
	for value, want := range map[string]string{"tok": "tok", " tok\r\n": "tok", "": "", " \n": ""} {
		t.Setenv(auth.EnvVariable, value)
		c, err := s.Load(t.Context(), storeKey)
		if c.AccessToken != want || (want == "") != errors.Is(err, auth.ErrStoreNotFound) {
			t.Errorf("%q: %v, %v", value, c, err)
		}
	}
	t.Setenv(auth.EnvVariable, "canary token")
	_, err := s.Load(t.Context(), storeKey)
	if !errors.Is(err, auth.ErrStoreFailed) || strings.Contains(err.Error(), "canary") {
		t.Errorf("a token with a space in it: %v", err)
	}
	if err := s.Save(t.Context(), storeKey, keptLogin()); !errors.Is(err, auth.ErrStoreReadOnly) || !strings.Contains(err.Error(), auth.EnvVariable) {
		t.Errorf("Save: %v", err)
	}
}

func TestStoreErrorText(t *testing.T) {
	cause := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}
	for _, tt := range []struct {
		err  auth.StoreError
		want string
	}{
		{auth.StoreError{Op: auth.OpLoad, Reason: auth.ErrStoreNotFound}, "auth: no login is stored (load); log in"},
		{auth.StoreError{Op: auth.OpSave, Reason: auth.ErrStoreFailed, Err: cause}, "auth: the store failed (save): open x: permission denied; mend that and try again"},
		{auth.StoreError{Op: auth.OpLoad, Reason: auth.ErrStoreFailed, Err: auth.ErrMalformedCredential}, "auth: the store failed (load): the stored login is damaged; log in again"},
		{auth.StoreError{Op: auth.OpLoad, Reason: auth.ErrStoreFailed, Err: &auth.VersionError{Version: 9}}, "auth: the store failed (load): the stored login has version 9, and this release reads version 1; upgrade, or log in again"},
		{auth.StoreError{Op: auth.OpSave, Reason: auth.ErrStoreFailed, Err: context.Canceled}, "auth: the store failed (save): context canceled; try again"},
		{auth.StoreError{Op: auth.OpLock, Reason: auth.ErrStoreLocked}, "auth: the store is locked (lock); wait for the other process and try again"},
		{auth.StoreError{Op: auth.OpLoad, Reason: auth.ErrStoreLocked}, "auth: the store is locked (load); unlock it and try again"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	reasons := []auth.StoreReason{
		auth.ErrStoreNotFound, auth.ErrStoreLocked, auth.ErrStoreUnavailable, auth.ErrStoreTooLarge, auth.ErrStoreInsecure,
		auth.ErrStoreReadOnly, auth.ErrStoreFailed,
	}
	texts := map[string]bool{}
	for _, r := range reasons {
		err := fmt.Errorf("wrapped: %w", &auth.StoreError{Op: auth.OpSave, Reason: r, Err: cause})
		for _, other := range reasons {
			if errors.Is(err, other) != (other == r) {
				t.Errorf("%s is %s to errors.Is", string(r), string(other))
			}
		}
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s hides its cause", string(r))
		}
		texts[r.Error()] = true
	}
	if len(texts) != len(reasons) {
		t.Errorf("two reasons have one text")
	}
}
