//go:build unix

// Package ratelimit starts Debian's nginx as an API with a rate limit for tests: limit_req, a leaky bucket that knows to
// the millisecond what came, and a Retry-After with whatever it refuses.
//
// It needs the Debian package nginx-light. What a client meets here and not everywhere:
//   - the limit is for an address, so that all clients on loopback share it, whatever credential they have;
//   - Retry-After is a constant of the configuration, and knows nothing of the bucket: who comes back after it may be
//     refused again, when many come;
//   - the bucket leaks all the time: no second has a budget of its own.
package ratelimit

import (
	"bufio"
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/interop/internal/nginx"
)

//go:embed nginx.conf
var template string

// Config sets what the tests vary.
type Config struct {
	Rate       int    // requests per second
	Burst      int    // how many more may come at once; they are not delayed
	Status     int    // of a refusal
	RetryAfter string // the header that comes with it
}

// Server is a running nginx.
type Server struct {
	*nginx.Server

	// Roots has who has signed the server's certificate.
	Roots *x509.CertPool

	t testing.TB
}

// Start runs a server until the test ends. It fails the test when the server cannot run. Where it is not installed, the
// test is skipped, except in CI.
func Start(t testing.TB, c Config) *Server {
	t.Helper()
	burst := ""
	if c.Burst > 0 {
		burst = fmt.Sprintf("burst=%d nodelay", c.Burst)
	}
	text := strings.NewReplacer("@RATE@", strconv.Itoa(c.Rate), "@BURST@", burst,
		"@STATUS@", strconv.Itoa(c.Status), "@RETRY@", strconv.Quote(c.RetryAfter)).Replace(template)
	s := &Server{t: t, Roots: x509.NewCertPool()}
	s.Server = nginx.Start(t, nginx.Config{Name: "nginx", Packages: "nginx-light", HTTP: text}, s.prepare)
	return s
}

// prepare writes what the server has to give, and the certificate that package httptest has for loopback.
func (s *Server) prepare(dir string) error {
	lender := httptest.NewTLSServer(http.NotFoundHandler())
	defer lender.Close()
	s.Roots.AddCert(lender.Certificate())
	key, err := x509.MarshalPKCS8PrivateKey(lender.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"item.json": []byte(`{"ok":true}`),
		"cert.pem":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: lender.Certificate().Raw}),
		"key.pem":   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// URL is the address of something that the API has, which counts for the limit as everything else does.
func (s *Server) URL() string { return "http://" + s.Addr() + "/api/item" }

// TLSURL is the same with TLS, where the server speaks HTTP/2.
func (s *Server) TLSURL() string { return "https://" + s.TLSAddr() + "/api/item" }

// Request is one that the server has answered.
type Request struct {
	At       time.Time // to the millisecond, as the server's own clock has it
	Status   int
	Protocol string
}

// Requests are all that the server has answered, as its access log has them. It waits until there are n, since a line is
// written when the client has its answer already.
func (s *Server) Requests(n int) []Request {
	s.t.Helper()
	var all []Request
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		all = s.log()
		if len(all) >= n || time.Now().After(deadline) {
			break
		}
	}
	if len(all) != n {
		s.t.Errorf("nginx: the log has %d requests, not %d", len(all), n)
	}
	return all
}

func (s *Server) log() (all []Request) {
	f, err := os.Open(filepath.Join(s.Dir, "access.log"))
	if err != nil {
		s.t.Fatalf("nginx: %v", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var seconds, millis int64
		var r Request
		if _, err := fmt.Sscanf(lines.Text(), "%d.%03d %d %s", &seconds, &millis, &r.Status, &r.Protocol); err != nil {
			continue // half a line
		}
		r.At = time.UnixMilli(1000*seconds + millis)
		all = append(all, r)
	}
	return all
}
