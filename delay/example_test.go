package delay_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// A server that is busy answers 503 with Retry-After: 90, and two loops make of it what their rows say.
func Example() {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	answer := http.Header{"Retry-After": {"90"}}

	for _, loop := range []delay.Loop{delay.GeneratedRetry, delay.Reconnect} {
		run := loop.OwnRetries(0, 0, 3, nil)
		wait, ok := run.Next(loop.RetryAfter(answer, now))
		fmt.Println(wait.For, ok, "-", wait.Explain())
	}
	// Output:
	// 1m30s true - Retry-After replaces the local delay
	// 1m30s true - Retry-After is longer than the local delay
}

func ExampleTable() {
	for _, row := range delay.Table() {
		fmt.Printf("%v: %v; with R: %v; reads %v; bounded by %v\n", row.Loop, row.Local, row.Composition, row.Forms, row.Clamp)
	}
	// Output:
	// generated-retry: min(30s, 1s·2^(n-1)) + uniform(0, 100ms); with R: R replaces the local delay, exactly; reads seconds, HTTP-date; bounded by nothing
	// hop: min(30s, 1s·2^(n-1)) + uniform(0, 100ms); with R: R replaces the local delay, exactly; reads seconds, HTTP-date; bounded by nothing
	// device-poll: max(interval, timeout backoff), interval 5s unless the server names one, backoff doubling to 60s; with R: max(local, R); reads seconds; bounded by the code's remaining lifetime
	// reconnect: uniform(0, min(60s, 1s·2^(n-1))); with R: max(local, R); reads seconds, HTTP-date; bounded by nothing
	// poll-retry: uniform(0, min(60s, 1s·2^(n-1))); with R: R replaces the local delay, exactly; reads seconds, HTTP-date; bounded by nothing
}

// The case that separates the last two rows of the table.
func ExampleLoop_Compose() {
	asked := delay.Asked(time.Second)
	fmt.Println(delay.Reconnect.Compose(50*time.Second, asked))
	fmt.Println(delay.PollRetry.Compose(50*time.Second, asked))
	// Output:
	// reconnect: wait 50s, local 50s, server 1s: the local delay is at least as long as Retry-After
	// poll-retry: wait 1s, local 50s, server 1s: Retry-After replaces the local delay
}

func ExampleParseRetryAfter() {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{
		"120",
		"Sun, 29 Nov 2026 12:01:00 GMT",
		"Sunday, 29-Nov-26 12:01:00 GMT",
		"Sun Nov 29 12:01:00 2026",
		"9999999999",
		"1.5",
		"Sun, 29 Nov 2026 11:59:00 GMT",
		"soon",
	} {
		fmt.Printf("%s: %v\n", value, delay.ParseRetryAfter(http.Header{"Retry-After": {value}}, now))
	}
	fmt.Println("none:", delay.ParseRetryAfter(nil, now))
	// Output:
	// 120: 2m0s
	// Sun, 29 Nov 2026 12:01:00 GMT: 1m0s
	// Sunday, 29-Nov-26 12:01:00 GMT: 1m0s
	// Sun Nov 29 12:01:00 2026: 1m0s
	// 9999999999: 596523h14m7s
	// 1.5: malformed
	// Sun, 29 Nov 2026 11:59:00 GMT: malformed
	// soon: malformed
	// none: absent
}

// Four attempts in all. The server's wait is waited once, and the count goes on through it.
func ExampleRetries() {
	noJitter := func(int64) int64 { return 0 }
	run := delay.GeneratedRetry.OwnRetries(0, 0, 4, noJitter)
	for _, after := range []delay.RetryAfter{{}, delay.Asked(20 * time.Second), {}, {}} {
		wait, ok := run.Next(after)
		if !ok {
			fmt.Println("giving up after attempt", wait.Attempt)
			break
		}
		fmt.Println(wait)
	}
	// Output:
	// generated-retry attempt 1 of 4: wait 1s, local 1s: the loop's own delay: no Retry-After
	// generated-retry attempt 2 of 4: wait 20s, local 2s, server 20s: Retry-After replaces the local delay
	// generated-retry attempt 3 of 4: wait 4s, local 4s: the loop's own delay: no Retry-After
	// giving up after attempt 4
}

// A loop takes any schedule of github.com/cenkalti/backoff/v4.
func ExampleLoop_Retries() {
	run := delay.GeneratedRetry.Retries(delay.Linear(1500*time.Millisecond), 4)
	for {
		wait, ok := run.Next(delay.RetryAfter{})
		if !ok {
			break
		}
		fmt.Println(wait.For)
	}
	// Output:
	// 1.5s
	// 3s
	// 4.5s
}

func ExampleExponential() {
	b := delay.Exponential(20*time.Second, time.Minute)
	fmt.Println(b.NextBackOff(), b.NextBackOff(), b.NextBackOff(), b.NextBackOff())
	// Output: 20s 40s 1m0s 1m0s
}

func ExampleFullJitter() {
	half := func(n int64) int64 { return n / 2 }
	b := delay.FullJitter(delay.Exponential(20*time.Second, time.Minute), half)
	fmt.Println(b.NextBackOff(), b.NextBackOff(), b.NextBackOff())
	// Output: 10s 20s 30s
}

