package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/coder/websocket"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
)

// glass is a terminal in raw mode: a line feed does not return the carriage. It is stdout and stderr at once.
type glass struct {
	mu    sync.Mutex
	lines [][]byte
	x     int
	odd   string // what a status line has no business to write
}

func (g *glass) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lines == nil {
		g.lines = [][]byte{nil}
	}
	for _, c := range p {
		line := &g.lines[len(g.lines)-1]
		switch {
		case c == '\r':
			g.x = 0
		case c == '\b':
			g.x--
		case c == '\n':
			g.lines = append(g.lines, nil)
		case c < ' ' || c > '~':
			g.odd += string(c)
		default:
			for len(*line) <= g.x {
				*line = append(*line, ' ')
			}
			(*line)[g.x] = c
			g.x++
		}
	}
	return len(p), nil
}

// screen is what is to be seen, and the cursor as a bar at the end of its line.
func (g *glass) screen() string {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	var lines []string
	for _, line := range g.lines {
		lines = append(lines, strings.TrimRight(string(line), " "))
	}
	if n := len(lines) - 1; n >= 0 && g.x == len(lines[n]) {
		lines[n] += "|"
	}
	return strings.Join(lines, "\n")
}

// sitting is somebody at a terminal, with a keyboard.
type sitting struct {
	glass
	keys     *io.PipeWriter
	restored int
	raw      bool
}

func sit(t *testing.T) (*sitting, tool) {
	s := &sitting{}
	in, keys := io.Pipe()
	s.keys = keys
	t.Cleanup(func() {
		if _, err := keys.Write([]byte("x")); err == nil {
			t.Error("the keyboard was not closed")
		}
	})
	c := &console{columns: func() int { return 100 }, shared: true, keys: func() (io.ReadCloser, func(), error) {
		s.raw = true
		return in, sync.OnceFunc(func() { s.raw = false; s.restored++ }), nil
	}}
	return s, tool{net: fakes.NewNetwork(t), out: &s.glass, err: &s.glass, console: c}
}

// begin runs a command line beside the test.
func begin(t *testing.T, h tool, args ...string) <-chan result {
	done := make(chan result, 1)
	go func() { done <- h.run(t.Context(), args...) }()
	return done
}

