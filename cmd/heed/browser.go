package main

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
)

// openBrowser opens an http or https address without a shell, and reports whether something took it.
func openBrowser(ctx context.Context, address string) bool {
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return false
	}
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	// The browser outlives the login, so the context does not end it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	if cmd.Start() != nil {
		return false
	}
	go func() { _ = cmd.Wait() }()
	return true
}
