package conformance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/heed-sdk/heed/requests"
)

// checks has every type of assertion of the schema. Each returns what is wrong.
var checks = map[string]func(*outcome, assertion) error{
	"requestCount":         requestCount,
	"delayBetweenRequests": delayBetweenRequests,
	"statusCode":           statusCode,
	"responseStatus":       responseStatus,
	"responseBody":         func(o *outcome, a assertion) error { return o.at(o.result, a) },
	"responseMeta":         responseMeta,
	"headerValue":          headerValue,
	"headerPresent":        header(func(value string, _ string) bool { return value != "" }),
	"headerAbsent":         header(func(value string, _ string) bool { return value == "" }),
	"headerInjected":       header(func(value, want string) bool { return value == want && want != "" }),
	"requestPath":          requestPath,
	"requestMethod":        requestMethod,
	"requestBody":          requestBody,
	"requestBodyAbsent":    requestBodyAbsent,
	"requestScheme":        everyURL(func(u *url.URL) string { return u.Scheme }),
	"urlOrigin":            everyURL(func(u *url.URL) string { return u.Scheme + "://" + u.Host }),
	"noError":              noError,
	"errorRaised":          errorRaised,
	"errorType":            errorField("code"), // the vendor's types are its codes
	"errorCode":            errorField("code"),
	"errorField":           func(o *outcome, a assertion) error { return errorField(a.Path)(o, a) },
	"errorMessage":         errorMessage,
}

func check(o *outcome, a assertion) error {
	f := checks[a.Type]
	if f == nil {
		return errors.New("this type of assertion is unknown")
	}
	return f(o, a)
}

// equal compares a value with the expected one as JSON.
func (a assertion) equal(got any) error {
	var want any
	if err := json.Unmarshal(a.Expected, &want); err != nil {
		return fmt.Errorf("nothing is expected: %w", err)
	}
	data, err := json.Marshal(got)
	if err != nil {
		return err
	}
	var have any
	if err := json.Unmarshal(data, &have); err != nil {
		return err
	}
	if !reflect.DeepEqual(have, want) {
		return fmt.Errorf("got %s, want %s", data, a.Expected)
	}
	return nil
}

func (a assertion) text() (string, error) {
	var s string
	err := json.Unmarshal(a.Expected, &s)
	return s, err
}

// at compares what is at the assertion's dotted path of a document; without a path, all of it.
func (o *outcome) at(doc any, a assertion) error {
	got, ok := lookup(doc, a.Path)
	if !ok {
		return fmt.Errorf("there is no %s in %v (the error is %s)", a.Path, doc, fmt.Sprint(o.err))
	}
	return a.equal(got)
}

