//go:build (dragonfly && cgo) || (freebsd && cgo) || linux || netbsd || openbsd

package keyring

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

var errNoBus = errors.New("there is no D-Bus session")

// reachable keeps go-keyring from starting a bus where there is none: dbus-launch, if it is installed, would leave a bus
// and a locked keyring behind that outlive the program and help nobody.
func reachable() error {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return nil
	}
	runtime := filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	for _, socket := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(filepath.Join(runtime, socket)); err == nil {
			return nil
		}
	}
	if _, err := exec.LookPath("dbus-launch"); err == nil {
		return errNoBus
	}
	return nil // go-keyring says what is missing, and starts nothing
}
