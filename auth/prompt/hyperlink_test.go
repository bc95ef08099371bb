package prompt_test

import (
	"strings"
	"testing"

	"github.com/heed-sdk/heed/auth/prompt"
)

func TestHyperlinks(t *testing.T) {
	for env, want := range map[string]bool{
		"":                            false,
		"TERM=xterm-256color":         false,
		"TERM=linux":                  false,
		"TERM=xterm-kitty":            true,
		"TERM=alacritty":              true,
		"TERM=foot-extra":             true,
		"TERM=xterm-ghostty":          true,
		"TERM_PROGRAM=WezTerm":        true,
		"TERM_PROGRAM=vscode":         true,
		"TERM_PROGRAM=mintty":         true,
		"TERM_PROGRAM=Apple_Terminal": false,
		"TERM_PROGRAM=iTerm.app TERM_PROGRAM_VERSION=3.5.0":  true,
		"TERM_PROGRAM=iTerm.app TERM_PROGRAM_VERSION=3.0.15": false,
		"TERM_PROGRAM=iTerm.app":                             false,
		"VTE_VERSION=7200":                                   true,
		"VTE_VERSION=5000":                                   false,
		"VTE_VERSION=many":                                   false,
		"WT_SESSION=1":                                       true,
		"TERM=tmux-256color TERM_PROGRAM=tmux TERM_PROGRAM_VERSION=3.3a":      false,
		"TERM=tmux-256color TERM_PROGRAM=tmux TERM_PROGRAM_VERSION=3.4":       true,
		"TERM=screen-256color TERM_PROGRAM=tmux TERM_PROGRAM_VERSION=3.10b":   true,
		"TERM=screen-256color TERM_PROGRAM=tmux TERM_PROGRAM_VERSION=next-4":  false,
		"TERM=screen WT_SESSION=1 VTE_VERSION=7200":                           false,
		"TERM=xterm FORCE_HYPERLINK=1":                                        true,
		"TERM=xterm-kitty FORCE_HYPERLINK=0":                                  false,
		"TERM_PROGRAM=tmux TERM_PROGRAM_VERSION=4.0 TERM=tmux":                true,
		"TERM=xterm-256color TERM_PROGRAM=tmux TERM_PROGRAM_VERSION=unknown4": false,
	} {
		if got := prompt.Hyperlinks(environment(strings.Fields(env)...)); got != want {
			t.Errorf("%s: %v", env, got)
		}
	}
}

func TestDrawsUnicode(t *testing.T) {
	for env, want := range map[string]bool{
		"":                            true,
		"LANG=en_GB.UTF-8":            true,
		"LANG=C.utf8":                 true,
		"LANG=C":                      false,
		"LANG=de_DE@euro":             false,
		"LC_ALL=C LANG=en_GB.UTF-8":   false,
		"LC_ALL= LC_CTYPE=C.UTF-8":    true,
		"LC_CTYPE=POSIX LANG=C.UTF-8": false,
	} {
		if got := prompt.DrawsUnicode(environment(strings.Fields(env)...)); got != want {
			t.Errorf("%s: %v", env, got)
		}
	}
}
