package delay_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// stand is a registry on some clock, and a way to move that clock which returns when everything due has fired.
type stand struct {
	*delay.Timers
	advance func(d time.Duration)

	mu                    sync.Mutex
	armed, ended, stopped int
	progress              chan struct{}
	fired                 []string
}

func newStand(timers *delay.Timers) *stand {
	return &stand{Timers: timers, progress: make(chan struct{}, 1)}
}

// arm arms a timer that notes its name and the time since start when it fires, and then runs what is given.
func (s *stand) arm(name string, d time.Duration, then ...func()) *delay.Timer {
	s.mu.Lock()
	s.armed++
	s.mu.Unlock()
	return s.After(delay.KindRetry, d, func() {
		s.mu.Lock()
		s.fired = append(s.fired, name)
		s.mu.Unlock()
		for _, f := range then {
			f()
		}
		s.mu.Lock()
		s.ended++
		s.mu.Unlock()
		select {
		case s.progress <- struct{}{}:
		default:
		}
	})
}

func (s *stand) stop(t *delay.Timer) bool {
	if !t.Stop() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped++
	return true
}

// settle waits until nothing is due and every firing has come to its end.
func (s *stand) settle() {
	for {
		armed, changed := s.Outstanding()
		s.mu.Lock()
		quiet := s.armed == s.ended+s.stopped+len(armed)
		s.mu.Unlock()
		if quiet && (len(armed) == 0 || armed[0].Deadline().After(s.Now())) {
			return
		}
		select {
		case <-changed:
		case <-s.progress:
		}
	}
}

// expect compares the names fired so far, and forgets them.
func (s *stand) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.fired, want) {
		t.Errorf("%s: fired %v, want %v", when, s.fired, want)
	}
	s.fired = nil
}

// early is a clock whose timers fire up to 15 ms before their time, as coarse ones may.
type early struct{ clock.Clock }

func (c early) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return c.Clock.AfterFunc(d-min(d/2, 15*ms), f)
}

// stands are the clocks on which the registry has to keep its promises.
var stands = map[string]func(t *testing.T, check func(*testing.T, *stand)){
	"fake": func(t *testing.T, check func(*testing.T, *stand)) {
		c := fakes.NewClock(noon)
		s := newStand(delay.TimersOn(c))
		s.advance = c.Advance
		check(t, s)
	},
	"mock": func(t *testing.T, check func(*testing.T, *stand)) {
		c := clock.NewMock()
		s := newStand(delay.TimersOn(c))
		// One big Add would outrun the callbacks, which the mock starts in goroutines: each step is the next timer's.
		s.advance = func(d time.Duration) {
			end := c.Now().Add(d)
			for {
				armed, _ := s.Outstanding()
				if len(armed) == 0 || armed[0].Deadline().After(end) {
					break
				}
				c.Add(armed[0].Deadline().Sub(c.Now()))
				s.settle()
			}
			if rest := end.Sub(c.Now()); rest > 0 {
				c.Add(rest)
			}
		}
		check(t, s)
	},
	"real, in a bubble": func(t *testing.T, check func(*testing.T, *stand)) {
		synctest.Test(t, func(t *testing.T) {
			s := newStand(delay.TimersOn(clock.New()))
			s.advance = func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			}
			check(t, s)
		})
	},
	"early, in a bubble": func(t *testing.T, check func(*testing.T, *stand)) {
		synctest.Test(t, func(t *testing.T) {
			s := newStand(delay.TimersOn(early{clock.New()}))
			s.advance = func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			}
			check(t, s)
		})
	},
	"mock, in a bubble": func(t *testing.T, check func(*testing.T, *stand)) {
		synctest.Test(t, func(t *testing.T) {
			c := clock.NewMock()
			s := newStand(delay.TimersOn(c))
			s.advance = func(d time.Duration) {
				c.Add(d)
				synctest.Wait()
			}
			check(t, s)
		})
	},
}

