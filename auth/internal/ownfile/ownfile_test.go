package ownfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/auth/internal/ownfile"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newDir(t *testing.T) (ownfile.Dir, *fakes.Clock) {
	t.Helper()
	clock := fakes.NewClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	return ownfile.Dir{Path: t.TempDir(), Timers: clock.Timers()}, clock
}

// fakeLock answers TryLock with its script, and then with success.
type fakeLock struct {
	script   []error // nil: held by somebody else
	unlocked int
}

func (l *fakeLock) TryLock() (bool, error) {
	if len(l.script) == 0 {
		return true, nil
	}
	err := l.script[0]
	l.script = l.script[1:]
	return false, err
}

func (l *fakeLock) Unlock() error {
	l.unlocked++
	return nil
}

func TestLockWhereThereAreNone(t *testing.T) {
	dir, clock := newDir(t)
	for _, cause := range []error{syscall.ENOLCK, syscall.ENOTSUP, syscall.ENOSYS, errors.ErrUnsupported} {
		_, err := dir.LockWith(t.Context(), &fakeLock{script: []error{cause}})
		if ownfile.Class(err) != ownfile.Unavailable || !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
	}
	if armed := clock.Armed(); len(armed) > 0 {
		t.Errorf("it waited for a lock that there cannot be: %v", armed)
	}
}

func TestLockPauses(t *testing.T) {
	dir, clock := newDir(t)
	lock := &fakeLock{script: make([]error, 9)}
	got := make(chan func(), 1)
	go func() {
		unlock, err := dir.LockWith(t.Context(), lock)
		if err != nil {
			t.Error(err)
		}
		got <- unlock
	}()
	for n := range 9 {
		armed, err := clock.Await(t.Context(), delay.KindStoreLock)
		if err != nil {
			t.Fatal(err)
		}
		least := min(5*time.Millisecond<<n, 200*time.Millisecond)
		if d := armed[0].Delay(); d < least || d > least+5*time.Millisecond {
			t.Errorf("pause %d is %v, want %v and a little", n, d, least)
		}
		clock.Advance(armed[0].Delay())
	}
	unlock := <-got
	unlock()
	unlock()
	if lock.unlocked != 1 {
		t.Errorf("unlocked %d times", lock.unlocked)
	}
}

func TestLockWithDeadline(t *testing.T) {
	dir, clock := newDir(t)
	ctx, cancel := clock.Timers().WithTimeout(t.Context(), delay.KindStoreTimeout, 2*time.Millisecond)
	defer cancel()
	_, err := dir.LockWith(ctx, &fakeLock{script: make([]error, 9)})
	if ownfile.Class(err) != ownfile.Locked || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deadline before the end of the pause: %v", err)
	}
}

func TestPersist(t *testing.T) {
	dir, clock := newDir(t)
	sharing := errors.New("the file is open")
	busy := func(err error) bool { return errors.Is(err, sharing) }
	// run moves with n failures first, and returns the pauses and what came of it.
	run := func(ctx context.Context, n int, failure error) (pauses []time.Duration, err error) {
		done := make(chan error, 1)
		go func() {
			done <- dir.Persist(ctx, func() error {
				if n--; n < 0 {
					return nil
				}
				return failure
			}, busy)
		}()
		for {
			armed, changed := clock.Timers().Outstanding()
			if len(armed) > 0 {
				pauses = append(pauses, armed[0].Delay())
				clock.Advance(armed[0].Delay())
				continue
			}
			select {
			case err := <-done:
				return pauses, err
			case <-changed:
			}
		}
	}
	if pauses, err := run(t.Context(), 0, nil); err != nil || pauses != nil {
		t.Errorf("at once: %v, %v", pauses, err)
	}
	pauses, err := run(t.Context(), 3, sharing)
	if want := []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond}; err != nil || !slices.Equal(pauses, want) {
		t.Errorf("busy three times: %v, %v", pauses, err)
	}
	if pauses, err = run(t.Context(), 1, os.ErrPermission); !errors.Is(err, os.ErrPermission) || pauses != nil {
		t.Errorf("not busy but forbidden: %v, %v", pauses, err)
	}
	pauses, err = run(t.Context(), 1000, sharing)
	var sum time.Duration
	for _, d := range pauses {
		sum += d
	}
	if !errors.Is(err, sharing) || sum < time.Second || sum > 3*time.Second {
		t.Errorf("busy for good: given up after %v, %v", sum, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = run(ctx, 1000, sharing); !errors.Is(err, context.Canceled) || !errors.Is(err, sharing) {
		t.Errorf("cancelled while busy: %v", err)
	}
}

func TestSweepSparesTheLiving(t *testing.T) {
	dir, _ := newDir(t)
	for name, content := range map[string]string{"foreign": "x", ".heed-note": "x", "other.tmp": "x", ".heed-dead.tmp": "x"} {
		if err := os.WriteFile(filepath.Join(dir.Path, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.Write(t.Context(), "mine", []byte("y")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir.Path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{".heed-note", "foreign", "mine", "other.tmp"}
	if runs := runsUnix(); !runs {
		want = append(want, ".heed-dead.tmp") // too young to be told from a living one's
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("there are %q, want %q", names, want)
	}
}

func runsUnix() bool { return filepath.Separator == '/' }

func TestClass(t *testing.T) {
	for err, want := range map[error]string{
		os.ErrNotExist: ownfile.NotFound, os.ErrPermission: ownfile.Failed,
		&ownfile.Error{Class: ownfile.Insecure, Text: "x", Err: os.ErrNotExist}: ownfile.Insecure,
	} {
		if got := ownfile.Class(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}
