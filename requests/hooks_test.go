package requests_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// record makes hooks that write a line for each event.
func record(events *[]string) requests.Hooks {
	note := func(format string, args ...any) { *events = append(*events, fmt.Sprintf(format, args...)) }
	return requests.Hooks{
		OnRequestStart: func(_ context.Context, a requests.Attempt) {
			note("start %s %s %d/%d because %q", a.Method, a.URL, a.Number, a.Of, a.Reason)
		},
		OnRequestEnd: func(_ context.Context, r requests.Result) {
			note("end %d with %d, %v after %v", r.Number, r.Status, r.Err != nil, r.Took)
		},
		OnRetry: func(_ context.Context, r requests.Retry) {
			note("retry %d→%d after %d, %v, in %v", r.Number, r.Next, r.Status, r.Err != nil, r.Wait.For)
		},
		OnWait: func(w delay.Wait) { note("wait %s until %s", w, w.Until.UTC().Format("15:04:05")) },
	}
}

func TestHooks(t *testing.T) {
	script := []fakes.Answer{{Drop: true, Latency: time.Second}, retryAfter(503, "7"), {Status: 401}, {Status: 200}}
	bubble(t, script, func(r *rig) {
		var events []string
		tr := r.transport()
		tr.Tokens, tr.Hooks = &source{}, record(&events)
		tr.Operations = requests.MustOperations(map[string]requests.Operation{"GET /x": {Max: 4}})
		if status, err := trip(tr, request(r.t.Context(), "GET", "/x?secret=1#f", "")); status != 200 {
			r.t.Fatal(status, err)
		}
		want := []string{
			`start GET https://api.test/x 1/4 because ""`,
			`end 1 with 0, true after 1s`,
			`retry 1→2 after 0, true, in 1s`,
			`wait generated-retry attempt 1 of 4 (no answer): wait 1s, local 1s: the loop's own delay: no Retry-After until 12:00:02`,
			`start GET https://api.test/x 2/4 because "no answer"`,
			`end 2 with 503, false after 0s`,
			`retry 2→3 after 503, false, in 7s`,
			`wait generated-retry attempt 2 of 4 (503): wait 7s, local 2s, server 7s: Retry-After replaces the local delay until 12:00:09`,
			`start GET https://api.test/x 3/4 because "503"`,
			`end 3 with 401, false after 0s`,
			`start GET https://api.test/x 4/4 because "401, and the token was renewed"`,
			`end 4 with 200, false after 0s`,
		}
		if !slices.Equal(events, want) {
			r.t.Errorf("got\n%s\nwant\n%s", strings.Join(events, "\n"), strings.Join(want, "\n"))
		}
	})
}

// Of how many an attempt is said to be one, where it is the only one.
func TestAttemptsThatMayBe(t *testing.T) {
	stream := func(req *http.Request) { req.Body, req.GetBody = io.NopCloser(strings.NewReader("longer")), nil }
	tests := []struct {
		name, method string
		change       func(*http.Request)
		tokens       oauth2.TokenSource
		want         int
	}{
		{"repeatable", "GET", nil, nil, 3},
		{"not repeatable", "POST", nil, nil, 1},
		{"not repeatable, fixed token", "POST", nil, fixed{}, 1},
		{"not repeatable, refreshable token", "POST", nil, &source{}, 2},
		{"too long to keep", "PUT", stream, &source{}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			quick(t, statusReplies(200), func(t *testing.T, tr *requests.Transport, _ *base) {
				of := 0
				tr.Tokens, tr.BufferLimit = tt.tokens, 5
				tr.Hooks.OnRequestStart = func(_ context.Context, a requests.Attempt) { of = a.Of }
				req := request(t.Context(), tt.method, "/", "")
				if tt.change != nil {
					tt.change(req)
				}
				if _, err := trip(tr, req); err != nil || of != tt.want {
					t.Errorf("1 of %d, want %d (%v)", of, tt.want, err)
				}
			})
		})
	}
}

// A hook that panics does not take the request down with it, and somebody hears of it.
func TestPanickingHooks(t *testing.T) {
	quick(t, statusReplies(503, 200), func(t *testing.T, tr *requests.Transport, b *base) {
		var log bytes.Buffer
		tr.Hooks = requests.Hooks{
			OnRequestStart: func(context.Context, requests.Attempt) { panic("one") },
			OnRequestEnd:   func(context.Context, requests.Result) { panic(errors.New("two")) },
			OnRetry:        func(context.Context, requests.Retry) { panic([]int{3}) },
			OnWait:         func(delay.Wait) { panic(struct{}{}) },
		}
		for _, logger := range []*slog.Logger{nil, slog.New(slog.NewTextHandler(&log, nil))} {
			tr.Logger, b.sent = logger, nil
			if status, err := trip(tr, get()); status != 200 || err != nil || len(b.sent) != 2 {
				t.Errorf("%d, %v after %d attempts", status, err, len(b.sent))
			}
		}
		for _, want := range []string{"OnRequestStart", "OnRequestEnd", "OnRetry", "OnWait", "one", "two"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not have %s:\n%s", want, log.String())
			}
		}
	})
}

func TestLogger(t *testing.T) {
	quick(t, []reply{{status: 429, header: map[string][]string{"Retry-After": {"5"}}}, {status: 200}}, func(t *testing.T, tr *requests.Transport, _ *base) {
		var log bytes.Buffer
		tr.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		_, _ = trip(tr, request(t.Context(), "GET", "/x?sig=s3cret", ""))
		want := `level=INFO msg="requests: waiting" method=GET url=https://api.test/x for=5s ` +
			`why="generated-retry attempt 1 of 3 (429): wait 5s, local 1s, server 5s: Retry-After replaces the local delay"` + "\n"
		if log.String() != want {
			t.Errorf("got  %swant %s", log.String(), want)
		}
	})
}
