// Package objectstore starts versitygw, an S3 gateway, as the object store of downloads that go in two hops: whoever has an
// address that was signed gets the object until the signature expires, and nobody else.
//
// It is a process, built from the module in the folder gateway. What a client meets here and not everywhere:
//   - an answer to Range has the ETag of the object that it is a part of, and If-Range is not looked at: when the object was
//     replaced, the answer is 206 all the same, with a part of the other one;
//   - a Range that begins behind the end is answered by 416, whatever If-Range says;
//   - errors repeat the address and the signature, as XML.
package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	bucket    = "files"
	region    = "us-east-1"
	accessKey = "store-access"
	secretKey = "store-secret-0123456789"
)

// readyTimeout is how long the server may take to answer; it takes a tenth of a second.
const readyTimeout = 20 * time.Second

// Server is a running gateway.
type Server struct {
	t      testing.TB
	addr   string
	client *http.Client
}

// Start builds a server and runs it until the test ends. It fails the test when the server cannot run.
func Start(t testing.TB) *Server {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	binary := filepath.Join(t.TempDir(), "gateway")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, ".")
	build.Dir = filepath.Join(filepath.Dir(file), "gateway")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("objectstore: go build: %v\n%s", err, out)
	}
	s := &Server{t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: readyTimeout}}
	// The server cannot be told to take a free port and say which. Below those that the system gives to outgoing
	// connections, a port can be taken by another test alone.
	var err error
	for range 5 {
		s.addr = "127.0.0.1:" + strconv.Itoa(20000+rand.IntN(12000))
		if err = s.run(binary); err == nil {
			s.do(http.MethodPut, "", nil)
			return s
		}
	}
	t.Fatalf("objectstore: %v", err)
	panic("unreachable")
}

// run starts the server and waits until it answers.
func (s *Server) run(binary string) error {
	cmd := exec.Command(binary, s.t.TempDir(), s.addr, region, accessKey, secretKey)
	var output bytes.Buffer // read only after Wait
	cmd.Stdout, cmd.Stderr = &output, &output
	// The other end of the pipe closes when this process dies in whatever way; that ends the server too.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	stop := func() {
		stdin.Close()
		cmd.Process.Kill()
		<-exited
	}
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-exited:
			stdin.Close()
			return fmt.Errorf("the server ended at once: %w\n%s", err, &output)
		default:
		}
		res, err := s.client.Get("http://" + s.addr + "/ready")
		if err != nil {
			continue
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			s.t.Cleanup(func() {
				stop()
				if s.t.Failed() {
					s.t.Logf("objectstore: the server has said:\n%s", &output)
				}
			})
			return nil
		}
	}
	stop()
	return errors.New("the server did not answer in time")
}

// Addr is where the server listens, host and port.
func (s *Server) Addr() string { return s.addr }

// Put stores an object, in place of one that has the key already.
func (s *Server) Put(key string, content []byte) {
	s.t.Helper()
	s.do(http.MethodPut, key, content)
}

func (s *Server) do(method, key string, content []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.signed(method, s.addr, key, time.Now(), time.Minute, nil), bytes.NewReader(content))
	if err != nil {
		s.t.Fatalf("objectstore: %v", err)
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("objectstore: %v", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		s.t.Fatalf("objectstore: %s was answered by %s %s", method, res.Status, body)
	}
}

// Link is an address to download an object.
type Link struct {
	Key  string
	Host string        // where whoever has it thinks that the server is; if empty, Addr
	At   time.Time     // when it was signed; if zero, now
	Life time.Duration // how long it is good from then on; if zero, a minute
	Name string        // under which the object is to be saved; if empty, none is given
}

// Sign signs a link, as the API does that knows the keys.
func (s *Server) Sign(l Link) string {
	query := url.Values{}
	if l.Name != "" {
		query.Set("response-content-disposition", fmt.Sprintf("attachment; filename=%q", l.Name))
	}
	if l.Host == "" {
		l.Host = s.addr
	}
	if l.At.IsZero() {
		l.At = time.Now()
	}
	if l.Life == 0 {
		l.Life = time.Minute
	}
	return s.signed(http.MethodGet, l.Host, l.Key, l.At, l.Life, query)
}

func (s *Server) signed(method, host, key string, at time.Time, life time.Duration, query url.Values) string {
	s.t.Helper()
	if query == nil {
		query = url.Values{}
	}
	query.Set("X-Amz-Expires", strconv.Itoa(int(life/time.Second)))
	u := url.URL{Scheme: "http", Host: host, Path: "/" + bucket, RawQuery: query.Encode()}
	if key != "" {
		u.Path += "/" + key
	}
	req, err := http.NewRequest(method, u.String(), nil)
	if err != nil {
		s.t.Fatalf("objectstore: %v", err)
	}
	signed, _, err := v4.NewSigner().PresignHTTP(context.Background(), aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
		req, "UNSIGNED-PAYLOAD", "s3", region, at, func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		s.t.Fatalf("objectstore: %v", err)
	}
	return signed
}
