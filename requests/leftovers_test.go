package requests_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/requests"
)

// Whatever a server does, the outcome is the right one and nothing is left open. A GET may be repeated, and a POST may
// not.
func TestNothingIsLeftByServers(t *testing.T) {
	ok := answers(200)
	closed := func(p *peer) { p.request(); _ = p.Close() }
	slow := func(p *peer) {
		p.request()
		p.say("HTTP/1.1 503 X", "Content-Length: 20", "", "")
		for range 20 {
			p.say("x")
			time.Sleep(300 * time.Millisecond)
		}
	}
	tests := []struct {
		name      string
		https     bool
		serve     []func(*peer)
		get, post string // what becomes of it
		gets      int    // how often a GET is sent
		dialled   int    // by a GET; zero is as often as it is sent
		took      time.Duration
	}{
		{name: "nobody there", get: "no answer", gets: 3, post: "no answer", took: 3 * time.Second},
		{name: "closed at once", serve: []func(*peer){func(p *peer) { _ = p.Close() }, ok}, get: "200", gets: 2, post: "no answer", took: time.Second},
		{name: "closed", serve: []func(*peer){closed, closed, ok}, get: "200", gets: 3, post: "no answer", took: 3 * time.Second},
		{name: "reset", serve: []func(*peer){func(p *peer) { p.request(); p.reset() }}, get: "no answer", gets: 3, post: "no answer", took: 3 * time.Second},
		{
			name: "reset in the status line", get: "200", gets: 2, post: "no answer", took: time.Second,
			serve: []func(*peer){func(p *peer) { p.request(); p.say("HTTP/1."); p.reset() }, ok},
		},
		{
			name: "reset in the header", get: "200", gets: 2, post: "no answer", took: time.Second,
			serve: []func(*peer){func(p *peer) { p.request(); p.say("HTTP/1.1 200 OK", "Content-Le"); p.reset() }, ok},
		},
		{
			name: "reset in the body", get: "200, broken off", gets: 1, post: "200, broken off",
			serve: []func(*peer){func(p *peer) {
				p.request()
				p.say("HTTP/1.1 200 OK", "Content-Length: 9", "", "x")
				p.reset()
			}},
		},
		{
			name: "reset in a chunk", get: "200, broken off", gets: 1, post: "200, broken off",
			serve: []func(*peer){func(p *peer) {
				p.request()
				p.say("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "5", "hel")
				p.reset()
			}},
		},
		{
			name: "reset in the body of a refusal", get: "200", gets: 2, post: "503, broken off", took: time.Second,
			serve: []func(*peer){func(p *peer) {
				p.request()
				p.say("HTTP/1.1 503 X", "Content-Length: 9", "", "x")
				p.reset()
			}, ok},
		},
		{name: "no HTTP", serve: []func(*peer){func(p *peer) { p.request(); p.say("220 mail.test ESMTP", "") }, ok}, get: "200", gets: 2, post: "no answer", took: time.Second},
		{
			name: "endless header", get: "no answer", gets: 3, post: "no answer", took: 3 * time.Second,
			serve: []func(*peer){func(p *peer) {
				p.request()
				p.say("HTTP/1.1 200 OK", "")
				p.pour("X: "+strings.Repeat("x", 32<<10)+"\r\n", 0)
			}},
		},
		{
			name: "endless interim answers", get: "no answer", gets: 3, post: "no answer", took: 3 * time.Second,
			serve: []func(*peer){func(p *peer) {
				p.request()
				p.pour("HTTP/1.1 103 X\r\nX: "+strings.Repeat("x", 1<<10)+"\r\n\r\n", 0)
			}},
		},
		{
			name: "silence", get: "no answer", gets: 3, post: "no answer", took: 3*time.Second + 3*time.Minute,
			serve: []func(*peer){func(p *peer) { p.request() }},
		},
		{
			name: "endless body", get: "200", gets: 1, post: "200",
			serve: []func(*peer){func(p *peer) {
				p.request()
				p.say("HTTP/1.1 200 OK", "", "")
				p.pour(strings.Repeat("x", 1<<20), time.Millisecond)
			}},
		},
		{
			name: "endless body of a refusal", get: "200", gets: 2, post: "503", took: time.Second,
			serve: []func(*peer){func(p *peer) {
				p.request()
				p.say("HTTP/1.1 503 X", "", "")
				p.pour(strings.Repeat("x", 1<<20), time.Millisecond)
			}, ok},
		},
		{name: "slow body of a refusal", serve: []func(*peer){slow, ok}, get: "200", gets: 2, post: "503", took: 2 * time.Second},
		{name: "refused on one connection", serve: []func(*peer){answers(503, 429, 200)}, get: "200", gets: 3, dialled: 1, post: "503", took: 3 * time.Second},
		{
			name: "refused, and told to close", get: "200", gets: 2, post: "429", took: time.Second,
			serve: []func(*peer){func(p *peer) {
				p.request()
				p.say("HTTP/1.1 429 X", "Connection: close", "Content-Length: 1", "", "x")
			}, ok},
		},
		{
			name: "more than was announced", get: "200", gets: 2, post: "503", took: time.Second,
			serve: []func(*peer){func(p *peer) {
				p.request()
				p.say("HTTP/1.1 503 X", "Content-Length: 1", "", "xHTTP/1.1 200 OK", "Content-Length: 6", "", "forged")
			}, ok},
		},
		{name: "closed in the handshake", https: true, serve: []func(*peer){func(p *peer) { _ = p.Close() }}, get: "no answer", gets: 3, post: "no answer", took: 3 * time.Second},
		{name: "silence in the handshake", https: true, serve: []func(*peer){func(*peer) {}}, get: "no answer", gets: 3, post: "no answer", took: 6 * time.Second},
		{name: "no TLS", https: true, serve: []func(*peer){func(p *peer) { p.say("HTTP/1.1 400 X", "", "") }}, get: "no answer", gets: 1, post: "no answer"},
	}
	for _, tt := range tests {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for variant, vary := range variants {
				t.Run(tt.name+"/"+method+" "+variant, func(t *testing.T) {
					wired(t, func(t *testing.T, w *wire) {
						addr, tr := "localhost:80", w.transport()
						vary(tr)
						if tt.name == "silence" {
							tr.AttemptTimeout = time.Minute
						}
						req := w.request(t.Context(), method, "body")
						want, sent := tt.post, 1
						if method == http.MethodGet {
							req = w.request(t.Context(), method, "")
							want, sent = tt.get, tt.gets
						}
						if tt.https {
							addr, req.URL.Scheme, req.URL.Host = "api.test:443", "https", "api.test"
						}
						if tt.serve != nil {
							w.serve(addr, tt.serve...)
						}
						began := time.Now()
						resp, err := tr.RoundTrip(req)
						took := time.Since(began)
						if got := fate(resp, err); got != want || w.sent != sent {
							t.Errorf("%s (%v) after %d attempts, want %s after %d", got, err, w.sent, want, sent)
						}
						if method == http.MethodPost {
							return
						}
						if took.Round(50*time.Millisecond) != tt.took {
							t.Errorf("took %v, want %v", took, tt.took)
						}
						dialled := tt.dialled
						if dialled == 0 {
							dialled = sent
						}
						if w.dialled != dialled {
							t.Errorf("%d connections, want %d", w.dialled, dialled)
						}
					})
				})
			}
		}
	}
}

