package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
)

// polls follows a script of errors, where nil is a page, and then serves the last page.
func polls(script ...error) (stream.PollFunc[int], *[]stream.Attempt) {
	var attempts []stream.Attempt
	return func(_ context.Context, a stream.Attempt) (stream.Page[int], error) {
		attempts = append(attempts, a)
		n := len(attempts)
		if n > len(script) {
			return stream.Page[int]{Events: []int{n}, Position: fmt.Sprint(n)}, nil
		}
		if err := script[n-1]; err != nil {
			return stream.Page[int]{}, err
		}
		return stream.Page[int]{Events: []int{n}, Position: fmt.Sprint(n), Next: fmt.Sprint(n)}, nil
	}, &attempts
}

func walked(t *testing.T, ctx context.Context, w stream.Walk[int]) (pages int, err error) {
	t.Helper()
	for _, e := range w.Pages(ctx, "start") {
		if err != nil {
			t.Error("something came after the error")
		}
		if err = e; err == nil {
			pages++
		}
	}
	return pages, err
}

func status(code int, retryAfter time.Duration) error { return refused(code, retryAfter).err }

func TestPollRetryWaitsExactly(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		poll, attempts := polls(status(503, 0), status(503, time.Second), status(429, 10*time.Minute), errors.New("no route"), nil, status(502, 0))
		l := &log{}
		pages, err := walked(t, t.Context(), stream.Walk[int]{Poll: poll, Rand: pinned(1), Clock: c, Trace: l.trace()})
		want(t, "error", err, nil)
		want(t, "pages", pages, 2)
		wantDurations(t, "waits", l.waited(), s(1, 1, 600, 8, 1))
		wantList(t, "reasons", l.reasons(), []delay.Reason{delay.OwnDelay, delay.Replaced, delay.Replaced, delay.OwnDelay, delay.OwnDelay})
		want(t, "loop", l.waits[0].Loop, delay.PollRetry)
		positions := []string{}
		for _, a := range *attempts {
			positions = append(positions, a.Position)
		}
		wantList(t, "positions", positions, []string{"start", "start", "start", "start", "start", "5", "5"})
	})
}

func TestPollUnauthorized(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		poll, _ := polls(status(401, time.Hour), status(503, 0), status(403, time.Hour), nil, status(401, 0), status(401, 0), status(401, 0))
		l := &log{}
		pages, err := walked(t, t.Context(), stream.Walk[int]{Poll: poll, Rand: pinned(1), Clock: c, Trace: l.trace()})
		want(t, "pages", pages, 1)
		want(t, "reason", errors.Is(err, stream.AuthorizationFailed), true)
		wantDurations(t, "waits", l.waited(), s(1, 2, 4, 1, 2))
		want(t, "reason", l.waits[0].Reason, delay.Unheeded)
	})
}

func TestPollPermanent(t *testing.T) {
	for _, code := range []int{301, 400, 404, 409, 410} {
		bubble(t, func(t *testing.T, c watched) {
			poll, attempts := polls(nil, status(code, time.Hour))
			pages, err := walked(t, t.Context(), stream.Walk[int]{Poll: poll, Clock: c})
			want(t, "pages", pages, 1)
			want(t, "reason", errors.Is(err, stream.PollFailed), true)
			cause, ok := errors.AsType[*stream.AttemptError](err)
			want(t, "cause", ok && cause.Status == code, true)
			want(t, "polls", len(*attempts), 2)
		})
	}
}

func TestPollEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		ctx, cancel := context.WithCancel(t.Context())
		poll, attempts := polls(status(503, time.Hour))
		time.AfterFunc(time.Minute, cancel)
		began := time.Now()
		pages, err := walked(t, ctx, stream.Walk[int]{Poll: poll, Clock: c})
		want(t, "error", err, nil)
		want(t, "pages", pages, 0)
		want(t, "after", time.Since(began), time.Minute)
		want(t, "polls", len(*attempts), 1)
		_, err = walked(t, ctx, stream.Walk[int]{Poll: poll, Clock: c})
		want(t, "error", err, nil)
		want(t, "polls", len(*attempts), 1)
	})
}

func TestPollDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		ctx, cancel := c.timers.WithTimeout(t.Context(), "test", time.Minute)
		defer cancel()
		poll, _ := polls(status(503, time.Hour))
		_, err := walked(t, ctx, stream.Walk[int]{Poll: poll, Clock: c})
		want(t, "reason", errors.Is(err, stream.DeadlinePassed), true)
	})
}

func TestPollTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		n := 0
		poll := func(ctx context.Context, _ stream.Attempt) (stream.Page[int], error) {
			if n++; n == 1 {
				<-ctx.Done()
				return stream.Page[int]{}, ctx.Err()
			}
			return stream.Page[int]{}, nil
		}
		l := &log{}
		began := time.Now()
		_, err := walked(t, t.Context(), stream.Walk[int]{Poll: poll, Rand: pinned(1), Clock: c, Trace: l.trace()})
		want(t, "error", err, nil)
		want(t, "took", time.Since(began), 31*time.Second)
		want(t, "cause", l.waits[0].Cause, "request-timeout")
	})
}

func TestPollNoProgress(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		n := 0
		poll := func(context.Context, stream.Attempt) (stream.Page[int], error) {
			n++
			return stream.Page[int]{Next: "start"}, nil
		}
		_, err := walked(t, t.Context(), stream.Walk[int]{Poll: poll, Clock: c})
		want(t, "reason", errors.Is(err, stream.PollFailed), true)
		want(t, "polls", n, 3)
	})
}

func TestPollCredentials(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		source := &tokens{}
		poll, attempts := polls(status(401, 0), nil, status(503, 0))
		pages, err := walked(t, t.Context(), stream.Walk[int]{Poll: poll, Credential: stream.Tokens(source), Clock: c})
		want(t, "error", err, nil)
		want(t, "pages", pages, 2)
		sent := []string{}
		for _, a := range *attempts {
			sent = append(sent, a.Credential.Token.AccessToken)
		}
		wantList(t, "sent", sent, []string{"token-0", "token-1", "token-1", "token-1"})
		broken := stream.Walk[int]{Poll: poll, Clock: c, Credential: func(context.Context, stream.Credential) (stream.Credential, error) {
			return stream.Credential{}, retrieve(404, "", "")
		}}
		_, err = walked(t, t.Context(), broken)
		want(t, "reason", errors.Is(err, stream.MintFailed), true)
	})
}

func TestPollUsage(t *testing.T) {
	_, err := walked(t, t.Context(), stream.Walk[int]{Ceiling: -1, AuthorizationThreshold: -1})
	want(t, "reason", errors.Is(err, stream.Usage), true)
	for _, field := range []string{"Poll", "Ceiling", "AuthorizationThreshold"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%q does not name %s", err, field)
		}
	}
}

func TestHTTPPoll(t *testing.T) {
	bubble(t, func(t *testing.T, _ watched) {
		net := fakes.NewNetwork(t)
		net.Serve(t, "other.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect to another origin was followed") }))
		net.Serve(t, "api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization"); got != "Bearer canary" {
				t.Errorf("authorization %q", got)
			}
			switch r.URL.Path {
			case "/page":
				fmt.Fprint(w, `{"events":[1,2],"next":"7"}`)
			case "/moved":
				http.Redirect(w, r, "/page", http.StatusFound)
			case "/away":
				http.Redirect(w, r, "https://other.test/page?ticket=canary", http.StatusFound)
			case "/unreadable":
				w.Header().Set("Location", "https://api.test/%zz?ticket=canary")
				w.WriteHeader(http.StatusFound)
			case "/round":
				http.Redirect(w, r, "/round", http.StatusFound)
			case "/none":
				w.WriteHeader(http.StatusNoContent)
			case "/html":
				fmt.Fprint(w, `<p>canary</p>`)
			case "/cut":
				w.Header().Set("Content-Length", "100")
				fmt.Fprint(w, `{"events":[1`)
			case "/large":
				fmt.Fprint(w, strings.Repeat(" ", 2000))
			case "/busy":
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				panic(http.ErrAbortHandler)
			}
		}))
		credential := stream.Credential{Token: &oauth2.Token{AccessToken: "canary"}}
		for _, tt := range []struct {
			address string
			class   stream.Class
			status  int
			fails   bool
		}{
			{"https://api.test/page?ticket=canary", 0, 0, false},
			{"https://api.test/moved", 0, 0, false},
			{"https://api.test/none", 0, 0, false},
			{"https://api.test/away?ticket=canary", stream.Permanent, 302, true},
			{"https://api.test/unreadable", stream.Permanent, 302, true},
			{"https://api.test/round?ticket=canary", stream.Permanent, 302, true},
			{"https://api.test/html?ticket=canary", stream.Permanent, 0, true},
			{"https://api.test/cut?ticket=canary", stream.Transient, 0, true},
			{"https://api.test/large?ticket=canary", stream.Permanent, 0, true},
			{"https://api.test/busy?ticket=canary", stream.Transient, 503, true},
			{"https://api.test/drop?ticket=canary", stream.Transient, 0, true},
			{"https://nobody.test/?ticket=canary", stream.Transient, 0, true},
			{"http://api.test/page?ticket=canary", stream.Permanent, 0, true},
			{"ftp://api.test/page?ticket=canary", stream.Permanent, 0, true},
			{"https://api.test/%zz?ticket=canary", stream.Permanent, 0, true},
		} {
			poll := poller(net.Client(), tt.address)
			poll.Limit = 1000
			page, err := poll.Poll(t.Context(), stream.Attempt{Credential: credential})
			if err == nil {
				want(t, tt.address+" fails", tt.fails, false)
				want(t, "next", page.Next == "7", !strings.HasSuffix(tt.address, "none"))
				continue
			}
			a, ok := errors.AsType[*stream.AttemptError](err)
			if !ok || !tt.fails || a.Class != tt.class || a.Status != tt.status {
				t.Errorf("%s: %#v", tt.address, err)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %v", tt.address, err)
			}
			if tt.status == 503 {
				want(t, "Retry-After", a.RetryAfter.Duration(), 7*time.Second)
			}
		}
		poll := poller(net.Client(), "https://api.test/page")
		poll.Decode = func(http.Header, []byte) (stream.Page[any], error) {
			return stream.Page[any]{}, fmt.Errorf("not ready: %w", &stream.AttemptError{Class: stream.Throttled})
		}
		_, err := poll.Poll(t.Context(), stream.Attempt{Credential: credential})
		a, _ := errors.AsType[*stream.AttemptError](err)
		want(t, "the decoder's own class", a.Class, stream.Throttled)
		_, err = stream.HTTPPoll[any]{}.Poll(t.Context(), stream.Attempt{})
		want(t, "without a request", err != nil, true)
	})
}