func TestTailStatus(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, verbose := range []bool{false, true} {
		fakes.Bubble(t, at, func(t *testing.T) {
			time.Local = time.UTC
			s, h := sit(t)
			server := fakes.NewStreamServer(
				fakes.StreamStep{Messages: []string{"a", "b\nb"}, Alive: 3 * time.Second, Then: fakes.Drop},
				fakes.StreamStep{Refuse: 503, RetryAfter: "40"},
				fakes.StreamStep{Refuse: 503, RetryAfter: "40"},
				fakes.StreamStep{Messages: []string{"c"}, Then: fakes.Stop},
			)
			h.net.Serve(t, "stream.test", server)
			args := []string{"tail", "wss://stream.test/"}
			if verbose {
				args = append(args, "--verbose")
			}
			done := begin(t, h, args...)
			shows := func(want string) {
				t.Helper()
				if got := s.screen(); !strings.HasSuffix(got, want) || !verbose && got != want {
					t.Errorf("the screen is\n%s\nin place of\n%s", got, want)
				}
			}
			time.Sleep(2500 * time.Millisecond)
			shows("a\nb\nb\nconnected since 12:00:00, last frame 2 s ago|")
			time.Sleep(9 * time.Second)
			tries := len(server.Attempts())
			if got := s.screen(); tries != 2 || !strings.Contains(got, "\nwaiting 0:3") || !strings.HasSuffix(got, "; press r to try now|") {
				t.Errorf("%d attempts, and the screen is\n%s", tries, got)
			}
			for range 2 { // the second wait is ended as the first one is
				if _, err := s.keys.Write([]byte("xr")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if tries := len(server.Attempts()); tries != 4 {
				t.Errorf("r has led to %d attempts", tries)
			}
			time.Sleep(time.Second)
			if !verbose {
				shows("a\nb\nb\nc\nconnected since 12:00:11, last frame 1 s ago|")
			}
			if _, err := s.keys.Write([]byte{ctrlC}); err != nil {
				t.Fatal(err)
			}
			if r := <-done; r.code != exitInterrupted || s.restored != 1 || s.raw {
				t.Errorf("exit %d, restored %d times", r.code, s.restored)
			}
			if got := s.screen(); strings.Contains(got, "connected since") || !strings.Contains(got, "\nheed: interrupted") || s.odd != "" {
				t.Errorf("at the end, odd %q:\n%s", s.odd, got)
			}
			if verbose != strings.Contains(s.screen(), "(503): wait 40s, local ") {
				t.Errorf("lines with --verbose %v:\n%s", verbose, s.screen())
			}
		})
	}
}

// TestTailStatusCountsFrames has pings and comments count, of which no message comes.
func TestTailStatusCountsFrames(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for address, handler := range map[string]http.Handler{
		"wss://stream.test/": fakes.NewStreamServer(fakes.StreamStep{Ping: 40 * time.Second, Then: fakes.Stop}),
		"https://stream.test/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				_ = http.NewResponseController(w).Flush()
				time.Sleep(40 * time.Second)
				_, _ = io.WriteString(w, ": ping\n\n")
			}
		}),
	} {
		fakes.Bubble(t, at, func(t *testing.T) {
			time.Local = time.UTC
			s, h := sit(t)
			h.net.Serve(t, "stream.test", handler)
			done := begin(t, h, "tail", address)
			for _, c := range []struct {
				sleep time.Duration
				want  string
			}{
				{30 * time.Second, "no frame yet"},
				{13 * time.Second, "last frame 3 s ago"},
				{36 * time.Second, "last frame 39 s ago"},
				{3 * time.Second, "last frame 2 s ago"},
			} {
				time.Sleep(c.sleep)
				if got := s.screen(); got != "connected since 12:00:00, "+c.want+"|" {
					t.Errorf("%s: the screen is\n%s\nin place of %s", address, got, c.want)
				}
			}
			if _, err := s.keys.Write([]byte{ctrlC}); err != nil {
				t.Fatal(err)
			}
			<-done
			time.Sleep(time.Minute) // the server looks up
		})
	}
}

// TestTailStatusEnds has the terminal restored by each way out.
func TestTailStatusEnds(t *testing.T) {
	for name, c := range map[string]struct {
		step fakes.StreamStep
		args []string
		code int
		last string
	}{
		"count":     {fakes.StreamStep{Messages: []string{"a"}, Then: fakes.Stop}, []string{"--count", "1"}, 0, "a\n|"},
		"not found": {fakes.StreamStep{Refuse: 404}, nil, 2, "heed: stream: "},
	} {
		t.Run(name, func(t *testing.T) {
			fakes.Bubble(t, time.Time{}, func(t *testing.T) {
				s, h := sit(t)
				h.net.Serve(t, "stream.test", fakes.NewStreamServer(c.step))
				r := h.run(t.Context(), append([]string{"tail", "wss://stream.test/"}, c.args...)...)
				if r.code != c.code || s.restored != 1 || !strings.HasPrefix(s.screen(), c.last) {
					t.Errorf("exit %d, restored %d times, screen\n%s", r.code, s.restored, s.screen())
				}
			})
		})
	}
}

// TestTailPlain has what is told in lines where nothing is to be drawn.
func TestTailPlain(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{map[string]string{"NO_COLOR": "1"}, nil, "connected\n"},
		{map[string]string{"TERM": "dumb"}, nil, "connected\n"},
		{nil, []string{"--json"}, `{"attempt":1,"event":"connected"}` + "\n"},
	} {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			s, h := sit(t)
			_ = s.keys.Close() // nobody listens
			h.out, h.err, h.env = nil, nil, c.env
			h.net.Serve(t, "stream.test", fakes.NewStreamServer(fakes.StreamStep{Messages: []string{"a"}, Then: fakes.Stop}))
			r := h.run(t.Context(), append([]string{"tail", "wss://stream.test/", "--count", "1"}, c.args...)...)
			if r.code != 0 || r.stderr != c.want || s.raw || s.restored != 0 {
				t.Errorf("exit %d, stderr %q", r.code, r.stderr)
			}
		})
	}
}