// A server that is asked to say 100 before a body is sent.
func TestNothingIsLeftByExpectations(t *testing.T) {
	answer := func(lines ...string) func(*peer) {
		return func(p *peer) { p.head(); p.say(append(lines, "Content-Length: 0", "", "")...) }
	}
	asked := func(p *peer) {
		req := p.head()
		p.say("HTTP/1.1 100 X", "", "")
		if data, err := io.ReadAll(req.Body); string(data) != "body" || err != nil {
			p.w.t.Errorf("%q, %v", data, err)
		}
		p.say("HTTP/1.1 200 X", "Content-Length: 0", "", "")
	}
	tests := []struct {
		name  string
		serve []func(*peer)
		want  string
		sent  int
		took  time.Duration
	}{
		{"refused", []func(*peer){answer("HTTP/1.1 417 X")}, "417", 1, 0},
		{"refused for now, and closed", []func(*peer){answer("HTTP/1.1 503 X", "Connection: close"), asked}, "200", 2, time.Second},
		{"refused for now", []func(*peer){func(p *peer) {
			req := p.head()
			p.say("HTTP/1.1 503 X", "Content-Length: 0", "", "")
			_, _ = io.Copy(io.Discard, req.Body) // the connection is kept, so that the body comes after all
			asked(p)
		}}, "200", 2, time.Second},
		{"never said", []func(*peer){func(p *peer) {
			p.request()
			p.say("HTTP/1.1 200 X", "Content-Length: 0", "", "")
		}}, "200", 1, time.Second},
		{"reset in its place", []func(*peer){func(p *peer) { p.head(); p.reset() }}, "no answer", 3, 3 * time.Second},
		{"refused, and reset", []func(*peer){func(p *peer) {
			p.head()
			p.say("HTTP/1.1 417 X", "Content-Length: 9", "", "x")
			time.Sleep(time.Nanosecond) // until the answer is read: a reset that overtakes it is another case
			p.reset()
		}}, "417, broken off", 1, 1},
	}
	for _, tt := range tests {
		for variant, vary := range variants {
			t.Run(tt.name+"/"+variant, func(t *testing.T) {
				wired(t, func(t *testing.T, w *wire) {
					w.serve("localhost:80", tt.serve...)
					tr := w.transport()
					vary(tr)
					body := &stream{Reader: strings.NewReader("body")}
					req := w.request(t.Context(), http.MethodPut, "")
					req.Header.Set("Expect", "100-continue")
					req.Body, req.ContentLength = body, 4
					began := time.Now()
					resp, err := tr.RoundTrip(req)
					if got := fate(resp, err); got != tt.want || w.sent != tt.sent || time.Since(began) != tt.took {
						t.Errorf("%s (%v) after %d attempts and %v", got, err, w.sent, time.Since(began))
					}
					if body.closed != 1 {
						t.Errorf("the caller's body was closed %d times", body.closed)
					}
				})
			})
		}
	}
}

