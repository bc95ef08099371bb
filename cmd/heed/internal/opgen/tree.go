package opgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// node is a value of JSON or YAML that knows its line, which their decoders do not tell.
type node struct {
	line    int
	key     int              // of its name, if it is a member
	members map[string]*node // of an object
	items   []*node          // of an array
	array   bool
	value   any // of anything else, as encoding/json or YAML decodes it
}

// member returns a member of an object, or nil.
func (n *node) member(name string) *node { return n.members[name] }

// plain is the value without the lines, for messages. A null is a text that nothing takes: it is declared, and wrong.
func (n *node) plain() any {
	switch {
	case n.members != nil:
		m := map[string]any{}
		for name, v := range n.members {
			m[name] = v.plain()
		}
		return m
	case n.array:
		list := []any{}
		for _, v := range n.items {
			list = append(list, v.plain())
		}
		return list
	case n.value == nil:
		return "null"
	}
	return n.value
}

type jsonReader struct {
	data []byte
	dec  *json.Decoder
}

// lineError is a mistake in a file that cannot be read for it.
type lineError struct {
	line int
	text string
}

func (e *lineError) Error() string { return e.text }

// parseJSON reads one JSON value, in which no member is declared twice. The error is a *lineError.
func parseJSON(data []byte) (*node, error) {
	r := &jsonReader{data, json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	n, err := r.next()
	if err == nil {
		if _, more := r.dec.Token(); more != io.EOF {
			err = &lineError{r.line(), "something follows the value: take it out"}
		}
	}
	return n, err
}

// line is that of the last token.
func (r *jsonReader) line() int { return lineAt(r.data, r.dec.InputOffset()) }

// lineAt is the line of an offset.
func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n"))
}

// lastLine is that of the last text.
func lastLine(data []byte) int {
	data = bytes.TrimRight(data, " \t\r\n")
	return lineAt(data, int64(len(data)))
}

// noJSON says where it is that no JSON goes on. Of the decoder's two offsets the one in its error is none of the file.
func (r *jsonReader) noJSON(err error) error {
	line := r.line()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		line, err = lastLine(r.data), errors.New("it ends in the midst")
	}
	return &lineError{line, "it is no JSON: " + oneLine(err.Error()) + ": mend it"}
}

func (r *jsonReader) next() (*node, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, r.noJSON(err)
	}
	n := &node{line: r.line()}
	switch t {
	case json.Delim('{'):
		n.members = map[string]*node{}
		for r.dec.More() {
			if err := r.pair(n); err != nil {
				return nil, err
			}
		}
	case json.Delim('['):
		n.array = true
		for r.dec.More() {
			v, err := r.next()
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
	default:
		n.value = t
		return n, nil
	}
	if _, err = r.dec.Token(); err != nil { // the closing delimiter
		return nil, r.noJSON(err)
	}
	return n, nil
}

// pair reads a member.
func (r *jsonReader) pair(n *node) error {
	t, err := r.dec.Token()
	if err != nil {
		return r.noJSON(err)
	}
	name, line := fmt.Sprint(t), r.line()
	v, err := r.next()
	if err != nil {
		return err
	}
	if other := n.members[name]; other != nil {
		return &lineError{line, fmt.Sprintf("%q is declared in line %d, too: take one out", name, other.key)}
	}
	v.key = line
	n.members[name] = v
	return nil
}

// integer reads a whole number, as decoded from JSON or YAML.
func integer(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case json.Number:
		n, err := strconv.Atoi(v.String())
		return n, err == nil
	case float64:
		n := int(v)
		return n, float64(n) == v && n > -1<<53 && n < 1<<53
	}
	return 0, false
}

// names are those of the members, in order.
func (n *node) names() []string { return slices.Sorted(maps.Keys(n.members)) }
