package requests_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/requests"
)

// Whenever the caller cancels, the request ends at that instant, says why, and leaves nothing open.
func TestNothingIsLeftByCancelling(t *testing.T) {
	const at = 500 * time.Millisecond
	silent := func(p *peer) { p.request() }
	refused := answers(503)
	slow := func(status string) func(*peer) {
		return func(p *peer) {
			p.request()
			p.say("HTTP/1.1 "+status, "", "")
			p.pour("x", 90*time.Millisecond)
		}
	}
	get := func(ctx context.Context, w *wire, tr *requests.Transport) error {
		resp, err := tr.RoundTrip(w.request(ctx, http.MethodGet, ""))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	withClient := func(use func(context.Context, *requests.Client) error) func(context.Context, *wire, *requests.Transport) error {
		return func(ctx context.Context, _ *wire, tr *requests.Transport) error {
			c, err := requests.NewClient("http://localhost", tr)
			if err != nil {
				return err
			}
			return use(ctx, c)
		}
	}
	download := withClient(func(ctx context.Context, c *requests.Client) error {
		d, err := c.Download(ctx, "/file")
		if err != nil {
			return err
		}
		defer d.Body.Close()
		_, err = io.Copy(io.Discard, d.Body)
		return err
	})
	redirects := func(p *peer) {
		p.request()
		p.say("HTTP/1.1 302 X", "Location: http://files.localhost/f?sig=s3cret", "Content-Length: 0", "", "")
	}
	hang := func(w *wire, addr string) {
		dial := w.base.DialContext
		w.base.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
			if to != addr {
				return dial(ctx, network, to)
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	}
	tests := []struct {
		name  string
		serve []func(*peer)
		files []func(*peer) // the server of the second hop
		set   func(w *wire, tr *requests.Transport)
		run   func(ctx context.Context, w *wire, tr *requests.Transport) error
		sent  int
		early bool          // cancelled before it begins
		ends  time.Duration // if not when it is cancelled
	}{
		{name: "before it is sent", early: true, serve: []func(*peer){answers(200)}, run: get},
		{name: "dialling", run: get, sent: 1, set: func(w *wire, _ *requests.Transport) { hang(w, "localhost:80") }},
		{
			name: "dialling, and then there is a connection", serve: []func(*peer){answers(200)}, run: get, sent: 1,
			set: func(w *wire, _ *requests.Transport) {
				dial := w.base.DialContext
				w.base.DialContext = func(_ context.Context, network, to string) (net.Conn, error) {
					time.Sleep(time.Minute)
					return dial(w.t.Context(), network, to)
				}
			},
		},
		{name: "in the handshake", serve: []func(*peer){func(*peer) {}}, sent: 1, run: func(ctx context.Context, _ *wire, tr *requests.Transport) error {
			_, err := trip(tr, request(ctx, http.MethodGet, "/", ""))
			return err
		}},
		{name: "reading the caller's body to keep it", serve: []func(*peer){silent}, run: putSlowly},
		{
			name: "writing the body", serve: []func(*peer){silent}, sent: 1, run: putSlowly,
			set: func(_ *wire, tr *requests.Transport) { tr.BufferLimit = -1 },
		},
		{name: "waiting for the answer", serve: []func(*peer){silent}, run: get, sent: 1},
		{name: "in the header", serve: []func(*peer){func(p *peer) { p.request(); p.say("HTTP/1.1 200 X", "Da") }}, run: get, sent: 1},
		{name: "draining what is repeated", serve: []func(*peer){slow("503 X")}, run: get, sent: 1},
		{name: "waiting", serve: []func(*peer){refused}, run: get, sent: 1},
		{name: "waiting after a failure", run: get, sent: 1},
		{name: "draining a 401", serve: []func(*peer){slow("401 X")}, run: get, sent: 1, set: refreshingFor(0)},
		{name: "refreshing", serve: []func(*peer){answers(401)}, run: get, sent: 1, set: refreshingFor(time.Minute)},
		{name: "refreshing at a source that hears nothing", serve: []func(*peer){answers(401)}, run: get, sent: 1, set: func(_ *wire, tr *requests.Transport) {
			tr.Tokens = refreshing{refresh: func(context.Context) error { time.Sleep(2 * at); return nil }}
		}, ends: 2 * at},
		{name: "throttled", run: throttled(0), sent: 1},
		{name: "throttled, in line", run: throttled(3), sent: 1},
		{name: "reading the body", serve: []func(*peer){slow("200 X")}, run: get, sent: 1},
		{name: "reading the last body", serve: []func(*peer){slow("503 X")}, run: get, sent: 1, set: func(_ *wire, tr *requests.Transport) { tr.MaxAttempts = 1 }},
		{name: "reading what an error says", serve: []func(*peer){slow("404 X")}, sent: 1, run: withClient(func(ctx context.Context, c *requests.Client) error {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
			_, err := c.Do(req)
			return err
		})},
		{name: "reading JSON", serve: []func(*peer){slow("200 X")}, sent: 1, run: withClient(func(ctx context.Context, c *requests.Client) error {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
			return c.DoJSON(req, new(any))
		})},
		{name: "waiting in the first hop", serve: []func(*peer){refused}, run: download, sent: 1},
		{name: "dialling in the second hop", serve: []func(*peer){redirects}, run: download, sent: 2, set: func(w *wire, _ *requests.Transport) { hang(w, "files.localhost:80") }},
		{name: "waiting for the second hop", serve: []func(*peer){redirects}, files: []func(*peer){silent}, run: download, sent: 2},
		{name: "reading the file", serve: []func(*peer){redirects}, files: []func(*peer){slow("200 X")}, run: download, sent: 2},
		{name: "draining what the second hop says", serve: []func(*peer){redirects}, files: []func(*peer){slow("403 X")}, run: download, sent: 2},
	}
	for _, tt := range tests {
		for variant, vary := range variants {
			t.Run(tt.name+"/"+variant, func(t *testing.T) {
				wired(t, func(t *testing.T, w *wire) {
					addr := "localhost:80"
					if tt.name == "in the handshake" {
						addr = "api.test:443"
						w.base.TLSHandshakeTimeout = time.Hour
					}
					if tt.serve != nil {
						w.serve(addr, tt.serve...)
					}
					if tt.files != nil {
						w.serve("files.localhost:80", tt.files...)
					}
					tr := w.transport()
					vary(tr)
					if tt.set != nil {
						tt.set(w, tr)
					}
					why := errors.New("the user left")
					ctx, cancel := context.WithCancelCause(t.Context())
					began, when := time.Now(), at
					if tt.early {
						when = 0
						cancel(why)
					} else {
						defer time.AfterFunc(at, func() { cancel(why) }).Stop()
					}
					when = max(when, tt.ends)
					err := tt.run(ctx, w, tr)
					if took := time.Since(began); took != when {
						t.Errorf("ended after %v, and was cancelled after %v", took, when)
					}
					// What an answer said is worth more than that somebody stopped reading its reasons.
					e, ok := errors.AsType[*requests.Error](err)
					answered := ok && e.Status != 0 && strings.Contains(tt.name, " says")
					if !errors.Is(err, context.Canceled) && !errors.Is(err, why) && !answered {
						t.Errorf("%v", err)
					}
					if strings.Contains(err.Error(), "s3cret") {
						t.Errorf("a signed address: %v", err)
					}
					if tt.sent > 0 && w.sent != tt.sent {
						t.Errorf("%d attempts, want %d", w.sent, tt.sent)
					}
				})
			})
		}
	}
}

// putSlowly sends a body whose end never comes.
func putSlowly(ctx context.Context, w *wire, tr *requests.Transport) error {
	r, end := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for {
			if _, err := io.WriteString(end, "x"); err != nil {
				return
			}
			time.Sleep(90 * time.Millisecond)
		}
	}()
	req := w.request(ctx, http.MethodPut, "")
	req.Body, req.ContentLength = r, -1
	_, err := trip(tr, req)
	w.t.Cleanup(func() {
		select {
		case <-written:
		default:
			w.t.Error("the caller's body was not closed")
		}
	})
	return err
}

// refreshingFor takes its time over a refresh.
func refreshingFor(d time.Duration) func(*wire, *requests.Transport) {
	return func(_ *wire, tr *requests.Transport) {
		tr.Tokens = refreshing{refresh: func(ctx context.Context) error {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
	}
}

// throttled has a request wait for what another one was told, behind so many others.
func throttled(others int) func(context.Context, *wire, *requests.Transport) error {
	return func(ctx context.Context, w *wire, tr *requests.Transport) error {
		w.serve("localhost:80", func(p *peer) {
			p.request()
			p.say("HTTP/1.1 429 X", "Retry-After: 60", "Content-Length: 0", "", "")
		})
		tr.MaxAttempts = 1
		if status, err := trip(tr, w.request(w.t.Context(), http.MethodGet, "")); status != 429 {
			w.t.Errorf("%d, %v", status, err)
		}
		for range others {
			go func() { _, _ = trip(tr, w.request(ctx, http.MethodGet, "")) }()
		}
		synctest.Wait()
		resp, err := tr.RoundTrip(w.request(ctx, http.MethodGet, ""))
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
}
