// Package cases runs the language-neutral cases of testdata/cases: inputs with their right values, one family for each
// part of the SDK. A family is the file FAMILY.json, the folder FAMILY with a file for each case, or both; a file holds
// one case or a list of them. The environment variable HEED_CASES names another folder of the same layout.
package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// File is one file of a family.
type File struct {
	Name string // relative to the folder of cases, with slashes: "deviceflow/happy.json"
	Data []byte
}

// Folder returns the folder that HEED_CASES names, or else the project's own copy, provided that the family is there. A
// relative name is looked for from the directory of the package under test and then from each directory above it,
// because go test runs in the former and whoever sets the variable stands in one of the latter.
func Folder(t testing.TB, family string) string {
	t.Helper()
	name := os.Getenv("HEED_CASES")
	if name == "" {
		name = filepath.Join("testdata", "cases")
	}
	if filepath.IsAbs(name) {
		if !holds(name, family) {
			t.Fatalf("cases: no family %s in %s", family, name)
		}
		return name
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for from := dir; ; from = filepath.Dir(from) {
		if found := filepath.Join(from, name); holds(found, family) {
			return found
		}
		if from == filepath.Dir(from) {
			t.Fatalf("cases: no family %s in %s, as seen from %s and every directory above", family, name, dir)
		}
	}
}

func holds(folder, family string) bool {
	for _, name := range []string{family + ".json", family} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

// Files reads every file of a family, in the order of names.
func Files(t testing.TB, family string) []File {
	t.Helper()
	folder := os.DirFS(Folder(t, family))
	var files []File
	for _, root := range []string{family + ".json", family} {
		err := fs.WalkDir(folder, root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && name == root:
				return nil
			case err != nil:
				return err
			case d.IsDir() || !strings.HasSuffix(name, ".json"):
				return nil
			}
			data, err := fs.ReadFile(folder, name)
			files = append(files, File{name, data})
			return err
		})
		if err != nil {
			t.Fatalf("cases: %v", err)
		}
	}
	if len(files) == 0 {
		t.Fatalf("cases: the family %s has no file", family)
	}
	return files
}

// Decode reads one JSON value into v, and fails the test at a field that v does not know and at anything that follows
// the value: a case that is understood in part proves nothing.
func Decode(t testing.TB, data []byte, v any) {
	t.Helper()
	if err := decode(data, v); err != nil {
		t.Fatalf("cases: %v", err)
	}
}

func decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value in a file")
	}
	return nil
}

// Run runs f as a subtest on every case of a family, decoded strictly, and logs how many passed. It fails unless all of
// them ran and passed: one that was skipped, or left out by the -run flag, has not passed. f may call t.Parallel, and may
// start a bubble.
func Run[T any](t *testing.T, family string, f func(t *testing.T, c T)) {
	t.Helper()
	all := list(t, family)
	var passed atomic.Int64
	t.Cleanup(func() { // after the parallel ones too
		t.Logf("cases: %d of %d", passed.Load(), len(all))
		if int(passed.Load()) != len(all) || len(all) == 0 {
			t.Fail()
		}
	})
	for _, one := range all {
		t.Run(one.Name, func(t *testing.T) {
			t.Cleanup(func() {
				if !t.Failed() && !t.Skipped() {
					passed.Add(1)
				}
			})
			var c T
			Decode(t, one.Data, &c)
			f(t, c)
		})
	}
}

// list cuts the files of a family into cases. One that cannot be cut stays whole, and fails when it is decoded.
func list(t testing.TB, family string) []File {
	t.Helper()
	var all []File
	for _, file := range Files(t, family) {
		name := strings.TrimSuffix(strings.TrimPrefix(file.Name, family+"/"), ".json")
		var items []json.RawMessage
		if !bytes.HasPrefix(bytes.TrimSpace(file.Data), []byte("[")) || json.Unmarshal(file.Data, &items) != nil {
			all = append(all, File{name, file.Data})
			continue
		}
		for i, item := range items {
			all = append(all, File{title(name, i, item), item})
		}
	}
	return slices.Clip(all)
}

// title names a case of a list by its own name, or by its place and what it says of itself.
func title(file string, i int, item []byte) string {
	var about struct{ Name, Why string }
	_ = json.Unmarshal(item, &about) // a case without either has its place
	if about.Name != "" {
		return file + "/" + about.Name
	}
	return strings.TrimSpace(fmt.Sprintf("%s/%02d %s", file, i+1, about.Why))
}
