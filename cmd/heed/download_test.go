package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

// storage serves files in two hops, and breaks off what it sends after some bytes, as often as it is told to.
type storage struct {
	*fakes.Files
	breaks int // requests come one after the other
	after  int
	hang   bool // in place of breaking off
	ranges []string
}

const content = "It is later than you think, and it was worth the wait.\n"

func serveFiles(t *testing.T, s *storage) tool {
	n := fakes.NewNetwork(t)
	s.Files = &fakes.Files{Storage: "https://files.test", Content: map[string]string{"/report.txt": content, "/.profile": "x"}}
	n.Serve(t, "api.test", s.API())
	n.Serve(t, "files.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ranges = append(s.ranges, r.Header.Get("Range"))
		if s.breaks--; s.breaks >= 0 {
			w = &breaking{ResponseWriter: w, left: s.after, hang: s.hang, ctx: r.Context().Done()}
		}
		s.Store().ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		if v := s.Violations(); len(v) > 0 {
			t.Error(v)
		}
	})
	return tool{net: n, env: map[string]string{"HEED_TOKEN": canary}}
}

type breaking struct {
	http.ResponseWriter
	left int
	hang bool
	ctx  <-chan struct{}
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) <= b.left {
		b.left -= len(p)
		return b.ResponseWriter.Write(p)
	}
	_, _ = b.ResponseWriter.Write(p[:b.left])
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	if b.hang {
		<-b.ctx
	}
	panic(http.ErrAbortHandler)
}

func sumOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// holds checks what is in a directory.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if text, ok := want[e.Name()]; err != nil || !ok || text != "*" && text != string(b) {
			t.Errorf("%s holds %q: %v", e.Name(), b, err)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the directory has %q", got)
	}
}

const reportURL = "https://api.test/report.txt"

func TestDownload(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		h := serveFiles(t, &storage{})
		t.Chdir(t.TempDir())
		r := h.run(t.Context(), "download", reportURL, "--checksum", "sha256:"+strings.ToUpper(sumOf(content)))
		if want := "report.txt: 55 bytes, sha256:" + sumOf(content) + "\n"; r.code != 0 || r.stdout != want || r.stderr != "" {
			t.Errorf("exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
		}
		holds(t, ".", map[string]string{"report.txt": content})

		again := h.run(t.Context(), "download", reportURL)
		if again.code != exitUsage || !strings.Contains(again.stderr, "--force") {
			t.Errorf("a file is replaced unasked: exit %d, %q", again.code, again.stderr)
		}
		if err := os.WriteFile("report.txt", []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		forced := h.run(t.Context(), "download", reportURL, "--force", "--json")
		want := fmt.Sprintf(`{"file":"report.txt","bytes":55,"resumed":false,"sha256":"%s"}`+"\n", sumOf(content))
		if forced.code != 0 || forced.stdout != want {
			t.Errorf("exit %d, stdout %q, stderr %q", forced.code, forced.stdout, forced.stderr)
		}
		holds(t, ".", map[string]string{"report.txt": content})
	})
}

func TestDownloadFails(t *testing.T) {
	wrong := "sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		name string
		s    storage
		args string
		disk bool
		code int
		says string
	}{
		{name: "hidden", args: "https://api.test/.profile", code: 1, says: "--output"},
		{name: "missing", args: "https://api.test/nothing", code: 2},
		{name: "checksum", args: reportURL + " --checksum " + wrong, code: 7, says: sumOf(content)},
		{name: "checksum, kept", args: reportURL + " --resume -o a --checksum " + wrong, code: 7, says: sumOf(content)},
		{name: "broken off", s: storage{after: 20}, args: reportURL, code: 6, says: "broke off"},
		{name: "full", args: reportURL, disk: true, code: exitOutput, says: errFull.Error()},
		{name: "no directory", args: reportURL + " -o no/where", code: exitOutput, says: "no such"},
		{name: "too long", s: storage{after: 20, hang: true}, args: reportURL + " --timeout 9s", code: 6, says: "9s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				if c.s.after > 0 {
					c.s.breaks = 1
				}
				h := serveFiles(t, &c.s)
				if c.disk {
					h.disk = func(io.Writer) io.Writer { return &full{room: 10} }
				}
				t.Chdir(t.TempDir())
				r := h.run(t.Context(), append([]string{"download"}, strings.Fields(c.args)...)...)
				if r.code != c.code || r.stdout != "" || !strings.Contains(r.stderr, c.says) {
					t.Errorf("exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
				}
				oneLineOf(t, r.stderr)
				holds(t, ".", nil)
			})
		})
	}
}

