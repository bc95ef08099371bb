package opgen

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What a behaviour model has. Pagination and the form of updates are nothing of a retry.
var (
	modelMembers     = []string{"$schema", "version", "generated", "operations", "redaction", "sensitiveTypes"}
	operationMembers = []string{"idempotent", "readonly", "retry", "pagination", "write"}
)

// join adds to each operation of the document what the model says about it.
func (g *generator) join(declared []*declaration, model File) {
	root, err := parseJSON(model.Data)
	if err != nil {
		line := 1
		if at, ok := errors.AsType[*lineError](err); ok {
			line = at.line
		}
		g.wrong(place{model.Name, line}, "%w", err)
		return
	}
	g.unknown(model, root, modelMembers, "the model")
	if v := root.member("version"); v != nil && !strings.HasPrefix(fmt.Sprint(v.value), "1.") {
		g.wrong(place{model.Name, v.line}, "the version is %v: only 1 is understood", v.value)
	}
	operations := root.member("operations")
	if operations == nil {
		g.wrong(place{model.Name, root.line}, "the model has no operations: add {\"operations\": {ID: {...}}}")
		return
	}
	if operations.members == nil {
		g.wrong(place{model.Name, operations.line}, "operations is %v: use an object, by operationId", operations.plain())
		return
	}
	byID := map[string]*declaration{}
	for _, d := range declared {
		if other := byID[d.id]; d.id != "" && other != nil {
			g.wrong(d.idAt, "the operationId %s is that of line %d, too: make them differ", oneLine(d.id), other.idAt.line)
		}
		byID[d.id] = d
	}
	delete(byID, "")
	for _, id := range operations.names() {
		op := operations.members[id]
		at := place{model.Name, op.key}
		switch d := byID[id]; {
		case op.members == nil:
			g.wrong(place{model.Name, op.line}, "the operation %s is no object: use {idempotent, retry}", oneLine(id))
		case d == nil:
			g.wrong(at, "the operation %s is in no path of %s: add it there as an operationId, or take it out here", oneLine(id), g.options.Paths.Name)
		case d.idempotent != nil || d.retry != nil:
			g.wrong(at, "the operation %s is declared in %s:%d, too: take it out in one of them", oneLine(id), d.at.file, d.at.line)
		default:
			g.unknown(model, op, operationMembers, "the operation "+oneLine(id))
			g.adopt(d, model, op)
		}
	}
}

func (g *generator) adopt(d *declaration, model File, op *node) {
	d.declaredIn, d.idempotent, d.retry = model.Name, op.member("idempotent"), op.member("retry")
	if v := op.member("readonly"); v != nil {
		readonly, ok := v.value.(bool)
		if !ok {
			g.wrong(place{model.Name, v.line}, "readonly is %v: use true or false", v.plain())
		}
		d.readonly, d.readonlyAt = readonly, place{model.Name, v.line}
	}
}

func (g *generator) unknown(f File, n *node, known []string, what string) {
	for _, name := range n.names() {
		if !slices.Contains(known, name) {
			g.wrong(place{f.Name, n.members[name].key}, "%s has the member %q, which is unknown: use %s", what, name, strings.Join(known, ", "))
		}
	}
}
