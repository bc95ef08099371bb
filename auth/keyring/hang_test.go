package keyring_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/keyring"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

func newClock() *fakes.Clock { return fakes.NewClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)) }

// calls lists the methods that ask the keyring.
var calls = map[string]struct {
	hangsIn string
	call    func(*keyring.Store, context.Context) error
}{
	"Load": {"get", func(s *keyring.Store, ctx context.Context) error {
		_, err := s.Load(ctx, key)
		return err
	}},
	"Save":   {"get", func(s *keyring.Store, ctx context.Context) error { return s.Save(ctx, key, login) }},
	"Delete": {"delete", func(s *keyring.Store, ctx context.Context) error { return s.Delete(ctx, key) }},
	"Probe":  {"set", func(s *keyring.Store, ctx context.Context) error { return s.Probe(ctx) }},
}

func TestBoundedInTime(t *testing.T) {
	for name, tt := range calls {
		t.Run(name, func(t *testing.T) {
			r, clock := new(ring), newClock()
			s := &keyring.Store{Dir: t.TempDir(), Ring: r, Clock: clock}
			save(t, s)
			began, release := r.hangs(tt.hangsIn)
			defer release()

			for n := range 2 { // the second call waits for the first one's turn to end
				ended := make(chan error, 1)
				go func() { ended <- tt.call(s, t.Context()) }()
				if n == 0 {
					<-began
				}
				if name == "Delete" && n == 1 {
					if err := <-ended; err != nil { // the file is gone: there is nothing to ask for
						t.Error(err)
					}
					continue
				}
				armed, err := clock.Await(t.Context(), delay.KindStoreTimeout)
				if err != nil {
					t.Fatal(err)
				}
				if d := armed[0].Delay(); d != 3*time.Second {
					t.Errorf("bounded by %v", d)
				}
				clock.Advance(3 * time.Second)
				err = <-ended
				if !errors.Is(err, auth.ErrStoreUnavailable) || !strings.Contains(err.Error(), "no answer within 3s") {
					t.Errorf("%v", err)
				}
				if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the Store's bound looks like the caller's: %v", err)
				}
			}
			if n := len(began); n > 0 {
				t.Errorf("%d more calls were begun while one hung", n)
			}
			if left := clock.Armed(); len(left) > 0 {
				t.Errorf("timers left: %v", left)
			}

			release()
			r.fails(nil)
			save(t, s) // waits for the turn
			if _, err := s.Load(t.Context(), key); err != nil {
				t.Errorf("after the keyring has come round: %v", err)
			}
		})
	}
}

func TestHonoursItsContext(t *testing.T) {
	for name, tt := range calls {
		t.Run(name, func(t *testing.T) {
			r, clock := new(ring), newClock()
			s := &keyring.Store{Dir: t.TempDir(), Ring: r, Clock: clock}
			save(t, s)
			began, release := r.hangs(tt.hangsIn)
			defer release()
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- tt.call(s, ctx) }()
			<-began
			why := errors.New("enough")
			cancel(why)
			err := <-ended
			if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || !errors.Is(err, auth.ErrStoreFailed) {
				t.Error(err)
			}
			if left := clock.Armed(); len(left) > 0 {
				t.Errorf("timers left: %v", left)
			}
		})
	}
}

// A Set that was given up may still be done. Until it is, nobody else must seal anything with another key.
func TestHangingSetKeepsItsLock(t *testing.T) {
	r, dir, clock := new(ring), t.TempDir(), newClock()
	first := &keyring.Store{Dir: dir, Ring: r, Clock: clock}
	began, release := r.hangs("set")
	defer release()
	ended := make(chan error, 1)
	go func() { ended <- first.Save(t.Context(), key, login) }()
	<-began
	clock.Advance(3 * time.Second)
	if err := <-ended; !errors.Is(err, auth.ErrStoreUnavailable) {
		t.Fatal(err)
	}

	second := &keyring.Store{Dir: dir, Ring: r, Clock: clock} // as another process
	go func() { ended <- second.Save(t.Context(), key, login) }()
	if _, err := clock.Await(t.Context(), delay.KindStoreTimeout, delay.KindStoreLock); err != nil {
		t.Fatal(err)
	}
	if n := len(began); n > 0 {
		t.Error("the second process has set a key as well")
	}
	r.fails(nil)
	release()
	for done := false; !done; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
			clock.FireNext(delay.KindStoreLock)
		}
	}
	if _, err := second.Load(t.Context(), key); err != nil {
		t.Error(err)
	}
}

func TestPolicyWithAKeyringThatHangs(t *testing.T) {
	r, clock := new(ring), newClock()
	began, release := r.hangs("set")
	defer release()
	p := auth.StorePolicy{
		Keyring: &keyring.Store{Dir: t.TempDir(), Ring: r, Clock: clock},
		File:    &auth.FileStore{Dir: t.TempDir()},
		Env:     &auth.EnvStore{Variable: "HEED_TEST_NO_SUCH_VARIABLE"},
		Clock:   clock,
	}
	start := clock.Now()
	chosen := make(chan auth.Choice, 1)
	go func() {
		c, err := p.Choose(t.Context(), key)
		if err != nil {
			t.Error(err)
		}
		chosen <- c
	}()
	<-began
	clock.Advance(3 * time.Second)
	c := <-chosen
	if c.Name != auth.InFile || !errors.Is(c.Err, auth.ErrStoreUnavailable) {
		t.Errorf("%v: %v", c, c.Err)
	}
	if took := clock.Since(start); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
}
