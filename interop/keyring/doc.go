// Package keyring tests the SDK's package auth/keyring on a real Secret Service: gnome-keyring, without a display, each
// time on a D-Bus and in a home of its own (with-keyring.sh).
package keyring
