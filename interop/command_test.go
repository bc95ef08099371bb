package interop_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// build builds the command, once for all tests. TestMain removes the folder.
var build = sync.OnceValues(func() (bin string, err error) {
	if buildDir, err = os.MkdirTemp("", "heed-interop-"); err != nil {
		return "", err
	}
	bin = filepath.Join(buildDir, "heed")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "./cmd/heed")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

var buildDir string

// process is the command as a process.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	ended  func() error
	stdout bytes.Buffer // to be read after the end
	lines  chan string  // of stderr, closed at its end
	stderr []string     // the lines that were taken
}

// start runs the command in an environment that has nothing of the test's.
func start(t *testing.T, token string, args ...string) *process {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	p := &process{t: t, cmd: exec.CommandContext(ctx, bin, args...), lines: make(chan string)}
	p.cmd.Env = []string{"HOME=" + t.TempDir()}
	if token != "" {
		p.cmd.Env = append(p.cmd.Env, "HEED_TOKEN="+token)
	}
	p.cmd.Stdout = &p.stdout
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	p.ended = sync.OnceValue(func() error {
		for ok := true; ok; {
			_, ok = p.line()
		}
		return p.cmd.Wait()
	})
	t.Cleanup(func() {
		cancel()
		_ = p.ended()
	})
	return p
}

// line takes the next line of stderr.
func (p *process) line() (string, bool) {
	line, ok := <-p.lines
	if ok {
		p.stderr = append(p.stderr, line)
	}
	return line, ok
}

