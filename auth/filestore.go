package auth

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/auth/internal/ownfile"
	"github.com/heed-sdk/heed/delay"
)

// maxStored bounds what is kept of a login. A token response is no larger.
const maxStored = 1 << 20

// FileStore keeps each login in a file that only its owner can read, and each lock in a file beside it. It encrypts
// nothing: who can read the user's files can read the tokens; package keyring does better where there is a keyring.
//
// A file is made with mode 0600 in a directory with mode 0700, and replaced in one step after it was flushed to the
// disk. A file that others can read, or that another user owns, is refused, as is a directory that others can write to.
// On Windows the access list of the user's configuration directory stands in for modes and owners.
type FileStore struct {
	// Dir is the directory of the files. If it is empty, it is heed in the user's configuration directory, where
	// XDG_CONFIG_HOME is respected.
	Dir string
	// Clock times the tries for a lock. If it is nil, it is the real one.
	Clock clock.Clock
}

var (
	_ Store  = (*FileStore)(nil)
	_ Locker = (*FileStore)(nil)
	_ Prober = (*FileStore)(nil)
)

// fileForm is the content of a file. The key keeps a file that was copied to another name from sending a token to the
// wrong server.
type fileForm struct {
	Issuer     string          `json:"issuer"`
	ClientID   string          `json:"client_id"`
	Account    string          `json:"account,omitempty"`
	Credential json.RawMessage `json:"credential"`
}

// Path returns the name of the file that holds, or would hold, the login of a key.
func (s *FileStore) Path(key Key) (string, error) {
	dir, err := s.dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir.Path, fileName(key)), nil
}

// Load reads the login of a key.
func (s *FileStore) Load(ctx context.Context, key Key) (Credential, error) {
	c, err := s.load(ctx, key)
	return c, storeError(OpLoad, err)
}

func (s *FileStore) load(ctx context.Context, key Key) (c Credential, err error) {
	if key, err = beginOp(ctx, key); err != nil {
		return c, err
	}
	dir, err := s.dir()
	if err != nil {
		return c, err
	}
	data, err := dir.Read(fileName(key), maxStored)
	if err != nil {
		return c, err
	}
	var f fileForm
	if json.Unmarshal(data, &f) != nil { // its error may quote the data
		return c, ErrMalformedCredential
	}
	if kept := (Key{f.Issuer, f.ClientID, f.Account}); kept != key {
		return c, ErrMalformedCredential
	}
	return c, c.UnmarshalJSON(f.Credential)
}

// Save replaces the login of a key.
func (s *FileStore) Save(ctx context.Context, key Key, c Credential) error {
	return storeError(OpSave, s.save(ctx, key, c))
}

func (s *FileStore) save(ctx context.Context, key Key, c Credential) (err error) {
	if key, err = beginOp(ctx, key); err != nil {
		return err
	}
	kept, err := c.MarshalJSON()
	if err != nil {
		return err
	}
	data, err := json.Marshal(fileForm{key.Issuer, key.ClientID, key.Account, kept})
	if err != nil {
		return err
	}
	if len(data) >= maxStored {
		return ErrStoreTooLarge
	}
	dir, err := s.dir()
	if err != nil {
		return err
	}
	return dir.Write(ctx, fileName(key), append(data, '\n'))
}

// Delete removes the file of a key. The empty file of its lock stays, see Lock.
func (s *FileStore) Delete(ctx context.Context, key Key) error {
	key, err := beginOp(ctx, key)
	if err != nil {
		return storeError(OpDelete, err)
	}
	dir, err := s.dir()
	if err == nil {
		err = dir.Remove(fileName(key))
	}
	return storeError(OpDelete, err)
}

// Lock waits for the lock of a key: a lock of the operating system on an empty file whose name derives from the key. The
// file is never removed, because two processes could then hold locks on two files of the same name.
func (s *FileStore) Lock(ctx context.Context, key Key) (unlock func(), err error) {
	if key, err = beginOp(ctx, key); err != nil {
		return nil, storeError(OpLock, err)
	}
	dir, err := s.dir()
	if err != nil {
		return nil, storeError(OpLock, err)
	}
	unlock, err = dir.Lock(ctx, key.Name()+".lock")
	return unlock, storeError(OpLock, err)
}

// Probe writes a file and removes it again.
func (s *FileStore) Probe(ctx context.Context) error {
	dir, err := s.dir()
	if err == nil {
		err = dir.Probe(ctx)
	}
	return storeError(OpProbe, err)
}

func (s *FileStore) dir() (ownfile.Dir, error) {
	path := s.Dir
	if path == "" {
		var err error
		if path, err = ownfile.DefaultPath(); err != nil {
			return ownfile.Dir{}, err
		}
	}
	return ownfile.Dir{Path: path, Timers: delay.TimersOn(s.Clock)}, nil
}

func fileName(key Key) string { return key.Name() + ".json" }

// beginOp is how every method of a store begins.
func beginOp(ctx context.Context, key Key) (Key, error) {
	if err := delay.Ended(ctx); err != nil {
		return Key{}, err
	}
	return key.Canonical()
}

// storeError classes the failure of a store's method.
func storeError(op StoreOp, err error) error {
	if err == nil {
		return nil
	}
	if reason, ok := errors.AsType[StoreReason](err); ok { // nothing to say but the reason
		return &StoreError{Op: op, Reason: reason}
	}
	reason := StoreReason(ownfile.Class(err))
	switch {
	case reason == ErrStoreNotFound && op != OpLoad:
		reason = ErrStoreFailed // a file was gone that had just been written
	case reason == ErrStoreNotFound:
		err = nil // the name of a file that is not there helps nobody
	}
	return &StoreError{Op: op, Reason: reason, Err: err}
}
