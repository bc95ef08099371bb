// Package glewlwyd starts Debian's glewlwyd as a device-flow authorization server for tests: a second opinion, written in
// C by people who know neither the SDK nor its other servers.
//
// It needs the Debian packages glewlwyd and sqlite3. What a client meets here and not everywhere:
//   - the issuer has a path, and its metadata is at the OpenID address alone, below the issuer's own path;
//   - the metadata names no grant refresh_token and no authentication none, though both work;
//   - errors are bare, {"error":"slow_down"}, and slow_down is the server's own: it wants to be polled once an interval;
//   - a device code that is unknown or spent is access_denied, like a user's no;
//   - the token is of type "bearer", in lower case, and the answer has a member iat;
//   - a refresh token that is dead, spent or revoked, is answered by 400 and nothing at all in the body; a spent one that
//     comes back ends the one that came of it too;
//   - revocation wants a secret: of a public client it is answered by 401 and nothing in the body.
//
// Its pages have no way to say no, so there is no Deny.
package glewlwyd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// What is registered at the server.
const (
	ClientID = "cli" // a public client: device code and refresh token

	ConfidentialID     = "cli-secret" // the same grants and revocation, with HTTP Basic
	ConfidentialSecret = "s3cret"

	User     = "alice" // who logs in; the subject of the tokens is another word, of the server's choice
	password = "alicepass1"
)

// The two programs, and what Debian installs with them.
const (
	program = "glewlwyd"
	tables  = "/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"
	modules = "/usr/lib/glewlwyd"
	static  = "/usr/share/glewlwyd/webapp/"
)

// readyTimeout is how long the server may take to accept connections; it takes a tenth of a second.
const readyTimeout = 20 * time.Second

// Config sets what the tests vary. The times must be whole seconds.
type Config struct {
	DeviceTTL time.Duration // life of a device code; if zero, 600 s
	AccessTTL time.Duration // life of an access token; if zero, 3600 s
	Interval  time.Duration // the interval in the device answer; if zero, 5 s
	MinPoll   time.Duration // zero or Interval: this server says slow_down to whoever polls sooner than the interval
}

// Server is a running glewlwyd.
type Server struct {
	base string // where its interface is, without a slash at the end
}

// Issuer is the server's issuer identifier, on loopback and with a path.
func (s *Server) Issuer() string { return s.base + "/" + pluginName }

// EarlyInSecond waits for the beginning of a second. The server compares the seconds in which two polls came, so that the
// second poll is not too soon for it, however soon, when another second has begun.
func EarlyInSecond() {
	now := time.Now()
	time.Sleep(now.Truncate(time.Second).Add(time.Second + 10*time.Millisecond).Sub(now))
}

// Start runs a server until the test ends. It fails the test when the server cannot run. Where it is not installed, the
// test is skipped, except in CI.
func Start(t testing.TB, config Config) *Server {
	t.Helper()
	for _, p := range []string{program, "sqlite3"} {
		if _, err := exec.LookPath(p); err == nil {
			continue
		}
		const advice = "install the Debian packages glewlwyd and sqlite3"
		if os.Getenv("CI") == "true" {
			t.Fatalf("glewlwyd: %s is missing: %s", p, advice)
		}
		t.Skipf("NOT TESTED AGAINST GLEWLWYD: %s is missing: %s", p, advice)
	}
	for name, d := range map[string]*time.Duration{
		"DeviceTTL": &config.DeviceTTL, "AccessTTL": &config.AccessTTL, "Interval": &config.Interval,
	} {
		if *d%time.Second != 0 || *d < 0 {
			t.Fatalf("glewlwyd: %s is %v: not a number of whole seconds", name, *d)
		}
		if *d == 0 {
			*d = map[string]time.Duration{
				"DeviceTTL": 10 * time.Minute, "AccessTTL": time.Hour, "Interval": 5 * time.Second,
			}[name]
		}
	}
	if config.MinPoll != 0 && config.MinPoll != config.Interval {
		t.Fatalf("glewlwyd: MinPoll is %v, and the interval %v: they are the same here", config.MinPoll, config.Interval)
	}

	dir := t.TempDir()
	if err := database(dir); err != nil {
		t.Fatalf("glewlwyd: the database: %v", err)
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("glewlwyd: %v", err)
	}
	s := &Server{base: "http://" + front.Addr().String() + "/" + prefix}
	// The server cannot be told to take a free port and say which. Between our letting go of one and its taking it,
	// somebody else may.
	for range 3 {
		var behind *url.URL
		if behind, err = run(t, dir, front.Addr().String()); err != nil {
			continue
		}
		oneByOne(t, front, behind)
		if err := configure(t.Context(), s.base, config); err != nil {
			t.Fatalf("glewlwyd: configuration: %v", err)
		}
		return s
	}
	front.Close()
	t.Fatalf("glewlwyd: %v", err)
	panic("unreachable")
}

