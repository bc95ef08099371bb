package requests_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/cases"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// exchangeCase is the format of testdata/cases/requests.
type exchangeCase struct {
	Name, Why      string
	Policy, Method string
	Operation      *struct {
		Idempotent  bool
		Max         *int
		BaseDelayMs *float64
		BaseDelayNs *int64
		RetryOn     []int
	}
	Cap            *int
	Limit          float64
	Deadline       *float64
	Token          string
	IdempotencyKey string
	Body           string
	Jitter         float64
	Now            time.Time
	Times          *int
	SleepMs        *float64
	Responses      []caseResponse
	Expect         struct {
		Attempts           int
		Waits              []float64
		Status             int
		Error              string
		RetryAfter         *float64
		Refreshes          *int
		Authorization      []bool
		SameIdempotencyKey *bool
		BodyEachAttempt    *bool
		Elapsed            *float64
	}
}

type caseResponse struct {
	Status  int
	Headers map[string]lines
	Body    json.RawMessage
	Drop    bool
}

// lines is a header's value, or a list of them.
type lines []string

func (l *lines) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = lines{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

func inSeconds(f float64) time.Duration {
	return time.Duration(f * float64(time.Second)).Round(time.Microsecond)
}

// TestCases runs each case through a Client, and through a bare Transport, which returns the last answer instead of an
// error.
func TestCases(t *testing.T) {
	cases.Run(t, "requests", func(t *testing.T, c exchangeCase) {
		fakes.Bubble(t, c.Now, func(t *testing.T) { c.run(t, c.throughClient) })
		if c.Policy != "hop" {
			fakes.Bubble(t, c.Now, func(t *testing.T) { c.run(t, c.throughTransport) })
		}
	})
}

func (c *exchangeCase) script() []fakes.Answer {
	script := make([]fakes.Answer, len(c.Responses))
	for i, r := range c.Responses {
		a := fakes.Answer{Status: r.Status, Drop: r.Drop, Header: http.Header{}}
		var text string
		switch {
		case len(r.Body) == 0:
		case json.Unmarshal(r.Body, &text) == nil:
			a.Body = text
			a.Header.Set("Content-Type", "text/plain")
		default:
			a.Body = string(r.Body)
			a.Header.Set("Content-Type", "application/json")
		}
		for name, values := range r.Headers {
			a.Header[http.CanonicalHeaderKey(name)] = values
		}
		script[i] = a
	}
	return script
}

func (c *exchangeCase) policy(t *testing.T) requests.Policy {
	switch c.Policy {
	case "declared", "hop":
		return requests.Declared{}
	case "throttled":
		return requests.Throttled{}
	case "refused-only":
		p := requests.RefusedOnly{Times: 3}
		if c.Times != nil {
			p.Times = *c.Times
		}
		if c.SleepMs != nil {
			if p.Sleep = inSeconds(*c.SleepMs / 1000); p.Sleep == 0 {
				p.Sleep = -1
			}
		}
		return p
	}
	t.Fatalf("the policy %q is not known", c.Policy)
	return nil
}

func (c *exchangeCase) operations() *requests.Operations {
	if c.Operation == nil {
		return nil
	}
	op := requests.Operation{Idempotent: c.Operation.Idempotent, RetryOn: c.Operation.RetryOn}
	if c.Operation.Max != nil {
		if op.Max = *c.Operation.Max; op.Max == 0 {
			op.Max = -1 // at least one attempt, and 0 would be the default
		}
	}
	if ms := c.Operation.BaseDelayMs; ms != nil {
		op.BaseDelay = time.Duration(*ms * float64(time.Millisecond))
	}
	if ns := c.Operation.BaseDelayNs; ns != nil {
		op.BaseDelay = time.Duration(*ns)
	}
	return requests.MustOperations(map[string]requests.Operation{c.Method + " /thing/{id}": op})
}

func (c *exchangeCase) run(t *testing.T, through func(*testing.T, *http.Request, *requests.Transport)) {
	net := fakes.NewNetwork(t)
	api := fakes.NewAPI(c.script()...)
	net.Serve(t, "api.test", api)

	tokens := oauth2.StaticTokenSource(token("t1"))
	refreshable := &source{}
	switch c.Token {
	case "":
	case "refreshable":
		tokens = refreshable
	default:
		t.Fatalf("the token %q is not known", c.Token)
	}
	var waits []time.Duration
	tr := &requests.Transport{
		Base: net.Transport(), Tokens: tokens, Policy: c.policy(t), Operations: c.operations(), Limit: inSeconds(c.Limit),
		Rand:  func(n int64) int64 { return int64(c.Jitter * float64(n)) },
		Hooks: requests.Hooks{OnWait: func(w delay.Wait) { waits = append(waits, w.For) }},
	}
	ctx := t.Context()
	if c.Deadline != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, inSeconds(*c.Deadline))
		defer cancel()
	}
	if c.Cap != nil {
		ctx = requests.WithMaxAttempts(ctx, *c.Cap)
	}
	if c.IdempotencyKey != "" {
		ctx = requests.WithIdempotencyKey(ctx, c.IdempotencyKey)
	}
	began := time.Now()
	through(t, request(ctx, c.Method, "/thing/7", c.Body), tr)
	elapsed := time.Since(began)

	for _, v := range api.Violations() {
		t.Error(v)
	}
	want := &c.Expect
	wanted := make([]time.Duration, len(want.Waits))
	for i, w := range want.Waits {
		wanted[i] = inSeconds(w)
	}
	if got := micros(waits); !slices.Equal(got, wanted) {
		t.Errorf("the waits were %v, want %v", got, wanted)
	}
	if got := longer(micros(api.Waits())); !slices.Equal(got, longer(wanted)) {
		t.Errorf("the server saw waits %v, want %v", got, longer(wanted))
	}
	received := api.Received()
	if len(received) != want.Attempts {
		t.Errorf("there were %d attempts, want %d", len(received), want.Attempts)
	}
	if want.Elapsed != nil && elapsed.Round(time.Microsecond) != inSeconds(*want.Elapsed) {
		t.Errorf("it took %v, want %v s", elapsed, *want.Elapsed)
	}
	if want.Refreshes != nil && refreshable.refreshes != *want.Refreshes {
		t.Errorf("there were %d refreshes, want %d", refreshable.refreshes, *want.Refreshes)
	}
	c.headers(t, received)
}

