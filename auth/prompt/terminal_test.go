package prompt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/prompt"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// TestTerminal has what is to be seen in windows of several sizes, from the first moment to the last.
func TestTerminal(t *testing.T) {
	for _, size := range []struct{ columns, rows int }{{120, 45}, {80, 24}, {40, 24}, {30, 24}, {100, 23}, {60, 12}, {0, 0}} {
		t.Run(fmt.Sprintf("%dx%d", size.columns, size.rows), func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				e := newEmulator(size.columns, size.rows)
				d := terminal(e)
				if size.columns == 0 { // a terminal that does not know
					e.columns, e.rows = 80, 24
					d = prompt.Terminal(e, &prompt.Options{Size: func() (int, int, bool) { return 0, 0, true }, Env: nowhere})
				}
				r := newRig(t, d, pending, slowDown, fakes.Throttle(30), drop, drop, token)
				r.flow.Browser = func(context.Context, string) error { return nil }
				s := time.Second
				golden(t, t.Name()[len("TestTerminal/"):]+".txt", r.frames(t, e.screen, 0, 3*s, 5*s, 12*s, 25*s, 51*s, 75*s))
				if len(e.odd) > 0 {
					t.Errorf("sequences that not every terminal knows: %v", e.odd)
				}
			})
		})
	}
}

// TestTerminalWrites has the bytes, hyperlinks included. The answers come between the ticks of the countdown.
func TestTerminalWrites(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		e := newEmulator(80, 24)
		late := func(a fakes.AuthAnswer) fakes.AuthAnswer { a.Latency = 0.3; return a }
		r := newRig(t, terminal(e, "TERM_PROGRAM=WezTerm"), late(pending), late(token))
		r.server.Device = device(13, "")
		shown := 0
		got := r.frames(t, func() string {
			all := e.written()
			written := all[shown:]
			shown = len(all)
			return strings.ReplaceAll(fmt.Sprintf("%q", written), `\n`, "\\n\n") + "\n"
		}, 0, time.Second, 5*time.Second, 10*time.Second)
		golden(t, "bytes.txt", got)
	})
}

func TestTerminalEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		answer fakes.AuthAnswer
		last   string
	}{
		"approved": {token, "Approved."},
		"denied":   {fakes.OAuthError(400, "access_denied"), ""},
		"rejected": {fakes.OAuthError(400, "invalid_grant"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				e := newEmulator(80, 24)
				r := newRig(t, terminal(e), pending, tt.answer)
				r.frames(t, func() string { return "" })
				lines := strings.Split(e.screen(), "\n")
				if last := lines[len(lines)-3]; tt.last != "" && last != tt.last {
					t.Errorf("it ends with %q", last)
				}
				// Whoever writes next does so on a line of its own.
				if last := lines[len(lines)-2]; last != "" {
					t.Errorf("the last line is %q", last)
				}
			})
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		fakes.Bubble(t, noon, func(t *testing.T) {
			e := newEmulator(80, 24)
			r := newRig(t, terminal(e), pending)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(7*time.Second, cancel)
			if _, err := r.flow.Login(ctx); !errors.Is(err, context.Canceled) || time.Since(noon) != 7*time.Second {
				t.Errorf("%v after %v", err, time.Since(noon))
			}
			if s := e.screen(); strings.Contains(s, " left") || !strings.HasSuffix(s, "\n\n") {
				t.Errorf("%s", s)
			}
		})
	})
}

// One display serves one login after another.
func TestTerminalAgain(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		e := newEmulator(80, 24)
		d := terminal(e)
		for range 3 {
			r := newRig(t, d, pending, token)
			r.frames(t, func() string { return "" })
		}
		if n := strings.Count(e.written(), "Approved.\n"); n != 3 {
			t.Errorf("approved %d times", n)
		}
		d.Wait() // for nothing
	})
}

// TestTerminalOnAClock steps a login and its display by their timers.
func TestTerminalOnAClock(t *testing.T) {
	clk := fakes.NewClock(noon)
	e := newEmulator(80, 24)
	d := prompt.Terminal(e, &prompt.Options{Clock: clk, Size: e.size, Env: nowhere})
	ctx, cancel := context.WithCancel(t.Context())
	p := auth.Prompt{UserCode: "WDJB-MJHT", VerificationURI: uri, ExpiresAt: noon.Add(90*time.Second + time.Second/2), ExpiresIn: 90 * time.Second}
	if err := d.Prompt(ctx, p); err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{time.Second / 2, time.Second, time.Second} {
		armed, err := clk.Await(t.Context(), delay.KindCountdown)
		if err != nil || armed[0].Delay() != want {
			t.Fatalf("tick %d: %v, %v", i, armed, err)
		}
		clk.Advance(want)
	}
	if _, err := clk.Await(t.Context(), delay.KindCountdown); err != nil {
		t.Fatal(err)
	}
	e.until(t, "\n1:28 left, not approved yet\n")
	clk.Advance(2 * time.Minute) // longer than the code lives: then there is nothing to count
	e.until(t, "\n0:00 left, not approved yet\n")
	cancel()
	d.Wait()
	if armed := clk.Armed(); len(armed) > 0 {
		t.Errorf("armed afterwards: %v", armed)
	}
}