var timerChecks = map[string]func(*testing.T, *stand){
	"deadline order": func(t *testing.T, s *stand) {
		start := s.Now()
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i+1))
		}
		for _, i := range rand.Perm(20) {
			d := time.Duration(i+1) * sec
			s.arm(fmt.Sprint(i+1), d, func() {
				if at := s.Now().Sub(start); at != d {
					t.Errorf("the timer of %v fired at %v", d, at)
				}
			})
		}
		s.advance(sec - 1)
		s.expect(t, "before the first")
		s.advance(1)
		s.expect(t, "at the first", "1")
		s.advance(19 * sec)
		s.expect(t, "at the last", want[1:]...)
	},

	"60 timers over 3 tied deadlines": func(t *testing.T, s *stand) {
		var tied [3][]string
		for i := range 60 {
			name := fmt.Sprint(i)
			at := (i * 7) % 3
			tied[2-at] = append(tied[2-at], name)
			s.arm(name, time.Duration(3-at)*sec)
		}
		for i := range tied {
			s.advance(sec)
			s.expect(t, fmt.Sprintf("deadline %d", i+1), tied[i]...)
		}
	},

	"armed inside a firing": func(t *testing.T, s *stand) {
		s.arm("a", sec, func() {
			s.arm("c", sec, func() { s.arm("at once", 0); s.arm("e", 1) })
			s.arm("beyond", 10*sec)
		})
		s.arm("b", 2*sec) // tied with c, and older
		s.arm("d", 2*sec)
		s.advance(5 * sec)
		s.expect(t, "within one advance", "a", "b", "d", "c", "at once", "e")
		s.advance(6 * sec)
		s.expect(t, "afterwards", "beyond")
	},

	"a chain of firings": func(t *testing.T, s *stand) {
		var want []string
		n := 0
		var next func()
		next = func() {
			if n++; n < 8 {
				s.arm(fmt.Sprint(n), sec, next)
			}
		}
		next()
		for i := 1; i < 8; i++ {
			want = append(want, fmt.Sprint(i))
			s.advance(sec)
		}
		s.expect(t, "one after another", want...)
	},

	"a stopped timer stays silent": func(t *testing.T, s *stand) {
		first, second, third := s.arm("first", sec), s.arm("second", 2*sec), s.arm("third", 3*sec)
		if !s.stop(first) || s.stop(first) {
			t.Error("an armed timer stops once")
		}
		s.advance(2 * sec)
		s.expect(t, "with the first stopped", "second")
		if s.stop(second) {
			t.Error("a timer that has fired was stopped")
		}
		if !s.stop(third) {
			t.Error("an armed timer does not stop")
		}
		s.advance(10 * sec)
		s.expect(t, "with all stopped")
		if (*delay.Timer)(nil).Stop() {
			t.Error("a nil timer was stopped")
		}
	},

	"stopped from within a firing": func(t *testing.T, s *stand) {
		var self, tied, later *delay.Timer
		self = s.arm("self", sec, func() {
			if s.stop(self) {
				t.Error("a running timer was stopped")
			}
			if !s.stop(tied) || !s.stop(later) {
				t.Error("timers still to fire do not stop")
			}
		})
		tied, later = s.arm("tied", sec), s.arm("later", 2*sec)
		s.arm("last", 3*sec)
		s.advance(5 * sec)
		s.expect(t, "with one that stops others", "self", "last")
	},

	"no delay": func(t *testing.T, s *stand) {
		for _, d := range []time.Duration{0, -1, -time.Hour} {
			ran := false
			timer := s.arm("now", d, func() { ran = true })
			if !ran {
				t.Errorf("After(%v) returned before the function ran", d)
			}
			if s.stop(timer) {
				t.Errorf("a timer of %v was stopped", d)
			}
			if s.Fire(timer) {
				t.Errorf("a timer of %v was fired again", d)
			}
		}
		s.expect(t, "at once", "now", "now", "now")
	},

	"outstanding": func(t *testing.T, s *stand) {
		none, changed := s.Outstanding()
		if len(none) != 0 {
			t.Errorf("%d timers outstanding on a new registry", len(none))
		}
		closed := func() bool {
			select {
			case <-changed:
				_, changed = s.Outstanding()
				return true
			default:
				return false
			}
		}
		start := s.Now()
		c := s.arm("c", 2*sec)
		if !closed() {
			t.Error("the channel says nothing of a timer armed")
		}
		a := s.arm("a", sec)
		d := s.arm("d", 2*sec)
		b := s.arm("b", sec)
		if !closed() || closed() {
			t.Error("the channel closes once for whatever changed")
		}
		list, _ := s.Outstanding()
		if !slices.Equal(list, []*delay.Timer{a, b, c, d}) {
			t.Errorf("outstanding are %v", list)
		}
		if a.Kind() != delay.KindRetry || a.Delay() != sec || !a.Deadline().Equal(start.Add(sec)) {
			t.Errorf("a is %v, %v, %v", a.Kind(), a.Delay(), a.Deadline())
		}
		list[0] = nil
		if list, _ := s.Outstanding(); list[0] != a {
			t.Error("Outstanding handed out its own list")
		}
		s.stop(b)
		if !closed() {
			t.Error("the channel says nothing of a timer stopped")
		}
		s.stop(b)
		if closed() {
			t.Error("the channel speaks of a timer stopped before")
		}
		s.advance(sec)
		if !closed() {
			t.Error("the channel says nothing of a timer fired")
		}
		s.Fire(d)
		if !closed() {
			t.Error("the channel says nothing of a timer fired by name")
		}
		if list, _ := s.Outstanding(); !slices.Equal(list, []*delay.Timer{c}) {
			t.Errorf("outstanding are %v", list)
		}
		s.advance(sec)
		s.expect(t, "all", "a", "d", "c")
	},

	"fired by name": func(t *testing.T, s *stand) {
		start := s.Now()
		s.arm("a", sec)
		b := s.arm("b", 2*sec)
		head := s.arm("head", ms)
		if !s.Fire(b) || s.Fire(b) {
			t.Error("a timer fires once")
		}
		if !s.Fire(head) {
			t.Error("the head does not fire")
		}
		s.expect(t, "by name", "b", "head")
		if !s.Now().Equal(start) {
			t.Errorf("firing by name moved the time by %v", s.Now().Sub(start))
		}
		s.advance(3 * sec)
		s.expect(t, "the rest", "a")
		stopped := s.arm("stopped", sec)
		s.stop(stopped)
		if s.Fire(stopped) {
			t.Error("a stopped timer fired")
		}
	},

	"the head changes": func(t *testing.T, s *stand) {
		// Each change moves the clock's one alarm: forward to an earlier timer, back when that is stopped.
		s.arm("late", 10*sec)
		early := s.arm("early", 2*sec)
		s.arm("middle", 5*sec)
		s.stop(early)
		s.advance(2 * sec)
		s.expect(t, "where the stopped one was due")
		s.arm("soon", sec)
		s.advance(sec)
		s.expect(t, "soon", "soon")
		s.advance(2*sec - 1)
		s.expect(t, "just before the middle")
		s.advance(1)
		s.expect(t, "at the middle", "middle")
		s.advance(5 * sec)
		s.expect(t, "at the last", "late")
	},
}

