package conformance_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/conformance"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// requestCase is a case of the families in tests: see its schema.json.
type requestCase struct {
	Name          string                     `json:"name"`
	Description   string                     `json:"description"`
	Mode          string                     `json:"mode"`
	Operation     string                     `json:"operation"`
	Method        string                     `json:"method"`
	Path          string                     `json:"path"`
	PathParams    map[string]json.RawMessage `json:"pathParams"`
	QueryParams   map[string]any             `json:"queryParams"`
	RequestBody   json.RawMessage            `json:"requestBody"`
	MockResponses []mockResponse             `json:"mockResponses"`
	Assertions    []assertion                `json:"assertions"`
	Overrides     struct {
		BaseURL    string `json:"baseUrl"`
		MaxRetries *int   `json:"maxRetries"` // attempts in all, says the schema
	} `json:"configOverrides"`
	Tags []string `json:"tags"`
}

// mockResponse is what the server answers to one request.
type mockResponse struct {
	Status       int               `json:"status"`
	NetworkError bool              `json:"networkError"`
	Headers      map[string]string `json:"headers"`
	Body         json.RawMessage   `json:"body"`
	Delay        int               `json:"delay"` // in milliseconds
}

// assertion is something that has to be true of an outcome.
type assertion struct {
	Type     string          `json:"type"`
	Expected json.RawMessage `json:"expected"`
	Min      *float64        `json:"min"`
	Max      *float64        `json:"max"`
	Path     string          `json:"path"`
	Index    *int            `json:"index"`
}

// outcome is what one call of an operation came to.
type outcome struct {
	sent     []sent
	answers  []answer
	result   map[string]any // what the operation returned, as the vendor's runners see it
	err      error
	foreign  []string // hosts that are none of the case's and were dialled
	overrun  []string // requests beyond the script
	received []fakes.Received
}

// gaps are the times between the beginnings of two requests, as the server saw them.
func (o *outcome) gaps() []time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(o.received); i++ {
		gaps = append(gaps, o.received[i].Began.Sub(o.received[i-1].Began))
	}
	return gaps
}

func TestRequests(t *testing.T) {
	families := conformance.Families(t, "tests")
	for _, name := range []string{"retry", "network-retry", "idempotency", "downloads", "error-mapping", "status-codes", "auth", "security"} {
		if !slices.Contains(families, name) {
			t.Errorf("the family %s is not there", name)
		}
	}
	all := map[string][]requestCase{}
	for _, family := range families {
		all[family] = conformance.List[requestCase](t, filepath.Join("tests", family+".json"))
	}
	v := newVendor(t, all)
	var passed, of int
	for _, family := range families {
		p, n := conformance.RunList(t, family, all[family], func(c requestCase) string { return c.Name }, v.run)
		passed, of = passed+p, of+n
	}
	t.Logf("tests: %d of %d", passed, of)
	if passed != of {
		t.Fail()
	}
}

// run runs a case in a bubble, whose time is exact.
func (v *vendor) run(t *testing.T, c requestCase) {
	if c.Mode != "" && c.Mode != "mock" {
		t.Fatalf("the mode %q needs a live server, and there is none", c.Mode)
	}
	if len(c.Assertions) == 0 {
		t.Fatal("the case asserts nothing")
	}
	fakes.Bubble(t, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), func(t *testing.T) {
		o := v.call(t, c)
		var methods bool
		for i, a := range c.Assertions {
			methods = methods || a.Type == "requestMethod"
			if err := check(&o, a); err != nil {
				t.Errorf("assertion %d, %s: %v", i+1, a.Type, err)
			}
		}
		// Implicit in every case, says the schema.
		if !methods && c.Method != "" && len(o.received) > 0 && o.received[0].Method != c.Method {
			t.Errorf("the first request was a %s, want %s", o.received[0].Method, c.Method)
		}
		for _, host := range o.foreign {
			t.Errorf("%s was dialled", host)
		}
		for _, v := range o.overrun {
			t.Error(v)
		}
		if _, ok := errors.AsType[*requests.Error](o.err); o.err != nil && !ok {
			t.Errorf("the error is %T: %v", o.err, o.err)
		}
	})
}

// TestRequestAssertions holds the list of assertions against the schema's, and lets each of them hold and fail.
func TestRequestAssertions(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(conformance.Folder(t), "tests", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Assertions struct {
				Items struct {
					Properties struct {
						Type struct{ Enum []string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	types := schema.Properties.Assertions.Items.Properties.Type.Enum
	if len(types) == 0 {
		t.Fatal("the schema has no types of assertions")
	}
	for _, name := range types {
		if checks[name] == nil {
			t.Errorf("the assertion %s is not implemented", name)
		}
		if len(assertionCases[name]) == 0 {
			t.Errorf("the assertion %s has no cases", name)
		}
	}
	for name, list := range assertionCases {
		for _, c := range list {
			var a assertion
			if err := json.Unmarshal([]byte(c.assertion), &a); err != nil {
				t.Fatalf("%s: %v", c.assertion, err)
			}
			a.Type = name
			o := c.outcome()
			if err := check(&o, a); (err == nil) != c.holds {
				t.Errorf("%s %s: %v", name, c.assertion, err)
			}
		}
	}
	if err := check(&outcome{}, assertion{Type: "somethingElse"}); err == nil {
		t.Error("an unknown assertion held")
	}
}
