package streams

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge"
	"github.com/prometheus/client_golang/prometheus"
)

// path is where the WebSocket endpoint is.
const path = "/connection/websocket"

// user is whose all connections are, as far as centrifuge is concerned.
const user = "heed"

// Config sets what the tests vary.
type Config struct {
	// Authorize decides on the bearer token of every handshake, taken from the Authorization header or else from the
	// query parameter access_token; "" means that there was none. False is answered by 401. If nil, everybody may in.
	// It is called by several goroutines.
	Authorize func(bearer string) bool

	// Expires says when a bearer token that was let in expires. The server then closes the connection with 3005 "connection
	// expired". If nil, connections do not expire. A token that has expired already is for Authorize to turn away.
	Expires func(bearer string) time.Time

	// RefuseAfterRestart is how many handshakes are answered by 503 and `Retry-After: 1` after every restart, before the
	// token is looked at.
	RefuseAfterRestart int

	// PingInterval is the time between the server's pings; if zero, 25 s. Half of it is the time to answer.
	PingInterval time.Duration
}

// Handshake is one request to the WebSocket endpoint, as the server saw it.
type Handshake struct {
	At     time.Time
	Bearer string
	Status int // 101, 401 or 503, and whatever the library says of a request that is no WebSocket handshake
}

// Server is a centrifuge node behind a port. Its methods can be called from any goroutine, but Kill and the Restarts are
// for one at a time.
type Server struct {
	t       testing.TB
	config  Config
	address string

	mu         sync.Mutex
	node       *centrifuge.Node
	handler    http.Handler
	refusals   int
	handshakes []Handshake

	port *port // nil while killed; not shared
}

// Start runs a server until the test ends.
func Start(t testing.TB, config Config) *Server {
	t.Helper()
	if config.PingInterval == 0 {
		config.PingInterval = 25 * time.Second
	}
	s := &Server{t: t, config: config}
	if err := s.renew(); err != nil {
		t.Fatalf("streams: %v", err)
	}
	listener, err := listen()
	if err != nil {
		t.Fatalf("streams: %v", err)
	}
	s.address = listener.Addr().String()
	s.port = serve(listener, http.HandlerFunc(s.handshake))
	t.Cleanup(func() {
		s.Kill()
		s.shutdown(s.node)
	})
	return s
}

// URL is the address of the WebSocket endpoint, the same after every restart.
func (s *Server) URL() string { return "ws://" + s.address + path }

// Kill closes the port and every connection to it, with no close frame or any other warning. What is published while the
// server is down is history when it is back, as it is with a broker of its own.
func (s *Server) Kill() {
	if s.port != nil {
		s.port.close()
		s.port = nil
	}
}

// Restart opens the port again, with every channel's history. It kills the server first if need be.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.mu.Lock()
	s.refusals = s.config.RefuseAfterRestart
	s.mu.Unlock()

	var listener net.Listener
	var err error
	for range 50 { // in the time that another program needs to go away
		if listener, err = net.Listen("tcp", s.address); err == nil {
			s.port = serve(listener, http.HandlerFunc(s.handshake))
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Errorf("streams: restart: %v", err)
}

// RestartEmpty is Restart with a broker that remembers nothing: no history, and other epochs.
func (s *Server) RestartEmpty() {
	s.t.Helper()
	s.Kill()
	s.shutdown(s.node)
	if err := s.renew(); err != nil {
		s.t.Errorf("streams: restart: %v", err)
		return
	}
	s.Restart()
}

// Publish publishes the JSON encoding of data, whether the server is up or killed, and returns its position.
func (s *Server) Publish(channel string, data any) Position {
	s.t.Helper()
	b, err := json.Marshal(data)
	if err != nil {
		s.t.Errorf("streams: publish: %v", err)
		return Position{}
	}
	s.mu.Lock()
	node := s.node
	s.mu.Unlock()
	r, err := node.Publish(channel, b, centrifuge.WithHistory(1000, time.Hour))
	if err != nil {
		s.t.Errorf("streams: publish: %v", err)
	}
	return Position{Offset: r.Offset, Epoch: r.Epoch}
}

// Disconnect closes every connection with a close frame that has this code, from 3000 to 4999, and reason.
func (s *Server) Disconnect(code uint32, reason string) {
	s.t.Helper()
	s.mu.Lock()
	node := s.node
	s.mu.Unlock()
	d := centrifuge.Disconnect{Code: code, Reason: reason}
	if err := node.Disconnect(user, centrifuge.WithCustomDisconnect(d)); err != nil {
		s.t.Errorf("streams: disconnect: %v", err)
	}
}

// Handshakes returns all handshakes so far, in the order of their answers, each before its client has the answer.
func (s *Server) Handshakes() []Handshake {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Handshake(nil), s.handshakes...)
}

