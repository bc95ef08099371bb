//go:build unix && !darwin

package prompt_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/heed-sdk/heed/auth/prompt"
)

// launcher puts a script in the place of xdg-open, for a desktop that has a display.
func launcher(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("DISPLAY", ":0")
}

func TestOpenBrowser(t *testing.T) {
	got := filepath.Join(t.TempDir(), "got")
	t.Setenv("GOT", got)
	launcher(t, `for a; do echo "$a" >>"$GOT"; done`)
	const address = "https://as.test/?c=$(id);x=`id`&y='1'*"
	if err := prompt.OpenBrowser(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(got); err != nil || string(b) != address+"\n" {
		t.Errorf("opened %q, %v", b, err)
	}
}

func TestOpenBrowserFails(t *testing.T) {
	for _, address := range []string{
		"", "javascript:alert(1)", "file:///etc/passwd", "ftp://as.test/", "--help", "as.test", "https://", "https:as.test",
		"https://as.test/ x", "https://as.test/\n", "https://as.test/\x1b[2J", "https://ä.test/", `https://as.test/"x`, "mailto:a@b.test",
	} {
		launcher(t, "exit 0")
		if err := prompt.OpenBrowser(t.Context(), address); err == nil {
			t.Errorf("%q was opened", address)
		}
	}
	for script, want := range map[string]string{"exit 3": "xdg-open failed: exit status 3", "": "cannot be run"} {
		launcher(t, script)
		err := prompt.OpenBrowser(t.Context(), "https://as.test/?c=canary")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", script, err)
		}
	}
	launcher(t, "exit 0")
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} {
		t.Setenv(name, "")
	}
	if err := prompt.OpenBrowser(t.Context(), "https://as.test/"); err == nil || err.Error() != "there is no display" {
		t.Errorf("without a display: %v", err)
	}
}

// A launcher that stays is not waited for when the login ends.
func TestOpenBrowserStays(t *testing.T) {
	stay := filepath.Join(t.TempDir(), "stay")
	t.Setenv("STAY", stay)
	launcher(t, `read line <"$STAY"`)
	if err := syscall.Mkfifo(stay, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := prompt.OpenBrowser(ctx, "https://as.test/"); err != nil {
		t.Error(err)
	}
	// It has not been killed: it takes what it waits for.
	f, err := os.OpenFile(stay, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("go\n"); err != nil {
		t.Error(err)
	}
}
