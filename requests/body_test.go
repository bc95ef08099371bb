package requests_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/requests"
)

// stream is a body that cannot be had again.
type stream struct {
	io.Reader
	closed int
}

func (s *stream) Close() error {
	s.closed++
	return nil
}

func put(body io.ReadCloser, length int64) *http.Request {
	req := request(context.Background(), "PUT", "/", "")
	req.Body, req.ContentLength = body, length
	return req
}

func TestBody(t *testing.T) {
	const mib = 1 << 20
	long := strings.Repeat("x", mib+1)
	tests := []struct {
		name   string
		method string
		body   string
		known  bool // whether its length is
		limit  int64
		want   int
	}{
		{"kept", "PUT", "0123456789", false, 0, 3},
		{"kept, of known length", "PUT", "0123456789", true, 0, 3},
		{"as long as the limit", "PUT", long[:mib], false, 0, 3},
		{"too long", "PUT", long, false, 0, 1},
		{"too long, and known to be", "PUT", long, true, 0, 1},
		{"too long for a limit", "PUT", "0123456789", false, 9, 1},
		{"within a limit", "PUT", "0123456789", false, 10, 3},
		{"nothing is kept", "PUT", "0123456789", false, -1, 1},
		{"not repeated anyway", "POST", "0123456789", false, 0, 1},
		{"empty", "PUT", "", false, 0, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			quick(t, statusReplies(503, 503, 200), func(t *testing.T, tr *requests.Transport, b *base) {
				tr.BufferLimit = tt.limit
				body := &stream{Reader: iotest.OneByteReader(strings.NewReader(tt.body))}
				if len(tt.body) > 100 {
					body.Reader = strings.NewReader(tt.body)
				}
				req := put(body, -1)
				req.Method = tt.method
				if tt.known {
					req.ContentLength = int64(len(tt.body))
				}
				status, err := trip(tr, req)
				if want := []int{0, 503, 503, 200}[tt.want]; status != want || err != nil {
					t.Errorf("%d, %v; want %d", status, err, want)
				}
				if len(b.sent) != tt.want {
					t.Errorf("%d attempts, want %d", len(b.sent), tt.want)
				}
				for i, s := range b.sent {
					if s.body != tt.body {
						t.Errorf("attempt %d had %d bytes of %d", i+1, len(s.body), len(tt.body))
					}
				}
				if body.closed != 1 {
					t.Errorf("the body was closed %d times", body.closed)
				}
				if req.Body != io.ReadCloser(body) || req.GetBody != nil {
					t.Error("the caller's request was changed")
				}
			})
		})
	}
}

func TestGetBody(t *testing.T) {
	quick(t, statusReplies(503, 503, 200), func(t *testing.T, tr *requests.Transport, b *base) {
		body := &stream{Reader: strings.NewReader("data")}
		req := put(body, 4)
		again := 0
		req.GetBody = func() (io.ReadCloser, error) {
			again++
			return io.NopCloser(strings.NewReader("data")), nil
		}
		if status, err := trip(tr, req); status != 200 || err != nil || again != 2 || body.closed != 1 {
			t.Errorf("%d, %v; GetBody was called %d times, the body was closed %d times", status, err, again, body.closed)
		}
		for _, s := range b.sent {
			if s.body != "data" {
				t.Errorf("sent %q", s.body)
			}
		}
	})
	quick(t, statusReplies(503, 200), func(t *testing.T, tr *requests.Transport, b *base) {
		gone := errors.New("the file is gone")
		req := put(&stream{Reader: strings.NewReader("data")}, 4)
		req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		_, err := trip(tr, req)
		if e, ok := errors.AsType[*requests.Error](err); !ok || e.Code != requests.CodeUsage || !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
	})
}

func TestBodyThatCannotBeRead(t *testing.T) {
	broken := errors.New("the disk is broken")
	quick(t, statusReplies(200), func(t *testing.T, tr *requests.Transport, b *base) {
		body := &stream{Reader: iotest.ErrReader(broken)}
		_, err := trip(tr, put(body, -1))
		if !errors.Is(err, broken) || len(b.sent) != 0 || body.closed != 1 {
			t.Errorf("%v after %d attempts, closed %d times", err, len(b.sent), body.closed)
		}
	})
}

// A body that waits for its writer does not outlive the caller's context.
func TestBodyThatWaits(t *testing.T) {
	quick(t, statusReplies(200), func(t *testing.T, tr *requests.Transport, b *base) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, w := io.Pipe()
		defer w.Close()
		req := put(r, -1).WithContext(ctx)
		if _, err := trip(tr, req); !errors.Is(err, context.DeadlineExceeded) || len(b.sent) != 0 {
			t.Errorf("%v after %d attempts", err, len(b.sent))
		}
	})
}

