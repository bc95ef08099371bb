package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	exampleSource = "../../examples/operations/openapi.yaml"
	exampleTable  = "../../examples/operations/operations.go"
)

// TestOperations checks that the example's table is what go generate would write now.
func TestOperations(t *testing.T) {
	want, err := os.ReadFile(exampleTable)
	if err != nil {
		t.Fatal(err)
	}
	generate := tool{env: map[string]string{"GOPACKAGE": "main"}}
	r := generate.run(t.Context(), "operations", exampleSource)
	if r.code != 0 || r.stderr != "" || r.stdout != string(want) {
		t.Errorf("exit %d, stderr %q, stdout\n%s(go generate ./examples/operations writes it anew)", r.code, r.stderr, r.stdout)
	}

	r = generate.run(t.Context(), "operations", exampleSource, "--json")
	var result struct {
		Operations int
		Source     string
	}
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil || result.Operations != 3 || result.Source != string(want) {
		t.Errorf("stdout %q: %v", r.stdout, err)
	}

	out := filepath.Join(t.TempDir(), "operations.go")
	r = generate.run(t.Context(), "operations", exampleSource, "-o", out)
	if got, err := os.ReadFile(out); err != nil || string(got) != string(want) || r.stdout+r.stderr != "" {
		t.Errorf("stdout %q, stderr %q, file\n%s: %v", r.stdout, r.stderr, got, err)
	}
}

// TestOperationsRefused leaves a table that was there as it is.
func TestOperationsRefused(t *testing.T) {
	dir := t.TempDir()
	source, out := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "operations.go")
	write(t, source, "openapi: 3.0.3\npaths:\n  /a/{id}.json:\n    get: {x-retry: {max: 0}}\n")
	write(t, out, "package old\n")
	r := tool{}.run(t.Context(), "operations", source, "-o", out, "--package", "p")
	if r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, "a.yaml:4: max is 0") || !strings.Contains(r.stderr, "--widen") {
		t.Errorf("exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	oneLineOf(t, r.stderr)
	holds(t, dir, map[string]string{"a.yaml": "*", "operations.go": "package old\n"})
}
