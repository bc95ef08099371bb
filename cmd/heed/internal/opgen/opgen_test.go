package opgen_test

import (
	"flag"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/heed-sdk/heed/cmd/heed/internal/opgen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func file(t *testing.T, name string) opgen.File {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return opgen.File{Name: "testdata/" + name, Data: b}
}

func TestGolden(t *testing.T) {
	basecamp := file(t, "basecamp.json")
	base := "/v1/"
	for name, o := range map[string]opgen.Options{
		"todos":         {Source: file(t, "todos.yaml"), Package: "todos", Var: "Operations"},
		"todos-based":   {Source: file(t, "todos.yaml"), Package: "todos", Var: "table", Base: &base},
		"basecamp":      {Source: basecamp, Package: "basecamp", Var: "Operations", Widen: true},
		"model":         {Source: file(t, "model.json"), Paths: &basecamp, Package: "basecamp", Var: "Operations", Widen: true},
		"nothing-times": {Source: opgen.File{Name: "a", Data: []byte("openapi: 3.1.0\npaths: {/: {get: {}}}")}, Package: "p", Var: "v"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := opgen.Generate(o)
			if err != nil {
				t.Fatal(err)
			}
			compiles(t, got)
			golden := filepath.Join("testdata", name+".go.txt")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != string(got) {
				t.Errorf("%s differs (-update rewrites it); got:\n%s", golden, got)
			}
		})
	}
}

// compiles type-checks a file against the real package requests.
func compiles(t *testing.T, code []byte) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "operations.go", code, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if !ast.IsGenerated(f) {
		t.Error("the file does not say that it is generated")
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", exports(t))}
	if _, err := conf.Check("p", fset, []*ast.File{f}, nil); err != nil {
		t.Error(err)
	}
}

// exports finds what the compiler knows of a package: to type-check all of net/http from its source takes too long.
var exports = func() func(t *testing.T) importer.Lookup {
	list := sync.OnceValues(func() ([]byte, error) {
		return exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "github.com/heed-sdk/heed/requests").Output()
	})
	return func(t *testing.T) importer.Lookup {
		t.Helper()
		out, err := list()
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for line := range strings.Lines(string(out)) {
			path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
			files[path] = file
		}
		return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
	}
}()