func TestTimers(t *testing.T) {
	for on, run := range stands {
		for name, check := range timerChecks {
			t.Run(on+"/"+name, func(t *testing.T) {
				run(t, func(t *testing.T, s *stand) {
					check(t, s)
					if left, _ := s.Outstanding(); len(left) > 0 {
						t.Errorf("%d timers outstanding in the end", len(left))
					}
				})
			})
		}
	}
}

// TestTimersConcurrently: each timer either fires or stops, whoever gets there first, and never both.
func TestTimersConcurrently(t *testing.T) {
	const workers, each = 8, 100
	run := func(t *testing.T, timers *delay.Timers, nap func(), moved func(busy func() bool)) {
		var fired, stopped atomic.Int64
		var busy sync.WaitGroup
		var left atomic.Int64
		left.Store(workers)
		for w := range workers {
			busy.Go(func() {
				defer left.Add(-1)
				r := rand.New(rand.NewPCG(uint64(w), 0))
				for range each {
					var own atomic.Int64
					timer := timers.After(delay.KindBackoff, time.Duration(r.IntN(20)), func() { own.Add(1); fired.Add(1) })
					if r.IntN(2) == 0 {
						nap()
					}
					if r.IntN(2) == 0 {
						timers.Outstanding()
					}
					if timer.Stop() {
						stopped.Add(1)
						if own.Load() != 0 {
							t.Error("a timer fired and was stopped")
						}
					}
				}
			})
		}
		moved(func() bool { return left.Load() > 0 })
		busy.Wait()
		if list, _ := timers.Outstanding(); len(list) > 0 {
			t.Errorf("%d timers outstanding", len(list))
		}
		if got := fired.Load() + stopped.Load(); got != workers*each {
			t.Errorf("%d fired and %d were stopped, of %d", fired.Load(), stopped.Load(), workers*each)
		}
	}
	t.Run("fake", func(t *testing.T) {
		c := fakes.NewClock(noon)
		run(t, c.Timers(), func() {}, func(busy func() bool) {
			for busy() {
				c.Advance(5)
			}
		})
	})
	t.Run("real, in a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			run(t, delay.TimersOn(clock.New()), func() { time.Sleep(10 * time.Nanosecond) }, func(func() bool) {})
		})
	})
	t.Run("mock, in a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := clock.NewMock()
			run(t, delay.TimersOn(c), func() { time.Sleep(10 * time.Nanosecond) }, func(busy func() bool) {
				for busy() {
					c.Add(5)
				}
			})
		})
	})
}

