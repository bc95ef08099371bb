package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/internal/conformance"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// What is particular to the vendor of tests: its behaviour model, its operations and what they return, the names of an
// error's fields.

const (
	mockHost = "localhost:3000"
	token    = "conformance-test-token"
	// elsewhere is where a download's URL points. Its origin is replaced, so nobody ever dials it.
	elsewhere = "https://storage.example.com"
)

// vendor has what the vendor declares of its operations.
type vendor struct{ operations *requests.Operations }

// newVendor reads the behaviour model. It has no paths, so that those come from the cases: all of them, so that each case
// runs on the table of a whole API.
func newVendor(t *testing.T, families map[string][]requestCase) *vendor {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(conformance.Folder(t), "behavior-model.json"))
	if err != nil {
		t.Fatal(err)
	}
	var model struct {
		Operations map[string]struct {
			Idempotent bool
			Retry      struct {
				Max     int
				Base    int `json:"base_delay_ms"`
				Backoff string
				RetryOn []int `json:"retry_on"`
			}
		}
	}
	if err := json.Unmarshal(data, &model); err != nil {
		t.Fatal(err)
	}
	table := map[string]requests.Operation{}
	for _, list := range families {
		for _, c := range list {
			if c.Operation == "DownloadURL" {
				continue
			}
			op, ok := model.Operations[c.Operation]
			if !ok || op.Retry.Backoff != "exponential" {
				t.Fatalf("the behaviour model has %+v of %s", op, c.Operation)
			}
			table[c.Method+" "+c.Path] = requests.Operation{
				Idempotent: op.Idempotent, Max: op.Retry.Max, RetryOn: op.Retry.RetryOn,
				BaseDelay: time.Duration(op.Retry.Base) * time.Millisecond,
			}
		}
	}
	operations, err := requests.NewOperations(table)
	if err != nil {
		t.Fatal(err)
	}
	return &vendor{operations}
}

// call makes one call of an operation against the case's script.
func (v *vendor) call(t *testing.T, c requestCase) (o outcome) {
	network := fakes.NewNetwork(t)
	var script []fakes.Answer
	for _, m := range c.MockResponses {
		script = append(script, m.answer(t))
	}
	api := fakes.NewAPI(script...)
	network.ServePlain(t, mockHost, api)
	w := &wire{base: network.Transport()}
	w.base.DialContext = w.dialer(network)

	tr := &requests.Transport{
		Base:       w,
		Tokens:     oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}),
		Operations: v.operations,
		Rand:       func(int64) int64 { return 0 }, // the shortest waits there are
	}
	if n := c.Overrides.MaxRetries; n != nil {
		tr.MaxAttempts = max(*n, 1) // none is one attempt, says the schema
	}
	base := "http://" + mockHost
	if c.Overrides.BaseURL != "" {
		base = c.Overrides.BaseURL
	}
	o.result, o.err = dispatch(t, c, base, tr)
	o.sent, o.answers, o.foreign = w.sent, w.answers, w.foreign
	o.received, o.overrun = api.Received(), api.Violations()
	return o
}

// dispatch does what the vendor's generated client would.
func dispatch(t *testing.T, c requestCase, base string, tr *requests.Transport) (map[string]any, error) {
	client, err := requests.NewClient(base, tr)
	if err != nil {
		return nil, err
	}
	if c.Operation == "DownloadURL" {
		d, err := client.Download(t.Context(), elsewhere+c.Path)
		if err != nil {
			return nil, err
		}
		defer d.Body.Close()
		data, err := io.ReadAll(d.Body)
		return map[string]any{"body": string(data), "content_type": d.ContentType, "file_name": d.FileName}, err
	}
	var body io.Reader
	if c.RequestBody != nil {
		body = bytes.NewReader(c.RequestBody)
	}
	req, err := http.NewRequestWithContext(t.Context(), c.Method, c.url(t), body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "heed-conformance/1")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	var answer any
	if err := client.DoJSON(req, &answer); err != nil {
		return nil, err
	}
	return returned(c.Operation, answer), nil
}

