package sse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"runtime"
	"strings"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/internal/address"
	"github.com/heed-sdk/heed/stream/internal/header"
	"github.com/heed-sdk/heed/stream/internal/redact"
)

// Dialer connects to an event stream; it is a [stream.Dialer]. Only URL is needed, and not even that when the credentials
// carry a ticket address. The address must be encrypted unless it is this machine's.
//
// An answer of 204 ends the stream without an error (section 9.2.3). One that is no event stream, and a redirect, end it
// for good, and so does an event over the limit: whoever came back would be sent it again.
//
// A Dialer is not to be changed once it is in use. It prints as its origin alone.
type Dialer struct {
	// URL is the address. A credential's URL takes its place.
	URL string

	// Client sends the requests. If nil, http.DefaultClient does. Its Timeout must be zero, for it would cut every stream;
	// the stream has a handshake deadline. Its CheckRedirect is not used: no redirect is followed.
	Client *http.Client

	// Method is GET or POST. If empty, it is POST with a Body and GET without.
	Method string

	// Body is sent with each request. What it is goes into Header, as Content-Type.
	Body []byte

	// Header is sent with each request. The position is the stream's: a Last-Event-ID in it is not sent.
	Header http.Header

	// MaxBytes is the limit of [Options].
	MaxBytes int

	// ReuseBuffer lets the next message overwrite the Data of the one before it, which saves an allocation for each.
	ReuseBuffer bool
}

var _ stream.Dialer = Dialer{}

const (
	mediaType   = "text/event-stream"
	lastEventID = "Last-Event-ID"
)

// Format writes the origin of the address.
func (d Dialer) Format(f fmt.State, _ rune) {
	shown := "no address"
	if u, err := address.Parse(d.URL); err == nil {
		shown = address.Origin(u)
	}
	_, _ = io.WriteString(f, "sse.Dialer("+shown+")")
}

// Validate reports all mistakes, joined into one error. Dial does it too, before anything is sent.
func (d Dialer) Validate() error {
	var all []error
	if d.URL != "" {
		if _, err := parse(d.URL); err != nil {
			all = append(all, &stream.ConfigError{Field: "URL", Mistake: "cannot be used: " + err.Error()})
		}
	}
	if d.client().Timeout != 0 {
		all = append(all, &stream.ConfigError{Field: "Client", Mistake: "has a Timeout, which would cut every stream: leave it zero, the stream has a handshake deadline"})
	}
	if d.Method != "" && d.Method != http.MethodGet && d.Method != http.MethodPost {
		all = append(all, &stream.ConfigError{Field: "Method", Mistake: "is neither GET nor POST"})
	}
	if d.Method == http.MethodGet && d.Body != nil {
		all = append(all, &stream.ConfigError{Field: "Body", Mistake: "is not sent with GET"})
	}
	return errors.Join(all...)
}

// Dial makes one attempt to connect.
func (d Dialer) Dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) {
	var conn stream.Conn
	var err error
	apart(func() { conn, err = d.dial(ctx, a) })
	return conn, err
}

func (d Dialer) dial(ctx context.Context, a stream.Attempt) (stream.Conn, error) {
	if err := d.Validate(); err != nil {
		return nil, &stream.AttemptError{Class: stream.Permanent, Err: err}
	}
	target := d.URL
	if a.Credential.URL != "" {
		target = a.Credential.URL
	}
	u, err := parse(target)
	if err != nil {
		return nil, &stream.AttemptError{Class: stream.Permanent, Err: err}
	}
	secrets := redact.Secrets(u)
	if t := a.Credential.Token; t != nil {
		secrets = append(secrets, t.AccessToken)
	}
	// A request ends with its context, and this one is to outlive the dial.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	req, err := d.request(life, target, a)
	if err != nil {
		end(nil)
		return nil, &stream.AttemptError{Class: stream.Permanent, Err: redact.Error(err, secrets)}
	}
	release := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	res, err := d.client().Do(req)
	if !release() && err == nil { // ctx ended just before the dial did
		_ = res.Body.Close()
		err = context.Cause(ctx)
	}
	if err == nil {
		err = accept(a, res, secrets)
	} else {
		err = &stream.AttemptError{Err: redact.Error(err, secrets)}
	}
	if err != nil {
		end(nil)
		return nil, err
	}
	dec := NewDecoder(res.Body, Options{MaxBytes: d.MaxBytes, LastEventID: a.Position, OnRead: func(int) { a.Alive() }})
	dec.lazy = true
	return &Conn{
		dec:     dec,
		body:    res.Body,
		end:     end,
		reuse:   d.ReuseBuffer,
		secrets: secrets,
	}, nil
}

