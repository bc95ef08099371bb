package opgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// node is a JSON value that knows its line, which encoding/json does not tell.
type node struct {
	line    int
	members map[string]*node // of an object
	items   []*node          // of an array
	array   bool
	value   any // of anything else
}

// member returns a member of an object, or nil.
func (n *node) member(name string) *node { return n.members[name] }

// plain is the value as encoding/json would decode it. A null is a text that nothing takes: it is declared, and wrong.
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

// parseJSON reads one JSON value, in which no member is declared twice.
func parseJSON(data []byte) (*node, error) {
	r := &jsonReader{data, json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	n, err := r.next()
	if err == nil {
		if _, more := r.dec.Token(); more != io.EOF {
			err = fmt.Errorf("line %d: something follows the value", r.line())
		}
	}
	return n, err
}

// line is that of the last token.
func (r *jsonReader) line() int {
	return 1 + bytes.Count(r.data[:r.dec.InputOffset()], []byte("\n"))
}

func (r *jsonReader) next() (*node, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, fmt.Errorf("line %d: it is no JSON: %w", r.line(), err)
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
	_, err = r.dec.Token() // the closing delimiter
	return n, err
}

// pair reads a member, whose line is that of its name.
func (r *jsonReader) pair(n *node) error {
	t, err := r.dec.Token()
	if err != nil {
		return fmt.Errorf("line %d: it is no JSON: %w", r.line(), err)
	}
	name, line := fmt.Sprint(t), r.line()
	v, err := r.next()
	if err != nil {
		return err
	}
	if other := n.members[name]; other != nil {
		return fmt.Errorf("line %d: %q is declared in line %d, too: take one out", line, name, other.line)
	}
	v.line = line
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

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
