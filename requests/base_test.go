package requests_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/requests"
)

// reply is what a base returns.
type reply struct {
	status  int
	header  http.Header
	body    string
	err     error         // in place of an answer
	latency time.Duration // before either, in a bubble
}

var errBroken = errors.New("connection reset by peer")

// base is a RoundTripper without a network, and keeps its contract: it closes what it is given, and changes nothing. It
// gives its last reply again and again.
type base struct {
	replies []reply

	mu      sync.Mutex
	sent    []sent
	answers []*counted
}

// sent is a request as it came to a base.
type sent struct {
	header http.Header
	body   string
	at     time.Time
}

// counted is the body of an answer.
type counted struct {
	io.Reader
	read   int
	closed bool
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

func (c *counted) Close() error {
	c.closed = true
	return nil
}

func (b *base) RoundTrip(req *http.Request) (*http.Response, error) {
	s := sent{header: req.Header.Clone(), at: time.Now()}
	if req.Body != nil {
		data, err := io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
		s.body = string(data)
	}
	b.mu.Lock()
	r := b.replies[min(len(b.sent), len(b.replies)-1)]
	b.sent = append(b.sent, s)
	b.mu.Unlock()
	if r.latency > 0 {
		late := time.NewTimer(r.latency)
		defer late.Stop()
		select {
		case <-late.C:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	body := &counted{Reader: strings.NewReader(r.body)}
	b.mu.Lock()
	b.answers = append(b.answers, body)
	b.mu.Unlock()
	header := r.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: r.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: int64(len(r.body)), Request: req,
	}, nil
}

// statusReplies is a list of replies of nothing else; 0 is a broken connection.
func statusReplies(list ...int) []reply {
	replies := make([]reply, len(list))
	for i, s := range list {
		if replies[i].status = s; s == 0 {
			replies[i].err = errBroken
		}
	}
	return replies
}

// quick runs a test in a bubble against a base, through a Transport without jitter.
func quick(t *testing.T, replies []reply, run func(t *testing.T, tr *requests.Transport, b *base)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &base{replies: replies}
		run(t, &requests.Transport{Base: b, Rand: noJitter}, b)
	})
}

// trip sends a request and reads and closes its answer: the status, or the error.
func trip(tr http.RoundTripper, req *http.Request) (int, error) {
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func get() *http.Request { return request(context.Background(), http.MethodGet, "/", "") }
