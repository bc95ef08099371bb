package keyring

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
	system "github.com/zalando/go-keyring"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/internal/ownfile"
	"github.com/heed-sdk/heed/delay"
)

const (
	defaultService = "heed"
	defaultTimeout = 3 * time.Second
	maxStored      = 1 << 20 // as in auth.FileStore
	maxSealed      = 2 * maxStored
)

// Store keeps logins in files that are sealed with keys of the keyring. The zero value uses the operating system's keyring
// and the default directory. A Store must not be copied after its first use.
type Store struct {
	// Dir is the directory of the sealed files and the locks. If it is empty, it is that of auth.FileStore.
	Dir string
	// Service is the name under which the keyring shows the entries. If it is empty, it is heed.
	Service string
	// Ring is the keyring. If it is nil, it is the operating system's.
	Ring Ring
	// Timeout bounds what the keyring may take in each call. If it is zero, it is 3 s; a longer one leaves the user time
	// to answer a prompt.
	Timeout time.Duration
	// Clock times it. If it is nil, it is the real one.
	Clock clock.Clock

	once sync.Once
	turn chan struct{} // held by the goroutine that is with the ring
}

var (
	_ auth.Store  = (*Store)(nil)
	_ auth.Locker = (*Store)(nil)
	_ auth.Prober = (*Store)(nil)
)

// Load opens the sealed file of a key. Without a file it does not ask the keyring.
func (s *Store) Load(ctx context.Context, key auth.Key) (auth.Credential, error) {
	c, err := s.load(ctx, key)
	return c, storeError(auth.OpLoad, err)
}

