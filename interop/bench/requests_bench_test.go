package bench

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/PuerkitoBio/rehttp"
	"github.com/cenkalti/backoff/v4"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/heed-sdk/heed/requests"
)

// memory answers at once and without an allocation but for the answer itself: 200, or each time a 503 first.
type memory struct {
	refuses bool
	n       int
	refused http.Header
	served  http.Header
	body    refusal
}

// refusal is the body of a 503, of which there is one at a time.
type refusal struct {
	text         string
	rest         int
	read, closed int // how many were read to the end, and closed
}

func (r *refusal) Read(p []byte) (int, error) {
	if r.rest == 0 {
		r.read++
		return 0, io.EOF
	}
	n := copy(p, r.text[len(r.text)-r.rest:])
	r.rest -= n
	return n, nil
}

func (r *refusal) Close() error {
	r.closed++
	return nil
}

func newMemory(refuses bool) *memory {
	return &memory{
		refuses: refuses, body: refusal{text: `{"error":"busy"}`},
		refused: http.Header{"Content-Type": {"application/json"}}, served: http.Header{},
	}
}

func (m *memory) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	m.n++
	if m.refuses && m.n%2 == 1 {
		m.body.rest = len(m.body.text)
		return &http.Response{StatusCode: 503, Header: m.refused, Body: &m.body, ContentLength: int64(len(m.body.text)), Request: req}, nil
	}
	return &http.Response{StatusCode: 200, Header: m.served, Body: http.NoBody, Request: req}, nil
}

// Do makes it a transporter of azcore.
func (m *memory) Do(req *http.Request) (*http.Response, error) { return m.RoundTrip(req) }

const target = "https://api.test/"

// work is what all of them do: send one request again and again. Everything that can be prepared is.
type work func() (*http.Response, error)

// through sends by an http.Client.
func through(client *http.Client, body string) work {
	var reader io.Reader
	method := http.MethodGet
	if body != "" {
		method, reader = http.MethodPut, strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, target, reader)
	if err != nil {
		panic(err)
	}
	return func() (*http.Response, error) {
		if req.GetBody != nil {
			req.Body, _ = req.GetBody()
		}
		return client.Do(req)
	}
}

// libraries are the SDK and its peers, each as its documentation would have it, without logs, and with no wait between
// two attempts.
var libraries = []struct {
	name string
	new  func(m *memory, body string) work
}{
	{"net-http", func(m *memory, body string) work { return through(&http.Client{Transport: m}, body) }},
	{"by-hand", func(m *memory, body string) work {
		return through(&http.Client{Transport: byHand{base: m, arm: true}}, body)
	}},
	{"by-hand-no-timer", func(m *memory, body string) work { return through(&http.Client{Transport: byHand{base: m}}, body) }},
	{"heed", func(m *memory, body string) work {
		return through(&http.Client{Transport: &requests.Transport{Base: m, Policy: atOnce}}, body)
	}},
	{"retryablehttp", func(m *memory, body string) work {
		client := retryableClient(m)
		var raw any
		method := http.MethodGet
		if body != "" {
			method, raw = http.MethodPut, []byte(body)
		}
		req, err := retryablehttp.NewRequest(method, target, raw)
		if err != nil {
			panic(err)
		}
		return func() (*http.Response, error) { return client.Do(req) }
	}},
	{"retryablehttp-standard", func(m *memory, body string) work { return through(retryableClient(m).StandardClient(), body) }},
	{"rehttp", func(m *memory, body string) work {
		retry := rehttp.RetryAll(rehttp.RetryMaxRetries(1), rehttp.RetryStatuses(http.StatusTooManyRequests, http.StatusServiceUnavailable))
		return through(&http.Client{Transport: rehttp.NewTransport(m, retry, rehttp.ConstDelay(0))}, body)
	}},
	{"failsafehttp", func(m *memory, body string) work {
		return through(&http.Client{Transport: failsafehttp.NewRoundTripper(m, failsafehttp.NewRetryPolicyBuilder().WithMaxRetries(1).Build())}, body)
	}},
	{"azcore", func(m *memory, body string) work {
		pipeline := runtime.NewPipeline("bench", "v1.0.0", runtime.PipelineOptions{}, &policy.ClientOptions{
			Transport: m, Telemetry: policy.TelemetryOptions{Disabled: true},
			// Its least wait: no RetryDelay at all is taken for one that overflowed.
			Retry: policy.RetryOptions{MaxRetries: 1, RetryDelay: 1, MaxRetryDelay: 1},
		})
		method := http.MethodGet
		if body != "" {
			method = http.MethodPut
		}
		req, err := runtime.NewRequest(context.Background(), method, target)
		if err != nil {
			panic(err)
		}
		runtime.SkipBodyDownload(req) // as nobody else reads the answer ahead
		if body != "" {
			if err := req.SetBody(streaming.NopCloser(bytes.NewReader([]byte(body))), "text/plain"); err != nil {
				panic(err)
			}
		}
		return func() (*http.Response, error) { return pipeline.Do(req) }
	}},
}

