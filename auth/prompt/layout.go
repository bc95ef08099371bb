package prompt

import (
	"slices"
	"strings"

	"github.com/heed-sdk/heed/auth"
)

// How parts are drawn. The QR code names its colours, once for terminals that know the bright white and once for those
// that do not: it has to be light on dark whatever the user's colours are.
const (
	bold   = "\x1b[1m"
	urgent = "\x1b[1;31m"
	onDark = "\x1b[37;97;40m"
	plain  = "\x1b[0m"
)

// window is what there is to draw in.
type window struct {
	columns, rows int
	unicode       bool // it draws more than ASCII
	links         bool // it has hyperlinks
}

// line is a line to draw. An address is left to the terminal to wrap, so that it can be copied whole.
type line struct {
	text  string // what is seen
	drawn string // with all that is not
	wraps bool
}

func text(s string) line { return line{text: s, drawn: s} }

func styled(style, indent, s string) line {
	return line{text: indent + s, drawn: indent + style + s + plain}
}

// layout decides what to show: the largest of what fits into the window, with a row left for the countdown.
func layout(p auth.Prompt, w window) []line {
	heads := heads(p, w)
	if modules := modules(p, w); modules != nil {
		for _, head := range heads {
			for _, zone := range []int{quietZone, fewest} {
				code := picture(drawQR(modules, zone))
				for _, all := range [][]line{above(head, code), beside(head, code)} {
					if fits(all, w) {
						return all
					}
				}
			}
		}
	}
	var all []line
	for _, head := range heads {
		all = head
		if p.VerificationURIComplete != "" {
			all = append(all, text("or open"), address("  ", p.VerificationURIComplete, p.VerificationURIComplete, w))
		}
		if fits(all, w) {
			break
		}
	}
	return all
}

// modules are those of the QR code, if there is one to show.
func modules(p auth.Prompt, w window) [][]bool {
	if p.VerificationURIComplete == "" || !w.unicode {
		return nil
	}
	return qr(p.VerificationURIComplete, min(w.columns, 2*w.rows)-2*fewest)
}

// heads are ways to show the address and the code, from the largest to the smallest.
func heads(p auth.Prompt, w window) [][]line {
	small := []line{mainAddress("Open ", p, w), inText("and enter ", p)}
	if !w.unicode {
		return [][]line{small}
	}
	all := [][]line{
		head(p, w, boxed(p.UserCode), true),
		head(p, w, boxed(p.UserCode), false),
		small,
	}
	if code := large(p.UserCode); code != nil {
		all = append([][]line{head(p, w, code, true)}, all...)
	}
	return all
}

// head has the code drawn as given, and airy with room around it.
func head(p auth.Prompt, w window, code []string, airy bool) []line {
	lines := []line{text("To log in, open"), mainAddress("  ", p, w), inText("and enter the code ", p)}
	for _, row := range code {
		lines = append(lines, styled(bold, "  ", row))
	}
	if !airy {
		return lines
	}
	return slices.Concat(lines[:1], blank, lines[1:2], blank, lines[2:3], blank, lines[3:], blank)
}

var blank = []line{text("")}

// inText is the code in a sentence, where it can be copied and read aloud.
func inText(before string, p auth.Prompt) line {
	return line{text: before + p.UserCode, drawn: before + bold + p.UserCode + plain}
}

func picture(rows []string) []line {
	var lines []line
	for _, row := range rows {
		lines = append(lines, styled(onDark, "", row))
	}
	return lines
}

// above puts a QR code below the text.
func above(head, code []line) []line {
	return slices.Concat(head, []line{text("or scan:")}, code)
}

// beside puts a QR code to the right of the text. Nothing in it wraps.
func beside(head, code []line) []line {
	head = slices.Concat(head, []line{text("or scan:")})
	width := 0
	for _, l := range head {
		width = max(width, columns(l.text))
	}
	all := make([]line, max(len(head), len(code)))
	for y := range all {
		var left, right line
		if y < len(head) {
			left = head[y]
		}
		if y < len(code) {
			right = code[y]
		}
		gap := strings.Repeat(" ", width+3-columns(left.text))
		all[y] = line{text: left.text + gap + right.text, drawn: left.drawn + gap + right.drawn}
	}
	return all
}

// fits reports whether lines leave a row free, and none is cut.
func fits(lines []line, w window) bool {
	rows := 1
	for _, l := range lines {
		n := columns(l.text)
		if n > w.columns && !l.wraps {
			return false
		}
		rows += max(1, (n+w.columns-1)/w.columns)
	}
	return rows <= w.rows
}

// mainAddress is the address to open. Clicked on, it may well bring the code along, if that leads to the same place.
func mainAddress(before string, p auth.Prompt, w window) line {
	target := p.VerificationURI
	if c := p.VerificationURIComplete; c != "" && origin(c) == origin(target) {
		target = c
	}
	return address(before, p.VerificationURI, target, w)
}
