//go:build unix

// Package nchan starts Debian's nginx with its module nchan as an event server for tests: a hub for event streams that
// keeps what was published and replays it after Last-Event-ID, written in C by people who do not know the SDK.
//
// It needs the Debian packages nginx-light and libnginx-mod-nchan. What a client meets here and not everywhere:
//   - ids are opaque and have a colon in them, 1795988561:1: the second, and a number within it;
//   - a heartbeat is a comment and an event of the type ping without data, of which nothing is to be delivered;
//   - a stream ends with a comment, ":410: 410 Gone", when its channel is deleted, and then in good order;
//   - what is published is kept in memory: a server that was killed knows nothing, and takes a Last-Event-ID of the time
//     before as if all were well. The gap is silent, and no client can tell.
package nchan

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// PingInterval is how often an idle stream has a heartbeat.
const PingInterval = time.Second

// GoodBearer is the one token that the streams of [Server.Guarded] take.
const GoodBearer = "good"

// SocketProtocol is the subprotocol with which messages over WebSocket have their ids.
const SocketProtocol = "ws+meta.nchan"

const (
	program = "nginx"
	module  = "/usr/lib/nginx/modules/ngx_nchan_module.so"
	// Debian has it where only root's PATH looks.
	sbin = "/usr/sbin/nginx"
)

// readyTimeout is how long the server may take to answer; it takes a tenth of a second.
const readyTimeout = 20 * time.Second

//go:embed nginx.conf
var template string

// Config sets what the tests vary.
type Config struct {
	Refusal    int    // the status that [Server.Refuse] answers with; if zero, 503
	RetryAfter string // the header that comes with it
}

// Server is a running nginx.
type Server struct {
	t      testing.TB
	dir    string
	binary string
	base   string
	client *http.Client

	process *process // nil while it is killed
}

// process is one run of the server: nginx in a single process, and a shell in the same group that outlives no test.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *bytes.Buffer // complete once it has exited
	exited chan error
}

// Start runs a server until the test ends. It fails the test when the server cannot run. Where it is not installed, the
// test is skipped, except in CI.
func Start(t testing.TB, config Config) *Server {
	t.Helper()
	binary, err := exec.LookPath(program)
	if err != nil {
		binary, err = exec.LookPath(sbin)
	}
	if err == nil {
		_, err = os.Stat(module)
	}
	if err != nil {
		const advice = "install the Debian packages nginx-light and libnginx-mod-nchan"
		if os.Getenv("CI") == "true" {
			t.Fatalf("nchan: %v: %s", err, advice)
		}
		t.Skipf("NOT TESTED AGAINST NCHAN: %v: %s", err, advice)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	s := &Server{
		t: t, dir: t.TempDir(), binary: binary,
		client: &http.Client{Transport: transport, Timeout: 10 * time.Second},
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(s.dir, "error.log"))
			t.Logf("nchan: the server's log:\n%s", log)
		}
	})
	if config.Refusal == 0 {
		config.Refusal = http.StatusServiceUnavailable
	}
	// Below the ports that the system gives to outgoing connections: none of them can take it while the server is killed.
	// It can be taken all the same, by another test.
	for range 5 {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		s.base = "http://127.0.0.1:" + port
		if err = s.configure(port, config); err != nil {
			break
		}
		if err = s.run(); err == nil {
			return s
		}
	}
	t.Fatalf("nchan: %v", err)
	panic("unreachable")
}

func (s *Server) configure(port string, config Config) error {
	user := "" // only root may say which
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	text := strings.NewReplacer(
		"@MODULE@", module, "@USER@", user, "@DIR@", s.dir, "@PORT@", port,
		"@PING@", strconv.Itoa(int(PingInterval/time.Second)), "@BEARER@", GoodBearer,
		"@REFUSAL@", strconv.Itoa(config.Refusal), "@RETRY@", strconv.Quote(config.RetryAfter),
	).Replace(template)
	return os.WriteFile(filepath.Join(s.dir, "nginx.conf"), []byte(text), 0o600)
}

// supervise runs the server in the foreground until it ends. When the test process dies in whatever way, the other end of
// the pipe closes, and that ends the group.
const supervise = `exec 3<&0; (cat <&3; kill -KILL 0) >/dev/null 2>&1 & exec "$0" -p "$1" -c "$1/nginx.conf" 3<&-`

