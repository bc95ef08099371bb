package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/heed-sdk/heed/auth"
)

// concurrent saves and loads from several goroutines: a login is always whole, and always there.
func concurrent(t *testing.T, s auth.Store) {
	const writers, readers, rounds = 4, 4, 8
	// Both halves of a login say which one it is, and no two are equally long.
	login := func(n int) auth.Credential {
		half := fmt.Sprintf("%d-%s", n, strings.Repeat("z", 100*n))
		return auth.Credential{AccessToken: half, RefreshToken: half}
	}
	save(t, s, key, login(0))
	var writing, reading sync.WaitGroup
	var written atomic.Bool
	for w := range writers {
		writing.Go(func() {
			for round := range rounds {
				if err := s.Save(t.Context(), key, login(w+round)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range readers {
		reading.Go(func() {
			for last := false; !last; {
				last = written.Load() // one more look when all is written
				c, err := s.Load(t.Context(), key)
				if err != nil {
					t.Error(err)
				} else if c.AccessToken != c.RefreshToken {
					t.Error("a login is made up of two")
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	writing.Wait()
	written.Store(true)
	reading.Wait()
}

func lock(t *testing.T, s auth.Store) {
	l, ok := s.(auth.Locker)
	if !ok {
		t.Skip("no auth.Locker")
	}
	unlock, err := l.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}

	other := auth.Key{Issuer: key.Issuer, ClientID: key.ClientID, Account: "other"}
	unlockOther, err := l.Lock(t.Context(), other)
	if err != nil {
		t.Fatalf("the lock of one login keeps that of another one back: %v", err)
	}
	unlockOther()
	save(t, s, key, plain("while locked")) // who refreshes saves under the lock

	wait := func() (cancel func(), ended <-chan error) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			unlock, err := l.Lock(ctx, auth.Key{Issuer: key.Issuer + "/", ClientID: key.ClientID})
			if err == nil {
				unlock()
			}
			done <- err
		}()
		return stop, done
	}
	cancel, ended := wait()
	yield()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Lock of what another one holds, until its context ended: %v", err)
	}

	unlock()
	unlock() // no matter
	again, err := l.Lock(t.Context(), key)
	if err != nil {
		t.Fatalf("the lock was not let go of: %v", err)
	}
	unlock() // the first one's, which must not let go of the second
	cancel, ended = wait()
	yield()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("an unlock that was called once more has let go of another one's lock: %v", err)
	}
	again()

	var holders, most atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				unlock, err := l.Lock(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n > 1 {
					most.Store(n)
				}
				yield()
				holders.Add(-1)
				unlock()
			}
		})
	}
	all.Wait()
	if n := most.Load(); n > 1 {
		t.Errorf("%d held the lock at once", n)
	}
}

// yield gives the other goroutines time to do what they must not. It takes none of the clock's.
func yield() {
	for range 200 {
		runtime.Gosched()
	}
}

func probe(t *testing.T, s auth.Store) {
	p, ok := s.(auth.Prober)
	if !ok {
		t.Skip("no auth.Prober")
	}
	if err := p.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := s.Load(t.Context(), key)
	wants(t, err, auth.OpLoad, auth.ErrStoreNotFound)
	save(t, s, key, full())
	if err := p.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text(load(t, s, key)) != text(full()) {
		t.Error("Probe has changed a login")
	}
}
