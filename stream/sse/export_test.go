package sse

// Scan scans a text block by block, the last one filled up with spaces. It returns where the marks are, and whether all of
// it is UTF-8.
func Scan(text []byte) (marks []int, ok bool) {
	var c characters
	ok = true
	for at := 0; at < len(text); at += block {
		p := [block]byte{}
		for i := copy(p[:], text[at:]); i < block; i++ {
			p[i] = ' '
		}
		m, valid := c.scan(&p)
		ok = ok && valid
		for i := range block {
			if m>>i&1 != 0 {
				marks = append(marks, at+i)
			}
		}
	}
	return marks, ok && c.between()
}

// Unfinished is unfinished.
var Unfinished = unfinished
