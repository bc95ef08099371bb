package plugs_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/heed-sdk/heed/internal/fakes"
)

const (
	todo = "https://" + todosHost + "/v1/todos/7"
	body = "the same each time"
)

// put sends one PUT to an address through a client that is traced, around the transport, inside it, or both, and returns the spans in
// the order in which they ended.
func (r *rig) put(url string, around, inside bool) tracetest.SpanStubs {
	r.Helper()
	spans := tracetest.NewInMemoryExporter()
	traced := func(base http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(base,
			otelhttp.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans))),
			otelhttp.WithPropagators(propagation.TraceContext{}))
	}
	tr := r.transport()
	if inside {
		tr.Base = traced(tr.Base)
	}
	client := &http.Client{Transport: tr}
	if around {
		client.Transport = traced(tr)
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		r.Error(err)
	}
	resp.Body.Close()
	for i, got := range r.api.Received() {
		if string(got.Body) != body || got.Header.Get("Authorization") != "Bearer example" {
			r.Errorf("attempt %d had %q and %v", i+1, got.Body, got.Header)
		}
	}
	return spans.GetSpans()
}

// TestOtelHTTPAddress holds what the example warns of.
func TestOtelHTTPAddress(t *testing.T) {
	t.Parallel()
	run(t, todosHost, []fakes.Answer{answer(200, "done")}, func(r *rig) {
		text := fmt.Sprint(r.put(todo+"?signature=s3cret", false, true)[0].Attributes)
		if !strings.Contains(text, "s3cret") {
			r.Errorf("the query is not in a span any more, and the example should not say so: %s", text)
		}
	})
}

// statusOf is the status that a span has of its answer, or 0.
func statusOf(s tracetest.SpanStub) int64 {
	for _, a := range s.Attributes {
		if a.Key == "http.response.status_code" {
			return a.Value.AsInt64()
		}
	}
	return 0
}

// wantTraced checks that an attempt told the API of a span, and of no other.
func (r *rig) wantTraced(attempt int, s tracetest.SpanStub) {
	r.Helper()
	want := "00-" + s.SpanContext.TraceID().String() + "-" + s.SpanContext.SpanID().String() + "-01"
	if got := r.api.Received()[attempt-1].Header.Values("Traceparent"); len(got) != 1 || got[0] != want {
		r.Errorf("attempt %d had %v, want %s", attempt, got, want)
	}
}

// TestOtelHTTP traces a request that has to be sent three times. Latency and waits are virtual, and so are spans.
func TestOtelHTTP(t *testing.T) {
	t.Parallel()
	const latency, waits = 100 * time.Millisecond, 32 * time.Second
	script := []fakes.Answer{
		answer(503, "busy", "Retry-After", "30"), {Drop: true, Latency: latency}, answer(200, "done"),
	}
	script[0].Latency, script[2].Latency = latency, latency
	length := func(s tracetest.SpanStub) time.Duration { return s.EndTime.Sub(s.StartTime) }

	t.Run("around", func(t *testing.T) {
		t.Parallel()
		run(t, todosHost, script, func(r *rig) {
			spans := r.put(todo, true, false)
			if len(spans) != 1 || statusOf(spans[0]) != 200 || spans[0].Status.Code == codes.Error || length(spans[0]) != waits+3*latency {
				r.Fatalf("%+v", spans)
			}
			for attempt := range script {
				r.wantTraced(attempt+1, spans[0])
			}
		})
	})
	t.Run("inside", func(t *testing.T) {
		t.Parallel()
		run(t, todosHost, script, func(r *rig) {
			wantAttempts(r, r.put(todo, false, true), latency)
		})
	})
	t.Run("both", func(t *testing.T) {
		t.Parallel()
		run(t, todosHost, script, func(r *rig) {
			spans := r.put(todo, true, true)
			if len(spans) != 4 {
				r.Fatalf("%d spans", len(spans))
			}
			attempts, whole := spans[:3], spans[3]
			if length(whole) != waits+3*latency || statusOf(whole) != 200 {
				r.Errorf("%+v", whole)
			}
			wantAttempts(r, attempts, latency)
			for _, s := range attempts {
				if s.Parent.SpanID() != whole.SpanContext.SpanID() {
					r.Errorf("%+v", s)
				}
			}
		})
	})
}

// wantAttempts checks that each attempt of the script has a span of its own, which lasts no longer than it did.
func wantAttempts(r *rig, spans tracetest.SpanStubs, latency time.Duration) {
	r.Helper()
	if len(spans) != 3 {
		r.Fatalf("%d spans", len(spans))
	}
	for i, status := range []int64{503, 0, 200} {
		s := spans[i]
		if failed := s.Status.Code == codes.Error; statusOf(s) != status || failed != (status != 200) || s.EndTime.Sub(s.StartTime) != latency {
			r.Errorf("attempt %d: %+v", i+1, s)
		}
		r.wantTraced(i+1, s)
	}
}
