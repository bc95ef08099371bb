package requests

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Operation is what the API declares about one of its operations.
type Operation struct {
	// Idempotent marks an operation that may be repeated whatever its method. GET, HEAD, PUT, DELETE, OPTIONS and TRACE
	// need no mark; on other methods the fields below have no effect without it.
	Idempotent bool
	// Max is the number of attempts in all. If it is zero, it is 3; if it is negative, there is exactly one.
	Max int
	// BaseDelay is the first wait, doubled each time up to 30 s. If it is zero, it is 1 s.
	BaseDelay time.Duration
	// RetryOn is the exhaustive set of statuses that are repeated. If it is nil, they are 429 and 503; if it is empty,
	// there are none. 400, 401, 403, 404 and 422 are never repeated, even when they are in it.
	RetryOn []int
}

const defaultMax = 3

var defaultRetryOn = []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}

func (o Operation) attempts() int {
	if o.Max == 0 {
		return defaultMax
	}
	return max(o.Max, 1)
}

func (o Operation) statuses() []int {
	if o.RetryOn == nil {
		return defaultRetryOn
	}
	return o.RetryOn
}

// Operations is a table of operations by the requests that call them. It does not change once it is made, and any number
// of goroutines may use it.
type Operations struct {
	mux http.ServeMux
}

// NewOperations makes a table from patterns of [http.ServeMux], such as "POST /todos/{id}/completion"; where several
// match, the most specific one holds, and a pattern for GET is also one for HEAD. If anything is wrong with the table,
// the error is an *OperationsError with all of it.
func NewOperations(table map[string]Operation) (*Operations, error) {
	o := &Operations{}
	var mistakes []Mistake
	for _, pattern := range slices.Sorted(maps.Keys(table)) {
		op := table[pattern]
		op.RetryOn = slices.Clone(op.RetryOn)
		for _, reason := range append(op.mistakes(), o.add(pattern, op)...) {
			mistakes = append(mistakes, Mistake{pattern, reason})
		}
	}
	if mistakes != nil {
		return nil, &OperationsError{mistakes}
	}
	return o, nil
}

// MustOperations is NewOperations for a table that is part of the program: it panics if anything is wrong with it.
func MustOperations(table map[string]Operation) *Operations {
	o, err := NewOperations(table)
	if err != nil {
		panic(err)
	}
	return o
}

func (o Operation) mistakes() (reasons []string) {
	if o.BaseDelay < 0 {
		reasons = append(reasons, fmt.Sprintf("the base delay %v is negative: use a positive one, or 0 for 1s", o.BaseDelay))
	}
	for _, status := range o.RetryOn {
		if status < 400 || status > 599 {
			reasons = append(reasons, fmt.Sprintf("%d is no status of a failure: use 400 to 599", status))
		}
	}
	return reasons
}

// add registers one pattern. ServeMux panics on what it does not accept, in text that names this very line twice.
func (o *Operations) add(pattern string, op Operation) (reasons []string) {
	defer func() {
		if r := recover(); r != nil {
			reasons = []string{withoutLocations(fmt.Sprint(r))}
		}
	}()
	o.mux.Handle(pattern, declared{op})
	return nil
}

func withoutLocations(text string) string {
	for {
		before, rest, ok := strings.Cut(text, " (registered at ")
		_, after, closed := strings.Cut(rest, ")")
		if !ok || !closed {
			return strings.ReplaceAll(text, "\n", " ")
		}
		text = before + after
	}
}

// find returns the operation that a request calls. ServeMux would redirect a request for a path that is not clean, or
// that lacks a last slash: such a request calls no operation.
func (o *Operations) find(req *http.Request) (Operation, bool) {
	if o == nil {
		return Operation{}, false
	}
	call := http.Request{Method: req.Method, Host: req.Host, URL: req.URL}
	if call.Method == "" {
		call.Method = http.MethodGet
	}
	if call.Host == "" {
		call.Host = req.URL.Host
	}
	if req.URL.Path == "" { // sent as "/"
		call.URL = &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: "/"}
	}
	h, _ := o.mux.Handler(&call)
	d, ok := h.(declared)
	return d.Operation, ok
}

// declared carries an operation through a ServeMux. It serves nothing.
type declared struct{ Operation }

func (declared) ServeHTTP(http.ResponseWriter, *http.Request) {}

// OperationsError has all that is wrong with a table of operations.
type OperationsError struct {
	Mistakes []Mistake
}

// Mistake is one thing that is wrong with a table of operations.
type Mistake struct {
	Pattern string
	Reason  string
}

func (e *OperationsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "requests: the table of operations has %d mistakes", len(e.Mistakes))
	if len(e.Mistakes) == 1 {
		b.Reset()
		b.WriteString("requests: the table of operations has a mistake")
	}
	for i, m := range e.Mistakes {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%q: %s", sep, m.Pattern, m.Reason)
	}
	return b.String()
}
