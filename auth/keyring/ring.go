package keyring

import (
	"context"
	"errors"
	"fmt"

	system "github.com/zalando/go-keyring"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
)

// Ring is what a Store needs of a keyring. Its methods may block; an entry that is not there is go-keyring's ErrNotFound.
type Ring interface {
	Get(service, user string) (string, error)
	Set(service, user, secret string) error
	Delete(service, user string) error
}

// systemRing is the operating system's keyring.
type systemRing struct{}

func (systemRing) Get(service, user string) (string, error) {
	if err := reachable(); err != nil {
		return "", err
	}
	return system.Get(service, user)
}

func (systemRing) Set(service, user, secret string) error {
	if err := reachable(); err != nil {
		return err
	}
	return system.Set(service, user, secret)
}

func (systemRing) Delete(service, user string) error {
	if err := reachable(); err != nil {
		return err
	}
	return system.Delete(service, user)
}

// answer is what work with the ring comes to: a sealing key, and the lock under which it is to be used.
type answer struct {
	key    sealingKey
	unlock func()
	err    error
}

// ask works with the ring in a goroutine, one at a time, until ctx ends. A goroutine that is given up keeps its turn and
// its lock until the ring lets go of it: whatever the ring still does for it, it does before anybody else's work.
func (s *Store) ask(ctx context.Context, work func(Ring) answer) answer {
	s.once.Do(func() { s.turn = make(chan struct{}, 1) })
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return answer{err: unanswered(ctx)}
	}
	ring := s.Ring
	if ring == nil {
		ring = systemRing{}
	}
	handed := make(chan answer) // without a buffer: either the caller has the answer or this goroutine does
	go func() {
		defer func() { <-s.turn }()
		a := work(ring)
		select {
		case handed <- a:
		case <-ctx.Done():
			if a.unlock != nil {
				a.unlock()
			}
		}
	}()
	select {
	case a := <-handed:
		if a.err != nil && ctx.Err() != nil {
			return answer{err: unanswered(ctx)} // whichever of the two came first
		}
		return a
	case <-ctx.Done():
		return answer{err: unanswered(ctx)}
	}
}

// unanswered says why a call was given up: the caller's context ended, or the Store's bound. The latter is no matter of
// the caller's context, and must not look like it to errors.Is.
func unanswered(ctx context.Context) error {
	if bound, ok := errors.AsType[*delay.TimeoutError](context.Cause(ctx)); ok && bound.Kind == delay.KindStoreTimeout {
		return &ringError{auth.ErrStoreUnavailable, fmt.Errorf("no answer within %v: it may be waiting to be unlocked", bound.After)}
	}
	return delay.Ended(ctx)
}

// ringError is a failure of the ring, classed.
type ringError struct {
	reason auth.StoreReason
	err    error
}

func (e *ringError) Error() string { return fmt.Sprintf("the keyring: %v", e.err) }
func (e *ringError) Unwrap() error { return e.err }

var errNotKept = &ringError{auth.ErrStoreFailed, errors.New("it did not give back what was put into it")}

func ringFailure(err error) error {
	if err == nil || errors.Is(err, system.ErrNotFound) {
		return err
	}
	return &ringError{reasonOf(err), err}
}
