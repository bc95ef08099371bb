package delay_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

func wait(d time.Duration) delay.Wait { return delay.Hop.Compose(d, none) }

// sleeping is a Sleep under way on a fake clock.
type sleeping struct {
	t     *testing.T
	clock *fakes.Clock
	done  chan error
}

func sleep(ctx context.Context, t *testing.T, c *fakes.Clock, p delay.Pause, w delay.Wait) *sleeping {
	p.Timers, p.Kind = c.Timers(), delay.KindRetry
	s := &sleeping{t, c, make(chan error, 1)}
	go func() { s.done <- p.Sleep(ctx, w) }()
	return s
}

// armed awaits the wait's timer, and checks its delay.
func (s *sleeping) armed(d time.Duration) {
	s.t.Helper()
	timers, err := s.clock.Await(s.t.Context(), delay.KindRetry)
	if err != nil {
		s.t.Fatal(err)
	}
	if timers[0].Delay() != d {
		s.t.Errorf("armed a timer of %v, want %v", timers[0].Delay(), d)
	}
}

// ended checks that the wait is over, with nothing left behind, and how it ended.
func (s *sleeping) ended(name string, want error) {
	s.t.Helper()
	if err := <-s.done; !errors.Is(err, want) || want == nil && err != nil {
		s.t.Errorf("%s: Sleep returned %v, want %v", name, err, want)
	}
	if left := s.clock.Armed(); len(left) > 0 {
		s.t.Errorf("%s: armed afterwards: %v", name, left)
	}
}

func TestSleep(t *testing.T) {
	c := fakes.NewClock(noon)
	s := sleep(t.Context(), t, c, delay.Pause{}, wait(10*sec))
	s.armed(10 * sec)
	c.Advance(10*sec - 1)
	s.armed(10 * sec)
	c.Advance(1)
	s.ended("10s", nil)

	for _, d := range []time.Duration{0, -sec} {
		w := wait(0)
		w.For = d
		sleep(t.Context(), t, c, delay.Pause{}, w).ended("no wait", nil)
	}
}

func TestSleepOnTheRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := delay.Pause{Timers: delay.TimersOn(clock.New()), Kind: delay.KindRetry}
		if err := p.Sleep(t.Context(), wait(10*sec)); err != nil || time.Since(start) != 10*sec {
			t.Errorf("10s took %v: %v", time.Since(start), err)
		}
	})
}

func TestSleepTellsTheHook(t *testing.T) {
	c := fakes.NewClock(noon)
	var told []delay.Wait
	p := delay.Pause{OnWait: func(w delay.Wait) {
		if armed := c.Armed(); len(armed) > 0 {
			t.Errorf("the wait has begun before the hook: %v", armed)
		}
		told = append(told, w)
	}}
	w := delay.Hop.Compose(sec, delay.Asked(10*sec))
	s := sleep(t.Context(), t, c, p, w)
	s.armed(10 * sec)
	c.Advance(10 * sec)
	s.ended("10s", nil)
	w.Until = noon.Add(10 * sec)
	if len(told) != 1 || told[0] != w {
		t.Errorf("the hook was told %+v, want once %+v", told, w)
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	c := fakes.NewClock(noon)
	stopped := errors.New("stopped")
	for name, cancelled := range map[string]func() (context.Context, func()){
		"cancelled": func() (context.Context, func()) { return context.WithCancel(context.Background()) },
		"with a cause": func() (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(context.Background())
			return ctx, func() { cancel(stopped) }
		},
	} {
		check := func(when string, err error) {
			t.Helper()
			if !errors.Is(err, context.Canceled) || errors.Is(err, stopped) != (name == "with a cause") || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s %s: %v", name, when, err)
			}
			if left := c.Armed(); len(left) > 0 {
				t.Errorf("%s %s: armed afterwards: %v", name, when, left)
			}
		}

		ctx, cancel := cancelled()
		s := sleep(ctx, t, c, delay.Pause{}, wait(time.Hour))
		s.armed(time.Hour)
		cancel()
		check("while it waits", <-s.done)

		hooked := false
		p := delay.Pause{Timers: c.Timers(), OnWait: func(delay.Wait) { hooked = true }}
		check("before the wait", p.Sleep(ctx, wait(time.Hour)))
		check("before no wait", p.Sleep(ctx, wait(0)))
		if hooked {
			t.Errorf("%s: the hook was told of a wait that did not begin", name)
		}

		for _, d := range []time.Duration{0, time.Hour} {
			ctx, cancel := cancelled()
			p.OnWait = func(delay.Wait) { cancel() }
			check("in the hook", p.Sleep(ctx, wait(d)))
		}
	}
}

