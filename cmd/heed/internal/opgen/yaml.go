package opgen

import (
	"bytes"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// document is an OpenAPI document as its text has it: package openapi3 knows what it means, and not always where it says
// so. It has been read by that package, so that no alias contains itself.
type document struct {
	file File
	root *yaml.Node
}

// content is a node without what stands in its place.
func content(n *yaml.Node) *yaml.Node {
	for n != nil {
		switch {
		case n.Kind == yaml.AliasNode:
			n = n.Alias
		case n.Kind == yaml.DocumentNode && len(n.Content) > 0:
			n = n.Content[0]
		default:
			return n
		}
	}
	return &yaml.Node{}
}

// pairs calls f for each member of a mapping, those first that it has of its own, and then those that it merges.
func pairs(n *yaml.Node, f func(key, value *yaml.Node)) {
	n = content(n)
	if n.Kind != yaml.MappingNode {
		return
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Tag == "!!merge" {
			merged = append(merged, n.Content[i+1])
		} else {
			f(keyOf(key), n.Content[i+1])
		}
	}
	for _, m := range merged {
		if m = content(m); m.Kind == yaml.SequenceNode {
			for _, one := range m.Content {
				pairs(one, f)
			}
			continue
		}
		pairs(m, f)
	}
}

// keyOf is a key as itself, where it is an alias.
func keyOf(key *yaml.Node) *yaml.Node {
	if key.Kind != yaml.AliasNode {
		return key
	}
	k := *content(key)
	k.Line = key.Line
	return &k
}

// find is a member of a mapping, with its key.
func find(n *yaml.Node, name string) (key, value *yaml.Node) {
	pairs(n, func(k, v *yaml.Node) {
		if key == nil && k.Value == name {
			key, value = k, v
		}
	})
	return key, value
}

// member is a member as a node, or nil.
func member(n *yaml.Node, name string) *node {
	key, value := find(n, name)
	if key == nil {
		return nil
	}
	return fromYAML(key, value)
}

// fromYAML reads a value, whose line is where it is written: for an alias, where that is.
func fromYAML(key, value *yaml.Node) *node {
	n := &node{line: value.Line}
	if key != nil {
		n.key = key.Line
	}
	switch value = content(value); value.Kind {
	case yaml.MappingNode:
		n.members = map[string]*node{}
		pairs(value, func(k, v *yaml.Node) {
			if n.members[k.Value] == nil {
				n.members[k.Value] = fromYAML(k, v)
			}
		})
	case yaml.SequenceNode:
		n.array = true
		for _, v := range value.Content {
			n.items = append(n.items, fromYAML(nil, v))
		}
	default:
		_ = value.Decode(&n.value) // it was decoded before
		if value.Value == "" && key != nil {
			n.line = key.Line // nothing is written, so that it is nowhere
		}
	}
	return n
}

// resolved follows references within the document.
func (d *document) resolved(n *yaml.Node) *yaml.Node {
	for range 16 {
		_, ref := find(n, "$ref")
		if ref == nil {
			return n
		}
		to, local := strings.CutPrefix(content(ref).Value, "#/")
		if !local {
			return n
		}
		n = d.root
		for name := range strings.SplitSeq(to, "/") {
			if s, err := url.PathUnescape(name); err == nil {
				name = s
			}
			_, n = find(n, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
			if n == nil {
				return &yaml.Node{}
			}
		}
	}
	return n
}

// item is the element of a path, and operation that of one of its methods.
func (d *document) item(path string) (key, value *yaml.Node) {
	_, paths := find(d.root, "paths")
	if key, value = find(paths, path); key == nil {
		return &yaml.Node{Line: 1}, value
	}
	return key, d.resolved(value)
}

func operationOf(item *yaml.Node, method string) (key, value *yaml.Node) {
	if key, value = find(item, strings.ToLower(method)); key == nil {
		_, more := find(item, "additionalOperations")
		key, value = find(more, method)
	}
	return key, value
}

// at is the place of a node.
func (d *document) at(n *yaml.Node) place {
	if n == nil || n.Line == 0 {
		return place{d.file.Name, 1}
	}
	return place{d.file.Name, n.Line}
}

// referring is where the first reference is that a message tells of.
func (d *document) referring(text string) (found *yaml.Node) {
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, c := range n.Content {
			if found != nil {
				return
			}
			if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "$ref" && c.Value != "" && strings.Contains(text, c.Value) {
				found = c
			}
			walk(c) // not into aliases, whose content is elsewhere, too
		}
	}
	walk(d.root)
	return found
}

var (
	lineOf = regexp.MustCompile(`line (\d+): `)
	// What no text of YAML has: the decoder names no line for it.
	control = regexp.MustCompile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
)

// unreadable finds the lines of what keeps a document from being read.
func (g *generator) unreadable(d *document, err error) {
	const what = "it cannot be read as OpenAPI: "
	if many, ok := errors.AsType[*yaml.LoadErrors](err); ok && len(many.Errors) > 0 {
		for _, one := range many.Errors {
			g.wrong(d.place(one.Mark.Line, ""), "%s%s: mend it", what, oneLine(one.Message))
		}
		return
	}
	if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		g.wrong(d.place(one.Mark.Line, ""), "%s%s: mend it", what, oneLine(one.Message))
		return
	}
	text, line := oneLine(err.Error()), 0
	if i := strings.LastIndex(text, "yaml error: "); i >= 0 {
		text = text[i+len("yaml error: "):]
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "construct errors: ")
	if m := lineOf.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = strings.Replace(text, m[0], "", 1)
	}
	todo := "mend it"
	if strings.Contains(text, "external reference") {
		todo = "put all of it into one file first, which tools call bundling"
	}
	g.wrong(d.place(line, text), "%s%s: %s", what, text, todo)
}

// place is a line that was named, or else the one that a message must be about.
func (d *document) place(line int, text string) place {
	data := d.file.Data
	if line > 0 {
		return place{d.file.Name, min(line, lastLine(data))} // the end is where something is missing
	}
	if at := control.FindIndex(data); at != nil {
		return place{d.file.Name, lineAt(data, int64(at[0]))}
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return place{d.file.Name, lineAt(data, int64(i))}
		}
		i += size
	}
	if d.root != nil {
		if n := d.undecodable(); n != nil {
			return d.at(n)
		}
		if n := d.referring(text); n != nil && text != "" {
			return d.at(n)
		}
	}
	return place{d.file.Name, 1}
}

// undecodable is the first scalar that is not what its tag says.
func (d *document) undecodable() (found *yaml.Node) {
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Style&yaml.TaggedStyle != 0 && found == nil {
			var v any
			if n.Decode(&v) != nil {
				found = n
			}
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(d.root)
	return found
}

// secondDocument is the line of the second document of a file, or 0.
func secondDocument(data []byte) int {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if dec.Decode(&first) != nil || dec.Decode(&second) != nil {
		return 0
	}
	return max(second.Line, 1)
}

// begins reports whether a document is a mapping at all.
func (d *document) begins() bool {
	return len(bytes.TrimSpace(d.file.Data)) == 0 || content(d.root).Kind == yaml.MappingNode
}