func TestDownloadResumes(t *testing.T) {
	for _, c := range []struct {
		name    string
		between func(t *testing.T, s *storage)
		ranges  string
		content string
		resumed bool
	}{
		{name: "goes on", ranges: "bytes=19-", content: content, resumed: true},
		{
			name: "changed", ranges: "bytes=19-", content: "another",
			between: func(_ *testing.T, s *storage) { s.Content["/report.txt"] = "another" },
		},
		{
			name: "complete", ranges: "bytes=54-", content: content, resumed: true,
			between: func(t *testing.T, _ *storage) { write(t, "f.part", content) },
		},
		{
			name: "no note", ranges: "", content: content,
			between: func(t *testing.T, _ *storage) { write(t, "f.part.json", "{") },
		},
		{
			name: "of another address", ranges: "", content: content,
			between: func(t *testing.T, _ *storage) {
				write(t, "f.part.json", `{"address":"`+sumOf("https://api.test/x")+`","validator":"\"v\""}`)
			},
		},
		{
			name: "no part", ranges: "", content: content,
			between: func(t *testing.T, _ *storage) {
				if err := os.Remove("f.part"); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				s := &storage{after: 20}
				s.breaks = 1
				h := serveFiles(t, s)
				t.Chdir(t.TempDir())
				args := []string{"download", "--resume", "--json", "-o", "f", reportURL}
				r := h.run(t.Context(), args...)
				if r.code != 6 || !strings.Contains(r.stderr, "20 bytes of it are in f.part: run it again") {
					t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
				}
				holds(t, ".", map[string]string{"f.part": content[:20], "f.part.json": "*"})
				if c.between != nil {
					c.between(t, s)
				}
				r = h.run(t.Context(), args...)
				want := fmt.Sprintf(`{"file":"f","bytes":%d,"resumed":%v,"sha256":"%s"}`+"\n", len(c.content), c.resumed, sumOf(c.content))
				if r.code != 0 || r.stdout != want {
					t.Errorf("exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
				}
				if want := []string{"", c.ranges}; !slices.Equal(s.ranges, want) {
					t.Errorf("the ranges were %q in place of %q", s.ranges, want)
				}
				holds(t, ".", map[string]string{"f": c.content})
			})
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDownloadStartsAnew has a server that refuses a range outright, and one that tells no versions apart.
func TestDownloadStartsAnew(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		var asked int
		n.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch asked++; {
			case asked == 1:
				w.Header().Set("ETag", `"v"`)
				w.Header().Set("Content-Length", "55")
				_, _ = io.WriteString(w, content[:20])
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			case r.Header.Get("Range") != "":
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			case asked == 3:
				w.Header().Set("Content-Length", "55") // and no validator
				_, _ = io.WriteString(w, content[:20])
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}))
		t.Chdir(t.TempDir())
		args := []string{"download", "--resume", "-o", "f", "https://api.test/f"}
		if r := (tool{net: n}).run(t.Context(), args...); r.code != 6 {
			t.Errorf("exit %d, stderr %q", r.code, r.stderr)
		}
		holds(t, ".", map[string]string{"f.part": content[:20], "f.part.json": "*"})
		if r := (tool{net: n}).run(t.Context(), args...); r.code != 6 || strings.Contains(r.stderr, "f.part") {
			t.Errorf("exit %d, stderr %q", r.code, r.stderr)
		}
		holds(t, ".", nil)
	})
}

