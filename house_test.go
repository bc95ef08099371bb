package heed_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/heed-sdk/heed"

var update = flag.Bool("update", false, "rewrite the golden files of the public API")

// goFiles lists the Go files of the module by slash-separated path, without nested modules and testdata. It looks at
// each file, because a cached test result is only dropped for files that the test process itself has looked at, and
// some tests here leave the reading to a go command.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if base := d.Name(); err == nil || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
				return fs.SkipDir
			}
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		files = append(files, filepath.ToSlash(name))
		_, err = os.Stat(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// floor returns the part of the house that a package belongs to, given its path inside the module: the first element,
// or the first two for an internal package.
func floor(pkg string) string {
	top, rest, _ := strings.Cut(pkg, "/")
	if top == "internal" {
		second, _, _ := strings.Cut(rest, "/")
		return path.Join(top, second)
	}
	return top
}

// floors says what a floor may import of ours besides itself. A floor that is not listed sits on top.
var floors = map[string][]string{
	"delay":          {},
	"auth":           {"delay"},
	"requests":       {"delay"},
	"stream":         {"delay"},
	"internal/fakes": {"delay"},
	"internal/cases": {},
}

// testFloors lists what the tests of every floor may import.
var testFloors = []string{"internal/fakes", "internal/cases"}

// badArrows returns what is wrong with the imports of a package, given its path inside the module ("" is the root).
func badArrows(pkg string, test bool, imports []string) []string {
	var bad []string
	from := floor(pkg)
	below, bounded := floors[from]
	for _, imp := range imports {
		rel, ours := strings.CutPrefix(imp+"/", module+"/")
		if !ours {
			continue
		}
		to := floor(strings.TrimSuffix(rel, "/"))
		switch {
		case to == from:
		case to == "cmd" || to == "examples":
			bad = append(bad, fmt.Sprintf("%s: nobody imports %s", imp, to))
		case !bounded || slices.Contains(below, to):
		case test && slices.Contains(testFloors, to):
		default:
			bad = append(bad, fmt.Sprintf("%s: %s may import %q of ours", imp, from, below))
		}
	}
	return bad
}

func TestArrows(t *testing.T) {
	for _, name := range goFiles(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		var imports []string
		for _, spec := range file.Imports {
			imports = append(imports, importPath(spec))
		}
		pkg := path.Dir(name)
		if pkg == "." {
			pkg = ""
		}
		for _, bad := range badArrows(pkg, strings.HasSuffix(name, "_test.go"), imports) {
			t.Errorf("%s imports %s", name, bad)
		}
	}
}

func TestArrowRules(t *testing.T) {
	tests := []struct {
		pkg    string
		test   bool
		imp    string // below the module
		broken bool
	}{
		{pkg: "delay", imp: "/auth", broken: true},
		{pkg: "delay", imp: "", broken: true},
		{pkg: "delay", imp: "/internal/fakes", broken: true},
		{pkg: "delay", test: true, imp: "/internal/fakes"},
		{pkg: "delay", test: true, imp: "/stream", broken: true},
		{pkg: "delay", test: true, imp: "/delay"},
		{pkg: "auth", imp: "/delay"},
		{pkg: "auth", imp: "/auth/keyring"},
		{pkg: "auth/keyring", imp: "/auth"},
		{pkg: "auth/keyring", imp: "/requests", broken: true},
		{pkg: "auth", imp: "/requests", broken: true},
		{pkg: "auth", test: true, imp: "/requests", broken: true},
		{pkg: "auth", imp: "", broken: true},
		{pkg: "auth", imp: "/heedtest", broken: true},
		{pkg: "requests", imp: "/auth", broken: true},
		{pkg: "requests", imp: "/stream/sse", broken: true},
		{pkg: "requests", imp: "/internal/fakes", broken: true},
		{pkg: "requests", test: true, imp: "/internal/fakes/api"},
		{pkg: "stream", imp: "/stream/sse"},
		{pkg: "stream/sse", imp: "/delay"},
		{pkg: "stream/sse", imp: "/auth", broken: true},
		{pkg: "stream", imp: "/requests", broken: true},
		{pkg: "auth", test: true, imp: "/internal/cases"},
		{pkg: "auth", imp: "/internal/cases", broken: true},
		{pkg: "auth", test: true, imp: "/internal/conformance", broken: true},
		{pkg: "internal/fakes", imp: "/delay"},
		{pkg: "internal/fakes/as", imp: "/internal/fakes"},
		{pkg: "internal/cases", imp: "/delay", broken: true},
		{pkg: "internal/fakes", imp: "/auth", broken: true},
		{pkg: "internal/conformance", imp: "/auth"},
		{pkg: "internal/conformance", imp: "/internal/fakes"},
		{pkg: "", imp: "/stream"},
		{pkg: "heedtest", imp: "/internal/fakes"},
		{pkg: "heedtest", imp: "/examples/login", broken: true},
		{pkg: "cmd/heed", imp: "/auth"},
		{pkg: "cmd/heed", imp: "/cmd/heed/internal/demo"},
		{pkg: "examples/login", imp: "/cmd/heed", broken: true},
		{pkg: "", test: true, imp: "/cmd/heed", broken: true},
	}
	for _, tt := range tests {
		bad := badArrows(tt.pkg, tt.test, []string{"net/http", module + "elsewhere/stream", module + tt.imp})
		if got := len(bad) > 0; got != tt.broken || len(bad) > 1 {
			t.Errorf("badArrows(%q, test %v, %q) = %q, want broken %v", tt.pkg, tt.test, tt.imp, bad, tt.broken)
		}
	}
}

// nativeAllowed lists the files, and directories with a slash at the end, that may do what TestNativeTime forbids.
var nativeAllowed = map[string]string{
	"delay/timers.go":   "the registry arms its one alarm with the clock",
	"delay/wait.go":     "the two clocks of a wait are compared here",
	"internal/fakes/":   "a watchdog over virtual time has to be real",
	"cmd/heed/clock.go": "the fast clock of the demo is built on the real one",
}

func nativeAllowedIn(name string) bool {
	for allowed := range nativeAllowed {
		if name == allowed || strings.HasSuffix(allowed, "/") && strings.HasPrefix(name, allowed) {
			return true
		}
	}
	return false
}

func TestNativeTime(t *testing.T) {
	fset := token.NewFileSet()
	packages := map[string]map[string]*ast.File{}
	for _, name := range goFiles(t) {
		dir := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || !slices.Contains([]string{".", "auth", "cmd", "delay", "internal", "requests", "stream"}, floorOfDir(dir)) {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		if packages[dir] == nil {
			packages[dir] = map[string]*ast.File{}
		}
		packages[dir][name] = file
	}
	for _, files := range packages {
		for name, found := range nativeTime(files) {
			if nativeAllowedIn(name) {
				continue
			}
			for _, f := range found {
				t.Errorf("%v: %s: time comes from the clock, and waits and timers from package delay", fset.Position(f.pos), f.what)
			}
		}
	}
}

func floorOfDir(dir string) string {
	top, _, _ := strings.Cut(dir, "/")
	return top
}

const clockPath = "github.com/benbjohnson/clock"

// native lists the functions of package time and its like that read or wait on the machine's own clock.
var native = map[string][]string{
	"time":    {"Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Since", "Until"},
	"context": {"WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause"},
}

// clockMethods lists the methods of a clock that only the registry may call (AfterFunc) or nobody may, with their
// number of arguments and whether the name and the number alone give the method away on a receiver of unknown type.
// Two methods of package delay share a name with one of them, but not the number of arguments.
var clockMethods = map[string]struct {
	args    int
	telling bool
}{
	"After":        {1, false}, // time.Time has one too
	"AfterFunc":    {2, true},
	"Since":        {1, false},
	"Sleep":        {1, true},
	"Tick":         {1, true},
	"Ticker":       {1, true},
	"Timer":        {1, false},
	"Until":        {1, false},
	"WithDeadline": {2, true},
	"WithTimeout":  {2, true},
}

type finding struct {
	pos  token.Pos
	what string
}

// nativeTime finds, in the files of one package, native time and what a clock must not be used for. It reads syntax
// alone, so that files of every platform are read: a selector on a package is exact, and whether a value is a clock is
// told by the names that the package declares with a type of the clock's package.
func nativeTime(files map[string]*ast.File) map[string][]finding {
	fields, globals, funcs := names{}, names{}, names{}
	for _, file := range files {
		c := clocks{importNames(file)}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				c.fields(s, fields)
			}
			return true
		})
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				c.values(decl, globals)
			case *ast.FuncDecl:
				if r := decl.Type.Results; r != nil && len(r.List) == 1 && c.isType(r.List[0].Type) {
					funcs[decl.Name.Name] = true
				}
			}
		}
	}
	found := map[string][]finding{}
	for name, file := range files {
		c := clocks{importNames(file)}
		add := func(n ast.Node, what string) {
			found[name] = append(found[name], finding{n.Pos(), what})
		}
		for _, spec := range file.Imports {
			if p := importPath(spec); spec.Name != nil && spec.Name.Name == "." && (native[p] != nil || p == clockPath) {
				add(spec, "dot import of "+p)
			}
		}
		for _, decl := range file.Decls {
			locals := names{}
			c.fields(decl, locals)
			c.values(decl, locals)
			isClock := func(e ast.Expr) bool { return c.isValue(e, fields, globals, locals, funcs) }
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if id, ok := n.X.(*ast.Ident); ok && slices.Contains(native[c.imports[id.Name]], n.Sel.Name) {
						add(n, c.imports[id.Name]+"."+n.Sel.Name)
					} else if _, ok := clockMethods[n.Sel.Name]; ok && isClock(n.X) {
						add(n, "clock method "+n.Sel.Name)
					}
				case *ast.CallExpr:
					sel, ok := n.Fun.(*ast.SelectorExpr)
					if !ok || isClock(sel.X) {
						break
					}
					if id, ok := sel.X.(*ast.Ident); ok && c.imports[id.Name] != "" {
						break
					}
					if m := clockMethods[sel.Sel.Name]; m.telling && len(n.Args) == m.args {
						add(sel, "clock method "+sel.Sel.Name)
					}
				}
				return true
			})
		}
	}
	return found
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // the parser has checked it
	}
	return p
}

