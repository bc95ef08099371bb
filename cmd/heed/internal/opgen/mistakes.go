package opgen

import (
	"errors"
	"fmt"
	"strings"

	"github.com/heed-sdk/heed/requests"
)

// Mistake is one thing that is wrong with a file.
type Mistake struct {
	File string
	Line int // 1 when it is about the file as a whole
	Text string
}

func (m Mistake) String() string {
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)
}

// Mistakes is all that is wrong, in the order of the lines.
type Mistakes []Mistake

// shown is how many mistakes are a message; nobody reads the hundredth.
const shown = 8

func (m Mistakes) Error() string {
	var b strings.Builder
	for i, one := range m {
		if i == shown {
			fmt.Fprintf(&b, "; and %d more", len(m)-shown)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(one.String())
	}
	return b.String()
}

// place is where something is.
type place struct {
	file string
	line int
}

func (g *generator) wrong(at place, format string, args ...any) {
	g.mistakes = append(g.mistakes, Mistake{at.file, at.line, fmt.Errorf(format, args...).Error()})
}

// refused finds the lines of what package requests does not take.
func (g *generator) refused(err error, rows []*operation) {
	table, ok := errors.AsType[*requests.OperationsError](err)
	if !ok {
		return
	}
	for _, m := range table.Mistakes {
		for _, o := range rows {
			if o.pattern() == m.Pattern {
				g.wrong(o.at, "%s: %s", m.Pattern, m.Reason)
			}
		}
	}
}
