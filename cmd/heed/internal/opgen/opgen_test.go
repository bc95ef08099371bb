package opgen_test

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// lined is file:line: what is wrong, what to do.
var lined = regexp.MustCompile(`^[fp]:[1-9][0-9]*: [^:].*(: |, |; )`)

func TestRefused(t *testing.T) {
	get := func(more string) string {
		return "openapi: 3.0.3\npaths:\n  /a:\n    get:\n      operationId: A\n      " + more + "\n"
	}
	model := func(operations string) string {
		return "{\"version\": \"1.0.0\",\n\"operations\": {\n" + operations + "\n}}"
	}
	paths := get("x-foo: 1") + "    post:\n      operationId: B\n      x-idempotent: true\n"
	for name, c := range map[string]struct{ source, paths, says string }{
		"empty":              {"", "", "f:1: it is neither OpenAPI 3"},
		"text":               {"hello", "", "f:1: it cannot be read as OpenAPI: it is no mapping"},
		"swagger":            {"swagger: '2.0'", "", "convert Swagger 2"},
		"future":             {"openapi: 4.0.0", "", "only 3 is understood"},
		"no operations":      {"openapi: 3.0.3\npaths: {}", "", "is it the right file?"},
		"elsewhere":          {"openapi: 3.0.3\npaths:\n  /a:\n    $ref: https://x.test/a", "", "put all of it into one file first"},
		"twice":              {get("x-retry: {}") + "    get: {}\n", "", `f:7: it cannot be read as OpenAPI: mapping key "get" already defined at line 4`},
		"twice in JSON":      {"{\"openapi\": \"3.0.3\", \"paths\": {\n\"/a\": {},\n\"/a\": {}}}", "", "already defined at line 2"},
		"block twice":        {get("x-retry: {max: 1, max: 2}"), "", `mapping key "max" already defined`},
		"mark":               {get("x-idempotent: 1"), "", "f:6: idempotent is 1"},
		"no mark":            {get("x-idempotent:"), "", "f:6: x-idempotent is null"},
		"mark without use":   {get("x-idempotent: false"), "", "f:6: GET may be repeated by its method"},
		"block":              {get("x-retry: 3"), "", "f:6: the retry block is 3"},
		"unknown":            {get("x-retry: {times: 3}"), "", `f:6: the retry block has the member "times"`},
		"none":               {get("x-retry: {max: 0}"), "", "f:6: max is 0"},
		"half":               {get("x-retry: {max: 1.5}"), "", "f:6: max is 1.5"},
		"huge":               {get("x-retry: {max: 99999999999999999999}"), "", "f:6: max is"},
		"slow":               {get("x-retry: {base_delay_ms: 30001}"), "", "f:6: base_delay_ms is 30001"},
		"linear":             {get("x-retry: {backoff: linear}"), "", "requests.Declared.Schedule"},
		"no list":            {get("x-retry: {retry_on: 503}"), "", "f:6: retry_on is 503"},
		"success":            {get("x-retry: {retry_on: [200]}"), "", "f:6: retry_on has 200"},
		"never":              {get("x-retry: {retry_on: [401]}"), "", "f:6: retry_on has 401, which is never repeated"},
		"status twice":       {get("x-retry: {retry_on: [503, 503]}"), "", "f:6: retry_on has 503 twice"},
		"of a path":          {get("") + "    x-retry: {max: 3}\n", "", "f:7: x-retry is declared for a path"},
		"part of a segment":  {"openapi: 3.0.3\npaths:\n  /todos/{id}.json:\n    get: {}", "", `f:3: the path /todos/{id}.json has a wildcard in a part of the segment "{id}.json"`},
		"greedy":             {"openapi: 3.0.3\npaths:\n  /{proxy+}:\n    get: {}", "", "not understood"},
		"query":              {"openapi: 3.0.3\npaths:\n  /a?b=c:\n    get: {}", "", "has a query"},
		"dots":               {"openapi: 3.0.3\npaths:\n  /a/../b:\n    get: {}", "", `has a segment ".."`},
		"same":               {"openapi: 3.0.3\npaths:\n  /{a}:\n    get: {}\n  /{b}:\n    get: {}", "", "f:6: GET /{b} matches the same requests as GET /{a} in line 4"},
		"crossing":           {"openapi: 3.0.3\npaths:\n  /a/{x}:\n    get: {}\n  /{y}/b:\n    get: {}", "", "f:6: GET /{y}/b: "},
		"servers":            {"servers: [{url: /v1}, {url: /v2}]\n" + get("x: 1"), "", `f:1: the servers have different paths, "/v1" and "/v2": say with --base`},
		"server variable":    {"servers: [{url: 'https://h/{v}'}]\n" + get("x: 1"), "", "is variable: say with --base"},
		"paths of OpenAPI":   {get("x-foo: 1"), paths, "leave --paths out"},
		"no paths":           {model(`"A": {}`), "", "--paths"},
		"model":              {model(`"C": {}`), paths, "f:3: the operation C is in no path of p"},
		"no object":          {model(`"A": 1`), paths, "f:3: the operation A is no object"},
		"declared in both":   {model(`"B": {"idempotent": true}`), paths, "f:3: the operation B is declared in p:7, too"},
		"unknown member":     {model("\"A\": {\n\"idempotant\": true}"), paths, `f:4: the operation A has the member "idempotant"`},
		"block of model":     {model("\"A\": {\n\"retry\": null}"), paths, "f:4: the retry block is null"},
		"max of model":       {model("\"A\": {\n\"retry\": {\"max\": 1e3}}"), paths, "f:4: max is 1e3"},
		"path of model":      {model(`"A": {}`), strings.ReplaceAll(paths, "/a:", "/a{b}:"), "p:3: the path /a{b} has a wildcard in a part"},
		"readonly POST":      {model("\"B\": {\n\"readonly\": true}"), strings.ReplaceAll(paths, "x-idempotent", "x-other"), "f:4: readonly is no mark for POST"},
		"readonly":           {model("\"A\": {\n\"readonly\": 1}"), paths, "f:4: readonly is 1"},
		"twice in model":     {model("\"A\": {},\n\"A\": {}"), paths, `f:4: "A" is declared in line 3, too`},
		"model of another":   {`{"version": "2.0", "operations": {}}`, paths, "f:1: the version is 2.0"},
		"same id":            {model(`"A": {}`), strings.ReplaceAll(paths, "operationId: B", "operationId: A"), "p:8: the operationId A is that of line 5, too"},
		"operations missing": {`{"version": "1.0"}`, paths, "f:1: the model has no operations"},
		"model cut off":      {"{\"operations\": {\n\"A\": {\n", paths, "f:2: it is no JSON: it ends in the midst"},
		"model with a comma": {model("\"A\": {\"max\": 1,\n},\n\"B\": {}"), paths, "f:4: it is no JSON: "},
		"model, cut text":    {model("\"A\": {\n\"max"), paths, "f:4: it is no JSON: "},
		"model, no JSON":     {"{\"operations\": {\n\n nonsense}}", paths, "f:3: it is no JSON: "},
		"model, and more":    {model(`"A": {}`) + "\n\n{}", paths, "f:6: something follows the value"},
		"below":              {get("x-retry:\n        max: 2\n        retry_on:\n        - 503\n        - 200"), "", "f:10: retry_on has 200"},
		"value below":        {get("x-retry:\n        max:\n          0"), "", "f:8: max is 0"},
		"no value":           {get("x-retry:\n        base_delay_ms: 1\n        max:\n"), "", "f:8: max is null"},
		"unknown below":      {get("x-retry:\n        max: 2\n        times: 2"), "", `f:8: the retry block has the member "times"`},
		"backoff below":      {get("x-retry:\n        max: 2\n        backoff: linear"), "", "f:8: backoff is linear"},
		"mark of a block":    {get("x-idempotent:\n        - 1"), "", "f:7: idempotent is [1]"},
		"alias":              {get("x-a: &a {max: 0}\n      x-retry: *a"), "", "f:6: max is 0"},
		"merged":             {get("<<: {x-retry: {max: 2,\n        times: 1}}"), "", `f:7: the retry block has the member "times"`},
		"merged twice":       {get("x-retry: {<<: [{max: 0}, {max: 1}]}"), "", "f:6: max is 0"},
		"referred to": {
			"openapi: 3.1.0\npaths:\n  /a:\n    $ref: '#/components/pathItems/it~1em'\ncomponents:\n  pathItems:\n    it/em:\n      get:\n        x-retry:\n          max: 0",
			"", "f:10: max is 0",
		},
		"wrong type":         {"openapi: 3.0.3\npaths:\n  /a:\n    get: 3", "", "f:4: it cannot be read as OpenAPI: cannot construct !!int `3` into"},
		"wrong type, deeper": {get("responses:\n        '200':\n          description: []"), "", "f:8: it cannot be read as OpenAPI: "},
		"syntax":             {"openapi: 3.0.3\npaths:\n  /a: {get: {}\n  /b: {}", "", "f:4: it cannot be read as OpenAPI: "},
		"indent":             {"openapi: 3.0.3\npaths:\n\t/a: {}", "", "f:3: it cannot be read as OpenAPI: "},
		"control":            {"openapi: 3.0.3\npaths:\n  /a: \x00", "", "f:3: it cannot be read as OpenAPI: control characters"},
		"no UTF-8":           {"openapi: 3.0.3\npaths:\n  /\xff: {}", "", "f:3: it cannot be read as OpenAPI: "},
		"tag":                {"openapi: 3.0.3\npaths:\n  /a:\n    get:\n      x-n: !!int x", "", "f:5: it cannot be read as OpenAPI: "},
		"nowhere":            {get("parameters:\n      - $ref: '#/components/parameters/x'"), "", "f:7: it cannot be read as OpenAPI: "},
		"elsewhere, its line": {
			"openapi: 3.0.3\npaths:\n  /a:\n    $ref: https://x.test/a", "",
			`f:4: it cannot be read as OpenAPI: encountered disallowed external reference: "https://x.test/a": put all`,
		},
		"two documents":   {get("x-a: 1") + "---\nopenapi: 3.0.3\n", "", "f:7: another document begins here"},
		"method":          {"openapi: 3.0.3\npaths:\n  /a:\n    get: {}\n    GET: {}", "", `f:5: the path /a has the member "GET", which is unknown`},
		"of the document": {"openapi: 3.0.3\nx-retry: {max: 3}\npaths: {/a: {get: {}}}", "", "f:2: x-retry is declared for the document as a whole"},
		"JSON":            {"{\"openapi\": \"3.0.3\", \"paths\": {\"/a\": {\"get\": {\n\"x-retry\": {\n\"max\":\n0}}}}}", "", "f:4: max is 0"},
		"cut off JSON":    {"{\"openapi\": \"3.0.3\", \"paths\": {\n\"/a\": {\"get\": {\n", "", "f:2: it cannot be read as OpenAPI: "},
		"version":         {"info: {title: x}\nopenapi: 4.0.0\npaths: {}", "", "f:2: it is OpenAPI 4.0.0"},
		"value of model":  {model("\"A\": {\n\"retry\": {\n\"max\":\n0}}"), paths, "f:6: max is 0"},
		"status of model": {model("\"A\": {\"retry\": {\"retry_on\": [\n429,\n429]}}"), paths, "f:5: retry_on has 429 twice"},
		"contradiction":   {model("\"A\": {\n\"readonly\": true,\n\"idempotent\":\nfalse}"), paths, "f:6: GET may be repeated by its method"},
		"operations":      {`{"operations": []}`, paths, "f:1: operations is []"},
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
			// What is wrong with the flags has no line.
			if !strings.Contains(c.says, "--paths") && !lined.MatchString(fmt.Sprint(err)) {
				t.Errorf("the error has no line: %v", err)
			}
		})
	}
}

// TestMistakes has all that is wrong with a document, each with the line that it is in: as YAML, as JSON, and in a model.
func TestMistakes(t *testing.T) {
	paths := file(t, "basecamp.json")
	for name, o := range map[string]opgen.Options{
		"wrong.yaml":       {Source: file(t, "wrong.yaml")},
		"wrong.json":       {Source: file(t, "wrong.json")},
		"wrong-model.json": {Source: file(t, "wrong-model.json"), Paths: &paths, Widen: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Package, o.Var = "p", "v"
			_, _, err := opgen.Generate(o)
			mistakes, ok := errors.AsType[opgen.Mistakes](err)
			if !ok {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, m := range mistakes {
				fmt.Fprintln(&got, m)
			}
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != got.String() {
				t.Errorf("%s differs (-update rewrites it); got:\n%s", golden, got.String())
			}
		})
	}
}