func TestRefused(t *testing.T) {
	get := func(more string) string {
		return "openapi: 3.0.3\npaths:\n  /a:\n    get:\n      operationId: A\n      " + more + "\n"
	}
	model := func(operations string) string {
		return "{\"version\": \"1.0.0\",\n\"operations\": {\n" + operations + "\n}}"
	}
	paths := get("x-foo: 1") + "    post:\n      operationId: B\n      x-idempotent: true\n"
	for name, c := range map[string]struct{ source, paths, says string }{
		"empty":             {"", "", "f: it is neither OpenAPI 3"},
		"text":              {"hello", "", "f: it cannot be read as OpenAPI"},
		"swagger":           {"swagger: '2.0'", "", "convert Swagger 2"},
		"future":            {"openapi: 4.0.0", "", "only 3 is understood"},
		"no operations":     {"openapi: 3.0.3\npaths: {}", "", "is it the right file?"},
		"elsewhere":         {"openapi: 3.0.3\npaths:\n  /a:\n    $ref: https://x.test/a", "", "put all of it into one file first"},
		"twice":             {get("x-retry: {}") + "    get: {}\n", "", `line 7: mapping key "get" already defined at line 4`},
		"twice in JSON":     {"{\"openapi\": \"3.0.3\", \"paths\": {\n\"/a\": {},\n\"/a\": {}}}", "", "already defined at line 2"},
		"block twice":       {get("x-retry: {max: 1, max: 2}"), "", `mapping key "max" already defined`},
		"mark":              {get("x-idempotent: 1"), "", "f:6: idempotent is 1"},
		"no mark":           {get("x-idempotent:"), "", "f:6: x-idempotent is null"},
		"mark without use":  {get("x-idempotent: false"), "", "f:6: GET may be repeated by its method"},
		"block":             {get("x-retry: 3"), "", "f:6: the retry block is 3"},
		"unknown":           {get("x-retry: {times: 3}"), "", `f:6: the retry block has the member "times"`},
		"none":              {get("x-retry: {max: 0}"), "", "f:6: max is 0"},
		"half":              {get("x-retry: {max: 1.5}"), "", "f:6: max is 1.5"},
		"huge":              {get("x-retry: {max: 99999999999999999999}"), "", "f:6: max is"},
		"slow":              {get("x-retry: {base_delay_ms: 30001}"), "", "f:6: base_delay_ms is 30001"},
		"linear":            {get("x-retry: {backoff: linear}"), "", "requests.Declared.Schedule"},
		"no list":           {get("x-retry: {retry_on: 503}"), "", "f:6: retry_on is 503"},
		"success":           {get("x-retry: {retry_on: [200]}"), "", "f:6: retry_on has 200"},
		"never":             {get("x-retry: {retry_on: [401]}"), "", "f:6: retry_on has 401, which is never repeated"},
		"status twice":      {get("x-retry: {retry_on: [503, 503]}"), "", "f:6: retry_on has 503 twice"},
		"of a path":         {get("") + "    x-retry: {max: 3}\n", "", "f:7: x-retry is declared for a path"},
		"part of a segment": {"openapi: 3.0.3\npaths:\n  /todos/{id}.json:\n    get: {}", "", `f:4: the path /todos/{id}.json has a wildcard in a part of the segment "{id}.json"`},
		"greedy":            {"openapi: 3.0.3\npaths:\n  /{proxy+}:\n    get: {}", "", "not understood"},
		"query":             {"openapi: 3.0.3\npaths:\n  /a?b=c:\n    get: {}", "", "has a query"},
		"dots":              {"openapi: 3.0.3\npaths:\n  /a/../b:\n    get: {}", "", `has a segment ".."`},
		"same":              {"openapi: 3.0.3\npaths:\n  /{a}:\n    get: {}\n  /{b}:\n    get: {}", "", "f:6: GET /{b} matches the same requests as GET /{a} in line 4"},
		"crossing":          {"openapi: 3.0.3\npaths:\n  /a/{x}:\n    get: {}\n  /{y}/b:\n    get: {}", "", "f:6: GET /{y}/b: "},
		"servers":           {"servers: [{url: /v1}, {url: /v2}]\n" + get("x: 1"), "", `different paths, "/v1" and "/v2": say with --base`},
		"server variable":   {"servers: [{url: 'https://h/{v}'}]\n" + get("x: 1"), "", "is variable: say with --base"},
		"paths of OpenAPI":  {get("x-foo: 1"), paths, "leave --paths out"},
		"no paths":          {model(`"A": {}`), "", "--paths"},
		"model":             {model(`"C": {}`), paths, "f:3: the operation C is in no path of p"},
		"no object":         {model(`"A": 1`), paths, "f:3: the operation A is no object"},
		"declared in both":  {model(`"B": {"idempotent": true}`), paths, "f:3: the operation B is declared in p:7, too"},
		"unknown member":    {model("\"A\": {\n\"idempotant\": true}"), paths, `f:4: the operation A has the member "idempotant"`},
		"block of model":    {model("\"A\": {\n\"retry\": null}"), paths, "f:4: the retry block is null"},
		"max of model":      {model("\"A\": {\n\"retry\": {\"max\": 1e3}}"), paths, "f:4: max is 1e3"},
		"path of model":     {model(`"A": {}`), strings.ReplaceAll(paths, "/a:", "/a{b}:"), "p:4: the path /a{b} has a wildcard in a part"},
		"readonly POST":     {model("\"B\": {\n\"readonly\": true}"), strings.ReplaceAll(paths, "x-idempotent", "x-other"), "f:4: readonly is no mark for POST"},
		"readonly":          {model("\"A\": {\n\"readonly\": 1}"), paths, "f:4: readonly is 1"},
		"twice in model":    {model("\"A\": {},\n\"A\": {}"), paths, `line 4: "A" is declared in line 3, too`},
		"model of another":  {`{"version": "2.0", "operations": {}}`, paths, "f:1: the version is 2.0"},
		"same id":           {model(`"A": {}`), strings.ReplaceAll(paths, "operationId: B", "operationId: A"), "p:7: the operationId A is that of line 4, too"},
		"operations":        {`{"operations": []}`, paths, "operations is no object"},
	} {
		t.Run(name, func(t *testing.T) {
			o := opgen.Options{Source: opgen.File{Name: "f", Data: []byte(c.source)}, Package: "p", Var: "v"}
			if c.paths != "" {
				o.Paths = &opgen.File{Name: "p", Data: []byte(c.paths)}
			}
			code, _, err := opgen.Generate(o)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v in place of %q; code:\n%s", err, c.says, code)
			}
		})
	}
}