// TestCancellationWinsTies: at the very instant at which the wait ends, and whichever channel a select would pick.
func TestCancellationWinsTies(t *testing.T) {
	c := fakes.NewClock(noon)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		c.Timers().After(delay.KindHealth, 10*sec, cancel) // older, so it fires first
		s := sleep(ctx, t, c, delay.Pause{}, wait(10*sec))
		if _, err := c.Await(t.Context(), delay.KindHealth, delay.KindRetry); err != nil {
			t.Fatal(err)
		}
		c.Advance(10 * sec)
		s.ended("a tie with the timer", context.Canceled)

		ctx, cancel = context.WithCancel(t.Context())
		cut := make(chan struct{})
		close(cut)
		p := delay.Pause{Cut: cut, OnWait: func(delay.Wait) { cancel() }}
		sleep(ctx, t, c, p, wait(10*sec)).ended("a tie with a cut", context.Canceled)
	}
}

func TestSleepIsCut(t *testing.T) {
	c := fakes.NewClock(noon)
	cut := make(chan struct{}, 1)
	s := sleep(t.Context(), t, c, delay.Pause{Cut: cut}, wait(time.Hour))
	s.armed(time.Hour)
	cut <- struct{}{}
	s.ended("something received", nil)
	s = sleep(t.Context(), t, c, delay.Pause{Cut: cut}, wait(time.Hour))
	s.armed(time.Hour)
	close(cut)
	s.ended("closed", nil)
	if !c.Now().Equal(noon) {
		t.Errorf("a cut took until %v", c.Now())
	}
}

// TestSleepAsksBothClocks: the wall clock is believed when it moved on, by less than the wait.
func TestSleepAsksBothClocks(t *testing.T) {
	type leg struct {
		step    time.Duration // of the wall clock, while the timer runs
		advance time.Duration // of both clocks, and the delay of the timer that is armed
	}
	tests := []struct {
		name string
		legs []leg
	}{
		{"in step", []leg{{0, 10 * sec}}},
		{"the wall is 4s behind", []leg{{-4 * sec, 10 * sec}, {0, 4 * sec}}},
		{"the wall is 1ns behind", []leg{{-1, 10 * sec}, {0, 1}}},
		{"the wall has moved by 1ns", []leg{{-10*sec + 1, 10 * sec}, {0, 10*sec - 1}}},
		{"at half speed", []leg{{-5 * sec, 10 * sec}, {-2500 * ms, 5 * sec}, {-1250 * ms, 2500 * ms}, {0, 1250 * ms}}},
		{"frozen", []leg{{-10 * sec, 10 * sec}}},
		{"frozen for the rest", []leg{{-4 * sec, 10 * sec}, {-4 * sec, 4 * sec}}},
		{"stepped back", []leg{{-time.Hour, 10 * sec}}},
		{"stepped back for the rest", []leg{{-4 * sec, 10 * sec}, {-time.Hour, 4 * sec}}},
		{"stepped back a little for the rest", []leg{{-4 * sec, 10 * sec}, {-5 * sec, 4 * sec}}},
		{"jumped", []leg{{time.Hour, 10 * sec}}},
		{"jumped for the rest", []leg{{-4 * sec, 10 * sec}, {time.Hour, 4 * sec}}},
	}
	for _, tt := range tests {
		c := fakes.NewClock(noon)
		hooks := 0
		s := sleep(t.Context(), t, c, delay.Pause{OnWait: func(delay.Wait) { hooks++ }}, wait(10*sec))
		for _, leg := range tt.legs {
			s.armed(leg.advance)
			c.StepWall(leg.step)
			c.Advance(leg.advance)
		}
		s.ended(tt.name, nil)
		if hooks != 1 {
			t.Errorf("%s: the hook was told %d times", tt.name, hooks)
		}
	}

	c := fakes.NewClock(noon)
	ctx, cancel := context.WithCancel(t.Context())
	s := sleep(ctx, t, c, delay.Pause{}, wait(10*sec))
	s.armed(10 * sec)
	c.StepWall(-4 * sec)
	c.Advance(10 * sec)
	s.armed(4 * sec)
	cancel()
	s.ended("cancelled in the rest", context.Canceled)
}

