//go:build unix

// Package nginx runs Debian's nginx for the packages that make a server of it, each by a configuration of its own.
package nginx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	program = "nginx"
	// Debian has it where only root's PATH looks.
	sbin = "/usr/sbin/nginx"
)

// readyTimeout is how long the server may take to answer; it takes a tenth of a second.
const readyTimeout = 20 * time.Second

// Config is what a server is made of.
type Config struct {
	Name     string   // of the server, in what tests are told
	Packages string   // the Debian packages that it needs
	Modules  []string // files that are to be loaded

	// HTTP is the content of the block of that name. In it, @DIR@ stands for the server's folder, and @PORT@ for its port on
	// loopback, where a plain GET of /ready has to answer with the name of the folder. @TLS@ is a port for TLS.
	HTTP string
}

// Server is an nginx that runs until the test ends.
type Server struct {
	// Dir is the server's own folder. It is there before the server.
	Dir string

	t      testing.TB
	name   string
	binary string
	addr   string
	tls    string
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
// test is skipped, except in CI. prepare, if not nil, puts into its folder what it needs.
func Start(t testing.TB, c Config, prepare func(dir string) error) *Server {
	t.Helper()
	binary, err := exec.LookPath(program)
	if err != nil {
		binary, err = exec.LookPath(sbin)
	}
	for _, m := range c.Modules {
		if err == nil {
			_, err = os.Stat(m)
		}
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s: %v: install the Debian packages %s", c.Name, err, c.Packages)
		}
		t.Skipf("NOT TESTED AGAINST %s: %v: install the Debian packages %s", strings.ToUpper(c.Name), err, c.Packages)
	}
	s := &Server{
		Dir: t.TempDir(), t: t, name: c.Name, binary: binary,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second},
	}
	if prepare != nil {
		if err := prepare(s.Dir); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(s.Dir, "error.log"))
			t.Logf("%s: the server's log:\n%s", s.name, log)
		}
	})
	// Below the ports that the system gives to outgoing connections: none of them can take it while the server is killed.
	// It can be taken all the same, by another test.
	for range 5 {
		port, tls := strconv.Itoa(20000+rand.IntN(6000)), strconv.Itoa(26000+rand.IntN(6000))
		s.addr, s.tls = "127.0.0.1:"+port, "127.0.0.1:"+tls
		text := strings.NewReplacer("@DIR@", s.Dir, "@PORT@", port, "@TLS@", tls).Replace(c.text())
		if err = os.WriteFile(filepath.Join(s.Dir, "nginx.conf"), []byte(text), 0o600); err != nil {
			break
		}
		if err = s.run(); err == nil {
			return s
		}
	}
	t.Fatalf("%s: %v", s.name, err)
	panic("unreachable")
}

func (c *Config) text() string {
	var b strings.Builder
	for _, m := range c.Modules {
		fmt.Fprintf(&b, "load_module %s;\n", m)
	}
	if os.Geteuid() == 0 { // only root may say which
		b.WriteString("user root;\n")
	}
	fmt.Fprintf(&b, `daemon off;
master_process off;
pid @DIR@/nginx.pid;
error_log @DIR@/error.log warn;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path @DIR@/body;
  proxy_temp_path @DIR@/proxy;
  fastcgi_temp_path @DIR@/fastcgi;
  uwsgi_temp_path @DIR@/uwsgi;
  scgi_temp_path @DIR@/scgi;
%s}
`, c.HTTP)
	return b.String()
}

// supervise runs the server in the foreground until it ends. When the test process dies in whatever way, the other end of
// the pipe closes, and that ends the group.
const supervise = `exec 3<&0; (cat <&3; kill -KILL 0) >/dev/null 2>&1 & exec "$0" -p "$1" -c "$1/nginx.conf" 3<&-`

// run starts the server and waits until it answers.
func (s *Server) run() error {
	cmd := exec.Command("sh", "-c", supervise, s.binary, s.Dir)
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
		if body, err := s.get("/ready"); err == nil && body == s.Dir {
			return nil
		}
	}
	s.Kill()
	return errors.New("the server did not answer in time")
}

func (s *Server) get(path string) (string, error) {
	res, err := s.client.Get("http://" + s.addr + path)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

// Addr is where the server listens, host and port.
func (s *Server) Addr() string { return s.addr }

// TLSAddr is where it listens with TLS, if its configuration says so.
func (s *Server) TLSAddr() string { return s.tls }

// Kill ends the server without a word.
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
		s.t.Fatalf("%s: %v", s.name, err)
	}
}

// Freeze has the server do nothing at all, while its connections stay open and the system goes on to accept others for it.
func (s *Server) Freeze() { s.kill(s.process.cmd.Process.Pid, syscall.SIGSTOP) }

// Thaw ends Freeze.
func (s *Server) Thaw() { s.kill(s.process.cmd.Process.Pid, syscall.SIGCONT) }

func (s *Server) kill(pid int, signal syscall.Signal) {
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.t.Errorf("%s: %v: %v", s.name, signal, err)
	}
}
