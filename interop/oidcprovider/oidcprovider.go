// Package oidcprovider starts npm oidc-provider as a device-flow authorization server for tests.
//
// It needs Node.js 20 or later, and the package installed once with `npm ci` in this folder. What a client meets here and
// not everywhere: the device answer has no interval unless Config asks for one; a code that was approved in time but
// polled too late is expired; a spent refresh token that comes back revokes the whole grant; asking for Resource narrows
// the granted scope.
package oidcprovider

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What server.mjs has registered.
const (
	ClientID = "cli" // a public client: device code and refresh token

	ConfidentialID     = "cli-secret" // the same grants, with HTTP Basic
	ConfidentialSecret = "s3cret"

	IntrospectorID     = "rs" // may ask about anybody's tokens, with HTTP Basic
	IntrospectorSecret = "rs-secret"

	User     = "alice"           // who logs in: the subject of every token
	Resource = "urn:example:api" // asking for it gives a JWT access token with at most `read write`
)

// readyTimeout is how long node may take to start; it takes about two seconds on two busy cores.
const readyTimeout = time.Minute

// Config sets what the tests vary. DeviceTTL, AccessTTL and Interval must be whole seconds.
type Config struct {
	DeviceTTL time.Duration // life of a device code; if zero, 600 s
	AccessTTL time.Duration // life of an access token; if zero, 3600 s
	Interval  time.Duration // the interval in the device answer; if zero, there is none
	MinPoll   time.Duration // a pending poll sooner than this after the last gets slow_down; if zero, none does
}

// Server is a running oidc-provider.
type Server struct {
	issuer string
}

// Issuer is the server's issuer identifier, on loopback and without a path.
func (s *Server) Issuer() string { return s.issuer }

// Start runs a server until the test ends. It fails the test when the server cannot run, and never skips it.
func Start(t testing.TB, config Config) *Server {
	t.Helper()
	env := append(os.Environ(), "PORT=0", "EXIT_ON_EOF=1")
	for name, d := range map[string]time.Duration{
		"DEVICE_TTL": config.DeviceTTL, "ACCESS_TTL": config.AccessTTL, "ADD_INTERVAL": config.Interval,
	} {
		if d%time.Second != 0 || d < 0 {
			t.Fatalf("oidcprovider: %s is %v: not a number of whole seconds", name, d)
		}
		env = append(env, fmt.Sprintf("%s=%d", name, d/time.Second))
	}
	env = append(env, "POLL_MIN="+strconv.FormatFloat(config.MinPoll.Seconds(), 'f', -1, 64))

	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "oidc-provider")); err != nil {
		t.Fatal("oidcprovider: node_modules is missing: run `npm ci` in interop/oidcprovider")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("oidcprovider: Node.js 20 or later is needed: %v", err)
	}

	cmd := exec.Command(node, "server.mjs")
	cmd.Dir, cmd.Env = dir, env
	ready := &readyLine{found: make(chan string, 1)}
	var stderr bytes.Buffer // read only after Wait
	cmd.Stdout, cmd.Stderr = ready, &stderr
	// The pipe's other end closes when this process dies in whatever way; that ends the server too.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("oidcprovider: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("oidcprovider: %v", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	stop := func() {
		stdin.Close()
		cmd.Process.Kill()
		<-exited
	}

	select {
	case issuer := <-ready.found:
		t.Cleanup(func() {
			stop()
			if t.Failed() {
				t.Logf("oidcprovider: the server's stderr:\n%s", stderr.Bytes())
			}
		})
		return &Server{issuer: issuer}
	case err := <-exited:
		t.Fatalf("oidcprovider: the server ended at once: %v\n%s", err, stderr.Bytes())
	case <-time.After(readyTimeout):
		stop()
		t.Fatalf("oidcprovider: the server was not ready within %v\n%s", readyTimeout, stderr.Bytes())
	}
	panic("unreachable")
}

// readyLine waits for the line `ready <issuer>` on the server's stdout and ignores the rest.
type readyLine struct {
	line  []byte
	done  bool
	found chan string
}

func (r *readyLine) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' {
			r.line = append(r.line, c)
			continue
		}
		if issuer, ok := strings.CutPrefix(string(r.line), "ready "); ok && !r.done {
			r.done = true
			r.found <- issuer
		}
		r.line = r.line[:0]
	}
	return len(p), nil
}

// folder finds this package's folder from the folder the test runs in, which lies somewhere in the same module.
// (The path of the source file would do, but not in a binary built with -trimpath.)
func folder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("oidcprovider: %w", err)
	}
	for {
		candidate := filepath.Join(dir, "oidcprovider")
		if _, err := os.Stat(filepath.Join(candidate, "server.mjs")); err == nil {
			return candidate, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("oidcprovider: server.mjs not found: tests must run inside the interop module")
		}
		dir = parent
	}
}