func TestDownloadInterrupted(t *testing.T) {
	for _, resume := range []bool{false, true} {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			s := &storage{after: 20, hang: true}
			s.breaks = 1
			h := serveFiles(t, s)
			t.Chdir(t.TempDir())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(5*time.Second, cancel)
			args := []string{"download", reportURL, "-o", "f"}
			var left map[string]string
			if resume {
				args, left = append(args, "--resume"), map[string]string{"f.part": content[:20], "f.part.json": "*"}
			}
			if r := h.run(ctx, args...); r.code != exitInterrupted {
				t.Errorf("exit %d, stderr %q", r.code, r.stderr)
			}
			holds(t, ".", left)
		})
	}
}

// TestDownloadTaken has another program make the file while it is on its way.
func TestDownloadTaken(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		h := serveFiles(t, &storage{})
		t.Chdir(t.TempDir())
		h.disk = func(w io.Writer) io.Writer { write(t, "f", "theirs"); return w }
		if r := h.run(t.Context(), "download", reportURL, "-o", "f"); r.code != exitUsage {
			t.Errorf("exit %d, stderr %q", r.code, r.stderr)
		}
		holds(t, ".", map[string]string{"f": "theirs"})
	})
}

// TestDownloadTwice runs a download of a file that another run is writing.
func TestDownloadTwice(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s := &storage{after: 20, hang: true}
		s.breaks = 1
		h := serveFiles(t, s)
		t.Chdir(t.TempDir())
		write(t, "f.part.lock", "") // of one that was killed, and is in nobody's way
		args := []string{"download", "--resume", "-o", "f", reportURL}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan result)
		go func() { ended <- h.run(ctx, args...) }()
		time.Sleep(time.Second)
		underWay := map[string]string{"f.part": content[:20], "f.part.json": "*", "f.part.lock": ""}
		holds(t, ".", underWay)

		for _, other := range [][]string{args, append(args[:4:4], "https://api.test/another"), append(args, "--force")} {
			r := h.run(t.Context(), other...)
			if r.code != exitOutput || r.stdout != "" || !strings.Contains(r.stderr, "another download is writing f.part") {
				t.Errorf("exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
			}
			oneLineOf(t, r.stderr)
			holds(t, ".", underWay)
		}
		if r := h.run(t.Context(), "download", "--resume", "-o", "g", reportURL); r.code != 0 {
			t.Errorf("another file: exit %d, %q", r.code, r.stderr)
		}
		if err := os.Remove("g"); err != nil {
			t.Error(err)
		}

		cancel()
		if r := <-ended; r.code != exitInterrupted {
			t.Errorf("exit %d, %q", r.code, r.stderr)
		}
		holds(t, ".", map[string]string{"f.part": content[:20], "f.part.json": "*"})
		if r := h.run(t.Context(), args...); r.code != 0 {
			t.Errorf("exit %d, %q", r.code, r.stderr)
		}
		holds(t, ".", map[string]string{"f": content})
	})
}

// TestDownloadClaims has many claim a file at once, again and again: one has it at a time, also where it is given back
// and removed in the midst of another claim.
func TestDownloadClaims(t *testing.T) {
	t.Chdir(t.TempDir())
	var all sync.WaitGroup
	var holders, claims atomic.Int32
	for range 8 {
		all.Go(func() {
			for range 200 {
				c, err := claimFile("f.part")
				if claimed := (*claimedError)(nil); errors.As(err, &claimed) {
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d have it", n)
				}
				claims.Add(1)
				runtime.Gosched()
				holders.Add(-1)
				c.release()
			}
		})
	}
	all.Wait()
	if claims.Load() == 0 {
		t.Error("nobody ever had it")
	}
	holds(t, ".", nil)
}