// RoundTrip closes the body, always.
func TestBodyIsClosed(t *testing.T) {
	for name, change := range map[string]func(*http.Request, *requests.Transport){
		"insecure":    func(r *http.Request, _ *requests.Transport) { r.URL.Scheme = "http" },
		"no host":     func(r *http.Request, _ *requests.Transport) { r.URL.Host = "" },
		"no URL":      func(r *http.Request, _ *requests.Transport) { r.URL = nil },
		"bad origin":  func(_ *http.Request, tr *requests.Transport) { tr.Origin = "x" },
		"bad source":  func(_ *http.Request, tr *requests.Transport) { tr.Tokens = failing{errBroken} },
		"bad source ": func(r *http.Request, tr *requests.Transport) { tr.Tokens, r.Method = failing{errBroken}, "POST" },
		"no token":    func(_ *http.Request, tr *requests.Transport) { tr.Tokens = oauth2.StaticTokenSource(token("")) },
		"empty token": func(_ *http.Request, tr *requests.Transport) { tr.Tokens = failing{} },
	} {
		t.Run(name, func(t *testing.T) {
			quick(t, statusReplies(200), func(t *testing.T, tr *requests.Transport, b *base) {
				body := &stream{Reader: strings.NewReader("x")}
				req := put(body, -1)
				change(req, tr)
				_, err := trip(tr, req)
				if err == nil || !strings.HasPrefix(err.Error(), "requests: ") || len(b.sent) != 0 || body.closed != 1 {
					t.Errorf("%v after %d attempts, closed %d times", err, len(b.sent), body.closed)
				}
			})
		})
	}
}

// The request that the caller passed is never changed.
func TestRequestIsNotChanged(t *testing.T) {
	script := statusReplies(503, 401, 200)
	quick(t, script, func(t *testing.T, tr *requests.Transport, b *base) {
		tr.Tokens = &source{}
		ctx := requests.WithIdempotencyKey(t.Context(), "key-1")
		req := request(ctx, "POST", "/x?y", "body")
		req.Header.Set("X-Mine", "1")
		before := req.Clone(ctx)
		body := req.Body
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		var was, is bytes.Buffer
		_ = before.Header.Write(&was)
		_ = req.Header.Write(&is)
		if was.String() != is.String() || req.URL.String() != before.URL.String() || req.Body != body {
			t.Errorf("changed to %v", req)
		}
		if resp.Request != req {
			t.Error("the answer is not of the request that was passed, but of one with credentials")
		}
		if n := len(b.sent); n != 3 {
			t.Errorf("%d attempts", n)
		}
		for i, want := range []string{"Bearer t1", "Bearer t1", "Bearer t2"} {
			if h := b.sent[i].header; h.Get("Authorization") != want || h.Get("Idempotency-Key") != "key-1" || h.Get("X-Mine") != "1" {
				t.Errorf("attempt %d: %v", i+1, h)
			}
		}
	})
}

// An answer that is repeated is read and closed, within bounds, before the wait.
func TestDrained(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	replies := []reply{{status: 503, body: "short"}, {status: 503, body: long}, {status: 503, body: "last"}}
	quick(t, replies, func(t *testing.T, tr *requests.Transport, b *base) {
		var waited int
		tr.Hooks.OnRetry = func(_ context.Context, r requests.Retry) {
			waited++
			a := b.answers[r.Number-1]
			if want := []int{5, 64 << 10}[r.Number-1]; !a.closed || a.read != want {
				t.Errorf("before wait %d: closed %v, read %d of %d", r.Number, a.closed, a.read, want)
			}
		}
		resp, err := tr.RoundTrip(get())
		if err != nil {
			t.Fatal(err)
		}
		if a := b.answers[2]; a.closed || a.read > 0 || waited != 2 {
			t.Errorf("the last answer was touched: %+v; %d waits", a, waited)
		}
		resp.Body.Close()
	})
}

// endless is a body that never comes and is ended by closing it.
type endless struct{ closed chan struct{} }

func (e endless) Read([]byte) (int, error) {
	<-e.closed
	return 0, io.ErrClosedPipe
}

func (e endless) Close() error {
	close(e.closed)
	return nil
}

func TestDrainingIsBoundedInTime(t *testing.T) {
	n := 0
	tr := &requests.Transport{Rand: noJitter, Base: roundTripper(func(*http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: endless{make(chan struct{})}, ContentLength: -1}, nil
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}}, nil
	})}
	quick(t, nil, func(t *testing.T, _ *requests.Transport, _ *base) {
		began := time.Now()
		if status, err := trip(tr, get()); status != 200 || err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("%d, %v after %v", status, err, time.Since(began))
		}
	})
}

// A request that was not made by http.NewRequest may have no header.
func TestNoHeader(t *testing.T) {
	for name, hooks := range map[string]requests.Hooks{
		"with nobody to tell": {},
		"with hooks":          {OnRequestStart: func(context.Context, requests.Attempt) {}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, statuses(200), func(r *rig) {
				tr := r.transport()
				tr.Hooks = hooks
				req := get()
				req.Header = nil
				began := time.Now()
				if status, err := trip(tr, req); status != 200 || err != nil || time.Since(began) != 0 {
					t.Errorf("%d, %v after %v", status, err, time.Since(began))
				}
				if req.Header != nil {
					t.Error("the caller's request was changed")
				}
			})
		})
	}
}

// What a RoundTripper must not return is not passed on.
func TestOddBase(t *testing.T) {
	for name, odd := range map[string]func(*http.Request) (*http.Response, error){
		"neither": func(*http.Request) (*http.Response, error) { return nil, nil },
		"both": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: http.NoBody}, errBroken
		},
		"an error of nothing": func(*http.Request) (*http.Response, error) { return nil, &url.Error{Op: "Get"} },
	} {
		t.Run(name, func(t *testing.T) {
			quick(t, nil, func(t *testing.T, tr *requests.Transport, _ *base) {
				tr.Base = roundTripper(odd)
				if resp, err := tr.RoundTrip(get()); resp != nil || err == nil {
					t.Errorf("%v, %v", resp, err)
				}
			})
		})
	}
}