func TestSleepRefusesWhatTheDeadlineCuts(t *testing.T) {
	check := func(name string, p delay.Pause, ctx context.Context, deadline time.Time) {
		t.Helper()
		p.Kind = delay.KindRetry
		p.OnWait = func(delay.Wait) { t.Errorf("%s: the hook was told of a wait that does not begin", name) }
		start := p.Timers.Now()
		err := p.Sleep(ctx, delay.Hop.Compose(0, delay.Asked(10*sec)))
		tooLong, ok := errors.AsType[*delay.TooLongError](err)
		switch {
		case !ok:
			t.Errorf("%s: Sleep returned %v", name, err)
			return
		case !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
			t.Errorf("%s: %v is not a deadline exceeded", name, err)
		case tooLong.Wait.For != 10*sec || tooLong.Wait.Server != 10*sec || !tooLong.Wait.Until.Equal(start.Add(10*sec)) || !tooLong.Deadline.Equal(deadline):
			t.Errorf("%s: %+v", name, tooLong)
		case err.Error() != "the wait of 10s would end after the deadline: try again later or allow more time":
			t.Errorf("%s: %v", name, err)
		}
		if !p.Timers.Now().Equal(start) {
			t.Errorf("%s: it took %v", name, p.Timers.Now().Sub(start))
		}
	}

	synctest.Test(t, func(t *testing.T) {
		p := delay.Pause{Timers: delay.TimersOn(clock.New())}
		ctx, cancel := context.WithTimeout(t.Context(), 10*sec-1)
		defer cancel()
		check("a context's own deadline", p, ctx, time.Now().Add(10*sec-1))

		outer, cancel := context.WithTimeout(t.Context(), 4*sec)
		defer cancel()
		inner, cancel := p.Timers.WithTimeout(outer, delay.KindRequestTimeout, 7*sec)
		defer cancel()
		check("its own, earlier than the registry's", p, inner, time.Now().Add(4*sec))

		outer, cancel = p.Timers.WithTimeout(t.Context(), delay.KindRequestTimeout, 4*sec)
		defer cancel()
		inner, cancel = context.WithTimeout(outer, 7*sec)
		defer cancel()
		check("its own, later than the registry's", p, inner, time.Now().Add(4*sec))

		outer, cancel = p.Timers.WithTimeout(t.Context(), delay.KindRequestTimeout, 7*sec)
		defer cancel()
		inner, cancel = context.WithTimeout(outer, 4*sec)
		defer cancel()
		check("its own, earlier than the registry's around it", p, inner, time.Now().Add(4*sec))

		ctx, cancel = context.WithTimeout(t.Context(), 10*sec+1)
		defer cancel()
		if err := p.Sleep(ctx, wait(10*sec)); err != nil {
			t.Errorf("a deadline after the wait: %v", err)
		}
	})

	c := fakes.NewClock(noon)
	p := delay.Pause{Timers: c.Timers(), Kind: delay.KindRetry}
	for name, nested := range map[string][]time.Duration{
		"the registry's deadline":             {10*sec - 1},
		"the outer of two, which is earlier":  {4 * sec, 7 * sec},
		"the inner of two, which is earlier":  {7 * sec, 4 * sec},
		"the outer, the inner after the wait": {4 * sec, time.Hour},
		"the inner, the outer after the wait": {time.Hour, 4 * sec},
	} {
		ctx := t.Context()
		earliest := time.Hour
		for _, d := range nested {
			var cancel context.CancelFunc
			ctx, cancel = c.Timers().WithTimeout(ctx, delay.KindRequestTimeout, d)
			defer cancel()
			earliest = min(earliest, d)
		}
		check(name, p, ctx, noon.Add(earliest))
	}
}

// TestDeadlineAtTheEndOfTheWait: it is not before the end, so the wait begins; and then the deadline wins the tie.
func TestDeadlineAtTheEndOfTheWait(t *testing.T) {
	c := fakes.NewClock(noon)
	ctx, cancel := c.Timers().WithTimeout(t.Context(), delay.KindRequestTimeout, 10*sec)
	defer cancel()
	s := sleep(ctx, t, c, delay.Pause{}, wait(10*sec))
	if _, err := c.Await(t.Context(), delay.KindRetry, delay.KindRequestTimeout); err != nil {
		t.Fatal(err)
	}
	c.Advance(10 * sec)
	err := <-s.done
	if _, ok := errors.AsType[*delay.TimeoutError](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sleep returned %v", err)
	}
}

