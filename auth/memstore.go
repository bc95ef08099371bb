package auth

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/heed-sdk/heed/delay"
)

// MemStore keeps logins in memory, and forgets them with the process. The zero value is empty and ready for use.
type MemStore struct {
	mu    sync.Mutex
	kept  map[Key][]byte // in their JSON form: what comes back is what a file would give
	locks map[Key]chan struct{}
}

var (
	_ Store  = (*MemStore)(nil)
	_ Locker = (*MemStore)(nil)
	_ Prober = (*MemStore)(nil)
)

// Load returns the login of a key.
func (s *MemStore) Load(ctx context.Context, key Key) (c Credential, err error) {
	if key, err = beginOp(ctx, key); err != nil {
		return c, storeError(OpLoad, err)
	}
	s.mu.Lock()
	data, ok := s.kept[key]
	s.mu.Unlock()
	if !ok {
		return c, storeError(OpLoad, ErrStoreNotFound)
	}
	return c, storeError(OpLoad, c.UnmarshalJSON(data))
}

// Save keeps the login of a key until the process ends.
func (s *MemStore) Save(ctx context.Context, key Key, c Credential) error {
	key, err := beginOp(ctx, key)
	if err != nil {
		return storeError(OpSave, err)
	}
	data, err := c.MarshalJSON()
	if err != nil {
		return storeError(OpSave, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[Key][]byte{}
	}
	s.kept[key] = data
	return nil
}

// Delete forgets the login of a key.
func (s *MemStore) Delete(ctx context.Context, key Key) error {
	key, err := beginOp(ctx, key)
	if err != nil {
		return storeError(OpDelete, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, key)
	return nil
}

// Lock waits for the lock of a key, which excludes the other users of this MemStore.
func (s *MemStore) Lock(ctx context.Context, key Key) (unlock func(), err error) {
	if key, err = beginOp(ctx, key); err != nil {
		return nil, storeError(OpLock, err)
	}
	s.mu.Lock()
	if s.locks == nil {
		s.locks = map[Key]chan struct{}{}
	}
	if s.locks[key] == nil {
		s.locks[key] = make(chan struct{}, 1)
	}
	lock := s.locks[key]
	s.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return sync.OnceFunc(func() { <-lock }), nil
	case <-ctx.Done():
		return nil, &StoreError{Op: OpLock, Reason: ErrStoreLocked, Err: delay.Ended(ctx)}
	}
}

// Probe finds that there is memory.
func (s *MemStore) Probe(ctx context.Context) error { return storeError(OpProbe, delay.Ended(ctx)) }

// Format tells the type and no content, which package fmt would find without it.
func (s *MemStore) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "auth.MemStore") }