// Connections is the number of clients that have connected and not gone.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.Hub().NumClients()
}

// renew makes a new node.
func (s *Server) renew() error {
	// Without a registry of its own, the second node would register the same metrics again.
	metrics := prometheus.NewRegistry()
	node, err := centrifuge.New(centrifuge.Config{
		Metrics: centrifuge.MetricsConfig{RegistererGatherer: metrics},
		// The library gives a client half a minute to renew its token on the open connection, which ours do not.
		ClientExpiredCloseDelay: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	node.OnConnect(func(client *centrifuge.Client) {
		client.OnSubscribe(func(_ centrifuge.SubscribeEvent, reply centrifuge.SubscribeCallback) {
			reply(centrifuge.SubscribeReply{Options: centrifuge.SubscribeOptions{
				EnableRecovery: true, EnablePositioning: true,
			}}, nil)
		})
	})
	if err := node.Run(); err != nil {
		return err
	}
	handler := centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{
		PingPongConfig: centrifuge.PingPongConfig{
			PingInterval: s.config.PingInterval,
			PongTimeout:  s.config.PingInterval / 2,
		},
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node, s.handler = node, handler
	return nil
}

func (s *Server) shutdown(node *centrifuge.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := node.Shutdown(ctx); err != nil {
		s.t.Errorf("streams: shutdown: %v", err)
	}
}

// handshake stands in front of the library's handler.
func (s *Server) handshake(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != path {
		http.NotFound(w, r)
		return
	}
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		bearer = r.URL.Query().Get("access_token")
	}
	s.mu.Lock()
	handler, refuse := s.handler, s.refusals > 0
	if refuse {
		s.refusals--
	}
	s.mu.Unlock()

	answer := &answer{ResponseWriter: w, record: func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.handshakes = append(s.handshakes, Handshake{At: time.Now(), Bearer: bearer, Status: status})
	}}
	switch {
	case refuse:
		w.Header().Set("Retry-After", "1")
		http.Error(answer, "restarting", http.StatusServiceUnavailable)
	case s.config.Authorize != nil && !s.config.Authorize(bearer):
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(answer, "bad token", http.StatusUnauthorized)
	default:
		credentials := &centrifuge.Credentials{UserID: user}
		if s.config.Expires != nil {
			credentials.ExpireAt = s.config.Expires(bearer).Unix()
		}
		handler.ServeHTTP(answer, r.WithContext(centrifuge.SetCredentials(r.Context(), credentials)))
	}
}

// answer records the status before the client can have it. The library takes the connection over to say 101.
type answer struct {
	http.ResponseWriter
	record func(status int)
}

func (a *answer) WriteHeader(status int) {
	a.record(status)
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.record(http.StatusSwitchingProtocols)
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// listen takes a port below those that the system gives to outgoing connections: none of them can take it while the
// server is killed.
func listen() (net.Listener, error) {
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(12000)))); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// port is an open port with all its connections, including those that were hijacked, which http.Server forgets.
type port struct {
	net.Listener
	server *http.Server
	served chan error

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

func serve(l net.Listener, h http.Handler) *port {
	p := &port{Listener: l, server: &http.Server{Handler: h}, served: make(chan error, 1), conns: map[net.Conn]struct{}{}}
	go func() { p.served <- p.server.Serve(p) }()
	return p
}

func (p *port) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return nil, errors.New("streams: killed")
	}
	p.conns[c] = struct{}{}
	return &conn{Conn: c, port: p}, nil
}

func (p *port) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.server.Close() // the listener, and the connections that are in no handler's hands
	<-p.served
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// conn leaves its port's list when it is closed.
type conn struct {
	net.Conn
	port *port
}

func (c *conn) Close() error {
	c.port.mu.Lock()
	delete(c.port.conns, c.Conn)
	c.port.mu.Unlock()
	return c.Conn.Close()
}
