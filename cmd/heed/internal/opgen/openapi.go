package opgen

import (
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"
)

// The extensions of an operation.
const (
	extRetry      = "x-retry"
	extIdempotent = "x-idempotent"
)

// itemMembers are what a path has besides its methods and extensions.
var itemMembers = []string{
	"$ref", "summary", "description", "servers", "parameters", "additionalOperations",
	"get", "put", "post", "delete", "options", "head", "patch", "trace", "query", "connect",
}

// openAPI reads the operations of a document.
func (g *generator) openAPI(f File) []*declaration {
	doc, text := g.load(f)
	if doc == nil {
		return nil
	}
	g.misplaced(text, text.root, "the document as a whole")
	var found []*declaration
	items := doc.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(items)) {
		pathKey, written := text.item(path)
		g.misplaced(text, written, "a path")
		pairs(written, func(key, _ *yaml.Node) {
			if !slices.Contains(itemMembers, key.Value) && !strings.HasPrefix(key.Value, "x-") {
				g.wrong(text.at(key), "the path %s has the member %q, which is unknown: use a method in lower case, or take it out", oneLine(path), key.Value)
			}
		})
		item := items[path]
		operations := item.Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			op := operations[method]
			key, block := operationOf(written, method)
			d := &declaration{
				at: text.at(key), pathAt: text.at(pathKey), method: method, path: path, id: op.OperationID, declaredIn: f.Name,
				retry: member(block, extRetry), idempotent: member(block, extIdempotent),
			}
			g.nulls(d)
			idKey, _ := find(block, "operationId")
			d.idAt = text.at(idKey)
			servers, of := doc.Servers, text.root
			if len(item.Servers) > 0 {
				servers, of = item.Servers, written
			}
			if op.Servers != nil && len(*op.Servers) > 0 {
				servers, of = *op.Servers, block
			}
			serversKey, _ := find(of, "servers")
			d.base = g.base(text.at(serversKey), servers)
			found = append(found, d)
		}
	}
	return found
}

// load reads a document twice: for what it means, and for where it says so.
func (g *generator) load(f File) (*openapi3.T, *document) {
	// A comment makes JSON no JSON, but still YAML. The loader knows lines, and sees what is declared twice, in YAML only.
	data := append(slices.Clip(f.Data), "\n# \n"...)
	text := &document{file: f}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		g.unreadable(text, err)
		return nil, nil
	}
	text.root = &root
	if line := secondDocument(data); line > 0 {
		g.wrong(place{f.Name, line}, "another document begins here: leave one in the file")
		return nil, nil
	}
	// The loader takes the last of several paths of one name, and says nothing; YAML's own types do not.
	var all any
	if err := yaml.Unmarshal(data, &all); err != nil {
		g.unreadable(text, err)
		return nil, nil
	}
	if !text.begins() {
		g.wrong(text.at(content(&root)), "it cannot be read as OpenAPI: it is no mapping: is it the right file?")
		return nil, nil
	}
	doc, err := openapi3.NewLoader().LoadFromData(data) // which fetches nothing from elsewhere
	if err != nil {
		g.unreadable(text, err)
		return nil, nil
	}
	version, _ := find(&root, "openapi")
	switch {
	case doc.OpenAPI == "":
		g.wrong(text.at(version), "it is neither OpenAPI 3 nor a behaviour model; convert Swagger 2 first")
		return nil, nil
	case !strings.HasPrefix(doc.OpenAPI, "3."):
		g.wrong(text.at(version), "it is OpenAPI %s, and only 3 is understood: convert it first", oneLine(doc.OpenAPI))
		return nil, nil
	}
	return doc, text
}

// misplaced refuses what would have no effect where it is.
func (g *generator) misplaced(d *document, n *yaml.Node, where string) {
	for _, name := range []string{extRetry, extIdempotent} {
		if key, _ := find(n, name); key != nil {
			g.wrong(d.at(key), "%s is declared for %s: move it to the operations it is for", name, where)
		}
	}
}

// nulls refuses a member that is there and says nothing.
func (g *generator) nulls(d *declaration) {
	for _, of := range []struct {
		name string
		node **node
	}{{extRetry, &d.retry}, {extIdempotent, &d.idempotent}} {
		if n := *of.node; n != nil && n.plain() == "null" {
			g.wrong(d.in(n), "%s is null: leave it out", of.name)
			*of.node = nil
		}
	}
}

// base is the path that the servers have in common.
func (g *generator) base(at place, servers openapi3.Servers) string {
	if given := g.options.Base; given != nil {
		return strings.TrimSuffix(*given, "/")
	}
	var base string
	for i, s := range servers {
		p := serverPath(s.URL)
		switch {
		case strings.Contains(p, "{"):
			g.wrong(at, "the path of the server %s is variable: say with --base which one it is", oneLine(s.URL))
			return ""
		case i > 0 && p != base:
			g.wrong(at, "the servers have different paths, %q and %q: say with --base which one it is", oneLine(base), oneLine(p))
			return ""
		}
		base = p
	}
	return base
}

// serverPath is the path of a server's URL, whose other parts may hold variables that no URL could be parsed with.
func serverPath(u string) string {
	if _, rest, ok := strings.Cut(u, "://"); ok {
		_, path, _ := strings.Cut(rest, "/")
		u = "/" + path
	}
	u, _, _ = strings.Cut(u, "?")
	if u = strings.Trim(u, "/"); u == "" {
		return ""
	}
	return "/" + u
}