// wait waits for the end and returns the exit code, -1 if it was killed.
func (p *process) wait() int {
	p.t.Helper()
	err := p.ended()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.t.Errorf("heed: %v", err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// wantEnd checks the exit code, and how many lines the command still had to say on stderr.
func (p *process) wantEnd(code, lines int) {
	p.t.Helper()
	before := len(p.stderr)
	if got := p.wait(); got != code || len(p.stderr)-before != lines {
		p.t.Errorf("exit code %d and %d lines, want %d and %d\nstdout: %s\nstderr: %s",
			got, len(p.stderr)-before, code, lines, &p.stdout, strings.Join(p.stderr, "\n"))
	}
	for _, line := range p.stderr[before:] {
		if !strings.HasPrefix(line, "heed: ") {
			p.t.Errorf("the last word is %q", line)
		}
	}
}

// code waits for the code that the user is shown.
func (p *process) code() (code shown) {
	p.t.Helper()
	for {
		line, ok := p.line()
		if !ok {
			p.t.Fatalf("no code was shown: %q", p.stderr)
		}
		if err := json.Unmarshal([]byte(line), &code); err != nil {
			p.t.Errorf("%q is not JSON: %v", line, err)
		}
		if code.Event == "code_issued" {
			return code
		}
	}
}

type shown struct {
	Event     string
	UserCode  string    `json:"user_code"`
	Address   string    `json:"verification_uri"`
	Complete  string    `json:"verification_uri_complete"`
	ExpiresAt time.Time `json:"expires_at"`
}

// login starts `heed login` at the spy's endpoints.
func (y *spy) login(t *testing.T, more ...string) *process {
	t.Helper()
	args := []string{
		"login", "--json", "--device-url", y.deviceURL, "--token-url", y.tokenURL, "--client-id", publicID,
		"--store", "memory", "--no-browser", "--scope", strings.Join(scopes, " "),
	}
	return start(t, "", append(args, more...)...)
}

// testCommand runs the command as a process.
func testCommand(t *testing.T, s *server) {
	t.Run("login and get", func(t *testing.T) {
		t.Parallel()
		testLoginAndGet(t, s)
	})
	t.Run("denied", func(t *testing.T) {
		t.Parallel()
		p := newSpy(t, s).login(t)
		code := p.code()
		if err := s.Deny(t.Context(), code.Address, code.UserCode); err != nil {
			t.Fatal(err)
		}
		p.wantEnd(4, 1)
		if p.stdout.Len() > 0 {
			t.Errorf("stdout: %s", &p.stdout)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		p := newSpy(t, s).login(t)
		p.code()
		began := time.Now()
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		p.wantEnd(130, 1)
		if took := time.Since(began); took > 5*time.Second || p.stdout.Len() > 0 {
			t.Errorf("after %v, with stdout %q", took, &p.stdout)
		}
	})
	t.Run("unknown client", func(t *testing.T) {
		t.Parallel()
		p := newSpy(t, s).login(t, "--client-id", "nobody")
		p.wantEnd(7, 1)
	})
	t.Run("get with a bad token", func(t *testing.T) {
		t.Parallel()
		const token = "nonsense-0123456789"
		p := start(t, token, "get", s.userInfoURL)
		p.wantEnd(3, 1)
		if text := p.stdout.String() + strings.Join(p.stderr, "\n"); strings.Contains(text, token) || p.stdout.Len() > 0 {
			t.Errorf("the output is %s", text)
		}
	})
}

// testLoginAndGet logs in and uses the token, which nobody could know who had not listened in on the command.
func testLoginAndGet(t *testing.T, s *server) {
	y := newSpy(t, s)
	p := y.login(t, "--verbose")
	code := p.code()
	if code.ExpiresAt.Before(time.Now()) {
		t.Errorf("the code: %+v", code)
	}
	if err := s.Approve(t.Context(), code.Complete, code.UserCode); err != nil {
		t.Fatal(err)
	}
	if exit := p.wait(); exit != 0 {
		t.Fatalf("exit code %d: %q", exit, p.stderr)
	}

	var result struct {
		TokenType   string    `json:"token_type"`
		Expiry      time.Time `json:"expiry"`
		ExpiresIn   int64     `json:"expires_in"`
		Scope       string    `json:"scope"`
		Refreshable bool      `json:"refreshable"`
	}
	if err := json.Unmarshal(p.stdout.Bytes(), &result); err != nil || strings.Count(p.stdout.String(), "\n") != 1 {
		t.Errorf("stdout is not one line of JSON: %v: %s", err, &p.stdout)
	}
	if result.TokenType != "Bearer" || !result.Refreshable || result.ExpiresIn < 290 || time.Until(result.Expiry) <= 0 ||
		len(strings.Fields(result.Scope)) != len(scopes) {
		t.Errorf("the result is %s", &p.stdout)
	}
	waits := 0
	for _, line := range p.stderr {
		var event struct {
			Event string
			Wait  float64
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Errorf("a line of stderr is not JSON: %q", line)
		}
		if event.Event == "wait" {
			waits++
			if event.Wait < paced.Interval.Seconds() {
				t.Errorf("a wait that is too short: %s", line)
			}
		}
	}
	if waits == 0 {
		t.Errorf("no wait was told: %q", p.stderr)
	}

	token := y.secret("access_token")
	for _, name := range []string{"device_code", "access_token", "refresh_token", "id_token"} {
		if secret := y.secret(name); secret == "" || strings.Contains(p.stdout.String()+strings.Join(p.stderr, "\n"), secret) {
			t.Errorf("the %s is %d bytes long and in the output", name, len(secret))
		}
	}

	get := start(t, token, "get", s.userInfoURL)
	get.wantEnd(0, 0)
	var info struct{ Sub string }
	if err := json.Unmarshal(get.stdout.Bytes(), &info); err != nil || info.Sub != user {
		t.Errorf("heed get: %v: %s", err, &get.stdout)
	}
}

// spy is a proxy between the command and a server. It knows what the command must not show.
type spy struct {
	deviceURL, tokenURL string

	mu      sync.Mutex
	secrets map[string]string
}

func newSpy(t *testing.T, s *server) *spy {
	target, err := url.Parse(s.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	y := &spy{secrets: map[string]string{}}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: y.listen,
		Transport:      newClient(t).Transport,
	})
	t.Cleanup(proxy.Close)
	y.deviceURL = strings.Replace(s.deviceURL, s.Issuer(), proxy.URL, 1)
	y.tokenURL = strings.Replace(s.tokenURL, s.Issuer(), proxy.URL, 1)
	return y
}

// listen keeps the strings of a JSON answer.
func (y *spy) listen(res *http.Response) error {
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	var object map[string]any
	if json.Unmarshal(body, &object) != nil {
		return nil
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for name, value := range object {
		if text, ok := value.(string); ok {
			y.secrets[name] = text
		}
	}
	return nil
}

func (y *spy) secret(name string) string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.secrets[name]
}

// TestTail follows a server that says two things on each connection and then ends it: with 1011, after which one comes back
// within a second or so.
func TestTail(t *testing.T) {
	t.Parallel()
	const token = "tail-0123456789"
	var said atomic.Int64
	mux := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "bad token", http.StatusUnauthorized)
			return
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		for range 2 {
			text := "message " + strconv.FormatInt(said.Add(1), 10)
			if err := ws.Write(r.Context(), websocket.MessageText, []byte(text)); err != nil {
				t.Errorf("the server: %v", err)
			}
		}
		ws.Close(websocket.StatusInternalError, "on purpose")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	address := strings.Replace(server.URL, "http", "ws", 1)

	p := start(t, token, "tail", "--json", "--count", "3", address)
	if exit := p.wait(); exit != 0 {
		t.Errorf("exit code %d", exit)
	}
	want := `{"data":"message 1"}` + "\n" + `{"data":"message 2"}` + "\n" + `{"data":"message 3"}` + "\n"
	if p.stdout.String() != want {
		t.Errorf("stdout: %s", &p.stdout)
	}
	var events []string
	for _, line := range p.stderr {
		var event struct{ Event string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Errorf("a line of stderr is not JSON: %q", line)
		}
		events = append(events, event.Event)
	}
	if got := strings.Join(events, " "); got != "connected disconnected wait connected" {
		t.Errorf("the events were %s: %q", got, p.stderr)
	}
	if strings.Contains(p.stdout.String()+strings.Join(p.stderr, "\n"), token) {
		t.Error("the token is in the output")
	}

	refused := start(t, "bad-0123456789", "tail", address)
	if exit := refused.wait(); exit != 3 || refused.stdout.Len() > 0 {
		t.Errorf("with a bad token, exit code %d: %q", exit, refused.stderr)
	}
}