func (s *Store) load(ctx context.Context, key auth.Key) (c auth.Credential, err error) {
	dir, key, err := s.begin(ctx, key)
	if err != nil {
		return c, err
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	for tries := 0; ; tries++ {
		data, err := dir.Read(fileName(key), maxSealed)
		if err != nil {
			return c, err
		}
		f, err := parseSealed(data)
		if err != nil {
			return c, err
		}
		a := s.ask(ctx, func(r Ring) answer { return s.key(r, key) })
		if errors.Is(a.err, system.ErrNotFound) {
			a.err = errOtherKey
		}
		var plain []byte
		if a.err == nil {
			plain, a.err = open(a.key, key, f)
		}
		// Somebody may have logged out and in again between the two looks, so that a second one is due.
		if errors.Is(a.err, errOtherKey) && tries == 0 {
			continue
		}
		if a.err != nil {
			return c, a.err
		}
		return c, c.UnmarshalJSON(plain)
	}
}

// Save seals the login of a key, and makes the key that seals it if the keyring has none.
func (s *Store) Save(ctx context.Context, key auth.Key, c auth.Credential) error {
	return storeError(auth.OpSave, s.save(ctx, key, c))
}

func (s *Store) save(ctx context.Context, key auth.Key, c auth.Credential) error {
	dir, key, err := s.begin(ctx, key)
	if err != nil {
		return err
	}
	plain, err := c.MarshalJSON()
	if err != nil {
		return err
	}
	if len(plain) > maxStored {
		return auth.ErrStoreTooLarge
	}
	within, cancel := s.bound(ctx)
	defer cancel()
	// Under one lock with Delete and the other Saves: a file must not be sealed with a key that is being replaced.
	a := s.ask(within, func(r Ring) answer {
		return s.locked(within, dir, key, func() answer { return s.ensureKey(r, key) })
	})
	if a.err != nil {
		return a.err
	}
	defer a.unlock()
	sealed, err := seal(a.key, key, plain)
	if err != nil {
		return err
	}
	return dir.Write(ctx, fileName(key), sealed)
}

// Delete removes the sealed file of a key, and then the entry that opens it. If the keyring fails, the error says so; the
// login is gone all the same.
func (s *Store) Delete(ctx context.Context, key auth.Key) error {
	return storeError(auth.OpDelete, s.delete(ctx, key))
}

func (s *Store) delete(ctx context.Context, key auth.Key) error {
	dir, key, err := s.begin(ctx, key)
	if err != nil {
		return err
	}
	// Without a file there is nothing to log out of, and no reason to have the user asked for a password.
	if _, err := dir.Read(fileName(key), maxSealed); ownfile.Class(err) == ownfile.NotFound {
		return dir.Remove(fileName(key))
	}
	within, cancel := s.bound(ctx)
	defer cancel()
	a := s.ask(within, func(r Ring) answer {
		return s.locked(within, dir, key, func() answer {
			if err := dir.Remove(fileName(key)); err != nil {
				return answer{err: err}
			}
			if err := r.Delete(s.service(), key.Name()); !errors.Is(err, system.ErrNotFound) {
				return answer{err: ringFailure(err)}
			}
			return answer{}
		})
	})
	if a.unlock != nil {
		a.unlock()
	}
	if a.err != nil {
		// The lock, or an earlier call that still hangs, may have kept the work from being begun.
		return errors.Join(a.err, dir.Remove(fileName(key)))
	}
	return nil
}

// Lock waits for the lock of a key, which is that of an auth.FileStore in the same directory.
func (s *Store) Lock(ctx context.Context, key auth.Key) (unlock func(), err error) {
	dir, key, err := s.begin(ctx, key)
	if err != nil {
		return nil, storeError(auth.OpLock, err)
	}
	unlock, err = dir.Lock(ctx, key.Name()+".lock")
	return unlock, storeError(auth.OpLock, err)
}

// Probe puts an entry into the keyring, reads it and takes it out again, and tries the directory.
func (s *Store) Probe(ctx context.Context) error { return storeError(auth.OpProbe, s.probe(ctx)) }

func (s *Store) probe(ctx context.Context) error {
	if err := delay.Ended(ctx); err != nil {
		return err
	}
	dir, err := s.dir()
	if err != nil {
		return err
	}
	if err := dir.Probe(ctx); err != nil {
		return err
	}
	within, cancel := s.bound(ctx)
	defer cancel()
	// Under a lock: all processes use the same entry, so that one that is killed leaves no more than that.
	return s.ask(within, func(r Ring) answer {
		unlock, err := lockIfPossible(within, dir, "probe.lock")
		if err != nil {
			return answer{err: err}
		}
		defer unlock()
		return answer{err: tryOut(r, s.service())}
	}).err
}

func tryOut(r Ring, service string) error {
	const user, secret = "probe", "heed was here"
	if err := r.Set(service, user, secret); err != nil {
		return ringFailure(err)
	}
	got, err := r.Get(service, user)
	if err != nil {
		return ringFailure(err)
	}
	if got != secret {
		return errNotKept
	}
	return ringFailure(r.Delete(service, user))
}

// key gets the sealing key of a login.
func (s *Store) key(r Ring, login auth.Key) answer {
	entry, err := r.Get(s.service(), login.Name())
	if err != nil {
		return answer{err: ringFailure(err)}
	}
	k, ok := parseEntry(entry)
	if !ok {
		return answer{err: system.ErrNotFound} // not ours: a login makes a new one
	}
	return answer{key: k}
}

// ensureKey gets the sealing key of a login, or makes one.
func (s *Store) ensureKey(r Ring, login auth.Key) answer {
	a := s.key(r, login)
	if !errors.Is(a.err, system.ErrNotFound) {
		return a
	}
	k := newSealingKey()
	if err := r.Set(s.service(), login.Name(), k.entry()); err != nil {
		return answer{err: ringFailure(err)}
	}
	// What is read is what is used: a keyring that cuts or changes an entry must not cost a login.
	a = s.key(r, login)
	if errors.Is(a.err, system.ErrNotFound) {
		a.err = errNotKept
	}
	return a
}

// locked works under the lock of a login's sealing key, and hands the lock over with the answer.
func (s *Store) locked(ctx context.Context, dir ownfile.Dir, login auth.Key, work func() answer) answer {
	unlock, err := lockIfPossible(ctx, dir, login.Name()+".key.lock")
	if err != nil {
		return answer{err: err}
	}
	a := work()
	if a.err != nil {
		unlock()
		return a
	}
	a.unlock = unlock
	return a
}

// lockIfPossible goes without a lock where there are none to be had.
func lockIfPossible(ctx context.Context, dir ownfile.Dir, name string) (unlock func(), err error) {
	unlock, err = dir.Lock(ctx, name)
	if ownfile.Class(err) == ownfile.Unavailable {
		return func() {}, nil
	}
	return unlock, err
}

func (s *Store) begin(ctx context.Context, key auth.Key) (ownfile.Dir, auth.Key, error) {
	if err := delay.Ended(ctx); err != nil {
		return ownfile.Dir{}, key, err
	}
	key, err := key.Canonical()
	if err != nil {
		return ownfile.Dir{}, key, err
	}
	dir, err := s.dir()
	return dir, key, err
}

func (s *Store) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	return delay.TimersOn(s.Clock).WithTimeout(ctx, delay.KindStoreTimeout, timeout)
}

func (s *Store) dir() (ownfile.Dir, error) {
	path := s.Dir
	if path == "" {
		var err error
		if path, err = ownfile.DefaultPath(); err != nil {
			return ownfile.Dir{}, err
		}
	}
	return ownfile.Dir{Path: path, Timers: delay.TimersOn(s.Clock)}, nil
}

func (s *Store) service() string {
	if s.Service == "" {
		return defaultService
	}
	return s.Service
}

func fileName(key auth.Key) string { return key.Name() + ".sealed" }

// storeError classes the failure of a method.
func storeError(op auth.StoreOp, err error) error {
	if err == nil {
		return nil
	}
	if reason, ok := errors.AsType[auth.StoreReason](err); ok { // nothing to say but the reason
		return &auth.StoreError{Op: op, Reason: reason}
	}
	reason := auth.StoreReason(ownfile.Class(err))
	if failed, ok := errors.AsType[*ringError](err); ok {
		reason = failed.reason
	}
	switch {
	case errors.Is(err, errOtherKey):
		reason = auth.ErrStoreNotFound
	case reason == auth.ErrStoreNotFound && op != auth.OpLoad:
		reason = auth.ErrStoreFailed // a file or an entry was gone that had just been written
	case reason == auth.ErrStoreNotFound:
		err = nil // the name of a file that is not there helps nobody
	}
	return &auth.StoreError{Op: op, Reason: reason, Err: err}
}