// TestRealDeadlineAtTheEndOfTheWait: which of both timers fires first is chance, and what comes of it is not.
func TestRealDeadlineAtTheEndOfTheWait(t *testing.T) {
	for _, d := range []time.Duration{0, 10 * sec} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				p := delay.Pause{Timers: delay.TimersOn(nil)}
				ctx, cancel := context.WithTimeout(t.Context(), 10*sec)
				defer cancel()
				time.Sleep(10*sec - d)
				if err := p.Sleep(ctx, wait(d)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a wait of %v: Sleep returned %v", d, err)
				}
			})
		}
	}
}

// TestRealDeadlineOnVirtualClock: a context's own deadline is an instant of package time, which a virtual clock knows
// nothing of; compared with it, this one would be long over.
func TestRealDeadlineOnVirtualClock(t *testing.T) {
	c := fakes.NewClock(time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	s := sleep(ctx, t, c, delay.Pause{}, wait(10*sec))
	s.armed(10 * sec)
	c.Advance(10 * sec)
	s.ended("with a real deadline", nil)
}

// wrapped is a clock of whoever wraps the real one, with or without the monotonic reading.
type wrapped struct {
	clock.Clock
	strip bool
}

func (c wrapped) Now() time.Time {
	if c.strip {
		return c.Clock.Now().Round(0)
	}
	return c.Clock.Now()
}

// TestWhichClockIsReal: on a real one a context's own deadline counts. The cut ends the wait where it begins.
func TestWhichClockIsReal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	cut := make(chan struct{})
	close(cut)
	for name, tt := range map[string]struct {
		clock clock.Clock
		real  bool
	}{
		"none":                     {nil, true},
		"the library's":            {clock.New(), true},
		"wrapped":                  {wrapped{clock.New(), false}, true},
		"wrapped, wall clock only": {wrapped{clock.New(), true}, false},
		"mock":                     {clock.NewMock(), false},
	} {
		p := delay.Pause{Timers: delay.TimersOn(tt.clock), Kind: delay.KindRetry, Cut: cut}
		err := p.Sleep(ctx, wait(100*time.Hour))
		if _, refused := errors.AsType[*delay.TooLongError](err); refused != tt.real || !refused && err != nil {
			t.Errorf("%s: Sleep returned %v", name, err)
		}
	}
}

func TestEnded(t *testing.T) {
	if err := delay.Ended(t.Context()); err != nil {
		t.Errorf("a live context has ended with %v", err)
	}
	stopped := errors.New("stopped")
	gone := fmt.Errorf("the operator left: %w", context.Canceled)
	tests := []struct {
		name  string
		cause error
		text  string
		is    []error
	}{
		{"no cause", nil, "context canceled", []error{context.Canceled}},
		{"a cause", stopped, "context canceled: stopped", []error{context.Canceled, stopped}},
		{"a cause that says more", gone, "the operator left: context canceled", []error{context.Canceled, gone}},
		{"a timeout", &delay.TimeoutError{Kind: delay.KindStaleness, After: sec}, "context canceled: staleness: no answer within 1s", []error{context.Canceled, context.DeadlineExceeded}},
	}
	for _, tt := range tests {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tt.cause)
		err := delay.Ended(ctx)
		if err == nil || err.Error() != tt.text {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.text)
		}
		for _, target := range tt.is {
			if !errors.Is(err, target) {
				t.Errorf("%s: %v is not %v", tt.name, err, target)
			}
		}
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if err := delay.Ended(ctx); err != context.DeadlineExceeded { //nolint:errorlint // its very own
		t.Errorf("a deadline: %v", err)
	}
}