// run starts the server and waits until it answers.
func (s *Server) run() error {
	cmd := exec.Command("sh", "-c", supervise, s.binary, s.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, stdin: stdin, stderr: &stderr, exited: make(chan error, 1)}
	go func() { p.exited <- cmd.Wait() }()
	s.process = p
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-p.exited:
			p.exited <- err
			s.Kill()
			return fmt.Errorf("the server ended at once: %w\n%s", err, &stderr)
		default:
		}
		// The directory is in the answer: it could be somebody else's server.
		if body, err := s.get("/ready"); err == nil && body == s.dir {
			return nil
		}
	}
	s.Kill()
	return errors.New("the server did not answer in time")
}

func (s *Server) get(path string) (string, error) {
	res, err := s.client.Get(s.base + path)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

// Addr is where the server listens, host and port.
func (s *Server) Addr() string { return strings.TrimPrefix(s.base, "http://") }

// Stream is the address of a channel's events. Whoever comes without an id gets all that the server has.
func (s *Server) Stream(channel string) string { return s.base + "/sub/" + channel }

// Socket is the address of a channel's messages over WebSocket. With the subprotocol [SocketProtocol], a message begins with
// lines of id and content-type, and whoever asks with an id in the query, as last_event_id, gets what came after it.
func (s *Server) Socket(channel string) string {
	return "ws" + strings.TrimPrefix(s.base, "http") + "/ws/" + channel
}

// Guarded is [Server.Stream] for the bearer of [GoodBearer] alone. Everybody else is answered by 401.
func (s *Server) Guarded(channel string) string { return s.base + "/auth/" + channel }

// Gone is an address that is answered by 410.
func (s *Server) Gone() string { return s.base + "/gone" }

// Publish sends an event to a channel. If kind is empty, it has no type.
func (s *Server) Publish(channel, kind, data string) {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.base+"/pub/"+channel, strings.NewReader(data))
	if err != nil {
		s.t.Fatalf("nchan: %v", err)
	}
	req.Header.Set("Content-Type", "text/plain")
	if kind != "" {
		req.Header.Set("X-EventSource-Event", kind)
	}
	s.do(req, http.StatusCreated, http.StatusAccepted)
}

// Delete ends a channel and the streams of those who listen to it.
func (s *Server) Delete(channel string) {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodDelete, s.base+"/pub/"+channel, nil)
	if err != nil {
		s.t.Fatalf("nchan: %v", err)
	}
	s.do(req, http.StatusOK)
}

func (s *Server) do(req *http.Request, want ...int) {
	s.t.Helper()
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Errorf("nchan: %v", err)
		return
	}
	defer res.Body.Close()
	if slices.Contains(want, res.StatusCode) {
		return
	}
	body, _ := io.ReadAll(res.Body)
	s.t.Errorf("nchan: %s was answered by %s %s", req.Method, res.Status, bytes.TrimSpace(body))
}

// Refuse has the server answer whoever comes for a stream with the refusal of its Config, or stop doing so.
func (s *Server) Refuse(yes bool) {
	s.t.Helper()
	name := filepath.Join(s.dir, "refuse")
	var err error
	if yes {
		err = os.WriteFile(name, nil, 0o600)
	} else {
		err = os.Remove(name)
	}
	if err != nil {
		s.t.Errorf("nchan: %v", err)
	}
}

// Kill ends the server without a word, and with it all that was published.
func (s *Server) Kill() {
	p := s.process
	if p == nil {
		return
	}
	s.process = nil
	s.kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.stdin.Close()
	<-p.exited
}

// Restart starts the server again after Kill, on the same port and with nothing remembered.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.run(); err != nil {
		s.t.Fatalf("nchan: %v", err)
	}
}

// Freeze has the server do nothing at all, while its connections stay open and the system goes on to accept others for it.
func (s *Server) Freeze() { s.kill(s.process.cmd.Process.Pid, syscall.SIGSTOP) }

// Thaw ends Freeze.
func (s *Server) Thaw() { s.kill(s.process.cmd.Process.Pid, syscall.SIGCONT) }

func (s *Server) kill(pid int, signal syscall.Signal) {
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.t.Errorf("nchan: %v: %v", signal, err)
	}
}
