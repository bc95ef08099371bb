package requests_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/requests"
)

func TestOperations(t *testing.T) {
	two := requests.Operation{Idempotent: true, Max: 2}
	ops := requests.MustOperations(map[string]requests.Operation{
		"POST /todos/{id}/completion": two,
		"POST /files/{path...}":       two,
		"POST other.test/":            two,
		"GET /tree/":                  two,
		"GET /todos/{id}":             two,
		"GET /todos/new":              {Max: -1},
		"POST /{$}":                   two,
	})
	tests := []struct {
		method, url string
		want        int // attempts: 2 and 1 by the table; 3 and 1 by the method alone
	}{
		{"POST", "https://api.test/todos/7/completion", 2},
		{"POST", "https://api.test/todos/a%2Fb/completion?x=1#y", 2},
		{"POST", "https://api.test/todos/7/completion/", 1},
		{"POST", "https://api.test/todos//completion", 1},
		{"POST", "https://api.test/todos/../todos/7/completion", 1},
		{"POST", "https://api.test/files/a/b/c", 2},
		{"POST", "https://other.test:8443/anything", 2},
		{"POST", "https://api.test/anything", 1},
		{"POST", "https://api.test", 2},
		{"GET", "https://api.test/tree/x", 2},
		{"HEAD", "https://api.test/tree/x", 2},
		{"", "https://api.test/tree/x", 2},
		{"PUT", "https://api.test/tree/x", 3},
		{"GET", "https://api.test/tree", 3},
		{"GET", "https://api.test/todos/7", 2},
		{"GET", "https://api.test/todos/new", 1},
		{"GET", "https://api.test/nothing", 3},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.url, func(t *testing.T) {
			req := get()
			u, err := url.Parse(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			req.Method, req.URL, req.Host = tt.method, u, u.Host
			for range 2 { // the host may be in the URL alone
				got := attempts(t, req, reply{status: 503}, func(tr *requests.Transport) { tr.Operations = ops })
				if got != tt.want {
					t.Errorf("%d attempts, want %d", got, tt.want)
				}
				req.Host = ""
			}
		})
	}
}

func TestOperationsMistakes(t *testing.T) {
	_, err := requests.NewOperations(map[string]requests.Operation{
		"GET /good":      {RetryOn: []int{400, 404, 429}},
		"GET /{a}/x":     {},
		"GET /y/{b}":     {},
		"GET no-slash":   {},
		"POST /b{c}":     {},
		"POST /negative": {BaseDelay: -time.Second},
		"POST /statuses": {RetryOn: []int{200, 503, 600}},
		"POST /two/{d":   {BaseDelay: -1},
	})
	e, ok := errors.AsType[*requests.OperationsError](err)
	if !ok {
		t.Fatalf("%v", err)
	}
	var got []string
	for _, m := range e.Mistakes {
		got = append(got, m.Pattern)
		if m.Reason == "" || !strings.Contains(err.Error(), m.Reason) {
			t.Errorf("%q: %q is not in %v", m.Pattern, m.Reason, err)
		}
	}
	want := []string{
		"GET /{a}/x", "GET no-slash", "POST /b{c}", "POST /negative",
		"POST /statuses", "POST /statuses", "POST /two/{d", "POST /two/{d",
	}
	if slices.Contains(got, "GET /y/{b}") { // either of two that conflict
		want[0] = "GET /y/{b}"
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("mistakes in %q, want %q", got, want)
	}
	if strings.Contains(err.Error(), ".go:") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the text is about our own code: %v", err)
	}
}

func TestMustOperations(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	requests.MustOperations(map[string]requests.Operation{"?": {}})
}

// The table keeps its own copy of what it was made of.
func TestOperationsAreCopied(t *testing.T) {
	retryOn := []int{503}
	table := map[string]requests.Operation{"GET /": {RetryOn: retryOn}}
	ops := requests.MustOperations(table)
	retryOn[0] = 500
	table["GET /"] = requests.Operation{Max: -1}
	got := attempts(t, request(context.Background(), "GET", "/", ""), reply{status: 503}, func(tr *requests.Transport) { tr.Operations = ops })
	if got != 3 {
		t.Errorf("%d attempts, want 3", got)
	}
}
