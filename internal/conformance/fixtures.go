// Package conformance runs a public SDK's conformance fixtures against Heed. What is common to the families is here: where
// the fixtures are, how one is read, and how the passing ones are counted. Each family has an adapter in a test file of its
// own, and whatever is particular to the vendor that wrote the fixtures lives there and nowhere else.
package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/heed-sdk/heed/internal/cases"
)

// Folder returns the folder of the fixtures: the one that HEED_CONFORMANCE names, or else ../shared/conformance beside the
// project. They are no part of the project, so that without them a test is skipped, which it says; in CI, where they have
// to be, it fails.
func Folder(t testing.TB) string {
	t.Helper()
	name := os.Getenv("HEED_CONFORMANCE")
	if name == "" {
		name = filepath.Join("..", "shared", "conformance")
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(root(t), name)
	}
	if _, err := os.Stat(name); err == nil {
		return name
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("conformance: there are no fixtures in %s: set HEED_CONFORMANCE", name)
	}
	t.Skipf("conformance: NOTHING WAS CHECKED, there are no fixtures in %s: set HEED_CONFORMANCE", name)
	return ""
}

// root returns the directory of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("conformance: this is no module")
		}
		dir = filepath.Dir(dir)
	}
}

// Run runs f as a subtest on every fixture of a family, with the placeholders replaced, and logs how many passed. It fails
// unless all of them ran and passed, and there is at least one. A field that T does not know fails a fixture: what is
// understood in part proves nothing.
func Run[T any](t *testing.T, family string, placeholders func(t *testing.T) *strings.Replacer, f func(t *testing.T, c T)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Folder(t), family, "fixtures", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var passed atomic.Int64
	t.Cleanup(func() {
		t.Logf("%s: %d of %d", family, passed.Load(), len(files))
		if int(passed.Load()) != len(files) || len(files) == 0 {
			t.Fail()
		}
	})
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Cleanup(func() {
				if !t.Failed() && !t.Skipped() {
					passed.Add(1)
				}
			})
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if placeholders != nil {
				data = []byte(placeholders(t).Replace(string(data)))
			}
			var c T
			cases.Decode(t, data, &c)
			f(t, c)
		})
	}
}

// Families lists the files of a folder of lists, such as tests, by their names without the extension.
func Families(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Folder(t), folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".json"); name != "schema" {
			names = append(names, name)
		}
	}
	return names
}

// List reads a file that is a list of cases, strictly.
func List[T any](t testing.TB, file string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Folder(t), file))
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	cases.Decode(t, data, &raw)
	list := make([]T, len(raw))
	for i, item := range raw {
		cases.Decode(t, item, &list[i])
	}
	return list
}

// RunList runs f as a subtest on every case of a family that is a list, logs how many passed, and returns the two
// numbers. It fails unless all of them ran and passed, and there is at least one.
func RunList[T any](t *testing.T, family string, list []T, name func(T) string, f func(t *testing.T, c T)) (passed, of int) {
	t.Helper()
	t.Run(family, func(t *testing.T) {
		for _, c := range list {
			t.Run(name(c), func(t *testing.T) {
				t.Cleanup(func() {
					if !t.Failed() && !t.Skipped() {
						passed++
					}
				})
				f(t, c)
			})
		}
	})
	t.Logf("%s: %d of %d", family, passed, len(list))
	if passed != len(list) || len(list) == 0 {
		t.Fail()
	}
	return passed, len(list)
}
