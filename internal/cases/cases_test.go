package cases_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/internal/cases"
)

// write makes a folder of files.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure runs f on a recorder and returns how it failed, "" if it did not.
func failure(t *testing.T, f func(testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.failure
}

func TestFolder(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"testdata/cases/one.json":       "{}",
		"testdata/cases/many/a.json":    "{}",
		"pkg/sub/testdata/other.txt":    "",
		"elsewhere/cases/one.json":      "{}",
		"pkg/elsewhere/cases/unrelated": "",
	})
	t.Chdir(filepath.Join(root, "pkg", "sub"))
	for _, tt := range []struct{ env, family, want string }{
		{"", "one", "testdata/cases"},
		{"", "many", "testdata/cases"},
		{"elsewhere/cases", "one", "elsewhere/cases"}, // as seen from the root of the module; the nearer one has no such family
		{"../../elsewhere/cases", "one", "elsewhere/cases"},
		{filepath.Join(root, "elsewhere", "cases"), "one", "elsewhere/cases"},
	} {
		t.Setenv("HEED_CASES", tt.env)
		var got string
		if why := failure(t, func(t testing.TB) { got = cases.Folder(t, tt.family) }); why != "" {
			t.Errorf("HEED_CASES=%s: %s", tt.env, why)
			continue
		}
		a, _ := os.Stat(got)
		b, err := os.Stat(filepath.Join(root, tt.want))
		if err != nil || !os.SameFile(a, b) {
			t.Errorf("HEED_CASES=%s: %s, want %s", tt.env, got, tt.want)
		}
	}
	for _, tt := range []struct{ env, family string }{{"", "none"}, {"nowhere", "one"}, {filepath.Join(root, "nowhere"), "one"}} {
		t.Setenv("HEED_CASES", tt.env)
		if why := failure(t, func(t testing.TB) { cases.Folder(t, tt.family) }); !strings.HasPrefix(why, "cases: no family "+tt.family) {
			t.Errorf("HEED_CASES=%s, family %s: %q", tt.env, tt.family, why)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"f.json": "0", "f/b.json": "2", "f/a.json": "1", "f/deep/c.json": "3", "f/README.md": "", "g/a.json": "", "empty/README.md": ""})
	t.Setenv("HEED_CASES", dir)
	var got []string
	for _, file := range cases.Files(t, "f") {
		got = append(got, file.Name+"="+string(file.Data))
	}
	if want := []string{"f.json=0", "f/a.json=1", "f/b.json=2", "f/deep/c.json=3"}; !slices.Equal(got, want) {
		t.Errorf("the files are %q, want %q", got, want)
	}
	if why := failure(t, func(t testing.TB) { cases.Files(t, "empty") }); why != "cases: the family empty has no file" {
		t.Errorf("a family without a file: %q", why)
	}
}

func TestDecode(t *testing.T) {
	type one struct {
		A int `json:"a"`
	}
	for text, want := range map[string]string{
		`{"a": 1}`:         "",
		`{"a": 1, "b": 2}`: `cases: json: unknown field "b"`,
		`{"a": 1} {}`:      "cases: more than one value in a file",
		`{"a": 1} x`:       "cases: more than one value in a file",
		`{"a": "1"}`:       "cases: json: cannot unmarshal",
		``:                 "cases: EOF",
	} {
		why := failure(t, func(t testing.TB) {
			var v one
			cases.Decode(t, []byte(text), &v)
			if v.A != 1 {
				t.Fatal("decoded to ", v)
			}
		})
		if !strings.HasPrefix(why, want) || want == "" && why != "" {
			t.Errorf("%s: %q, want %q", text, why, want)
		}
	}
}

// TestRun runs TestRunHelper below in a process of its own, because it has to fail.
func TestRun(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		ok    bool
		tally string
		names []string
	}{
		{"all pass", map[string]string{"h/a.json": `{"do": "pass"}`, "h/b.json": `{"do": "pass", "why": "it does"}`}, true, "cases: 2 of 2", []string{"/a", "/b"}},
		{"a list", map[string]string{"h.json": `[{"do": "pass", "name": "x"}, {"do": "pass", "why": "it does"}, {"do": "parallel"}]`}, true, "cases: 3 of 3", []string{"/h/x", "/h/02_it_does", "/h/03"}},
		{"one fails", map[string]string{"h/a.json": `{"do": "fail"}`, "h/b.json": `{"do": "pass"}`}, false, "cases: 1 of 2", nil},
		{"one fails in parallel", map[string]string{"h/a.json": `{"do": "parallel fail"}`, "h/b.json": `{"do": "pass"}`}, false, "cases: 1 of 2", nil},
		{"one is skipped", map[string]string{"h/a.json": `{"do": "skip"}`, "h/b.json": `{"do": "pass"}`}, false, "cases: 1 of 2", nil},
		{"an unknown field", map[string]string{"h/a.json": `{"do": "pass", "new": 1}`, "h/b.json": `{"do": "pass"}`}, false, "cases: 1 of 2", nil},
		{"no JSON", map[string]string{"h/a.json": `[{"do": "pass"}`, "h/b.json": `{"do": "pass"}`}, false, "cases: 1 of 2", nil},
		{"an empty list", map[string]string{"h.json": `[]`}, false, "cases: 0 of 0", nil},
		{"no files", map[string]string{"h/README.md": ``}, false, "the family h has no file", nil},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		write(t, dir, tt.files)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunHelper$", "-test.v")
		cmd.Env = append(os.Environ(), "HEED_CASES="+dir, helper+"=1")
		out, err := cmd.CombinedOutput()
		if (err == nil) != tt.ok || !strings.Contains(string(out), tt.tally+"\n") {
			t.Errorf("%s: %v, want %q\n%s", tt.name, err, tt.tally, out)
		}
		for _, name := range tt.names {
			if !strings.Contains(string(out), "--- PASS: TestRunHelper"+name+" (") {
				t.Errorf("%s: no case is called %s\n%s", tt.name, name, out)
			}
		}
	}
}

const helper = "HEED_CASES_TEST_HELPER"

func TestRunHelper(t *testing.T) {
	if os.Getenv(helper) == "" {
		t.Skip("run by TestRun")
	}
	type do struct {
		Do, Name, Why string
	}
	cases.Run(t, "h", func(t *testing.T, c do) {
		if strings.Contains(c.Do, "parallel") {
			t.Parallel()
		}
		if strings.Contains(c.Do, "fail") {
			t.Cleanup(func() { t.Error("as told") }) // late, and it counts all the same
		}
		if c.Do == "skip" {
			t.Skip("as told")
		}
	})
}
