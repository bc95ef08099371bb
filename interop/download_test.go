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

// TestDownload is `heed download` from an object store: over a line that breaks each time after a third of the file, in as
// many runs as that takes, and by an address that has expired.
func TestDownload(t *testing.T) {
	t.Parallel()
	const token, key, size = "download-0123456789", "backups/all.tar", 1 << 20
	store := objectstore.Start(t)
	whole := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(whole)
	store.Put(key, whole)
	sum := fmt.Sprintf("%x", sha256.Sum256(whole))
	bad := line.New(t, store.Addr())
	bad.Add("limit_data", map[string]any{"bytes": 2 * size / 5})

	var signed atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "bad token", http.StatusUnauthorized)
			return
		}
		signed.Add(1)
		l := objectstore.Link{Key: key, Host: bad.Addr()}
		if r.URL.Path == "/expired" {
			l = objectstore.Link{Key: key, At: time.Now().Add(-time.Hour)}
		}
		http.Redirect(w, r, store.Sign(l), http.StatusFound)
	}))
	t.Cleanup(api.Close)

	var said []string
	file := filepath.Join(t.TempDir(), "all.tar")
	runs := int64(0)
	for exit := -1; exit != 0; {
		if runs++; runs > 10 {
			t.Fatalf("the download does not come to its end: %q", said)
		}
		p := start(t, token, "download", "--json", "--resume", "-o", file, "--checksum", "sha256:"+sum, api.URL+"/files/7")
		exit = p.wait()
		said = append(append(said, p.stderr...), p.stdout.String())
		if exit != 0 {
			if exit != 6 || p.stdout.Len() > 0 {
				t.Errorf("run %d: exit code %d: %q", runs, exit, p.stderr)
			}
			continue
		}
		var result struct {
			Bytes   int64  `json:"bytes"`
			Resumed bool   `json:"resumed"`
			SHA256  string `json:"sha256"`
		}
		if err := json.Unmarshal(p.stdout.Bytes(), &result); err != nil || result.Bytes != size || !result.Resumed || result.SHA256 != sum {
			t.Errorf("%v: %s", err, &p.stdout)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if runs < 3 || signed.Load() != runs {
		t.Errorf("%d runs, %d addresses signed", runs, signed.Load())
	}

	none := filepath.Join(t.TempDir(), "none")
	p := start(t, token, "download", "-o", none, api.URL+"/expired")
	if exit := p.wait(); exit != 4 || signed.Load() != runs+1 {
		t.Errorf("an expired address: exit code %d, signed %d times", exit, signed.Load()-runs)
	}
	if _, err := os.Stat(none); !os.IsNotExist(err) {
		t.Errorf("the file of an expired address: %v", err)
	}
	for _, secret := range []string{token, "X-Amz", "Signature"} {
		if text := strings.Join(append(said, p.stderr...), "\n"); strings.Contains(text, secret) {
			t.Errorf("%s is in the output: %s", secret, text)
		}
	}
}
