package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"

	"github.com/coder/websocket"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/internal/address"
	"github.com/heed-sdk/heed/stream/internal/header"
	"github.com/heed-sdk/heed/stream/internal/redact"
)

// DefaultReadLimit is how large a message may be.
const DefaultReadLimit = 1 << 20

// Dialer makes WebSocket connections; it is a [stream.Dialer]. Only URL is needed, and not even that when the credentials
// carry a ticket address. The address must be encrypted (wss or https) unless it is this machine's.
//
// A Dialer is not to be changed once it is in use. It prints as its origin alone.
type Dialer struct {
	// URL is the address. A credential's URL takes its place.
	URL string

	// Client sends the handshake. If nil, http.DefaultClient does. Its Timeout and its CheckRedirect are not used: the
	// stream has a handshake deadline, and no redirect is followed. Its transport must speak HTTP/1.1 to the server, and
	// should be net/http's, which tells what it connected: else a server that takes nothing in can hold up the end of a
	// connection for some seconds.
	Client *http.Client

	// Header is sent with each handshake.
	Header http.Header

	// Subprotocols are offered to the server, in order of preference. [Conn.Subprotocol] is the one that it chose.
	Subprotocols []string

	// ReadLimit is how large a message may be, in bytes. If zero, 1 MiB; if negative, any size is read. A larger message
	// ends the connection while it is read, and the stream connects again.
	ReadLimit int64

	// Compression offers permessage-deflate.
	Compression bool

	// ReuseBuffer lets the next message overwrite the Data of the one before it, which saves an allocation for each.
	ReuseBuffer bool

	// CloseClass classes the close codes whose meaning is the server's own: 1008, and 3000 to 4999. If nil,
	// [DefaultCloseClass] does.
	CloseClass func(code int, reason string) stream.Class
}

var _ stream.Dialer = Dialer{}

// Format writes the origin of the address.
func (d Dialer) Format(f fmt.State, _ rune) {
	shown := "no address"
	if u, err := address.Parse(d.URL); err == nil {
		shown = address.Origin(u)
	}
	_, _ = io.WriteString(f, "websocket.Dialer("+shown+")")
}

// Dial makes one attempt to connect.
func (d Dialer) Dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) {
	target := d.URL
	if a.Credential.URL != "" {
		target = a.Credential.URL
	}
	u, err := address.Parse(target)
	if err != nil {
		return nil, &stream.AttemptError{Class: stream.Permanent, Err: err}
	}
	secrets := redact.Secrets(u)
	sent := d.Header.Clone()
	if t := a.Credential.Token; t != nil {
		sent = withToken(sent, t)
		secrets = append(secrets, t.AccessToken)
	}
	if err := errors.Join(header.Check(sent), header.Check(http.Header{"Sec-WebSocket-Protocol": d.Subprotocols})); err != nil {
		return nil, &stream.AttemptError{Class: stream.Permanent, Err: redact.Error(err, secrets)}
	}
	k := &socket{attempt: a}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { k.hold(ctx, underlying(i.Conn)) },
	})
	options := &websocket.DialOptions{HTTPClient: d.client(k), HTTPHeader: sent, Subprotocols: d.Subprotocols}
	if d.Compression {
		options.CompressionMode = websocket.CompressionContextTakeover
	}
	ws, res, err := websocket.Dial(traced, target, options) //nolint:bodyclose // the library has closed it
	if !k.release() && err == nil {
		_ = ws.CloseNow()
		err = context.Cause(ctx) // it ended just before the handshake did, and took the connection along
	}
	if err != nil {
		return nil, refused(a, res, redact.Error(err, secrets))
	}
	ws.SetReadLimit(d.readLimit())
	return &Conn{
		ws: ws, socket: k, reuse: d.ReuseBuffer, class: d.closeClass(),
		redact: func(s string) string { return redact.Text(s, secrets) },
	}, nil
}

// refused is the error of a handshake that did not succeed.
func refused(a stream.Attempt, res *http.Response, err error) error {
	switch {
	case res == nil:
		return &stream.AttemptError{Err: err}
	case res.StatusCode == http.StatusSwitchingProtocols:
		return &stream.AttemptError{Class: stream.Permanent, Status: res.StatusCode, Err: err} // but not to a WebSocket
	case res.StatusCode >= 300 && res.StatusCode <= 399:
		e := a.Refused(res)
		e.Err = errors.New("redirects are not followed")
		return e
	}
	return a.Refused(res)
}

func withToken(h http.Header, t *oauth2.Token) http.Header {
	if h == nil {
		h = http.Header{}
	}
	t.SetAuthHeader(&http.Request{Header: h})
	return h
}

// client is the caller's, but for redirects and the timeout, and with the socket in between.
func (d Dialer) client(k *socket) *http.Client {
	c := *http.DefaultClient
	if d.Client != nil {
		c = *d.Client
	}
	c.Timeout = 0
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Transport = &tap{next: c.Transport, socket: k}
	return &c
}

func (d Dialer) readLimit() int64 {
	switch {
	case d.ReadLimit == 0:
		return DefaultReadLimit
	case d.ReadLimit < 0:
		return -1
	}
	return d.ReadLimit
}

// tap puts the socket between the library and the connection that the handshake left behind.
type tap struct {
	next   http.RoundTripper
	socket *socket
}

// RoundTrip sends the handshake.
func (t *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(req)
	if err != nil || res == nil { // which http.Client has an error for
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		if res.Body != nil {
			_ = res.Body.Close() // the library would wait for it, to quote it
		}
		res.Body = http.NoBody
		res.Header.Del("Location") // net/http would quote one that it cannot read
		return res, nil
	}
	if body, ok := res.Body.(io.ReadWriteCloser); ok {
		t.socket.ReadWriteCloser, t.socket.plain = body, res.TLS == nil
		res.Body = t.socket
	}
	return res, nil
}

// underlying is the network's connection below TLS.
func underlying(c net.Conn) net.Conn {
	for {
		wrapper, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = wrapper.NetConn()
	}
}
