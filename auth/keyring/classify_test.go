package keyring_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	system "github.com/zalando/go-keyring"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/keyring"
)

func TestFailuresAreClassed(t *testing.T) {
	noBus := &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)}
	tests := []struct {
		err  error
		want auth.StoreReason
	}{
		{noBus, auth.ErrStoreUnavailable},
		{&exec.Error{Name: "dbus-launch", Err: exec.ErrNotFound}, auth.ErrStoreUnavailable},
		{errors.New("dbus: couldn't determine address of session bus"), auth.ErrStoreUnavailable},
		{errors.New("The name org.freedesktop.secrets was not provided by any .service files"), auth.ErrStoreUnavailable},
		{errors.New("Object does not exist at path “/org/freedesktop/secrets/aliases/default”"), auth.ErrStoreUnavailable},
		{system.ErrUnsupportedPlatform, auth.ErrStoreUnavailable},
		{errors.New("failed to unlock correct collection '/org/freedesktop/secrets/collection/login'"), auth.ErrStoreLocked},
		{errors.New("Cannot create an item in a locked collection"), auth.ErrStoreLocked},
		{fmt.Errorf("wrapped: %w", system.ErrSetDataTooBig), auth.ErrStoreTooLarge},
		{errors.New("who knows"), auth.ErrStoreFailed},
	}
	for _, tt := range tests {
		r := new(ring)
		s := &keyring.Store{Dir: t.TempDir(), Ring: r}
		save(t, s)
		r.fails(tt.err)
		for name, c := range calls {
			err := c.call(s, t.Context())
			if !errors.Is(err, tt.want) || !errors.Is(err, tt.err) {
				t.Errorf("%s, %v: %v, want %s", name, tt.err, err, string(tt.want))
			}
			if name == "Delete" { // the login is gone in spite of it
				r.fails(nil)
				save(t, s)
				r.fails(tt.err)
			}
		}
	}
}

func TestKeychainExitCodes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("exit codes are had from sh, which Windows lacks")
	}
	for code, want := range map[int]auth.StoreReason{36: auth.ErrStoreLocked, 37: auth.ErrStoreUnavailable, 51: auth.ErrStoreLocked, 128: auth.ErrStoreLocked, 1: auth.ErrStoreFailed} {
		r := new(ring)
		r.fails(exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprint("exit ", code)).Run())
		if err := (&keyring.Store{Dir: t.TempDir(), Ring: r}).Probe(t.Context()); !errors.Is(err, want) {
			t.Errorf("exit status %d: %v", code, err)
		}
	}
}

// Without a session, go-keyring would have a bus started that outlives the program.
func TestStartsNoBus(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux does go-keyring look for a D-Bus")
	}
	if _, err := os.Stat(filepath.Join("/run/user", fmt.Sprint(os.Getuid()), "bus")); err == nil {
		t.Skip("this user has a session bus, so that none would be started")
	}
	system.MockInit() // which would work
	bin := t.TempDir()
	launched := filepath.Join(bin, "launched")
	script := fmt.Sprintf("#!/bin/sh\n: > %s\n", launched)
	if err := os.WriteFile(filepath.Join(bin, "dbus-launch"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	for _, address := range []string{"", "autolaunch:"} {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
		if err := (&keyring.Store{Dir: t.TempDir()}).Probe(t.Context()); !errors.Is(err, auth.ErrStoreUnavailable) {
			t.Errorf("without a session: %v", err)
		}
	}
	if _, err := os.Stat(launched); err == nil {
		t.Error("a bus was started")
	}
}
