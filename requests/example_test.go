package requests_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// A Transport goes into any http.Client. This one knows an operation of the API that may be repeated although it is a
// POST, and says what it waits for.
func ExampleTransport() {
	busy := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if busy {
			busy = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "completed with %s", r.Header.Get("Authorization"))
	}))
	defer srv.Close()

	client := &http.Client{Transport: &requests.Transport{
		Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "example"}),
		Operations: requests.MustOperations(map[string]requests.Operation{
			"POST /todos/{id}/completion": {Idempotent: true, BaseDelay: time.Microsecond},
		}),
		Rand:  func(int64) int64 { return 0 }, // no jitter, so that the output is always the same
		Hooks: requests.Hooks{OnWait: func(w delay.Wait) { fmt.Println(w) }},
	}}
	resp, err := client.Post(srv.URL+"/todos/7/completion", "application/json", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body))

	// Output:
	// generated-retry attempt 1 of 3 (503): wait 1µs, local 1µs: the loop's own delay: no Retry-After
	// completed with Bearer example
}

// A job in a queue does not sleep through a long wait: it is told, and releases itself for that long.
func ExampleClient_Do() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.Header().Set("X-Request-Id", "req-42")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":"Out of quota","error_description":"it is renewed every hour"}`)
	}))
	defer srv.Close()

	client, err := requests.NewClient(srv.URL, &requests.Transport{
		Policy: requests.RefusedOnly{Times: 3},
		Limit:  time.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	req, _ := http.NewRequest(http.MethodPost, "/bookings", nil)
	_, err = client.Do(req)

	if limited, ok := errors.AsType[*requests.RateLimited](err); ok {
		fmt.Println("release the job for", limited.RetryAfter)
	}
	if e, ok := errors.AsType[*requests.Error](err); ok {
		fmt.Println(e.Code, e.Status, e.RequestID, e.ExitCode())
		fmt.Println(e)
	}

	// Output:
	// release the job for 1h0m0s
	// rate_limit 429 req-42 5
	// requests: Out of quota (429): it is renewed every hour; the server asks to wait 1h0m0s
}

// A download streams: nothing of it is buffered, and the signed address has seen no credential.
func ExampleClient_Download() {
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
		fmt.Fprintf(w, "a,b\n%q,%q\n", r.URL.Query().Get("signature"), r.Header.Get("Authorization"))
	}))
	defer storage.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, storage.URL+"/7?signature=good", http.StatusFound)
	}))
	defer srv.Close()

	client, err := requests.NewClient(srv.URL, &requests.Transport{
		Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "example"}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	file, err := client.Download(context.Background(), "https://example.com/reports/7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Body.Close()
	body, _ := io.ReadAll(file.Body)
	fmt.Println(file.FileName, file.Length)
	fmt.Print(string(body))

	// Output:
	// report.csv 14
	// a,b
	// "good",""
}

// A key makes a write repeatable, and the same work done again after a crash converges on the same thing.
func ExampleWithIdempotencyKey() {
	keys := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys[r.Header.Get("Idempotency-Key")]++
		if len(keys) == 1 && keys["order-42"] == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()

	client := &http.Client{Transport: &requests.Transport{
		Operations: requests.MustOperations(map[string]requests.Operation{"/": {BaseDelay: time.Microsecond}}),
		Rand:       func(int64) int64 { return 0 },
	}}
	ctx := requests.WithIdempotencyKey(context.Background(), "order-42")
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/orders", nil)
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, keys)

	// Output:
	// 200 map[order-42:2]
}

// All the mistakes in a table are told at once.
func ExampleNewOperations() {
	_, err := requests.NewOperations(map[string]requests.Operation{
		"GET /todos":                  {RetryOn: []int{200}},
		"POST /todos/{id}/completion": {Idempotent: true, BaseDelay: -time.Second},
	})
	if e, ok := errors.AsType[*requests.OperationsError](err); ok {
		for _, m := range e.Mistakes {
			fmt.Println(m.Pattern, "|", m.Reason)
		}
	}

	// Output:
	// GET /todos | 200 is no status of a failure: use 400 to 599
	// POST /todos/{id}/completion | the base delay -1s is negative: use a positive one, or 0 for 1s
}

// The same work, done again after a crash, has the same key: whoever serves it sees that it is no new work.
func ExampleKeyFrom() {
	key := requests.KeyFrom("invoice", "2026-11", "42")
	ctx := requests.WithIdempotencyKey(context.Background(), key)
	_ = ctx // for the request that makes the invoice

	fmt.Println(key)
	fmt.Println(key == requests.KeyFrom("invoice", "2026-11", "42"), key == requests.KeyFrom("invoice", "2026-1", "142"))

	// Output:
	// 2a5e0611-c5a3-88b5-9ad7-887e6120f607
	// true false
}

// Health goes around a Transport, and anybody may ask it.
func ExampleHealth() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer srv.Close()

	health := &requests.Health{Base: &requests.Transport{}}
	client := &http.Client{Transport: health}
	host := srv.Listener.Addr().String()
	fmt.Println(health.Of(host))
	if resp, err := client.Get(srv.URL); err == nil {
		_ = resp.Body.Close()
	}
	h := health.Of(host)
	fmt.Println(h.Condition, h.Cause)

	// Output:
	// healthy
	// failing 502
}

// A service that asks for milliseconds, and otherwise says when its limit is renewed.
func ExampleFirstOf() {
	tr := &requests.Transport{ReadWait: requests.FirstOf(requests.ReadMilliseconds, requests.ReadRateLimitReset)}

	header := http.Header{}
	header.Set("X-RateLimit-Remaining", "0")
	header.Set("X-RateLimit-Reset", "30")
	fmt.Println(tr.ReadWait(header, time.Time{}))
	header.Set("Retry-After-Ms", "1500")
	fmt.Println(tr.ReadWait(header, time.Time{}))

	// Output:
	// 30s
	// 1.5s
}

// A host that has told one request to wait is not asked by another meanwhile.
func ExampleThrottle() {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer srv.Close()

	client := &http.Client{Transport: &requests.Transport{Throttle: requests.ThrottleRefuse, MaxAttempts: 1}}
	for range 3 {
		resp, err := client.Get(srv.URL)
		if err != nil {
			fmt.Println("not sent:", errors.Is(err, requests.ErrThrottled))
			continue
		}
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	fmt.Println("requests on the wire:", asked)

	// Output:
	// 429
	// not sent: true
	// not sent: true
	// requests on the wire: 1
}