// The events of a server that throttles once, page by page.
func TestWalkOverHTTP(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		net := fakes.NewNetwork(t)
		server := fakes.NewEventServer(c)
		server.PageSize = 3
		defer server.Close()
		for i := range 7 {
			server.Publish(fmt.Sprint("event ", i))
		}
		server.ThrottleOnce(20 * time.Second)
		net.Serve(t, "api.test", server)
		l := &log{}
		var got []string
		var position string
		var lines strings.Builder
		logger := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
		walk := stream.Walk[fakes.Event]{Clock: c, Trace: l.trace(), Logger: logger, Poll: stream.HTTPPoll[fakes.Event]{
			Client: net.Client(),
			Request: func(ctx context.Context, position string) (*http.Request, error) {
				return http.NewRequestWithContext(ctx, http.MethodGet, "https://api.test/?after="+position, nil)
			},
			Decode: func(_ http.Header, body []byte) (page stream.Page[fakes.Event], err error) {
				return page, json.Unmarshal(body, &page)
			},
		}.Poll}
		for page, err := range walk.Pages(t.Context(), "2") {
			want(t, "error", err, nil)
			for _, e := range page.Events {
				got = append(got, e.Data)
			}
			position = page.Position
		}
		wantList(t, "events", got, []string{"event 2", "event 3", "event 4", "event 5", "event 6"})
		want(t, "position", position, "7")
		wantDurations(t, "waits", l.waited(), s(20))
		for _, line := range []string{"step=poll class=throttled status=429", "loop=poll-retry attempt=1 cause=429 wait=20s", "attempt=2 events=3 more=true", "attempt=3 events=2 more=false"} {
			if !strings.Contains(lines.String(), line) {
				t.Errorf("%q is not in the log:\n%s", line, lines.String())
			}
		}
	})
}

func TestHTTPPollDefaultClient(t *testing.T) {
	before := http.DefaultClient.Transport
	defer func() { http.DefaultClient.Transport = before }()
	own := errors.New("the default client's own")
	http.DefaultClient.Transport = roundTripper(func(*http.Request) (*http.Response, error) { return nil, own })
	_, err := poller(nil, "https://api.test/events").Poll(t.Context(), stream.Attempt{})
	want(t, "it is used", errors.Is(err, own), true)
}

// What http.Client puts up with in a RoundTripper costs an attempt, and not the program.
func TestHTTPPollCarelessTransport(t *testing.T) {
	for _, res := range []*http.Response{nil, {StatusCode: http.StatusFound}, {StatusCode: http.StatusServiceUnavailable}} {
		client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return res, nil })}
		if _, err := poller(client, "https://api.test/events").Poll(t.Context(), stream.Attempt{}); err == nil {
			t.Errorf("%+v is a page", res)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
