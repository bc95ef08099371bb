package keyring

import (
	"errors"
	"net"
	"os/exec"
	"strings"

	system "github.com/zalando/go-keyring"

	"github.com/heed-sdk/heed/auth"
)

// The keyrings say what is wrong in words only. These were seen with gnome-keyring over D-Bus, or are documented names of
// D-Bus and of the Secret Service; what is not among them is auth.ErrStoreFailed, which is no worse a reason to choose
// another store.
var (
	lockedTexts = []string{
		"failed to unlock correct collection",          // a prompt that nobody answered, or no display to show it on
		"org.freedesktop.Secret.Error.IsLocked",        // the name of the error
		"Cannot create an item in a locked collection", // and its text
	}
	unavailableTexts = []string{
		"was not provided by any .service files", // a bus without a Secret Service
		"org.freedesktop.DBus.Error.ServiceUnknown",
		"org.freedesktop.DBus.Error.NoReply",
		"couldn't determine address of session bus",
		"Object does not exist at path", // a Secret Service without a default collection
		"org.freedesktop.Secret.Error.NoSuchObject",
		"connection closed by user", // the bus went away
	}
)

// The keychain's command ends with the last byte of the error's number.
var keychainReasons = map[int]auth.StoreReason{
	36:  auth.ErrStoreLocked,      // errSecInteractionNotAllowed, -25308
	37:  auth.ErrStoreUnavailable, // errSecNoDefaultKeychain, -25307
	51:  auth.ErrStoreLocked,      // errSecAuthFailed, -25293
	128: auth.ErrStoreLocked,      // userCanceledErr, -128
}

// reasonOf classes the failure of a ring.
func reasonOf(err error) auth.StoreReason {
	switch {
	case errors.Is(err, system.ErrNotFound):
		return auth.ErrStoreNotFound
	case errors.Is(err, system.ErrSetDataTooBig):
		return auth.ErrStoreTooLarge
	case errors.Is(err, errNoBus), errors.Is(err, exec.ErrNotFound), errors.Is(err, system.ErrUnsupportedPlatform):
		return auth.ErrStoreUnavailable
	}
	if _, ok := errors.AsType[*net.OpError](err); ok { // no bus where the environment says there is one
		return auth.ErrStoreUnavailable
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if reason, ok := keychainReasons[exit.ExitCode()]; ok {
			return reason
		}
	}
	for _, text := range lockedTexts {
		if strings.Contains(err.Error(), text) {
			return auth.ErrStoreLocked
		}
	}
	for _, text := range unavailableTexts {
		if strings.Contains(err.Error(), text) {
			return auth.ErrStoreUnavailable
		}
	}
	return auth.ErrStoreFailed
}