func TestTailSend(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		n := fakes.NewNetwork(t)
		var got [][]string // of each connection
		n.Serve(t, "stream.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.CloseNow()
			at := len(got)
			got = append(got, nil)
			if at == 0 {
				for range 2 {
					_, b, err := c.Read(r.Context())
					if err != nil {
						t.Error(err)
					}
					got[at] = append(got[at], string(b))
				}
			} else {
				time.Sleep(time.Second) // for what should not come
			}
			_ = c.Write(r.Context(), websocket.MessageText, []byte("done"))
			if at == 1 {
				if _, b, err := c.Read(r.Context()); err == nil {
					got[at] = append(got[at], string(b))
				}
			}
		}))
		r := tool{net: n, in: strings.NewReader("not this\n")}.run(t.Context(),
			"tail", "wss://stream.test/", "--send", "one, two", "--send", "three", "--count", "2")
		if r.code != 0 || r.stdout != "done\ndone\n" {
			t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
		}
		synctest.Wait()
		if len(got) != 2 || !slices.Equal(got[0], []string{"one, two", "three"}) || got[1] != nil {
			t.Errorf("the server got %q", got)
		}
	})
}

// TestTailSendsBeforeItEnds has the count of messages come up at once, before the server has taken in what is sent. A server
// that never does is not waited for for ever.
func TestTailSendsBeforeItEnds(t *testing.T) {
	for _, takes := range []int{3, 1} {
		fakes.Bubble(t, time.Time{}, func(t *testing.T) {
			var got []string
			transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe() // without a buffer
				go func() {
					_ = http.Serve(&oneConn{conn: there}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						c, err := websocket.Accept(w, r, nil)
						if err != nil {
							t.Error(err)
							return
						}
						defer c.CloseNow()
						_ = c.Write(context.Background(), websocket.MessageText, []byte("hello"))
						for range takes {
							time.Sleep(time.Second)
							_, b, _ := c.Read(context.Background())
							got = append(got, string(b))
						}
						time.Sleep(time.Minute)
					}))
				}()
				return here, nil
			}}
			began := time.Now()
			r := tool{transport: transport}.run(t.Context(), "tail", "--json", "ws://localhost/", "--count", "1", "--send", "a", "--send", "b", "--send", "c")
			took := time.Since(began).Round(time.Second)
			synctest.Wait()
			if r.code != 0 || r.stdout != `{"data":"hello"}`+"\n" {
				t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
			}
			if want := []string{"a", "b", "c"}[:takes]; !slices.Equal(got, want) {
				t.Errorf("the server got %q, want %q", got, want)
			}
			told := strings.Count(r.stderr, `"event":"not_sent"`)
			if takes == 3 && (told != 0 || took != 3*time.Second) || takes == 1 && (told != 2 || took != 5*time.Second) {
				t.Errorf("it took %v, and told\n%s", took, r.stderr)
			}
			time.Sleep(time.Hour)
		})
	}
}

// oneConn is a listener that has one connection.
type oneConn struct {
	net.Listener
	conn net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, io.EOF
	}
	defer func() { l.conn = nil }()
	return l.conn, nil
}

func (l *oneConn) Close() error { return nil }

func TestTailSendNeedsWebSocket(t *testing.T) {
	r := tool{}.run(t.Context(), "tail", "https://stream.test/", "--send", "x")
	if r.code != exitUsage || !strings.Contains(r.stderr, "--send is for WebSockets") {
		t.Errorf("exit %d, %q", r.code, r.stderr)
	}
}

