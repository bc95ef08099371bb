package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/storetest"
)

// flaw is a store with one thing wrong with it.
type flaw struct {
	auth.MemStore
	load func(*flaw, context.Context, auth.Key) (auth.Credential, error)
	save func(*flaw, context.Context, auth.Key, auth.Credential) error
	del  func(*flaw, context.Context, auth.Key) error
	lock func(*flaw, context.Context, auth.Key) (func(), error)

	mu   sync.Mutex
	last auth.Credential
}

func (f *flaw) Load(ctx context.Context, k auth.Key) (auth.Credential, error) {
	if f.load != nil {
		return f.load(f, ctx, k)
	}
	return f.MemStore.Load(ctx, k)
}

func (f *flaw) Save(ctx context.Context, k auth.Key, c auth.Credential) error {
	if f.save != nil {
		return f.save(f, ctx, k, c)
	}
	return f.MemStore.Save(ctx, k, c)
}

func (f *flaw) Delete(ctx context.Context, k auth.Key) error {
	if f.del != nil {
		return f.del(f, ctx, k)
	}
	return f.MemStore.Delete(ctx, k)
}

func (f *flaw) Lock(ctx context.Context, k auth.Key) (func(), error) {
	if f.lock != nil {
		return f.lock(f, ctx, k)
	}
	return f.MemStore.Lock(ctx, k)
}

func (f *flaw) Format(s fmt.State, _ rune) { fmt.Fprint(s, "flaw") }

// flaws maps each flawed store to the check that must find it out.
var flaws = map[string]struct {
	check string
	store func() auth.Store
}{
	"its errors have no type": {"Empty", func() auth.Store {
		return &flaw{load: func(f *flaw, ctx context.Context, k auth.Key) (auth.Credential, error) {
			c, err := f.MemStore.Load(ctx, k)
			if err != nil {
				err = errors.New("nothing there")
			}
			return c, err
		}}
	}},
	"it drops the note": {"RoundTrip", func() auth.Store {
		return &flaw{save: func(f *flaw, ctx context.Context, k auth.Key, c auth.Credential) error {
			c.Presented = nil
			return f.MemStore.Save(ctx, k, c)
		}}
	}},
	"it keeps what it was given": {"Copies", func() auth.Store {
		return &flaw{
			save: func(f *flaw, ctx context.Context, k auth.Key, c auth.Credential) error {
				f.last = c
				return f.MemStore.Save(ctx, k, c)
			},
			load: func(f *flaw, _ context.Context, _ auth.Key) (auth.Credential, error) { return f.last, nil },
		}
	}},
	"it ignores the account": {"Keys", func() auth.Store {
		return &flaw{save: func(f *flaw, ctx context.Context, k auth.Key, c auth.Credential) error {
			k.Account = ""
			return f.MemStore.Save(ctx, k, c)
		}, load: func(f *flaw, ctx context.Context, k auth.Key) (auth.Credential, error) {
			k.Account = ""
			return f.MemStore.Load(ctx, k)
		}}
	}},
	"it deletes nothing": {"Delete", func() auth.Store {
		return &flaw{del: func(*flaw, context.Context, auth.Key) error { return nil }}
	}},
	"it ignores its context": {"EndedContext", func() auth.Store {
		return &flaw{save: func(f *flaw, _ context.Context, k auth.Key, c auth.Credential) error {
			return f.MemStore.Save(context.Background(), k, c)
		}}
	}},
	"it mixes two logins": {"Concurrent", func() auth.Store {
		return &flaw{save: func(f *flaw, ctx context.Context, k auth.Key, c auth.Credential) error {
			f.mu.Lock()
			if c.AccessToken == c.RefreshToken {
				c.RefreshToken, f.last.RefreshToken = f.last.RefreshToken, c.RefreshToken
			}
			f.mu.Unlock()
			return f.MemStore.Save(ctx, k, c)
		}}
	}},
	"its lock excludes nobody": {"Lock", func() auth.Store {
		return &flaw{lock: func(_ *flaw, ctx context.Context, _ auth.Key) (func(), error) { return func() {}, ctx.Err() }}
	}},
	"its lock is one for all": {"Lock", func() auth.Store {
		return &flaw{lock: func(f *flaw, ctx context.Context, k auth.Key) (func(), error) {
			if k.Account != "" {
				return nil, &auth.StoreError{Op: auth.OpLock, Reason: auth.ErrStoreLocked}
			}
			return f.MemStore.Lock(ctx, k)
		}}
	}},
	"its errors tell all": {"NothingToKeep", func() auth.Store {
		return &flaw{save: func(f *flaw, ctx context.Context, k auth.Key, c auth.Credential) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			err := f.MemStore.Save(ctx, k, c)
			if err != nil {
				return &auth.StoreError{Op: auth.OpSave, Reason: auth.ErrStoreFailed, Err: errors.New("in place of " + f.last.AccessToken)}
			}
			f.last = c
			return nil
		}}
	}},
}

const flawed = "HEED_TEST_FLAWED_STORE"

// TestFlawed fails, in a process of its own.
func TestFlawed(t *testing.T) {
	f, ok := flaws[os.Getenv(flawed)]
	if !ok {
		t.Skip("for child processes")
	}
	storetest.Run(t, f.store)
}

func TestRunFindsFlaws(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(flaws)) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFlawed$")
		cmd.Env = append(os.Environ(), flawed+"="+name, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--- FAIL: TestFlawed/"+flaws[name].check) {
			t.Errorf("a store of which %s passes %s: %v\n%s", name, flaws[name].check, err, out)
		}
	}
}

func TestRunPassesAFlawlessStore(t *testing.T) {
	storetest.Run(t, func() auth.Store { return &flaw{} })
}