func TestTimersOn(t *testing.T) {
	c := fakes.NewClock(noon)
	if delay.TimersOn(c) != c.Timers() || !c.Timers().Now().Equal(noon) {
		t.Error("a clock that carries a registry got another")
	}
	mock := clock.NewMock()
	if one, other := delay.TimersOn(mock), delay.TimersOn(mock); one == other {
		t.Error("two callers share a registry that nobody carries")
	}
	synctest.Test(t, func(t *testing.T) {
		timers := delay.TimersOn(nil)
		if !timers.Now().Equal(time.Now()) {
			t.Errorf("no clock shows %v", timers.Now())
		}
		done := make(chan struct{})
		timers.After(delay.KindRetry, sec, func() { close(done) })
		start := time.Now()
		<-done
		if time.Since(start) != sec {
			t.Errorf("a second took %v", time.Since(start))
		}
	})
}

// nowAndAfterFunc is a clock with two methods: any other is a nil pointer.
type nowAndAfterFunc struct {
	clock.Clock
	real clock.Clock
}

func (c nowAndAfterFunc) Now() time.Time { return c.real.Now() }
func (c nowAndAfterFunc) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return c.real.AfterFunc(d, f)
}

func TestTimersUseNowAndAfterFuncOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timers := delay.TimersOn(nowAndAfterFunc{real: clock.New()})
		pause := delay.Pause{Timers: timers, Kind: delay.KindRetry}
		ctx, cancel := timers.WithTimeout(t.Context(), delay.KindRequestTimeout, time.Hour)
		defer cancel()
		if err := pause.Sleep(ctx, delay.Wait{For: sec}); err != nil {
			t.Error(err)
		}
		if timers.Fire(timers.After(delay.KindBackoff, sec, func() {})) {
			return
		}
		t.Error("an armed timer does not fire by name")
	})
}

// TestTimersFireOneAtATime: also when one takes its time, against the rules, and arms another meanwhile.
func TestTimersFireOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timers := delay.TimersOn(clock.New())
		var order []string
		timers.After(delay.KindRetry, 2*sec, func() { order = append(order, "second") })
		timers.After(delay.KindRetry, sec, func() {
			timers.After(delay.KindRetry, 2*sec, func() { order = append(order, "third") })
			time.Sleep(10 * sec)
			order = append(order, "first")
		})
		time.Sleep(20 * sec)
		synctest.Wait()
		if !slices.Equal(order, []string{"first", "second", "third"}) {
			t.Errorf("fired %v", order)
		}
	})
}

// alarms is a clock that keeps what AfterFunc returned.
type alarms struct {
	clock.Clock
	set *[]*clock.Timer
}

func (c alarms) AfterFunc(d time.Duration, f func()) *clock.Timer {
	timer := c.Clock.AfterFunc(d, f)
	*c.set = append(*c.set, timer)
	return timer
}