func TestTailStatusLine(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)
	up := tailStatus{since: now.Add(-2 * time.Hour)}
	spoke := tailStatus{since: up.since, last: now.Add(-3723 * time.Second)}
	w := delay.Reconnect.Compose(time.Second, delay.Asked(30*time.Second))
	w.Cause, w.Until = "503\x1b[2J\u4e16", now.Add(29001*time.Millisecond)
	waits := tailStatus{wait: w, keys: true}
	silent := delay.Wait{Local: time.Second, For: time.Second, Cause: "no answer", Until: now.Add(time.Second)}
	refused := tailStatus{wait: silent, why: innermost(&stream.AttemptError{Err: errors.New("dial: connection refused")})}
	for _, c := range []struct {
		status  tailStatus
		columns int
		want    string
	}{
		{tailStatus{}, 80, "connecting"},
		{tailStatus{}, 10, ""},
		{up, 80, "connected since 10:00:00, no frame yet"},
		{spoke, 0, "connected since 10:00:00, last frame 1:02:03 ago"},
		{tailStatus{since: up.since, last: now.Add(-59999 * time.Millisecond)}, 0, "connected since 10:00:00, last frame 59 s ago"},
		{tailStatus{since: up.since, last: now.Add(-time.Minute)}, 0, "connected since 10:00:00, last frame 1:00 ago"},
		{spoke, 30, "connected since 10:00:00"},
		{spoke, 11, ""},
		{spoke, 12, ""},
		{waits, 120, "waiting 0:30 (503[2J?): " + w.Explain() + "; press r to try now"},
		{refused, 120, "waiting 0:01 (no answer, connection refused): " + silent.Explain()},
		{refused, 45, "waiting 0:01 (no answer, connection refused)"},
		{refused, 30, "waiting 0:01 (no answer)"},
		{waits, 46, "waiting 0:30 (503[2J?); press r to try now"},
		{waits, 40, "waiting 0:30; press r to try now"},
		{waits, 20, "waiting 0:30"},
	} {
		if got := c.status.line(now, c.columns); got != c.want && (c.want != "" || len(got) >= c.columns) {
			t.Errorf("%d columns: %q in place of %q", c.columns, got, c.want)
		}
	}
}

// TestTailAtATerminal has nothing that a server sends move the cursor, or wipe the line below.
func TestTailAtATerminal(t *testing.T) {
	const sent = "a\x1b[2J\r\u009b2J\x7f\x9b\tb"
	for shared, want := range map[bool]string{true: `a\x1b[2J\r\u009b2J\x7f` + "\ufffd\tb\n", false: sent + "\n"} {
		fakes.Bubble(t, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), func(t *testing.T) {
			s, h := sit(t)
			var out strings.Builder
			h.out, h.console.shared = &out, shared
			h.net.Serve(t, "stream.test", fakes.NewStreamServer(fakes.StreamStep{Messages: []string{sent}, Then: fakes.Stop}))
			if r := <-begin(t, h, "tail", "--count", "1", "wss://stream.test/"); r.code != 0 {
				t.Errorf("exit %d: %s", r.code, s.screen())
			}
			if got := strings.ReplaceAll(out.String(), "\r\n", "\n"); got != want {
				t.Errorf("shared %v: %q, want %q", shared, got, want)
			}
		})
	}
}

// TestJSONAtATerminal has nothing move the cursor there either, and a program reads what was sent.
func TestJSONAtATerminal(t *testing.T) {
	const sent = "a\x1b[2J\r\u009b2J\x7f\tb\u00e9"
	fakes.Bubble(t, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), func(t *testing.T) {
		n := fakes.NewNetwork(t)
		n.Serve(t, "stream.test", fakes.NewStreamServer(fakes.StreamStep{Messages: []string{sent}, Then: fakes.Stop}))
		r := tool{net: n}.run(t.Context(), "tail", "--json", "--count", "1", "wss://stream.test/")
		if strings.ContainsFunc(strings.TrimSuffix(r.stdout, "\n"), unicode.IsControl) {
			t.Errorf("%q", r.stdout)
		}
		var line struct{ Data string }
		if err := json.Unmarshal([]byte(r.stdout), &line); err != nil || line.Data != sent {
			t.Errorf("%q: %v", line.Data, err)
		}
	})
}