// Whatever a caller does with an answer.
func TestNothingIsLeftByCallers(t *testing.T) {
	servers := map[string]func(*peer){
		"short": answers(200, 200),
		"endless": func(p *peer) {
			p.request()
			p.say("HTTP/1.1 200 X", "", "")
			p.pour(strings.Repeat("x", 1<<20), time.Millisecond)
		},
		"slow": func(p *peer) {
			p.request()
			p.say("HTTP/1.1 200 X", "", "")
			p.pour("x", time.Second)
		},
	}
	callers := map[string]func(*http.Response){
		"does not read": func(*http.Response) {},
		"reads some":    func(r *http.Response) { _, _ = r.Body.Read(make([]byte, 1)) },
		"reads on another goroutine": func(r *http.Response) {
			go func() { _, _ = io.Copy(io.Discard, r.Body) }()
			time.Sleep(50 * time.Millisecond)
		},
		"closes twice":    func(r *http.Response) { _ = r.Body.Close() },
		"reads after all": func(r *http.Response) { _ = r.Body.Close(); _, _ = r.Body.Read(make([]byte, 1)) },
	}
	for server, serve := range servers {
		for caller, call := range callers {
			for variant, vary := range variants {
				t.Run(server+"/"+caller+"/"+variant, func(t *testing.T) {
					wired(t, func(t *testing.T, w *wire) {
						w.serve("localhost:80", serve)
						tr := w.transport()
						vary(tr)
						resp, err := tr.RoundTrip(w.request(t.Context(), http.MethodGet, ""))
						if err != nil {
							t.Fatal(err)
						}
						call(resp)
						_ = resp.Body.Close()
					})
				})
			}
		}
	}
	t.Run("panics in the base and in a hook", func(t *testing.T) {
		wired(t, func(t *testing.T, w *wire) {
			w.serve("localhost:80", func(p *peer) {
				p.request()
				p.say("HTTP/1.1 503 X", "Retry-After: 1", "Content-Length: 0", "", "")
				p.request()
				p.say("HTTP/1.1 200 X", "Content-Length: 0", "", "")
			})
			tr := w.transport()
			tr.Hooks.OnRetry = func(context.Context, requests.Retry) { panic("a bug") }
			resp, err := tr.RoundTrip(w.request(t.Context(), http.MethodGet, ""))
			if got := fate(resp, err); got != "200" || w.sent != 2 {
				t.Errorf("%s, %v", got, err)
			}
		})
	})
}