// oneByOne passes requests on, one at a time: with SQLite the server answers 500 now and then when two of them want to
// write, and mixes up what one user does in two places.
func oneByOne(t testing.TB, front net.Listener, behind *url.URL) {
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }, Transport: transport}
	var mu sync.Mutex
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Bodies are read before that: a request that arrives slowly must not hold up the others.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "cannot read the request", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		defer mu.Unlock()
		proxy.ServeHTTP(w, r)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(front) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("glewlwyd: %v", err)
		}
		transport.CloseIdleConnections()
	})
}

// database makes the tables, and the administrator who may fill them.
func database(dir string) error {
	script, err := os.Open(tables)
	if err != nil {
		return err
	}
	defer script.Close()
	// Nothing in it has to outlive the test, so that no statement has to wait for the disk.
	cmd := exec.Command("sqlite3", "-bail", "-cmd", "PRAGMA synchronous=OFF", filepath.Join(dir, "glewlwyd.db"))
	cmd.Stdin = script
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("sqlite3: %w\n%s", err, out)
	}
	return nil
}

// run starts a server without clients or users, and returns where it is. To the world it is at front.
func run(t testing.TB, dir, front string) (*url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil {
		return nil, err
	}
	file, log := filepath.Join(dir, "glewlwyd.conf"), filepath.Join(dir, "glewlwyd.log")
	if err := os.WriteFile(file, settings(dir, log, front, address), 0o600); err != nil {
		return nil, err
	}

	// The server does not read its standard input, so a shell does: its end comes when this process dies in whatever way,
	// and ends the server too.
	cmd := exec.Command("sh", "-c",
		`exec 3<&0; { cat <&3; kill $$; } >/dev/null 2>&1 & exec "$0" --config-file="$1" 3<&- </dev/null`, program, file)
	var output bytes.Buffer // read only after Wait
	cmd.Stdout, cmd.Stderr = &output, &output
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	stop := func() {
		stdin.Close()
		cmd.Process.Kill() // asked politely, it takes a second
		<-exited
	}

	base := &url.URL{Scheme: "http", Host: address.String()}
	for deadline := time.Now().Add(readyTimeout); ; {
		select {
		case err := <-exited:
			stdin.Close()
			said, _ := os.ReadFile(log)
			return nil, fmt.Errorf("the server ended at once: %v\n%s%s", err, output.Bytes(), said)
		case <-time.After(20 * time.Millisecond):
		}
		// On a connection of its own: to whoever has taken the port before the server could, this is one request.
		if res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(base.String() + "/config"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			stop()
			return nil, fmt.Errorf("the server was not ready within %v", readyTimeout)
		}
	}
	t.Cleanup(func() {
		stop()
		if said, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("glewlwyd: the server's log:\n%s", said)
		}
	})
	return base, nil
}

// settings is the server's own configuration. What is about OAuth is not in it: see configure.
func settings(dir, log, front string, address *net.TCPAddr) []byte {
	return fmt.Appendf(nil, `port = %d
bind_address = "%s"
external_url = "http://%s"
login_url = "login.html"
api_prefix = "%s"
static_files_path = "%s"
log_mode = "file"
log_level = "WARNING"
log_file = "%s"
cookie_secure = 0
session_key = "session"
session_expiration = 3600
admin_scope = "g_admin"
profile_scope = "g_profile"
hash_algorithm = "SHA512"
database = { type = "sqlite3"; path = "%s"; };
user_module_path = "%[8]s/user"
client_module_path = "%[8]s/client"
user_auth_scheme_module_path = "%[8]s/scheme"
plugin_module_path = "%[8]s/plugin"
`, address.Port, address.IP, front, prefix, static, log, filepath.Join(dir, "glewlwyd.db"), modules)
}