func TestWithTimeout(t *testing.T) {
	c := fakes.NewClock(noon)
	ctx, cancel := c.Timers().WithTimeout(t.Context(), delay.KindHandshakeDeadline, 10*sec)
	defer cancel()
	if at, ok := ctx.Deadline(); ok {
		t.Errorf("a virtual instant reaches whoever asks for the deadline: %v", at)
	}
	c.Advance(10*sec - 1)
	if ctx.Err() != nil {
		t.Errorf("over early: %v", ctx.Err())
	}
	c.Advance(1)
	<-ctx.Done()
	err := context.Cause(ctx)
	timeout, ok := errors.AsType[*delay.TimeoutError](err)
	if !ok || *timeout != (delay.TimeoutError{Kind: delay.KindHandshakeDeadline, After: 10 * sec}) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("the cause is %v", err)
	}
	if network, ok := errors.AsType[net.Error](err); !ok || !network.Timeout() || !network.Temporary() { //nolint:staticcheck // what package net used to say
		t.Errorf("%v is no timeout of package net", err)
	}
	if err.Error() != "handshake-deadline: no answer within 10s" {
		t.Error(err)
	}
	cancel()
	if again := context.Cause(ctx); again != err { //nolint:errorlint // the same one
		t.Errorf("cancelling afterwards changed the cause to %v", again)
	}

	for _, d := range []time.Duration{0, -sec} {
		ctx, cancel := c.Timers().WithTimeout(t.Context(), delay.KindRequestTimeout, d)
		defer cancel()
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("a timeout of %v: %v", d, context.Cause(ctx))
		}
	}

	ctx, cancel = c.Timers().WithTimeout(t.Context(), delay.KindRequestTimeout, sec)
	cancel()
	cancel()
	if left := c.Armed(); len(left) > 0 {
		t.Errorf("armed after cancel: %v", left)
	}
	if cause := context.Cause(ctx); cause != context.Canceled { //nolint:errorlint // its very own
		t.Errorf("cancelled, because of %v", cause)
	}

	outer, cancelOuter := context.WithCancelCause(t.Context())
	inner, cancel := c.Timers().WithTimeout(outer, delay.KindRequestTimeout, sec)
	defer cancel()
	stopped := errors.New("stopped")
	cancelOuter(stopped)
	<-inner.Done()
	if cause := context.Cause(inner); cause != stopped { //nolint:errorlint // the very same
		t.Errorf("the outer context ended the inner one with %v", cause)
	}
}

// TestWithTimeoutNested: the earlier one ends what is inside of it, with its own cause.
func TestWithTimeoutNested(t *testing.T) {
	for _, tt := range []struct {
		outer, inner time.Duration
		kind         delay.Kind
	}{{4 * sec, 7 * sec, delay.KindHandshakeDeadline}, {7 * sec, 4 * sec, delay.KindRequestTimeout}} {
		c := fakes.NewClock(noon)
		outer, cancel := c.Timers().WithTimeout(t.Context(), delay.KindHandshakeDeadline, tt.outer)
		defer cancel()
		inner, cancel := c.Timers().WithTimeout(outer, delay.KindRequestTimeout, tt.inner)
		defer cancel()
		c.Advance(4 * sec)
		<-inner.Done()
		if timeout, ok := errors.AsType[*delay.TimeoutError](context.Cause(inner)); !ok || timeout.Kind != tt.kind {
			t.Errorf("%v in %v: the inner ended with %v", tt.inner, tt.outer, context.Cause(inner))
		}
		if ended := outer.Err() != nil; ended != (tt.outer < tt.inner) {
			t.Errorf("%v in %v: the outer has ended: %v", tt.inner, tt.outer, ended)
		}
	}
}

// Two registries on the real clock show the same time, so a deadline of one counts for the other.
func TestDeadlineOfAnotherRegistry(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		ctx, cancel := delay.TimersOn(nil).WithTimeout(t.Context(), delay.KindRequestTimeout, time.Minute)
		defer cancel()
		p := delay.Pause{Timers: delay.TimersOn(nil), Kind: delay.KindRetry}
		err := p.Sleep(ctx, delay.GeneratedRetry.Compose(time.Hour, delay.RetryAfter{}))
		if _, ok := errors.AsType[*delay.TooLongError](err); !ok {
			t.Errorf("the wait ends with %v", err)
		}
	})
}

// TestDeadlineOfAnotherClock: an instant of one virtual clock says nothing on another.
func TestDeadlineOfAnotherClock(t *testing.T) {
	earlier := fakes.NewClock(noon)
	c := fakes.NewClock(noon.AddDate(100, 0, 0))
	ctx, cancel := earlier.Timers().WithTimeout(t.Context(), delay.KindRequestTimeout, sec)
	defer cancel()
	s := sleep(ctx, t, c, delay.Pause{}, wait(10*sec))
	s.armed(10 * sec)
	c.Advance(10 * sec)
	s.ended("with another clock's deadline", nil)
}
