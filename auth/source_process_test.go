//go:build linux || darwin

package auth_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// The tests of this file start the test binary again, as those of FileStore do: real processes share a file, and a server
// on loopback that takes no refresh token twice. Here, and only here, real time passes.

const sourceChild = "HEED_TEST_SOURCE_CHILD"

// processSource is what every process makes of the same file.
func processSource(t *testing.T, dir, tokenURL string) *auth.TokenSource {
	t.Helper()
	s, err := auth.LoadTokenSource(t.Context(), auth.SourceConfig{
		Refresher: auth.Refresher{Config: oauth2.Config{ClientID: "cli", Endpoint: oauth2.Endpoint{TokenURL: tokenURL}}},
		Store:     &auth.FileStore{Dir: dir}, Key: storeKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// together asks for a token with many goroutines at an instant, and returns it.
func together(t *testing.T, s *auth.TokenSource, at time.Time) string {
	t.Helper()
	got := make([]string, 50)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			time.Sleep(time.Until(at))
			tok, err := s.Token()
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = tok.AccessToken
		})
	}
	all.Wait()
	for _, token := range got {
		if token != got[0] {
			t.Fatal("goroutines of one process have different tokens")
		}
	}
	return got[0]
}

// TestSourceChild is what a child process runs.
func TestSourceChild(t *testing.T) {
	dir, tokenURL := os.Getenv(sourceChild+"_DIR"), os.Getenv(sourceChild+"_URL")
	switch os.Getenv(sourceChild) {
	case "":
		t.Skip("for child processes")
	case "together":
		fmt.Println("ready")
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		at, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(together(t, processSource(t, dir, tokenURL), time.Unix(0, at)))
	case "refresh":
		s := processSource(t, dir, tokenURL)
		fmt.Println("ready")
		for { // until killed
			if _, err := s.Refresh(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func sourceProcess(what, dir, tokenURL string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestSourceChild$")
	cmd.Env = append(os.Environ(), sourceChild+"="+what, sourceChild+"_DIR="+dir, sourceChild+"_URL="+tokenURL, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// serveRefreshes serves on loopback.
func serveRefreshes(t *testing.T) (server *fakes.AuthServer, tokenURL string) {
	t.Helper()
	server = &fakes.AuthServer{ClientID: "cli"}
	l := httptest.NewServer(server)
	t.Cleanup(l.Close)
	return server, l.URL + fakes.TokenPath
}

// Eight processes with fifty goroutines each ask at the instant the token expires: one request, one token, nobody is
// logged out.
func TestProcessesRefreshOnce(t *testing.T) {
	const children = 7 // and this process
	server, tokenURL := serveRefreshes(t)
	server.Login("a1", "r1")
	dir := t.TempDir()
	store := &auth.FileStore{Dir: dir}
	type process struct {
		in  io.Writer
		out *bufio.Reader
		cmd *exec.Cmd
	}
	var all []process
	for range children {
		cmd := sourceProcess("together", dir, tokenURL)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, process{in, bufio.NewReader(out), cmd})
	}
	for _, p := range all {
		if line, err := p.out.ReadString('\n'); line != "ready\n" {
			t.Fatalf("a child said %q, %v", line, err)
		}
	}

	// The token was good for an hour, and is for another moment: the early window has long begun, and nobody asked.
	at := time.Now().Add(200 * time.Millisecond)
	login := auth.Credential{AccessToken: "a1", RefreshToken: "r1", Obtained: at.Add(-time.Hour), Expiry: at}
	if err := store.Save(t.Context(), storeKey, login); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if _, err := fmt.Fprintln(p.in, at.UnixNano()); err != nil {
			t.Fatal(err)
		}
	}
	mine := together(t, processSource(t, dir, tokenURL), at)
	for _, p := range all {
		line, err := p.out.ReadString('\n')
		if err != nil || strings.TrimSpace(line) != mine {
			t.Errorf("a process has another token, %v", err)
		}
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("a process failed: %v", err)
		}
	}
	c, err := store.Load(t.Context(), storeKey)
	if err != nil || c.AccessToken != mine || !server.Valid(mine) {
		t.Errorf("the token is not the one stored: %v", err)
	}
	if server.Refreshes() != 1 || server.Reuses() != 0 {
		t.Errorf("%d refreshes, %d of them with a spent token", server.Refreshes(), server.Reuses())
	}
}

// A process may be killed at any moment of a refresh: the next one has the old login or the new one, or says that the
// reply was lost. It never finds half a login, and never presents a spent token.
func TestKilledWithinARefresh(t *testing.T) { inRows(t, killWithinRefresh) }

func killWithinRefresh(t *testing.T, random *rand.Rand, kills int) {
	server, tokenURL := serveRefreshes(t)
	dir := t.TempDir()
	store := &auth.FileStore{Dir: dir}
	logins := 0
	login := func() {
		logins++
		c := auth.Credential{AccessToken: fmt.Sprintf("a-%d", logins), RefreshToken: fmt.Sprintf("r-%d", logins), Obtained: time.Now(), Expiry: time.Now().Add(time.Hour)}
		server.Login(c.AccessToken, c.RefreshToken)
		if err := store.Save(t.Context(), storeKey, c); err != nil {
			t.Fatal(err)
		}
	}
	login()
	var intact, lost int
	for range kills {
		cmd := sourceProcess("refresh", dir, tokenURL)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("the child said %q, %v", line, err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(8 * time.Millisecond))))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()

		c, err := store.Load(t.Context(), storeKey)
		if err != nil {
			t.Fatalf("after a kill: %v", err)
		}
		if !server.Valid(c.AccessToken) {
			t.Fatal("the access token in the store is not one of the server's")
		}
		_, noted := c.Unanswered()
		before := server.Refreshes()
		s := processSource(t, dir, tokenURL)
		if tok, err := s.Token(); err != nil || tok.AccessToken != c.AccessToken {
			t.Fatalf("the token is not at hand: %v", err)
		}
		tok, err := s.Refresh(t.Context(), nil)
		switch {
		case noted && errors.Is(err, auth.ErrSessionReplyLost):
			lost++
			// The request of the one that was killed may still have been on its way: nothing else has been sent.
			if n := server.Refreshes() - before; n > 1 {
				t.Fatalf("%d refreshes after a lost reply", n)
			}
			login()
		case !noted && err == nil && server.Valid(tok.AccessToken):
			intact++
		default:
			t.Fatalf("noted %v: %v", noted, err)
		}
		if files, err := filepath.Glob(filepath.Join(dir, "*.json")); err != nil || len(files) != 1 {
			t.Fatalf("files %q, %v", files, err)
		}
	}
	if server.Reuses() != 0 || len(server.Violations()) != 0 {
		t.Errorf("%d spent tokens were presented: %q", server.Reuses(), server.Violations())
	}
	t.Logf("%d refreshes; after %d kills the login was as good as ever %d times, and the reply was lost %d times", server.Refreshes(), kills, intact, lost)
	if kills >= 100 && (intact == 0 || lost == 0) {
		t.Error("the kills fell all on one side: their moments are badly chosen")
	}
}
