package heed_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/delay"
)

const tableMark = "<!-- table -->\n"

// TestReadme checks that the README's table is the one that the package runs from, and that its examples are those that
// are compiled. With -update it rewrites them.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	have := string(b)
	want := withTable(t, withExamples(t, have))
	switch {
	case have == want:
	case *update:
		if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("README.md differs from the code: run go test -run TestReadme . -update, and read the diff; %s", firstDifference(want, have))
	}
	if n := strings.Count(want, "\n"); n > 160 {
		t.Errorf("README.md has %d lines: keep it under 160", n)
	}
}

// withTable replaces the table behind its mark.
func withTable(t *testing.T, readme string) string {
	t.Helper()
	before, after, ok := strings.Cut(readme, tableMark)
	if !ok {
		t.Fatal("README.md has no mark for the table")
	}
	for strings.HasPrefix(after, "|") {
		_, after, _ = strings.Cut(after, "\n")
	}
	var table strings.Builder
	table.WriteString("| loop | local delay | with R | reads R as | bounded by |\n|---|---|---|---|---|\n")
	for _, r := range delay.Table() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", r.Loop, r.Local, r.Composition, r.Forms, r.Clamp)
	}
	return before + tableMark + table.String() + after
}

var exampleBlock = regexp.MustCompile("(?s)<!-- example: (\\S+) -->\n```go\n.*?```\n")

// withExamples replaces each example by the part of its file between "begin:" and "end:".
func withExamples(t *testing.T, readme string) string {
	t.Helper()
	found := 0
	out := exampleBlock.ReplaceAllStringFunc(readme, func(block string) string {
		found++
		name := exampleBlock.FindStringSubmatch(block)[1]
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, code, ok := strings.Cut(string(b), "// begin: ")
		_, code, _ = strings.Cut(code, "\n")
		code, _, ended := strings.Cut(code, "\n// end: ")
		if !ok || !ended {
			t.Fatalf("%s has no part for the README", name)
		}
		return fmt.Sprintf("<!-- example: %s -->\n```go\n%s\n```\n", name, strings.TrimSpace(code))
	})
	if found != 3 {
		t.Errorf("README.md has %d examples in place of 3", found)
	}
	return out
}
