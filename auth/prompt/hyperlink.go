package prompt

import (
	"net/url"
	"strconv"
	"strings"
)

// address is a line with an address in it, which leads to target where the terminal has hyperlinks: OSC 8, see
// https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda.
func address(before, shown, target string, w window) line {
	if strings.TrimSpace(before) == "" && columns(before+shown) > w.columns {
		before = "" // rather than a line break in it
	}
	l := line{text: before + shown, drawn: before + shown, wraps: true}
	if w.links && linkable(target) {
		l.drawn = before + "\x1b]8;;" + target + "\x1b\\" + shown + "\x1b]8;;\x1b\\"
	}
	return l
}

// linkable reports whether an address can be put into an escape sequence: a URI is ASCII.
func linkable(target string) bool {
	for _, b := range []byte(target) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return origin(target) != ""
}

// origin is where an http address leads to, or "".
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// hyperlinks reports whether a terminal is known to have hyperlinks. There is no way to ask it, and one that has not may
// write the address where it should not: so only those that are known.
func hyperlinks(env func(string) (string, bool)) bool {
	get := func(name string) string { v, _ := env(name); return v }
	if force, ok := env("FORCE_HYPERLINK"); ok {
		return force != "0" && force != "false"
	}
	term := get("TERM")
	program, version := get("TERM_PROGRAM"), get("TERM_PROGRAM_VERSION")
	switch {
	case strings.HasPrefix(term, "tmux"), strings.HasPrefix(term, "screen"):
		// What is outside does not count: it is the multiplexer that draws.
		return program == "tmux" && atLeast(version, 3, 4)
	case program == "iTerm.app":
		return atLeast(version, 3, 1)
	case program == "WezTerm", program == "vscode", program == "ghostty", program == "Hyper", program == "Tabby", program == "rio", program == "mintty":
		return true
	case get("WT_SESSION") != "", get("KITTY_WINDOW_ID") != "", get("DOMTERM") != "":
		return true
	case strings.HasPrefix(term, "xterm-kitty"), strings.HasPrefix(term, "alacritty"), strings.HasPrefix(term, "foot"),
		strings.HasPrefix(term, "wezterm"), strings.HasPrefix(term, "xterm-ghostty"):
		return true
	}
	vte, err := strconv.Atoi(get("VTE_VERSION"))
	return err == nil && vte > 5000 // 0.50.0 crashes on them
}

// atLeast compares a version such as 3.4a.
func atLeast(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	a, err := strconv.Atoi(first)
	if err != nil {
		return false
	}
	b, _ := strconv.Atoi(second)
	return a > major || a == major && b >= minor
}

// drawsUnicode reports whether a terminal takes UTF-8, as far as the locale tells. Where nothing does, it is taken for
// granted.
func drawsUnicode(env func(string) (string, bool)) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, _ := env(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
