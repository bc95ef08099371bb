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
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/interop/internal/nginx"
)

// PingInterval is how often an idle stream has a heartbeat.
const PingInterval = time.Second

// GoodBearer is the one token that the streams of [Server.Guarded] take.
const GoodBearer = "good"

// SocketProtocol is the subprotocol with which messages over WebSocket have their ids.
const SocketProtocol = "ws+meta.nchan"

const module = "/usr/lib/nginx/modules/ngx_nchan_module.so"

//go:embed nginx.conf
var template string

// Config sets what the tests vary.
type Config struct {
	Refusal    int    // the status that [Server.Refuse] answers with; if zero, 503
	RetryAfter string // the header that comes with it
}

// Server is a running nginx.
type Server struct {
	*nginx.Server

	t      testing.TB
	base   string
	client *http.Client
}

// Start runs a server until the test ends. It fails the test when the server cannot run. Where it is not installed, the
// test is skipped, except in CI.
func Start(t testing.TB, config Config) *Server {
	t.Helper()
	if config.Refusal == 0 {
		config.Refusal = http.StatusServiceUnavailable
	}
	text := strings.NewReplacer(
		"@PING@", strconv.Itoa(int(PingInterval/time.Second)), "@BEARER@", GoodBearer,
		"@REFUSAL@", strconv.Itoa(config.Refusal), "@RETRY@", strconv.Quote(config.RetryAfter),
	).Replace(template)
	running := nginx.Start(t, nginx.Config{
		Name: "nchan", Packages: "nginx-light and libnginx-mod-nchan", Modules: []string{module}, HTTP: text,
	}, nil)
	return &Server{
		Server: running, t: t, base: "http://" + running.Addr(),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second},
	}
}

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
	name := filepath.Join(s.Dir, "refuse")
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
