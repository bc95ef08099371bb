package plugs_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/google/go-github/v88/github"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/interop/plugs/todos"
	"github.com/heed-sdk/heed/requests"
)

// busyOnce serves what h does, but for the first request, which it asks to come back in a second.
func busyOnce(status int, h http.HandlerFunc) *httptest.Server {
	asked := false
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !asked {
			asked = true
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
			return
		}
		h(w, r)
	}))
}

// tell is a hook that prints each wait before it begins.
var tell = requests.Hooks{OnWait: func(w delay.Wait) { fmt.Println(w) }}

// none is no jitter, so that the output is always the same.
func none(int64) int64 { return 0 }

// limits has GitHub refuse by 429, as it does at times, where it refuses by 403 who has sent too much. Every other 403 is
// for good, and a requests.Transport repeats none.
type limits struct{ base http.RoundTripper }

func (l limits) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusForbidden &&
		(resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0") {
		resp.StatusCode, resp.Status = http.StatusTooManyRequests, "429 Too Many Requests"
	}
	return resp, err
}

// A Transport waits out what GitHub asks for, so that go-github hears nothing of it. go-github keeps the limit that each
// answer counts down by itself, and sends nothing when it is used up; WithDisableRateLimitCheck, and ReadWait as here,
// leave that to the Transport too.
func Example_goGitHub() {
	srv := busyOnce(http.StatusForbidden, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"login":"octocat","bio":%q}`, r.Header.Get("Authorization"))
	})
	defer srv.Close()
	base := srv.URL + "/"

	client, err := github.NewClient(
		github.WithURLs(&base, nil), // for this example; none for api.github.com
		github.WithDisableRateLimitCheck(),
		github.WithTransport(&requests.Transport{
			Base:     limits{http.DefaultTransport},
			Tokens:   oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "example"}),
			ReadWait: requests.ReadRateLimitReset,
			Rand:     none,
			Hooks:    tell,
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	user, _, err := client.Users.Get(context.Background(), "octocat")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(user.GetLogin(), "|", user.GetBio())

	// Output:
	// generated-retry attempt 1 of 3 (429): wait 1s, local 1s, server 1s: Retry-After replaces the local delay
	// octocat | Bearer example
}

// The client and the table of operations are generated from one document. It marks a POST that may be repeated, and says
// nothing of the other.
func Example_oapiCodegen() {
	ctx := context.Background()
	for _, call := range []func(*todos.ClientWithResponses) (int, error){
		func(c *todos.ClientWithResponses) (int, error) {
			resp, err := c.CompleteTodoWithResponse(ctx, "7")
			return resp.StatusCode(), err
		},
		func(c *todos.ClientWithResponses) (int, error) {
			resp, err := c.CreateTodoWithResponse(ctx, todos.NewTodo{Title: "write an example"})
			return resp.StatusCode(), err
		},
	} {
		srv := busyOnce(http.StatusServiceUnavailable, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		})
		defer srv.Close()
		client, err := todos.NewClientWithResponses(srv.URL+"/v1", todos.WithHTTPClient(&http.Client{
			Transport: &requests.Transport{Operations: todos.Operations, Rand: none, Hooks: tell},
		}))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(call(client))
	}

	// Output:
	// generated-retry attempt 1 of 5 (503): wait 1s, local 2s, server 1s: Retry-After replaces the local delay
	// 204 <nil>
	// 503 <nil>
}

// Around a Transport otelhttp makes one span of a request with all its attempts and waits; as its Base, one of each
// attempt. A span has the whole URL: as a Base under Client.Download, it would tell the signed address.
func Example_otelhttp() {
	srv := busyOnce(http.StatusTooManyRequests, func(http.ResponseWriter, *http.Request) {})
	defer srv.Close()
	spans := tracetest.NewInMemoryExporter()
	provider := otelhttp.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))

	named := func(name string) otelhttp.Option {
		return otelhttp.WithSpanNameFormatter(func(string, *http.Request) string { return name })
	}
	attempts := &requests.Transport{Base: otelhttp.NewTransport(http.DefaultTransport, provider, named("attempt"))}
	client := &http.Client{Transport: otelhttp.NewTransport(attempts, provider, named("request"))}
	resp, err := client.Get(srv.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body) // a span lasts until the body has ended
	_ = resp.Body.Close()

	for _, s := range spans.GetSpans() {
		for _, a := range s.Attributes {
			if a.Key == "http.response.status_code" {
				fmt.Println(s.Name, a.Value.AsInt64(), "a second or more:", s.EndTime.Sub(s.StartTime).Seconds() >= 1)
			}
		}
	}

	// Output:
	// attempt 429 a second or more: false
	// attempt 200 a second or more: false
	// request 200 a second or more: true
}