// importNames maps the names of a file's imports to their paths, taking a package to be named like the last element
// of its path that is not a version.
func importNames(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		p := importPath(spec)
		name := path.Base(p)
		if v, ok := strings.CutPrefix(name, "v"); ok && strings.Trim(v, "0123456789") == "" {
			name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = p
	}
	return imports
}

type names map[string]bool

// clocks recognises in one file what has to do with the clock's package.
type clocks struct{ imports map[string]string }

// isType reports whether a type is one of the clock's package, or a pointer to one.
func (c clocks) isType(e ast.Expr) bool {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && c.imports[id.Name] == clockPath
}

// fields adds the names of the fields, parameters and results under a node that are clocks. A clock embedded in a
// struct is a field named like its type.
func (c clocks) fields(n ast.Node, into names) {
	ast.Inspect(n, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		if !ok || !c.isType(f.Type) {
			return true
		}
		for _, name := range f.Names {
			into[name.Name] = true
		}
		if len(f.Names) == 0 {
			t := f.Type
			if star, ok := t.(*ast.StarExpr); ok {
				t = star.X
			}
			into[t.(*ast.SelectorExpr).Sel.Name] = true
		}
		return true
	})
}

// values adds the names of the variables under a node that are declared as clocks or set to a new one.
func (c clocks) values(n ast.Node, into names) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if c.isType(n.Type) || i < len(n.Values) && c.isNew(n.Values[i]) {
					into[name.Name] = true
				}
			}
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				if id, ok := lhs.(*ast.Ident); ok && i < len(n.Rhs) && c.isNew(n.Rhs[i]) {
					into[id.Name] = true
				}
			}
		}
		return true
	})
}