// apart runs f on a goroutine of its own and waits for it. A stack that has grown does not become small again, and an idle
// stream would hold on to what was only needed to connect.
func apart(f func()) {
	var panicked any
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		f()
		returned = true
	}()
	<-done
	switch {
	case panicked != nil:
		panic(panicked)
	case !returned:
		runtime.Goexit() // as f did
	}
}

// parse reads an address that HTTP can be spoken to.
func parse(s string) (*url.URL, error) {
	u, err := address.Parse(s)
	if err == nil && u.Scheme != "http" && u.Scheme != "https" {
		err = errors.New(address.Origin(u) + " is a WebSocket's address")
	}
	return u, err
}

// client is the caller's, but for redirects.
func (d Dialer) client() *http.Client {
	c := *http.DefaultClient
	if d.Client != nil {
		c = *d.Client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Transport = nowhere{c.Transport}
	return &c
}

// nowhere takes the target out of a redirect. It is not followed, and net/http would quote one that it cannot read in an
// error, in place of the answer.
type nowhere struct{ next http.RoundTripper }

// RoundTrip sends the request.
func (n nowhere) RoundTrip(req *http.Request) (*http.Response, error) {
	next := n.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(req)
	if err == nil && res != nil && res.StatusCode >= 300 && res.StatusCode <= 399 {
		res.Header.Del("Location")
	}
	return res, err
}

// request is what an attempt sends.
func (d Dialer) request(ctx context.Context, target string, a stream.Attempt) (*http.Request, error) {
	method := d.Method
	var body io.Reader
	switch {
	case d.Body != nil:
		method, body = http.MethodPost, bytes.NewReader(d.Body)
	case method == "":
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", mediaType)
	req.Header.Set("Accept-Encoding", "identity") // what compresses also collects, and events come late
	req.Header.Set("Cache-Control", "no-cache")   // as fetch does for the cache mode of section 9.2.2
	for name, values := range d.Header {
		req.Header[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
	}
	req.Header.Del(lastEventID)
	if a.Position != "" {
		if strings.ContainsFunc(a.Position, header.Control) {
			return nil, fmt.Errorf("the position cannot be sent as %s: it has control characters", lastEventID)
		}
		req.Header.Set(lastEventID, a.Position)
	}
	if t := a.Credential.Token; t != nil {
		t.SetAuthHeader(req)
	}
	return req, header.Check(req.Header)
}

// accept returns nil for the answer that an event stream begins with, and closes every other.
func accept(a stream.Attempt, res *http.Response, secrets []string) error {
	err := refusal(a, res, secrets)
	if err != nil {
		_ = res.Body.Close()
	}
	return err
}

func refusal(a stream.Attempt, res *http.Response, secrets []string) error {
	switch {
	case res.StatusCode == http.StatusNoContent:
		return stream.ErrEnd
	case res.StatusCode >= 300 && res.StatusCode <= 399:
		e := a.Refused(res)
		e.Err = errors.New("redirects are not followed")
		return e
	case res.StatusCode != http.StatusOK:
		return a.Refused(res)
	}
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		kind = ""
	}
	encoding := res.Header.Get("Content-Encoding")
	switch {
	case kind == "":
		err = errors.New("the answer does not say that it is " + mediaType)
	case kind != mediaType:
		err = fmt.Errorf("the answer is %.80q, not %s", redact.Text(kind, secrets), mediaType)
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		err = errors.New("the answer has a Content-Encoding, which nobody asked for")
	default:
		return nil
	}
	return &stream.AttemptError{Class: stream.Permanent, Status: res.StatusCode, Err: err}
}
