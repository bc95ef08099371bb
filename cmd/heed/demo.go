package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

func (a *app) demo() *cobra.Command {
	speed := 10.0
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Do the whole job against servers of its own on this machine",
		Long: `Start an authorization server, an API that throttles and a stream server that restarts, all on loopback, and do the
whole job against them over real HTTP and WebSocket: log in, make requests, download, follow a stream, catch up.
Every wait is shown as it begins. It needs no network and no set-up.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(speed >= 0.1 && speed <= 50) {
				return usage("--speed is a number from 0.1 to 50")
			}
			d := newDemo(a, speed)
			err := d.run(cmd.Context())
			if d.app.json {
				err = errors.Join(err, a.out.object(struct {
					Event string `json:"event"`
					OK    bool   `json:"ok"`
				}{"done", err == nil}))
			}
			return err
		},
	}
	cmd.Flags().Float64Var(&speed, "speed", speed, "how many times faster than real time the clock runs (1: real time)")
	return cmd
}

// demo does the main job on a clock of its own and checks everything that it sees.
type demo struct {
	app   *app
	speed float64
	clock *fastClock
	start time.Time

	mu    sync.Mutex
	waits []delay.Wait // of the present step
	loops map[delay.Loop]bool
	close []func()

	// What one step leaves to the next.
	token        string
	events       *fakes.EventServer
	eventsURL    string
	seen, missed int // the last event before the restart, and how many came during it
}

func newDemo(a *app, speed float64) *demo {
	c := newFastClock(speed)
	return &demo{app: a, speed: speed, clock: c, start: c.Now(), loops: map[delay.Loop]bool{}}
}

// demoError is a step that did not come out right.
type demoError struct {
	step string
	err  error
}

func (e *demoError) Error() string {
	return fmt.Sprintf("the demo failed at the step %q: %v: please report it", e.step, e.err)
}
func (e *demoError) Unwrap() error { return e.err }
func (e *demoError) ExitCode() int { return requests.CodeAPI.ExitCode() }

func (d *demo) run(ctx context.Context) error {
	defer func() {
		for _, f := range slices.Backward(d.close) {
			f()
		}
	}()
	if err := d.say("start", fmt.Sprintf("Everything runs on this machine. The clock runs %g times as fast as yours (--speed 1 for real time).", d.speed),
		map[string]any{"speed": d.speed}); err != nil {
		return err
	}
	for _, s := range []struct {
		name, title string
		run         func(context.Context) error
	}{
		{"login", "Log in by device flow: slowed down, throttled, and once cut off", d.login},
		{"requests", "Three requests to an API that throttles two of them", d.requests},
		{"download", "A download in two hops, from a busy API to a signed address", d.download},
		{"stream", "A stream whose server restarts", d.stream},
		{"catch-up", "What was missed, by a catch-up poll that is throttled", d.catchUp},
	} {
		if err := d.say("step", "\n"+s.title, map[string]any{"step": s.name, "title": s.title}); err != nil {
			return err
		}
		d.waits = nil
		err := s.run(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case d.app.out.err() != nil:
			return d.app.out.err()
		case err != nil:
			return &demoError{s.name, err}
		}
	}
	for _, row := range delay.Table() {
		if !d.loops[row.Loop] {
			return &demoError{"table", fmt.Errorf("the loop %s never waited", row.Loop)}
		}
	}
	return d.say("end", "\nAll five loops of the table have waited as they should.", nil)
}

// say prints a line for people, or an event.
func (d *demo) say(event, text string, more map[string]any) error {
	if !d.app.json {
		return d.app.out.printf("%s\n", text)
	}
	out := map[string]any{"event": event, "at": d.passed().Seconds()}
	maps.Copy(out, more)
	return d.app.out.object(out)
}

// note is what came of something.
func (d *demo) note(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return d.say("note", fmt.Sprintf("  %6.1fs  %s", d.passed().Seconds(), text), map[string]any{"text": text})
}

// wait shows a wait as it begins.
func (d *demo) wait(w delay.Wait) {
	d.mu.Lock()
	d.waits = append(d.waits, w)
	d.loops[w.Loop] = true
	d.mu.Unlock()
	if d.app.json {
		_ = d.app.out.object(waitEvent(w))
		return
	}
	line := fmt.Sprintf("  %6.1fs  wait %-7s %-16s", d.passed().Seconds(), show(w.For), w.Loop)
	if w.Cause != "" {
		line += w.Cause + ": "
	}
	line += "local " + show(w.Local)
	if w.Server > 0 {
		line += ", server " + show(w.Server)
	}
	_ = d.app.out.printf("%s: %s\n", line, w.Explain())
}

func show(t time.Duration) string { return fmt.Sprintf("%.4gs", t.Seconds()) }

func (d *demo) passed() time.Duration { return d.clock.Now().Sub(d.start) }

// waited checks the waits of the present step so far.
func (d *demo) waited(want ...time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var got []time.Duration
	for _, w := range d.waits {
		got = append(got, w.For)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the waits were %v in place of %v", got, want)
	}
	return nil
}

// serve serves a handler on loopback until the demo is over and returns its origin.
func (d *demo) serve(h http.Handler) (string, error) {
	l, err := d.app.listen()
	if err != nil {
		return "", fmt.Errorf("no port on loopback could be opened: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	d.close = append(d.close, func() {
		_ = srv.Close()
		<-done
	})
	return "http://" + l.Addr().String(), nil
}

// clean checks that no server has seen what it must not see.
func clean(violations ...[]string) error {
	if all := slices.Concat(violations...); len(all) > 0 {
		return fmt.Errorf("the server complains: %s", strings.Join(all, "; "))
	}
	return nil
}