// isNew reports whether an expression is a call into the clock's package, whose functions all return clocks.
func (c clocks) isNew(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && c.isType(call.Fun)
}

func (c clocks) isValue(e ast.Expr, fields, globals, locals, funcs names) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.isValue(e.X, fields, globals, locals, funcs)
	case *ast.Ident:
		return globals[e.Name] || locals[e.Name]
	case *ast.SelectorExpr:
		return fields[e.Sel.Name]
	case *ast.CallExpr:
		switch fun := e.Fun.(type) {
		case *ast.Ident:
			return funcs[fun.Name]
		case *ast.SelectorExpr:
			return funcs[fun.Sel.Name] || c.isNew(e)
		}
	}
	return false
}

func TestNativeTimeRules(t *testing.T) {
	const clock = `import "github.com/benbjohnson/clock";`
	tests := []struct {
		name, src string
		want      string // what is found, joined by commas
	}{
		{"now", `import "time"; var t = time.Now()`, "time.Now"},
		{"a function value", `import "time"; var now = time.Now`, "time.Now"},
		{"renamed", `import tm "time"; func f() { tm.Sleep(1); <-tm.After(2) }`, "time.Sleep, time.After"},
		{"dot import", `import . "time"; func f() { Sleep(1) }`, "dot import of time"},
		{
			"the rest of time", `import "time"; func f() { time.AfterFunc(1, f); time.NewTimer(1); time.NewTicker(1); time.Tick(1); time.Since(t); time.Until(t) }`,
			"time.AfterFunc, time.NewTimer, time.NewTicker, time.Tick, time.Since, time.Until",
		},
		{"innocent time", `import "time"; var a = time.Second; var b = time.Unix(0, 0).After(time.Time{}); func f(t *time.Timer) {}`, ""},
		{
			"context", `import "context"; func f() { context.WithTimeout(c, 1); context.WithDeadline(c, t); context.WithTimeoutCause(c, 1, e); context.WithDeadlineCause(c, t, e) }`,
			"context.WithTimeout, context.WithDeadline, context.WithTimeoutCause, context.WithDeadlineCause",
		},
		{"innocent context", `import "context"; func f() { context.WithCancelCause(c); context.AfterFunc(c, f) }`, ""},
		{"another package called time", `import time "example.test/mine"; var t = time.Now()`, ""},
		{
			"a clock's own", clock + `func f(c clock.Clock) { c.Now(); c.Timer(1); c.Ticker(1); c.After(1); c.Sleep(1); c.Tick(1); c.WithTimeout(x, 1); c.WithDeadline(x, t) }`,
			"clock method Timer, clock method Ticker, clock method After, clock method Sleep, clock method Tick, clock method WithTimeout, clock method WithDeadline",
		},
		{"a clock's alarm past the registry", clock + `func f(c clock.Clock) { c.AfterFunc(1, f) }`, "clock method AfterFunc"},
		{"a method value of a clock", clock + `func f(c *clock.Mock) { g(c.After) }`, "clock method After"},
		{"a field", clock + `type T struct { clk clock.Clock }; func (t *T) f() { <-t.clk.After(1) }`, "clock method After"},
		{"an embedded clock", clock + `type T struct { clock.Clock }; func (t *T) f() { <-t.Clock.After(1) }`, "clock method After"},
		{"a package variable", clock + `var real = clock.New(); func f() { real.Timer(1) }`, "clock method Timer"},
		{"a declared variable", clock + `func f() { var c clock.Clock; c.Timer(1) }`, "clock method Timer"},
		{"a new clock", clock + `func f() { c := clock.New(); c.Timer(1); clock.New().Since(t) }`, "clock method Timer, clock method Since"},
		{"an accessor", clock + `func (t *T) clock() clock.Clock { return nil }; func f() { <-t.clock().After(1) }`, "clock method After"},
		{"a closure's parameter", clock + `var f = func() { func(c clock.Clock) { <-c.After(1) }(x) }`, "clock method After"},
		{
			"an unknown receiver", `func f() { a.b().Sleep(1); x.Ticker(1); x.Tick(1); x.WithTimeout(c, 1); x.WithDeadline(c, t); x.AfterFunc(1, f) }`,
			"clock method Sleep, clock method Ticker, clock method Tick, clock method WithTimeout, clock method WithDeadline, clock method AfterFunc",
		},
		{"package delay", `import "github.com/heed-sdk/heed/delay"; func f() { timers.After(k, d, f); timers.WithTimeout(ctx, k, d); pause.Sleep(ctx, w); delay.Sleep(1) }`, ""},
		{"times compared", clock + `func f(c clock.Clock, now time.Time) { c.Now().After(now); now.After(c.Now()) }`, ""},
		{"a name that is no clock elsewhere", clock + `func f(c clock.Clock) {}; func g(c time.Time) { c.After(x) }`, ""},
	}
	for _, tt := range tests {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package p; "+tt.src, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got []string
		for _, f := range nativeTime(map[string]*ast.File{"x.go": file})["x.go"] {
			got = append(got, f.what)
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%s: found %q, want %q", tt.name, got, tt.want)
		}
	}

	for name, want := range map[string]bool{
		"delay/timers.go": true, "delay/timers_more.go": false, "internal/fakes/clock.go": true,
		"internal/fakes/as/as.go": true, "internal/fakesters/x.go": false, "stream/delay/timers.go": false,
	} {
		if got := nativeAllowedIn(name); got != want {
			t.Errorf("nativeAllowedIn(%q) = %v", name, got)
		}
	}
}

