// Package interop holds nothing but tests: the SDK and the command of Heed against servers that are not ours.
package interop
