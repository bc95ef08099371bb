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

// openAPI reads the operations of a document.
func (g *generator) openAPI(f File) []*declaration {
	loader := openapi3.NewLoader() // which fetches nothing from elsewhere
	loader.IncludeOrigin = true
	// A comment makes JSON no JSON, but still YAML. The loader knows lines, and sees what is declared twice, in YAML only.
	data := append(slices.Clip(f.Data), "\n# \n"...)
	// The loader takes the last of several paths of one name, and says nothing; YAML's own types do not.
	var all any
	err := yaml.Unmarshal(data, &all)
	var doc *openapi3.T
	if err == nil {
		doc, err = loader.LoadFromData(data)
	}
	if err != nil {
		text := err.Error()
		if i := strings.LastIndex(text, "yaml error: "); i >= 0 {
			text = strings.TrimPrefix(text[i+len("yaml error: "):], "yaml: ")
		}
		if strings.Contains(text, "external reference") {
			text += ": put all of it into one file first, which tools call bundling"
		}
		g.wrong(place{f.Name, 0}, "it cannot be read as OpenAPI: %s", oneLine(text))
		return nil
	}
	switch {
	case doc.OpenAPI == "":
		g.wrong(place{f.Name, 0}, "it is neither OpenAPI 3 nor a behaviour model; convert Swagger 2 first")
		return nil
	case !strings.HasPrefix(doc.OpenAPI, "3."):
		g.wrong(place{f.Name, 0}, "it is OpenAPI %s: only 3 is understood", oneLine(doc.OpenAPI))
		return nil
	}
	var found []*declaration
	items := doc.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(items)) {
		item := items[path]
		for _, name := range []string{extRetry, extIdempotent} {
			if item.Extensions[name] != nil {
				g.wrong(where(f, item.Origin, name), "%s is declared for a path: move it to the operations it is for", name)
			}
		}
		operations := item.Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			op := operations[method]
			d := &declaration{
				at: where(f, op.Origin, ""), method: method, path: path, id: op.OperationID,
				retry: op.Extensions[extRetry], retryAt: where(f, op.Origin, extRetry),
				idempotent: op.Extensions[extIdempotent], idempotentAt: where(f, op.Origin, extIdempotent),
			}
			for _, name := range []string{extRetry, extIdempotent} {
				if v, ok := op.Extensions[name]; ok && v == nil {
					g.wrong(where(f, op.Origin, name), "%s is null: leave it out", name)
				}
			}
			servers := doc.Servers
			if len(item.Servers) > 0 {
				servers = item.Servers
			}
			if op.Servers != nil && len(*op.Servers) > 0 {
				servers = *op.Servers
			}
			d.base = g.base(d, servers)
			found = append(found, d)
		}
	}
	return found
}

// base is the path that the servers have in common.
func (g *generator) base(d *declaration, servers openapi3.Servers) string {
	if given := g.options.Base; given != nil {
		return strings.TrimSuffix(*given, "/")
	}
	var base string
	for i, s := range servers {
		p := serverPath(s.URL)
		switch {
		case strings.Contains(p, "{"):
			g.wrong(d.at, "the path of its server %s is variable: say with --base which one it is", oneLine(s.URL))
			return ""
		case i > 0 && p != base:
			g.wrong(d.at, "its servers have different paths, %q and %q: say with --base which one it is", oneLine(base), oneLine(p))
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

// where is the line of a member of an element, or of the element.
func where(f File, o *openapi3.Origin, member string) place {
	switch {
	case o == nil:
		return place{f.Name, 0}
	case member != "":
		if at, ok := o.Fields.Lookup(member); ok {
			return place{f.Name, at.Line}
		}
	}
	if o.Key == nil {
		return place{f.Name, 0}
	}
	return place{f.Name, o.Key.Line}
}
