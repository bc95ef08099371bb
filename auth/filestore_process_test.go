//go:build linux || darwin

package auth_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
)

// The tests of this file start the test binary again: what is promised about processes that are killed, and about locks
// between processes, can be seen in nothing less. Here, and only here, real time passes.

const storeChild = "HEED_TEST_STORE_CHILD"

// TestStoreChild is what a child process runs.
func TestStoreChild(t *testing.T) {
	s := &auth.FileStore{Dir: os.Getenv(storeChild + "_DIR")}
	switch os.Getenv(storeChild) {
	case "":
		t.Skip("for child processes")
	case "save":
		for n := 0; ; n++ {
			if err := s.Save(t.Context(), storeKey, halves(n)); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				fmt.Println("ready")
			}
		}
	case "count":
		for range 10 {
			unlock, err := s.Lock(t.Context(), storeKey)
			if err != nil {
				t.Fatal(err)
			}
			if err := countUp(s.Dir); err != nil {
				t.Fatal(err)
			}
			unlock()
		}
	case "hold":
		if _, err := s.Lock(t.Context(), storeKey); err != nil {
			t.Fatal(err)
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin) // until killed
	case "full":
		signal.Ignore(syscall.SIGXFSZ)
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		full := limit
		full.Cur = 1000
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
			t.Fatal(err)
		}
		if err := s.Save(t.Context(), storeKey, halves(9)); !errors.Is(err, auth.ErrStoreFailed) || !errors.Is(err, syscall.EFBIG) {
			t.Errorf("Save onto a full disk: %v", err)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}
}

// child prepares a child process that uses the store in dir.
func child(t *testing.T, what, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestStoreChild$")
	// The race detector would sleep for a second when the child exits.
	cmd.Env = append(os.Environ(), storeChild+"="+what, storeChild+"_DIR="+dir, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// started starts a child and returns when it says that it is ready.
func started(t *testing.T, what, dir string) *exec.Cmd {
	t.Helper()
	cmd := child(t, what, dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Errorf("the child said %q, %v", line, err)
	}
	return cmd
}

// halves is a login whose two halves say which one it is. No two in a row are equally long.
func halves(n int) auth.Credential {
	half := fmt.Sprintf("%d-%s", n, strings.Repeat("z", n%10*4000))
	return auth.Credential{AccessToken: half, RefreshToken: half}
}

func whole(c auth.Credential) bool { return c.AccessToken != "" && c.AccessToken == c.RefreshToken }

func TestKilledWithinSave(t *testing.T) { inRows(t, killWithinSave) }

// inRows has processes killed 200 times, in rows of which each goes by a seed of its own.
func inRows(t *testing.T, kill func(t *testing.T, random *rand.Rand, kills int)) {
	t.Helper()
	kills := 200
	if testing.Short() {
		kills = 20
	}
	const rows = 2 // at once, to make use of the time in which a child starts
	for row := range uint64(rows) {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			t.Parallel()
			seed := uint64(os.Getpid())
			t.Logf("seed %d", seed)
			kill(t, rand.New(rand.NewPCG(seed, row)), kills/rows)
		})
	}
}

func killWithinSave(t *testing.T, r *rand.Rand, kills int) {
	dir := t.TempDir()
	s := &auth.FileStore{Dir: dir}
	if err := s.Save(t.Context(), storeKey, halves(0)); err != nil {
		t.Fatal(err)
	}
	var interrupted int
	for range kills {
		cmd := started(t, "save", dir)
		time.Sleep(time.Duration(r.Int64N(int64(4 * time.Millisecond))))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		c, err := s.Load(t.Context(), storeKey)
		if err != nil {
			t.Fatalf("after a kill: %v", err)
		}
		if !whole(c) {
			t.Fatal("a login is half there")
		}
		left := leftovers(t, dir)
		if len(left) > 1 {
			t.Fatalf("temporary files pile up: %q", left)
		}
		interrupted += len(left)
	}
	t.Logf("%d of %d kills fell into the writing of a temporary file", interrupted, kills)
	savedFile(t, s)
	if left := leftovers(t, dir); left != nil {
		t.Errorf("left behind for good: %q", left)
	}
}

func TestDeleteSweeps(t *testing.T) {
	s := &auth.FileStore{Dir: t.TempDir()}
	savedFile(t, s)
	abandoned := filepath.Join(s.Dir, ".heed-abandoned.tmp") // as a killed Save leaves it, with a token in it
	if err := os.WriteFile(abandoned, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), storeKey); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, s.Dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// countUp adds one to a number in a file, in a way that loses counts unless one does it at a time.
func countUp(dir string) error {
	name := filepath.Join(dir, "count.lock")
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	n, _ := strconv.Atoi(string(data))
	time.Sleep(time.Millisecond / 2)
	return os.WriteFile(name, []byte(strconv.Itoa(n+1)), 0o600)
}

func TestLockAcrossProcesses(t *testing.T) {
	const processes = 8
	dir := t.TempDir()
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			if out, err := child(t, "count", dir).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	data, err := os.ReadFile(filepath.Join(dir, "count.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != strconv.Itoa(10*processes) {
		t.Errorf("counted to %s: the lock is not exclusive", data)
	}
}

func TestLockDiesWithItsProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := started(t, "hold", dir)
	s := &auth.FileStore{Dir: dir}
	type result struct {
		unlock func()
		err    error
	}
	waiting := make(chan result)
	go func() {
		unlock, err := s.Lock(t.Context(), storeKey)
		waiting <- result{unlock, err}
	}()
	select {
	case <-waiting:
		t.Error("two processes hold the lock")
	case <-time.After(20 * time.Millisecond):
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	r := <-waiting
	if r.err != nil {
		t.Fatal(r.err)
	}
	r.unlock()
}

func TestSaveOntoFullDisk(t *testing.T) {
	s := &auth.FileStore{Dir: t.TempDir()}
	savedFile(t, s)
	if out, err := child(t, "full", s.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	oldLoginKept(t, s)
}

// oldLoginKept checks that a Save that failed has changed nothing.
func oldLoginKept(t *testing.T, s *auth.FileStore) {
	t.Helper()
	c, err := s.Load(t.Context(), storeKey)
	if err != nil || c.AccessToken != keptLogin().AccessToken {
		t.Errorf("the old login is gone: %v", err)
	}
	if left := leftovers(t, s.Dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}
