package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// StorePolicy says where a login is kept: in the keyring, or, unless that is required, in a file where there is no
// keyring. A token in the environment goes before both. What it chooses it says; nothing falls back in silence.
type StorePolicy struct {
	// Keyring is the store that is preferred, as of package keyring. If it is nil, there is none.
	Keyring Store
	// RequireKeyring makes Choose fail where the keyring cannot be used, and Find leave the file alone.
	RequireKeyring bool
	// File is the store to fall back to. If it is nil, it is a FileStore in the default directory.
	File Store
	// Env is the store that is asked first. If it is nil, it is an EnvStore on EnvVariable.
	Env Store
	// Timeout bounds the probe of the keyring in Choose. If it is zero, it is 3 s.
	Timeout time.Duration
	// Clock times it. If it is nil, it is the real one.
	Clock clock.Clock
}

// The names of the stores that a StorePolicy chooses from.
const (
	InKeyring = "keyring"
	InFile    = "file"
	InEnv     = "env"
)

// Choice is the store that a StorePolicy has chosen. Show it to the user: it says where the token is, or will be.
type Choice struct {
	Name  string // InKeyring, InFile or InEnv
	Store Store
	Why   string // half a sentence for the user
	Err   error  // why a store that is preferred was passed over, if one was
}

// String says where the token is, and why.
func (c Choice) String() string { return fmt.Sprintf("%s: %s", c.Name, c.Why) }

// Choose says where the token of a new login will be kept. Ask before the login begins, so that it is not lost to a
// missing keyring: the stores that are a [Prober] are probed, a keyring for as long as Timeout. A choice of InEnv means
// that no login is needed. The error is a [*StoreError].
func (p *StorePolicy) Choose(ctx context.Context, key Key) (Choice, error) {
	if _, err := p.env().Load(ctx, key); err == nil {
		return p.fromEnv(), nil
	} else if !errors.Is(err, ErrStoreNotFound) {
		return Choice{}, err
	}
	timeout := p.Timeout
	if timeout <= 0 {
		timeout = 3 * time.Second
	}
	within, cancel := delay.TimersOn(p.Clock).WithTimeout(ctx, delay.KindStoreTimeout, timeout)
	defer cancel()
	passedOver := errors.New("no keyring was given")
	if p.Keyring != nil {
		if passedOver = probe(within, p.Keyring); passedOver == nil {
			return Choice{Name: InKeyring, Store: p.Keyring, Why: "the keyring works"}, nil
		}
	}
	if err := delay.Ended(ctx); err != nil {
		return Choice{}, storeError(OpProbe, err)
	}
	if p.RequireKeyring {
		if p.Keyring == nil {
			passedOver = &StoreError{Op: OpProbe, Reason: ErrStoreUnavailable, Err: passedOver}
		}
		return Choice{}, passedOver
	}
	// A keyring that hangs has used up the time; a file does not take any to speak of.
	if err := probe(ctx, p.file()); err != nil {
		return Choice{}, err
	}
	c := Choice{Name: InFile, Store: p.file(), Why: "there is no keyring to keep it in, so it is kept unencrypted, for your eyes only"}
	if p.Keyring != nil {
		c.Why, c.Err = "the keyring cannot be used, so it is kept unencrypted, for your eyes only", passedOver
	}
	return c, nil
}

func probe(ctx context.Context, s Store) error {
	if p, ok := s.(Prober); ok {
		return p.Probe(ctx)
	}
	return nil
}

// Find looks for a login where one may be kept: in the environment, in the keyring, and in the file. Without one its
// error is ErrStoreNotFound, unless a store failed that might have had it; then it is that store's.
func (p *StorePolicy) Find(ctx context.Context, key Key) (Choice, Credential, error) {
	c, err := p.env().Load(ctx, key)
	if err == nil {
		return p.fromEnv(), c, nil
	}
	if !errors.Is(err, ErrStoreNotFound) {
		return Choice{}, Credential{}, err
	}
	failed := err
	if p.Keyring != nil {
		if c, err = p.Keyring.Load(ctx, key); err == nil {
			return Choice{Name: InKeyring, Store: p.Keyring, Why: "the login is kept there"}, c, nil
		}
		failed = err
	}
	if !p.RequireKeyring {
		c, err = p.file().Load(ctx, key)
		if err == nil {
			choice := Choice{Name: InFile, Store: p.file(), Why: "the login is kept there"}
			if !errors.Is(failed, ErrStoreNotFound) {
				choice.Err = failed
			}
			return choice, c, nil
		}
		if errors.Is(failed, ErrStoreNotFound) {
			failed = err
		}
	}
	return Choice{}, Credential{}, failed
}

// Forget deletes a login from the keyring and from the file, except from the store named keep. After a login, with the
// name of the [Choice] for keep, it removes what an earlier login left in the other store; to log out, keep is "".
func (p *StorePolicy) Forget(ctx context.Context, key Key, keep string) error {
	var inKeyring, inFile error
	if p.Keyring != nil && keep != InKeyring {
		inKeyring = p.Keyring.Delete(ctx, key)
	}
	if keep != InFile {
		inFile = p.file().Delete(ctx, key)
	}
	return errors.Join(inKeyring, inFile)
}

func (p *StorePolicy) file() Store {
	if p.File == nil {
		return &FileStore{Clock: p.Clock}
	}
	return p.File
}

func (p *StorePolicy) env() Store {
	if p.Env == nil {
		return &EnvStore{}
	}
	return p.Env
}

func (p *StorePolicy) fromEnv() Choice {
	return Choice{Name: InEnv, Store: p.env(), Why: "the environment holds a token, which goes before every stored one"}
}