// returned is what the vendor's runners make of an answer. A list may come in an envelope of one key.
func returned(operation string, answer any) map[string]any {
	if operation == "ListProjects" {
		if envelope, ok := answer.(map[string]any); ok && len(envelope) == 1 {
			answer = envelope["projects"]
		}
		list, _ := answer.([]any)
		return map[string]any{"project_count": len(list), "projects": list}
	}
	object, _ := answer.(map[string]any)
	return object
}

// url is the path and query of the operation's request.
func (c requestCase) url(t *testing.T) string {
	path := c.Path
	for name, raw := range c.PathParams {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(strings.Trim(string(raw), `"`)))
	}
	if strings.Contains(path, "{") {
		t.Fatalf("the path %s lacks a parameter", path)
	}
	query := url.Values{}
	for name, value := range c.QueryParams {
		query.Set(name, fmt.Sprint(value))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

func (m mockResponse) answer(t *testing.T) fakes.Answer {
	if m.NetworkError == (m.Status != 0) {
		t.Fatal("a mock response is either a status or a network error")
	}
	a := fakes.Answer{Status: m.Status, Drop: m.NetworkError, Latency: time.Duration(m.Delay) * time.Millisecond, Header: http.Header{}}
	for name, value := range m.Headers {
		a.Header.Set(name, value)
	}
	var text string
	switch {
	case m.Body == nil:
	case json.Unmarshal(m.Body, &text) == nil:
		a.Body = text
	default:
		a.Body = string(m.Body)
		if a.Header.Get("Content-Type") == "" {
			a.Header.Set("Content-Type", "application/json")
		}
	}
	return a
}

// wire records what goes over the network.
type wire struct {
	base *http.Transport

	mu      sync.Mutex
	sent    []sent
	answers []answer
	foreign []string
}

type sent struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
}

type answer struct {
	status int
	header http.Header
}

func (w *wire) dialer(network *fakes.Network) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, kind, addr string) (net.Conn, error) {
		if addr != mockHost {
			w.mu.Lock()
			w.foreign = append(w.foreign, addr)
			w.mu.Unlock()
		}
		return network.DialContext(ctx, kind, addr)
	}
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	s := sent{method: req.Method, url: req.URL, header: req.Header.Clone()}
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			s.body, _ = io.ReadAll(body)
		}
	}
	w.mu.Lock()
	w.sent = append(w.sent, s)
	w.mu.Unlock()
	resp, err := w.base.RoundTrip(req)
	if err == nil {
		w.mu.Lock()
		w.answers = append(w.answers, answer{resp.StatusCode, maps.Clone(resp.Header)})
		w.mu.Unlock()
	}
	return resp, err
}

// errorField compares a field of the error by the vendor's name for it.
func errorField(name string) func(*outcome, assertion) error {
	return func(o *outcome, a assertion) error {
		e, ok := errors.AsType[*requests.Error](o.err)
		if !ok {
			return fmt.Errorf("the error is %s", fmt.Sprint(o.err))
		}
		switch name {
		case "code":
			return a.equal(e.Code)
		case "message":
			return a.equal(e.Message)
		case "hint":
			return a.equal(e.Hint)
		case "httpStatus":
			return a.equal(e.Status)
		case "retryable":
			return a.equal(e.Retryable)
		case "retryAfter":
			return a.equal(int(e.RetryAfter / time.Second))
		case "requestId":
			return a.equal(e.RequestID)
		case "exitCode":
			return a.equal(e.ExitCode())
		case "fieldErrors":
			return a.equal(e.FieldErrors)
		}
		return fmt.Errorf("the field %q is unknown", name)
	}
}

// responseMeta compares what the vendor tells of a listing beside its items.
func responseMeta(o *outcome, a assertion) error {
	last, err := o.last()
	if err != nil {
		return err
	}
	switch a.Path {
	case "totalCount":
		n, err := strconv.Atoi(last.header.Get("X-Total-Count"))
		if err != nil {
			return err
		}
		return a.equal(n)
	case "requestId":
		return a.equal(last.header.Get("X-Request-Id"))
	}
	return fmt.Errorf("the metadata %q is unknown", a.Path)
}