func lookup(doc any, path string) (any, bool) {
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "$."), ".") {
		if name == "" {
			continue
		}
		switch d := doc.(type) {
		case map[string]any:
			next, ok := d[name]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(d) {
				return nil, false
			}
			doc = d[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// request returns the request that the assertion is about: the first, unless it says otherwise; −1 is the last.
func (o *outcome) request(a assertion) (sent, error) {
	i := 0
	if a.Index != nil {
		i = *a.Index
	}
	if i < 0 {
		i += len(o.sent)
	}
	if i < 0 || i >= len(o.sent) {
		return sent{}, fmt.Errorf("there is no such request among %d", len(o.sent))
	}
	return o.sent[i], nil
}

// requestCount takes the server's count, which knows of what the base sends again by itself.
func requestCount(o *outcome, a assertion) error { return a.equal(len(o.received)) }

// delayBetweenRequests never holds for want of anything to hold of: a dropped wait drops its gap.
func delayBetweenRequests(o *outcome, a assertion) error {
	gaps := o.gaps()
	if a.Min == nil && a.Max == nil {
		return errors.New("neither a minimum nor a maximum is given")
	}
	if a.Index != nil {
		if *a.Index < 0 || *a.Index >= len(gaps) {
			return fmt.Errorf("there is no gap %d among %v", *a.Index, gaps)
		}
		gaps = gaps[*a.Index : *a.Index+1]
	}
	if len(gaps) == 0 {
		return errors.New("there are no gaps between requests")
	}
	for i, gap := range gaps {
		ms := float64(gap) / float64(time.Millisecond)
		if a.Min != nil && ms < *a.Min || a.Max != nil && ms > *a.Max {
			return fmt.Errorf("gap %d of %v is %v ms", i, gaps, ms)
		}
	}
	return nil
}

// statusCode is the status that the caller sees.
func statusCode(o *outcome, a assertion) error {
	if e, ok := errors.AsType[*requests.Error](o.err); ok {
		return a.equal(e.Status)
	}
	return responseStatus(o, a)
}

// last returns the last answer on the wire.
func (o *outcome) last() (answer, error) {
	if len(o.answers) == 0 {
		return answer{}, errors.New("there was no answer")
	}
	return o.answers[len(o.answers)-1], nil
}

func responseStatus(o *outcome, a assertion) error {
	last, err := o.last()
	if err != nil {
		return err
	}
	return a.equal(last.status)
}

func headerValue(o *outcome, a assertion) error {
	last, err := o.last()
	if err != nil {
		return err
	}
	return a.equal(last.header.Get(a.Path))
}

func header(holds func(value, want string) bool) func(*outcome, assertion) error {
	return func(o *outcome, a assertion) error {
		r, err := o.request(a)
		if err != nil {
			return err
		}
		if a.Path == "" {
			return errors.New("no header is named")
		}
		want, _ := a.text()
		// Header, not Get of one name in one case: what is on the wire has the canonical form.
		if got := strings.Join(r.header[http.CanonicalHeaderKey(a.Path)], ", "); !holds(got, want) {
			return fmt.Errorf("%s is %q", a.Path, got)
		}
		return nil
	}
}

func requestPath(o *outcome, a assertion) error {
	r, err := o.request(a)
	if err != nil {
		return err
	}
	want, err := a.text()
	if err != nil {
		return err
	}
	if strings.Contains(want, "?") {
		return a.equal(r.url.RequestURI())
	}
	return a.equal(r.url.EscapedPath())
}

func requestMethod(o *outcome, a assertion) error {
	r, err := o.request(a)
	if err != nil {
		return err
	}
	return a.equal(r.method)
}

func requestBody(o *outcome, a assertion) error {
	r, err := o.request(a)
	if err != nil {
		return err
	}
	var doc any
	if err := json.Unmarshal(r.body, &doc); err != nil {
		return fmt.Errorf("the body %q: %w", r.body, err)
	}
	return o.at(doc, a)
}

// requestBodyAbsent is of a key of the body, or without one of the body.
func requestBodyAbsent(o *outcome, a assertion) error {
	r, err := o.request(a)
	if err != nil || len(r.body) == 0 {
		return err
	}
	var doc any
	if err := json.Unmarshal(r.body, &doc); err != nil {
		return fmt.Errorf("the body %q: %w", r.body, err)
	}
	if got, ok := lookup(doc, a.Path); ok {
		return fmt.Errorf("%q is %v", a.Path, got)
	}
	return nil
}

// everyURL compares something that all requests have in common.
func everyURL(part func(*url.URL) string) func(*outcome, assertion) error {
	return func(o *outcome, a assertion) error {
		if len(o.sent) == 0 {
			return errors.New("nothing was sent")
		}
		for _, r := range o.sent {
			if err := a.equal(part(r.url)); err != nil {
				return err
			}
		}
		return nil
	}
}

func noError(o *outcome, _ assertion) error { return o.err }

func errorRaised(o *outcome, _ assertion) error {
	if o.err == nil {
		return errors.New("there was no error")
	}
	return nil
}

func errorMessage(o *outcome, a assertion) error {
	want, err := a.text()
	if err != nil || want == "" {
		return errors.New("no message is expected")
	}
	e, ok := errors.AsType[*requests.Error](o.err)
	if !ok || !strings.Contains(e.Message, want) {
		return fmt.Errorf("got %s, want %q", fmt.Sprint(o.err), want)
	}
	return nil
}