// atOnce waits for nothing.
var atOnce = requests.Declared{Schedule: func(time.Duration) backoff.BackOff { return &backoff.ZeroBackOff{} }}

func retryableClient(m *memory) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{Transport: m}
	c.Logger, c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = nil, 1, 0, 0
	return c
}

// byHand is the loop that somebody who knows net/http writes for two attempts: the request is cloned and its body had
// again, what is refused is drained and closed, and the wait ends with the context.
type byHand struct {
	base http.RoundTripper
	wait time.Duration
	arm  bool // a timer, even for no wait
}

func (l byHand) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return resp, err
	}
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return resp, nil
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
	ctx := req.Context()
	if l.arm || l.wait > 0 {
		timer := time.NewTimer(l.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	} else if err := ctx.Err(); err != nil {
		return nil, err
	}
	again := req.Clone(ctx)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return l.base.RoundTrip(again)
}

// jobs are the two that are compared: success at once, and one attempt repeated.
var jobs = []struct {
	name    string
	refuses bool
	body    string
}{
	{"success", false, ""},
	{"retry", true, ""},
	{"retry-body", true, strings.Repeat("0123456789abcdef", 64)},
}

// once does a piece of work.
func once(tb testing.TB, do work) {
	resp, err := do()
	if err != nil || resp.StatusCode != http.StatusOK {
		tb.Fatal(resp, err)
	}
	_ = resp.Body.Close()
}

// each runs over all libraries that can do a job: net/http alone repeats nothing.
func each(refuses bool, run func(name string, make func(m *memory, body string) work)) {
	for _, lib := range libraries {
		if !refuses || lib.name != "net-http" {
			run(lib.name, lib.new)
		}
	}
}

func BenchmarkRequests(b *testing.B) {
	for _, job := range jobs {
		each(job.refuses, func(name string, make func(*memory, string) work) {
			b.Run("job="+job.name+"/lib="+name, func(b *testing.B) {
				do := make(newMemory(job.refuses), job.body)
				b.ReportAllocs()
				for b.Loop() {
					once(b, do)
				}
			})
		})
	}
}

// BenchmarkRequestsRatio compares the quickest of many short runs that take turns, so that it says something on a busy
// machine: how long each takes, by what the first of them takes.
func BenchmarkRequestsRatio(b *testing.B) {
	for _, job := range jobs {
		b.Run("job="+job.name, func(b *testing.B) {
			var names []string
			var todo []work
			each(job.refuses, func(name string, make func(*memory, string) work) {
				names, todo = append(names, name), append(todo, make(newMemory(job.refuses), job.body))
			})
			quickest := make([]time.Duration, len(todo))
			for b.Loop() {
				for i, do := range todo {
					began := time.Now()
					for range 100 {
						once(b, do)
					}
					if took := time.Since(began); quickest[i] == 0 || took < quickest[i] {
						quickest[i] = took
					}
				}
			}
			for i, name := range names {
				b.ReportMetric(float64(quickest[i])/float64(quickest[0]), name+"/"+names[0])
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Success allocates no more than http.Client does by itself, and the SDK no more than any of its peers, or than the loop by
// hand.
func TestRequestsAllocations(t *testing.T) {
	for _, job := range jobs {
		allocations := map[string]float64{}
		each(job.refuses, func(name string, make func(*memory, string) work) {
			m := newMemory(job.refuses)
			do := make(m, job.body)
			allocations[name] = testing.AllocsPerRun(200, func() { once(t, do) })
			sent, done := m.n, 201
			if job.refuses {
				sent /= 2
			}
			if sent != done {
				t.Errorf("%s of %s: %d requests for %d", job.name, name, m.n, done)
			}
			if job.refuses && (m.body.closed < done || m.body.read < done) {
				t.Logf("%s of %s: of %d answers that were repeated, %d were read to the end and %d were closed", job.name, name, done, m.body.read, m.body.closed)
			}
		})
		t.Logf("%s: %v", job.name, allocations)
		ours := allocations["heed"]
		if plain, ok := allocations["net-http"]; ok && ours != plain {
			t.Errorf("%s: %v allocations, and http.Client alone has %v", job.name, ours, plain)
		}
		for name, theirs := range allocations {
			if ours > theirs {
				t.Errorf("%s: %v allocations, and %s has %v", job.name, ours, name, theirs)
			}
		}
	}
}