func ExampleAddedJitter() {
	half := func(n int64) int64 { return n / 2 }
	b := delay.AddedJitter(delay.Exponential(20*time.Second, time.Minute), time.Second, half)
	fmt.Println(b.NextBackOff(), b.NextBackOff(), b.NextBackOff())
	// Output: 20.5s 40.5s 1m0.5s
}

func ExampleLinear() {
	b := delay.Linear(time.Second)
	fmt.Println(b.NextBackOff(), b.NextBackOff(), b.NextBackOff())
	// Output: 1s 2s 3s
}

// The three timers of a device login: only slow_down touches the interval, only silence the backoff, and a Retry-After is
// good for one wait.
func ExampleCadence() {
	c := delay.NewCadence(5 * time.Second)
	fmt.Println("shown:      ", c.First().For)
	fmt.Println("pending:    ", c.Pending().For)
	fmt.Println("slow down:  ", c.SlowDown(0).For)
	fmt.Println("throttled:  ", c.Throttled(delay.Asked(90*time.Second)).For)
	fmt.Println("pending:    ", c.Pending().For)
	fmt.Println("unreachable:", c.Unreachable().For)
	fmt.Println("unreachable:", c.Unreachable().For)
	fmt.Println("pending:    ", c.Pending().For)
	fmt.Println("with 7s left", c.Pending().Within(7*time.Second).For)
	// Output:
	// shown:       5s
	// pending:     5s
	// slow down:   10s
	// throttled:   1m30s
	// pending:     10s
	// unreachable: 20s
	// unreachable: 40s
	// pending:     10s
	// with 7s left 7s
}

// The registry says what a program is waiting for.
func ExampleTimers_Outstanding() {
	timers := delay.TimersOn(clock.NewMock())
	repair := timers.After(delay.KindRepairPoll, time.Minute, func() {})
	timers.After(delay.KindStaleness, 7500*time.Millisecond, func() {})

	armed, _ := timers.Outstanding()
	for _, t := range armed {
		fmt.Println(t.Kind(), "in", t.Delay())
	}
	fmt.Println(repair.Stop(), repair.Stop())
	// Output:
	// staleness in 7.5s
	// repair-poll in 1m0s
	// true false
}

// mockClock is a clock.Mock that carries its registry of timers: what is given this clock arms its timers there, and a
// test sees them.
type mockClock struct {
	*clock.Mock
	timers *delay.Timers
}

func newMockClock() mockClock {
	mock := clock.NewMock()
	return mockClock{mock, delay.TimersOn(mock)}
}

func (c mockClock) Timers() *delay.Timers { return c.timers }

// awaitOne waits until exactly one timer is armed.
func (c mockClock) awaitOne() *delay.Timer {
	for {
		armed, changed := c.timers.Outstanding()
		if len(armed) == 1 {
			return armed[0]
		}
		<-changed
	}
}

// step waits until exactly one timer is armed, moves the clock by exactly what is left of it, and waits until it fired:
// the mock starts its functions in goroutines.
func (c mockClock) step() *delay.Timer {
	timer := c.awaitOne()
	c.Add(timer.Deadline().Sub(c.Now()))
	for {
		armed, changed := c.timers.Outstanding()
		if !slices.Contains(armed, timer) {
			return timer
		}
		<-changed
	}
}

// retry is a loop to be tested: it works, waits and works again, until the attempts are used up.
func retry(c clock.Clock, work func(attempt int)) {
	pause := delay.Pause{Timers: delay.TimersOn(c), Kind: delay.KindRetry}
	run := delay.GeneratedRetry.OwnRetries(0, 0, 3, func(int64) int64 { return 0 })
	for {
		work(run.Failed() + 1)
		wait, ok := run.Next(delay.RetryAfter{})
		if !ok || pause.Sleep(context.Background(), wait) != nil {
			return
		}
	}
}

// The right way to test a loop on a clock.Mock: await the one timer that is armed, then add exactly its delay. However slow
// the machine is, each attempt happens at its instant.
func Example_testing() {
	c := newMockClock()
	start := c.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		retry(c, func(attempt int) { fmt.Println("attempt", attempt, "at", c.Since(start)) })
	}()

	c.step()
	c.step()
	<-done
	// Output:
	// attempt 1 at 0s
	// attempt 2 at 1s
	// attempt 3 at 3s
}

// The wrong way: one big Add, which is past every wait. It does not know that the loop has work to do between two waits,
// and is over before the second is armed. Here the work takes until after Add, as it may on any busy machine: the second
// wait ends at 12 s in place of 3 s, and nothing has moved the clock there.
func Example_testingWithOneBigAdd() {
	c := newMockClock()
	start := c.Now()
	working, added, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		retry(c, func(attempt int) {
			if attempt == 2 {
				close(working)
				<-added
			}
			fmt.Println("attempt", attempt, "at", c.Since(start))
		})
	}()

	c.awaitOne()
	c.Add(10 * time.Second) // "two waits, of 1 s and 2 s: 10 s will do"
	<-working
	close(added)

	fmt.Println("attempt 3 is waited for until", c.awaitOne().Deadline().Sub(start))
	c.step()
	<-done
	// Output:
	// attempt 1 at 0s
	// attempt 2 at 10s
	// attempt 3 is waited for until 12s
	// attempt 3 at 12s
}
