// Package opgen writes the table of an API's operations, for package requests, from what the API declares about them: an
// OpenAPI 3 document, or a behaviour model with an OpenAPI document for its paths.
//
// It refuses what it does not understand. A table that says less than its source, or more, would repeat requests that
// must not be repeated, and nobody would look for the reason there.
package opgen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/token"
	"path"
	"slices"
	"strings"

	"github.com/heed-sdk/heed/requests"
)

// File is a file by its name, for messages.
type File struct {
	Name string
	Data []byte
}

// Options say what to write.
type Options struct {
	Source File
	// Paths is an OpenAPI document that has the method and path of each operation of a behaviour model, by operationId.
	// Nil: the source is an OpenAPI document.
	Paths *File

	Package, Var string
	// Base is the path that all requests' paths begin with. Nil: that of the document's servers.
	Base *string
	// Widen makes a segment that is a wildcard in part, such as {id}.json, a wildcard as a whole, which matches more.
	// Without it, such a segment is a mistake: [net/http.ServeMux] has no pattern for it.
	Widen bool
}

// operation is one row of the table.
type operation struct {
	at      place
	method  string
	path    string // of the pattern
	id      string
	policy  requests.Operation
	widened bool
}

func (o *operation) pattern() string { return o.method + " " + o.path }

// Generate returns the Go source and the number of operations in it. The error, if there is one, is a Mistakes with all
// that is wrong with the files, or about the options.
func Generate(o Options) ([]byte, int, error) {
	for flag, name := range map[string]string{"--package": o.Package, "--var": o.Var} {
		if !token.IsIdentifier(name) || name == "_" {
			return nil, 0, fmt.Errorf("%s %q is no identifier of Go: take another", flag, name)
		}
	}
	if o.Base != nil && *o.Base != "" && !strings.HasPrefix(*o.Base, "/") {
		return nil, 0, fmt.Errorf("--base %q does not begin with a slash", *o.Base)
	}
	g := &generator{options: o}
	api, model := o.Source, (*File)(nil)
	switch isModel := isModel(o.Source.Data, o.Paths != nil); {
	case isModel && o.Paths == nil:
		return nil, 0, fmt.Errorf("%s is a behaviour model, which has no methods and paths: give the OpenAPI document that has them with --paths", o.Source.Name)
	case isModel:
		api, model = *o.Paths, &o.Source
	case o.Paths != nil:
		return nil, 0, fmt.Errorf("%s is no behaviour model, and has its own paths: leave --paths out", o.Source.Name)
	}
	declared := g.openAPI(api)
	if model != nil && g.mistakes == nil {
		g.join(declared, *model)
	}
	rows := g.rows(declared)
	if g.mistakes == nil && len(rows) == 0 {
		g.wrong(place{api.Name, 1}, "no operation is in it: is it the right file?")
	}
	if g.mistakes != nil {
		slices.SortStableFunc(g.mistakes, func(a, b Mistake) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
		return nil, 0, slices.Compact(g.mistakes) // an element that two paths refer to is wrong once
	}
	code, err := source(o, rows)
	return code, len(rows), err
}

type generator struct {
	options  Options
	mistakes Mistakes
}

// isModel tells a behaviour model from an OpenAPI document by its members. Where a model is expected, JSON that cannot be
// read is one, with a mistake.
func isModel(b []byte, expected bool) bool {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return expected && bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) && !bytes.Contains(b, []byte(`"openapi"`))
	}
	_, openapi := members["openapi"]
	_, operations := members["operations"]
	return !openapi && (operations || expected)
}

// rows makes the table, and sees to it that package requests takes it.
func (g *generator) rows(declared []*declaration) []*operation {
	var rows []*operation
	shapes := map[string]*operation{}
	table := map[string]requests.Operation{}
	for _, d := range declared {
		o := &operation{at: d.at, method: d.method, id: d.id, policy: g.policy(d)}
		var err error
		if o.path, o.widened, err = pattern(d.base+d.path, g.options.Widen); err != nil {
			g.wrong(d.pathAt, "the path %s %w", d.path, err)
			continue
		}
		shape := o.method + " " + shapeOf(o.path)
		switch other := shapes[shape]; {
		case other == nil:
			shapes[shape] = o
			rows = append(rows, o)
			table[o.pattern()] = o.policy
		case (o.widened || other.widened) && same(o.policy, other.policy):
			other.id = strings.TrimPrefix(other.id+", "+o.id, ", ")
		default:
			g.wrong(o.at, "%s matches the same requests as %s in line %d: leave one out", o.pattern(), other.pattern(), other.at.line)
		}
	}
	if g.mistakes != nil {
		return nil // what else there is may follow from them
	}
	_, err := requests.NewOperations(table)
	g.refused(err, rows)
	slices.SortFunc(rows, func(a, b *operation) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method))
	})
	return rows
}

func same(a, b requests.Operation) bool {
	return a.Idempotent == b.Idempotent && a.Max == b.Max && a.BaseDelay == b.BaseDelay &&
		(a.RetryOn == nil) == (b.RetryOn == nil) && slices.Equal(a.RetryOn, b.RetryOn)
}

// title is a name in the header of the generated file: the last element, so that it is the same wherever it is run.
func title(name string) string {
	return oneLine(path.Base(strings.ReplaceAll(name, `\`, "/")))
}