// TestPublicAPI compares the documentation of each public package with a golden file, so that a change of the API
// shows in the diff. Run it with -update to accept one.
func TestPublicAPI(t *testing.T) {
	goFiles(t)
	const dir = "testdata/api"
	golden := map[string]bool{}
	for pkg := range strings.FieldsSeq(string(goCommand(t, "list", "./..."))) {
		rel := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		parts := strings.Split(rel, "/")
		if slices.Contains(parts, "internal") || parts[0] == "cmd" || parts[0] == "examples" {
			continue
		}
		file := filepath.Join(dir, strings.Join(parts, "_")+".txt")
		if rel == "" {
			file = filepath.Join(dir, "heed.txt")
		}
		golden[file] = true
		got := goCommand(t, "doc", "-all", pkg)
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%s: %v; run go test -run TestPublicAPI . -update", pkg, err)
		} else if diff := firstDifference(string(want), string(got)); diff != "" {
			t.Errorf("the API of %s is not that of %s; if you mean it, run go test -run TestPublicAPI . -update\n%s", pkg, file, diff)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		switch {
		case golden[file]:
		case *update:
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%s is of no package; run go test -run TestPublicAPI . -update", file)
		}
	}
}

// firstDifference describes the first line at which two texts differ, or returns "".
func firstDifference(want, got string) string {
	if want == got {
		return ""
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := 0; ; i++ {
		switch {
		case i >= len(a):
			return fmt.Sprintf("line %d is new: %s", i+1, b[i])
		case i >= len(b):
			return fmt.Sprintf("line %d is gone: %s", i+1, a[i])
		case a[i] != b[i]:
			return fmt.Sprintf("line %d\n  was: %s\n  now: %s", i+1, a[i], b[i])
		}
	}
}

func TestFirstDifference(t *testing.T) {
	for _, tt := range []struct{ want, got, diff string }{
		{"a\nb\n", "a\nb\n", ""},
		{"a\nb\n", "a\nc\n", "line 2\n  was: b\n  now: c"},
		{"a", "a\nb", "line 2 is new: b"},
		{"a\nb", "a", "line 2 is gone: b"},
	} {
		if diff := firstDifference(tt.want, tt.got); diff != tt.diff {
			t.Errorf("firstDifference(%q, %q) = %q, want %q", tt.want, tt.got, diff, tt.diff)
		}
	}
}

// direct lists the modules that users of the SDK take on. A new one is a decision: say here what it is for.
var direct = map[string]string{
	"github.com/benbjohnson/clock":   "the type of every injected clock (docs/adr/0006)",
	"github.com/cenkalti/backoff/v4": "the type of every schedule (docs/adr/0001)",
	"github.com/coder/websocket":     "the WebSocket transport",
	"github.com/getkin/kin-openapi":  "heed operations reads OpenAPI with it; linked into nothing but the command",
	"github.com/gofrs/flock":         "one refresh among processes: a lock that dies with its holder, on every system",
	"github.com/skip2/go-qrcode":     "the QR code of package auth/prompt, and linked into nothing else",
	"github.com/spf13/cobra":         "the command, and linked into nothing else (docs/adr/0007)",
	"github.com/spf13/pflag":         "cobra's own flags: the command asks which one was wrong",
	"github.com/zalando/go-keyring":  "the keyring of the system; linked in by auth/keyring alone",
	"go.uber.org/goleak":             "tests: no goroutine outlives its owner",
	"go.yaml.in/yaml/v4":             "heed operations: what kin-openapi reads YAML with sees what is declared twice, which it does not",
	"golang.org/x/oauth2":            "the types in which tokens are handed out (docs/adr/0003)",
	"golang.org/x/term":              "whether a writer is a terminal, and how large: auth/prompt and the command",
}

func TestGoMod(t *testing.T) {
	// Reading it here makes a change drop the cached result, see goFiles.
	if _, err := os.ReadFile("go.mod"); err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace, Exclude []any
	}
	if err := json.Unmarshal(goCommand(t, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Require {
		if !r.Indirect && direct[r.Path] == "" {
			t.Errorf("go.mod requires %s, which is not on the list of house_test.go", r.Path)
		}
	}
	// Neither has any effect on those who import the module: what they build would not be what was tested.
	if len(mod.Replace)+len(mod.Exclude) > 0 {
		t.Error("go.mod has a replace or an exclude directive")
	}
}

// reserved lists what only one package of ours may import, so that nothing else links it.
var reserved = map[string]string{
	"github.com/getkin/kin-openapi": "cmd/heed/internal/opgen",
	"go.yaml.in/yaml/v4":            "cmd/heed/internal/opgen",
	"github.com/spf13/cobra":        "cmd/heed",
	"github.com/spf13/pflag":        "cmd/heed",
}

func TestReserved(t *testing.T) {
	for _, name := range goFiles(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, spec := range file.Imports {
			for module, pkg := range reserved {
				if strings.HasPrefix(importPath(spec)+"/", module+"/") && path.Dir(name) != pkg {
					t.Errorf("%s imports %s, which only %s may", name, importPath(spec), pkg)
				}
			}
		}
	}
}

func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}
