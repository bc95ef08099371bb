package interop_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heed-sdk/heed/interop/internal/line"
	"github.com/heed-sdk/heed/interop/objectstore"
)

const downloadToken = "download-0123456789"

// files is an API that signs addresses of an object store, where a line leads that breaks behind so many bytes.
type files struct {
	*httptest.Server
	store  *objectstore.Server
	bad    *line.Line
	signed atomic.Int64
}

func newFiles(t *testing.T, upTo int) *files {
	f := &files{store: objectstore.Start(t)}
	f.bad = line.New(t, f.store.Addr())
	f.bad.Add("limit_data", map[string]any{"bytes": upTo})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+downloadToken {
			http.Error(w, "bad token", http.StatusUnauthorized)
			return
		}
		f.signed.Add(1)
		l := objectstore.Link{Key: strings.TrimPrefix(r.URL.Path, "/"), Host: f.bad.Addr()}
		if r.URL.Query().Has("expired") {
			l.At = time.Now().Add(-time.Hour)
		}
		http.Redirect(w, r, f.store.Sign(l), http.StatusFound)
	}))
	t.Cleanup(f.Close)
	return f
}

// put stores an object that is like no other.
func (f *files) put(key string, seed byte, size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(content)
	f.store.Put(key, content)
	return content
}

// run runs `heed download` and returns the exit code, and what it has said if that is 0.
func (f *files) run(t *testing.T, args ...string) (code int, result downloaded) {
	t.Helper()
	p := start(t, downloadToken, append([]string{"download", "--json"}, args...)...)
	code = p.wait()
	if code == 0 {
		if err := json.Unmarshal(p.stdout.Bytes(), &result); err != nil {
			t.Errorf("%v: %s", err, &p.stdout)
		}
	} else if p.stdout.Len() > 0 {
		t.Errorf("exit code %d, and stdout %s", code, &p.stdout)
	}
	for _, secret := range []string{downloadToken, "X-Amz", "Signature"} {
		if text := strings.Join(append(p.stderr, p.stdout.String()), "\n"); strings.Contains(text, secret) {
			t.Errorf("%s is in the output: %s", secret, text)
		}
	}
	return code, result
}

type downloaded struct {
	Bytes   int    `json:"bytes"`
	Resumed bool   `json:"resumed"`
	SHA256  string `json:"sha256"`
}

func wantFile(t *testing.T, name string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestDownload is `heed download` from an object store, over a line that breaks each time.
func TestDownload(t *testing.T) {
	t.Parallel()
	const size, upTo = 1 << 20, 400_000
	f := newFiles(t, upTo)

	// As many runs as it takes, each of which goes on where the one before ended.
	t.Run("resumed", func(t *testing.T) {
		whole := f.put("backups/all.tar", 1, size)
		want := downloaded{size, true, fmt.Sprintf("%x", sha256.Sum256(whole))}
		file := filepath.Join(t.TempDir(), "all.tar")
		before, runs := f.signed.Load(), int64(0)
		for {
			runs++
			code, got := f.run(t, "--resume", "-o", file, "--checksum", "sha256:"+want.SHA256, f.URL+"/backups/all.tar")
			if code == 0 {
				if got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				break
			}
			if code != 6 || runs > 10 {
				t.Fatalf("run %d: exit code %d", runs, code)
			}
		}
		wantFile(t, file, whole)
		if signed := f.signed.Load() - before; runs <= size/upTo || signed != runs {
			t.Errorf("%d runs, %d addresses signed", runs, signed)
		}
	})
	// The store takes no notice of If-Range, and yet nothing of the other object is put behind what is there.
	t.Run("replaced", func(t *testing.T) {
		f.put("replaced", 2, size)
		file := filepath.Join(t.TempDir(), "replaced")
		if code, _ := f.run(t, "--resume", "-o", file, f.URL+"/replaced"); code != 6 {
			t.Errorf("exit code %d", code)
		}
		other := f.put("replaced", 3, size)
		f.bad.Remove("limit_data")
		code, got := f.run(t, "--resume", "-o", file, f.URL+"/replaced")
		if code != 0 || got.Resumed || got.Bytes != size {
			t.Errorf("exit code %d: %+v", code, got)
		}
		wantFile(t, file, other)
	})
	t.Run("expired", func(t *testing.T) {
		before, file := f.signed.Load(), filepath.Join(t.TempDir(), "none")
		if code, _ := f.run(t, "-o", file, f.URL+"/backups/all.tar?expired"); code != 4 || f.signed.Load() != before+1 {
			t.Errorf("exit code %d, %d addresses signed", code, f.signed.Load()-before)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	})
}