// An answer to a request whose body is still waiting for its writer: when the answer is done with, or the caller cancels,
// nobody reads the body any longer.
func TestNothingIsLeftOfABodyThatNobodyWants(t *testing.T) {
	early := func(p *peer) {
		p.head()
		p.say("HTTP/1.1 413 X", "Content-Length: 5", "", "hello")
	}
	earlyOverH2 := overH2(func(h *h2peer) {
		s := h.until(h2Headers).stream
		h.send(h2Headers, h2EndHeaders|h2EndStream, s, h2TooLong...)
		h.reset(s, h2NoError)
	})
	slow := func(p *peer) {
		p.head()
		p.say("HTTP/1.1 413 X", "", "")
		p.pour("x", 300*time.Millisecond)
	}
	for name, tt := range map[string]struct {
		serve func(*peer)
		use   func(resp *http.Response, cancel func())
	}{
		"read":              {early, func(r *http.Response, _ func()) { _, _ = io.Copy(io.Discard, r.Body) }},
		"closed":            {early, func(r *http.Response, _ func()) {}},
		"closed, endless":   {slow, func(r *http.Response, _ func()) {}},
		"cancelled":         {slow, func(r *http.Response, cancel func()) { cancel(); _, _ = io.Copy(io.Discard, r.Body) }},
		"read, over HTTP/2": {earlyOverH2, func(r *http.Response, _ func()) { _, _ = io.Copy(io.Discard, r.Body) }},
	} {
		for variant, vary := range variants {
			t.Run(name+"/"+variant, func(t *testing.T) {
				wired(t, func(t *testing.T, w *wire) {
					if strings.Contains(name, "HTTP/2") {
						w.h2()
					}
					w.serve("localhost:80", tt.serve)
					tr := w.transport()
					vary(tr)
					tr.BufferLimit = -1
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					r, end := io.Pipe()
					req := w.request(ctx, http.MethodPut, "")
					req.Body, req.ContentLength = r, -1
					resp, err := tr.RoundTrip(req)
					if err != nil || resp.StatusCode != 413 {
						t.Fatalf("%v, %v", resp, err)
					}
					tt.use(resp, cancel)
					_ = resp.Body.Close()
					synctest.Wait()
					if _, err := io.WriteString(end, "x"); err == nil {
						t.Error("the body is still read")
					}
				})
			})
		}
	}
}

// refreshing refreshes at the API itself, over the same base.
type refreshing struct {
	fixed
	refresh func(context.Context) error
}

func (r refreshing) Refresh(ctx context.Context, _ *oauth2.Token) (*oauth2.Token, error) {
	if err := r.refresh(ctx); err != nil {
		return nil, err
	}
	return token("renewed"), nil
}

// With one connection to the host a 401 that were still open would keep the refresh from being sent for ever.
func TestNothingIsLeftBeforeARefresh(t *testing.T) {
	for name, tt := range map[string]struct {
		first   func(*peer)
		dialled int
		took    time.Duration
	}{
		"short": {answers(401, 200, 200), 1, 0},
		"endless": {func(p *peer) {
			p.request()
			p.say("HTTP/1.1 401 X", "", "")
			p.pour(strings.Repeat("x", 1<<20), time.Hour)
		}, 2, 0},
		"slow":  {func(p *peer) { p.request(); p.say("HTTP/1.1 401 X", "", ""); p.pour("x", 300*time.Millisecond) }, 2, time.Second},
		"reset": {func(p *peer) { p.request(); p.say("HTTP/1.1 401 X", "Content-Length: 3", "", "x"); p.reset() }, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			wired(t, func(t *testing.T, w *wire) {
				w.base.MaxConnsPerHost = 1
				w.serve("localhost:80", tt.first, answers(200, 200))
				tr := w.transport()
				tr.Tokens = refreshing{refresh: func(ctx context.Context) error {
					resp, err := w.RoundTrip(w.request(ctx, http.MethodPost, "grant"))
					if got := fate(resp, err); got != "200" {
						t.Errorf("the refresh: %s", got)
					}
					return err
				}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				resp, err := tr.RoundTrip(w.request(ctx, http.MethodPost, "body"))
				if got := fate(resp, err); got != "200" || w.sent != 3 || w.dialled != tt.dialled || time.Since(began) != tt.took {
					t.Errorf("%s (%v), %d attempts, %d connections, %v", got, err, w.sent, w.dialled, time.Since(began))
				}
			})
		})
	}
}
