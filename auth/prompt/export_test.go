package prompt

import "github.com/heed-sdk/heed/auth"

// Hyperlinks is hyperlinks.
var Hyperlinks = hyperlinks

// DrawsUnicode is drawsUnicode.
var DrawsUnicode = drawsUnicode

// Large is large.
var Large = large

// QR draws the code of a text, with its quiet zone.
func QR(text string) []string { return drawQR(qr(text, 200), quietZone) }

// Layout lays out a prompt as it is shown, and says of each line how many columns it has and whether it may wrap.
func Layout(p auth.Prompt, columns, rows int, unicode, links bool) (drawn, seen []string, wraps []bool) {
	for _, l := range layout(cleaned(p), window{columns: columns, rows: rows, unicode: unicode, links: links}) {
		drawn, seen, wraps = append(drawn, l.drawn), append(seen, l.text), append(wraps, l.wraps)
	}
	return drawn, seen, wraps
}

// Columns is columns.
var Columns = columns

// Encode is encode.
var Encode = encode
