package requests_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// canary marks what must not be seen anywhere.
const canary = "c4n4ry"

// spying is a source whose refresh fails with an error of net/http's.
type spying struct{}

func (spying) Token() (*oauth2.Token, error) { return token(canary + "-token"), nil }

func (spying) Refresh(context.Context, *oauth2.Token) (*oauth2.Token, error) {
	return nil, &url.Error{Op: "Post", URL: "https://as.test/token?secret=" + canary, Err: errBroken}
}

// TestSecrets runs every way to fail with marked secrets, and looks for the mark in all that is said about it.
func TestSecrets(t *testing.T) {
	signed := to("https://files.test/f?signature=" + canary)
	scripts := map[string][]fakes.Answer{
		"success":             statuses(200),
		"400":                 statuses(400),
		"401, no refresh":     statuses(401),
		"429":                 {retryAfter(429, "1"), retryAfter(429, "1"), retryAfter(429, "1")},
		"500":                 statuses(500),
		"drops":               statuses(0, 0, 0),
		"redirect":            {signed},
		"unreadable redirect": {to("https://files.test/%zz?signature=" + canary)},
		"unreadable port":     {to("https://files.test:" + canary + "/")},
		"insecure redirect":   {to("http://files.test/f?signature=" + canary)},
		"redirect elsewhere":  {to("https://nobody.test/f?signature=" + canary)},
		"endless redirects":   {to("/?again=" + canary), to("/?again=" + canary), to("/?again=" + canary), to("/?again=" + canary), to("/?again=" + canary), to("/?again=" + canary), to("/?again=" + canary), to("/?again=" + canary), to("/?again=" + canary), to("/?again=" + canary)},
	}
	for name, script := range scripts {
		storages := []fakes.Answer{{Status: 200}}
		if name == "redirect" {
			storages = []fakes.Answer{{Status: 200}, {Status: 403, Body: "no signature " + canary}, {Drop: true}, to("https://files.test/g?signature=" + canary)}
		}
		t.Run(name, func(t *testing.T) {
			for _, storage := range storages {
				for _, way := range []string{"do", "download", "transport"} {
					fakes.Bubble(t, start, func(t *testing.T) { secretive(t, way, script, storage) })
				}
			}
		})
	}
}

// A base that is itself a client speaks of URLs.
func TestNestedURLError(t *testing.T) {
	leaky := fmt.Errorf("proxy: %w", &url.Error{Op: "Get", URL: "https://files.test/?signature=" + canary, Err: errBroken})
	_, err := trip(&requests.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, leaky }), MaxAttempts: 1}, get())
	if !errors.Is(err, errBroken) || strings.Contains(err.Error(), canary) {
		t.Errorf("%v", err)
	}
}

func secretive(t *testing.T, way string, script []fakes.Answer, storage fakes.Answer) {
	net := fakes.NewNetwork(t)
	net.Serve(t, "api.test", fakes.NewAPI(script...))
	net.Serve(t, "files.test", fakes.NewAPI(storage, storage, storage))
	var said bytes.Buffer
	tr := &requests.Transport{
		Base: net.Transport(), Tokens: spying{}, Rand: noJitter,
		Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Hooks: requests.Hooks{
			OnRequestStart: func(_ context.Context, a requests.Attempt) { fmt.Fprintf(&said, "%v %+v %#v\n", a, a, a) },
			OnRequestEnd:   func(_ context.Context, r requests.Result) { fmt.Fprintf(&said, "%v %+v %#v %v\n", r, r, r, r.Err) },
			OnRetry:        func(_ context.Context, r requests.Retry) { fmt.Fprintf(&said, "%v %+v %#v %v\n", r, r, r, r.Err) },
			OnWait:         func(w delay.Wait) { fmt.Fprintf(&said, "%v %+v %#v\n", w, w, w) },
		},
	}
	c, err := requests.NewClient(api, tr)
	if err != nil {
		t.Fatal(err)
	}
	ctx := requests.WithIdempotencyKey(t.Context(), canary+"-key")
	req := request(ctx, "GET", "/x?signature="+canary, "")
	req.Header.Set("Cookie", "session="+canary)
	req.Header.Set("X-Api-Key", canary)
	req.URL.User = url.UserPassword("me", canary)
	var resp *http.Response
	switch way {
	case "do":
		resp, err = c.Do(req)
	case "download":
		var d *requests.Download
		if d, err = c.Download(ctx, req.URL.String()); err == nil {
			fmt.Fprintf(&said, "%v %+v %#v\n", d, d, d)
			d.Body.Close()
		}
	case "transport":
		resp, err = tr.RoundTrip(req)
	}
	if err == nil && resp != nil {
		resp.Body.Close()
	}
	fmt.Fprintf(&said, "%v %+v %#v\n", c, c, c)
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&said, "%v %+v %#v\n", e, e, e)
	}
	if at := strings.Index(said.String(), canary); at >= 0 {
		t.Errorf("%s: the secret is in …%s", way, said.String()[max(0, at-200):at+len(canary)])
	}
}