// TestTimersKeepOneAlarm: at the clock there is one alarm for all timers, and none when the last has fired. When it is
// stopped there is none either, unless that would have rung within two seconds: short timers that are stopped again and
// again share one.
func TestTimersKeepOneAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set []*clock.Timer
		timers := delay.TimersOn(alarms{clock.New(), &set})
		pending := func() (n int) {
			for _, alarm := range set {
				if alarm.Stop() {
					n++
				}
			}
			return n
		}
		arm := func(d time.Duration) *delay.Timer { return timers.After(delay.KindRetry, d, func() {}) }
		for _, d := range []time.Duration{3 * sec, 2 * sec, sec, 4 * sec} {
			defer arm(d).Stop()
		}
		if n := pending(); n != 1 {
			t.Errorf("%d alarms for 4 timers", n)
		}

		set, timers = nil, delay.TimersOn(alarms{clock.New(), &set})
		for _, timer := range []*delay.Timer{arm(sec), arm(3 * sec)} {
			timer.Stop()
		}
		if n := pending(); n != 0 {
			t.Errorf("%d alarms for timers that are stopped", n)
		}

		set, timers = nil, delay.TimersOn(alarms{clock.New(), &set})
		for range 1000 {
			arm(sec).Stop()
			time.Sleep(sec / 100)
			synctest.Wait()
		}
		if n := len(set); n > 11 {
			t.Errorf("%d alarms for a thousand timers in ten seconds", n)
		}
		time.Sleep(sec)
		synctest.Wait()
		if n := pending(); n != 0 {
			t.Errorf("%d alarms a second after the last timer was stopped", n)
		}

		set, timers = nil, delay.TimersOn(alarms{clock.New(), &set})
		arm(sec)
		arm(2 * sec)
		time.Sleep(2 * sec)
		synctest.Wait()
		if n := pending(); n != 0 {
			t.Errorf("%d alarms for timers that have fired", n)
		}
	})
}

// TestTimersManual: a registry without a clock fires nothing by itself.
func TestTimersManual(t *testing.T) {
	now := noon
	timers := delay.ManualTimers(func() time.Time { return now })
	fired := 0
	timer := timers.After(delay.KindHealth, sec, func() { fired++ })
	now = now.Add(time.Hour)
	if armed, _ := timers.Outstanding(); fired != 0 || len(armed) != 1 || armed[0] != timer {
		t.Errorf("fired %d times, %d armed", fired, len(armed))
	}
	if !timers.Fire(timer) || fired != 1 {
		t.Errorf("fired %d times", fired)
	}
}

// TestKinds: the kinds are the words of the rules, and log fields of whoever uses them.
func TestKinds(t *testing.T) {
	for kind, word := range map[delay.Kind]string{
		delay.KindRetry: "retry", delay.KindDevicePoll: "device-poll", delay.KindBackoff: "backoff", delay.KindPollRetry: "poll-retry",
		delay.KindStaleness: "staleness", delay.KindHealth: "health", delay.KindHandshakeDeadline: "handshake-deadline",
		delay.KindConfirmationDeadline: "confirmation-deadline", delay.KindRepairPoll: "repair-poll", delay.KindRequestTimeout: "request-timeout",
		delay.KindStoreLock: "store-lock", delay.KindStoreTimeout: "store-timeout", delay.KindStoreWrite: "store-write",
	} {
		if string(kind) != word {
			t.Errorf("a kind is called %q, want %q", kind, word)
		}
	}
}

// TestTimersArm: a timer of the caller's own costs no allocation, and one that was never armed can be stopped.
func TestTimersArm(t *testing.T) {
	timers := delay.TimersOn(nil)
	var timer delay.Timer
	if timer.Stop() {
		t.Error("stopped what was never armed")
	}
	f := func() {}
	timers.Arm(&timer, delay.KindRetry, sec, f) // sets the alarm, which the next ones share
	timer.Stop()
	if n := testing.AllocsPerRun(100, func() {
		timers.Arm(&timer, delay.KindRetry, 2*sec, f)
		if !timer.Stop() || timer.Stop() {
			t.Error("stopped once is stopped")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