// headers checks what was sent.
func (c *exchangeCase) headers(t *testing.T, received []fakes.Received) {
	want := &c.Expect
	if want.Authorization != nil {
		var got []bool
		for _, r := range received {
			got = append(got, r.Header.Get("Authorization") != "")
		}
		if !slices.Equal(got, want.Authorization) {
			t.Errorf("credentials were sent %v, want %v", got, want.Authorization)
		}
	}
	sameKey, sameBody := true, true
	for _, r := range received {
		keys := r.Header["Idempotency-Key"]
		sameKey = sameKey && len(keys) == 1 && keys[0] == c.IdempotencyKey
		sameBody = sameBody && string(r.Body) == c.Body
	}
	if want.SameIdempotencyKey != nil && sameKey != *want.SameIdempotencyKey {
		t.Errorf("the idempotency key was the same: %v, want %v", sameKey, *want.SameIdempotencyKey)
	}
	if want.BodyEachAttempt != nil && sameBody != *want.BodyEachAttempt {
		t.Errorf("each attempt had the whole body: %v, want %v", sameBody, *want.BodyEachAttempt)
	}
}

func (c *exchangeCase) throughClient(t *testing.T, req *http.Request, tr *requests.Transport) {
	client, err := requests.NewClient("https://api.test", tr)
	if err != nil {
		t.Fatal(err)
	}
	if c.Policy == "hop" {
		d, err := client.Download(req.Context(), req.URL.String())
		if err == nil {
			defer d.Body.Close()
			body, err := io.ReadAll(d.Body)
			if last := c.script()[c.Expect.Attempts-1].Body; err != nil || string(body) != last {
				t.Errorf("the file is %q (%v), want %q", body, err, last)
			}
		}
		c.outcome(t, http.StatusOK, err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		c.outcome(t, 0, err)
		return
	}
	defer resp.Body.Close()
	c.outcome(t, resp.StatusCode, nil)
}

func (c *exchangeCase) outcome(t *testing.T, status int, err error) {
	want := &c.Expect
	if err == nil || want.Error == "" {
		if err != nil || want.Error != "" || status != want.Status {
			t.Errorf("the outcome was %d, %v; want %d %s", status, err, want.Status, want.Error)
		}
		return
	}
	e, ok := errors.AsType[*requests.Error](err)
	if !ok {
		t.Fatalf("%v is no *requests.Error", err)
	}
	got := string(e.Code)
	if want.Error == "transport_failed" {
		f, ok := errors.AsType[*requests.TransportFailed](err)
		if !ok || f.Status != want.Status {
			t.Errorf("%v has %+v, want a TransportFailed of %d", err, f, want.Status)
		}
		got = "transport_failed"
	}
	if want.Error == "rate_limit" {
		r, ok := errors.AsType[*requests.RateLimited](err)
		if !ok || r.RetryAfter != e.RetryAfter {
			t.Errorf("%v has %+v, want a RateLimited of %v", err, r, e.RetryAfter)
		}
	}
	if got != want.Error || e.Status != want.Status {
		t.Errorf("the error is %s of %d, want %s of %d", got, e.Status, want.Error, want.Status)
	}
	if want.RetryAfter != nil && e.RetryAfter != inSeconds(*want.RetryAfter) {
		t.Errorf("the error says to wait %v, want %v s", e.RetryAfter, *want.RetryAfter)
	}
}

func (c *exchangeCase) throughTransport(t *testing.T, req *http.Request, tr *requests.Transport) {
	resp, err := tr.RoundTrip(req)
	if err != nil {
		if c.Expect.Status != 0 {
			t.Errorf("the outcome was %v, want %d", err, c.Expect.Status)
		}
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if last := c.script()[c.Expect.Attempts-1]; resp.StatusCode != last.Status || string(body) != last.Body || err != nil {
		t.Errorf("the outcome was %d with %q (%v), want the last answer, %d with %q", resp.StatusCode, body, err, last.Status, last.Body)
	}
	if c.Expect.Status != 0 && resp.StatusCode != c.Expect.Status {
		t.Errorf("the outcome was %d, want %d", resp.StatusCode, c.Expect.Status)
	}
}

func micros(list []time.Duration) []time.Duration {
	out := make([]time.Duration, len(list))
	for i, d := range list {
		out[i] = d.Round(time.Microsecond)
	}
	return out
}

// longer leaves out what is no time at all: the second hop and a replay follow at once.
func longer(list []time.Duration) []time.Duration {
	return slices.DeleteFunc(slices.Clone(list), func(d time.Duration) bool { return d == 0 })
}

func TestCaseFormat(t *testing.T) {
	var c exchangeCase
	d := json.NewDecoder(strings.NewReader(`{"responses":[{"status":429,"headers":{"Retry-After":["2","5"]}}]}`))
	if err := d.Decode(&c); err != nil || len(c.script()[0].Header["Retry-After"]) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}
