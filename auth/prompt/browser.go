package prompt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/heed-sdk/heed/delay"
)

// patience is how long OpenBrowser waits for a launcher to fail. Those that do are quick.
const patience = time.Second

// OpenBrowser asks the desktop to open an http or https address. No shell has a part in it. It returns when that was
// done or has failed, or after a second: what opens a page may stay for as long as the browser runs. It is for
// auth.DeviceFlow.Browser.
func OpenBrowser(ctx context.Context, address string) error {
	if !linkable(address) || strings.Contains(address, `"`) {
		return errors.New("the address is not one for a browser")
	}
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" && os.Getenv("BROWSER") == "" {
			return errors.New("there is no display") // xdg-open would take a browser that draws on the terminal
		}
	}
	// The browser outlives the login, so the end of the context does not end it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s cannot be run: %w", name, err)
	}
	// The one goroutine that may outlive the login: it ends with the launcher, which nobody else would reap.
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	late := make(chan struct{})
	t := delay.TimersOn(nil).After(delay.KindBrowser, patience, func() { close(late) })
	defer t.Stop()
	select {
	case err := <-exited:
		if err != nil {
			return fmt.Errorf("%s failed: %w", name, err)
		}
	case <-late:
	case <-ctx.Done():
	}
	return nil
}