// A poll does not wait for a terminal that has stopped.
func TestStuckTerminal(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		e := newEmulator(80, 24)
		stuck := &stuckWriter{w: e, goOn: make(chan struct{})}
		d := prompt.Terminal(stuck, &prompt.Options{Size: e.size, Env: nowhere})
		r := newRig(t, d, pending, pending, pending, token)
		r.flow.OnEvent = func(ev auth.Event) {
			d.OnEvent(ev)
			if _, ok := ev.(auth.Granted); ok {
				close(stuck.goOn)
			}
		}
		if _, err := r.flow.Login(t.Context()); err != nil || time.Since(noon) != 20*time.Second {
			t.Errorf("%v after %v", err, time.Since(noon))
		}
		if s := e.screen(); !strings.HasSuffix(s, "\nApproved.\n\n") {
			t.Errorf("%s", s)
		}
	})
}

// stuckWriter lets the first write through, and the others when it is told to.
type stuckWriter struct {
	w    io.Writer
	n    int
	goOn chan struct{}
}

func (s *stuckWriter) Write(p []byte) (int, error) {
	if s.n++; s.n > 1 {
		<-s.goOn
	}
	return s.w.Write(p)
}

// A terminal that is gone before the code could be seen ends the login, and one that goes later does not.
func TestBrokenTerminal(t *testing.T) {
	gone := errors.New("the terminal is gone")
	for good, want := range []error{gone, nil, nil} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			w := &breaking{good: good, err: gone}
			d := prompt.Terminal(w, &prompt.Options{Size: func() (int, int, bool) { return 80, 24, true }, Env: nowhere})
			r := newRig(t, d, pending, token)
			_, err := r.flow.Login(t.Context())
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("after %d writes: %v", good, err)
			}
			if w.failed > 2 {
				t.Errorf("%d writes to a terminal that is gone", w.failed)
			}
		})
	}
}

type breaking struct {
	good, failed int
	err          error
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.good--; b.good < 0 {
		b.failed++
		return 0, b.err
	}
	return len(p), nil
}

// TestPlain has what is printed where there is no terminal, or none to draw on.
func TestPlain(t *testing.T) {
	none := func() (int, int, bool) { return 0, 0, false }
	for name, o := range map[string]*prompt.Options{
		"no terminal": {Size: none, Env: nowhere},
		"NO_COLOR":    {Size: newEmulator(80, 24).size, Env: environment("NO_COLOR=1")},
		"dumb":        {Size: newEmulator(80, 24).size, Env: environment("TERM=dumb", "NO_COLOR=")},
		"a buffer":    nil, // which is no terminal
		"lines":       {},
	} {
		t.Run(name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				var out syncBuffer
				d := prompt.Terminal(&out, o)
				if name == "lines" {
					d = prompt.Lines(&out)
				}
				r := newRig(t, d, pending, slowDown, drop, drop, pending)
				r.server.Device = device(100, complete)
				r.flow.Browser = func(context.Context, string) error { return errors.New("no display") }
				golden(t, "plain.txt", r.frames(t, out.String, 0, 30*time.Second))
			})
		})
	}
	fakes.Bubble(t, noon, func(t *testing.T) { // a file is no terminal either
		f, err := os.Create(t.TempDir() + "/out")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := newRig(t, prompt.Terminal(f, &prompt.Options{Env: nowhere}), token)
		r.flow.Browser = func(context.Context, string) error { return nil }
		r.frames(t, func() string { return "" })
		if b, err := os.ReadFile(f.Name()); err != nil || !strings.HasSuffix(string(b), "The code is good for 15 minutes.\nA browser was opened.\n") {
			t.Errorf("%s, %v", b, err)
		}
	})
}

// A writer that nobody can ask is a terminal if its owner says so, of the size it then has.
func TestTerminalResized(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		e := newEmulator(80, 24)
		var width atomic.Int64
		width.Store(80)
		d := prompt.Terminal(e, &prompt.Options{Size: func() (int, int, bool) { return int(width.Load()), 24, true }, Env: nowhere})
		ctx, cancel := context.WithCancel(t.Context())
		if err := d.Prompt(ctx, auth.Prompt{UserCode: "A", VerificationURI: uri, ExpiresAt: noon.Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		width.Store(20)
		time.Sleep(time.Second)
		synctest.Wait()
		if s := e.screen(); !strings.HasSuffix(s, "\n0:59 left, not appr\n") {
			t.Errorf("%s", s)
		}
		cancel()
		d.Wait()
	})
}
