package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

const (
	errorBodyLimit = 1 << 20
	jsonBodyLimit  = 50 << 20
)

// Client sends requests through a Transport and returns an *Error for each that failed.
type Client struct {
	base *url.URL
	t    *Transport
	http *http.Client
}

// NewClient returns a client of the API at base, such as "https://api.example.com". Credentials go to that origin only,
// whatever Transport.Origin says. If t is nil, it is a zero Transport. The error is an *Error with CodeUsage.
func NewClient(base string, t *Transport) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, &Error{Code: CodeUsage, Message: "the base is no URL of an API: use one such as https://api.example.com"}
	}
	if err := secure(u); err != nil {
		return nil, err
	}
	if t == nil {
		t = &Transport{}
	}
	if err := t.ready(); err != nil {
		return nil, err
	}
	return &Client{base: u, t: t, http: &http.Client{Transport: tripper{t}}}, nil
}

// Do sends a request and returns an answer below 400, whose body the caller reads and closes. A URL without a host is
// taken relative to the client's base. Redirects are followed as by http.Client, and Authorization stays behind where
// one leads to another origin. The error is always an *Error; the answer's body is then read and closed.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	switch {
	case req.URL == nil:
		closeBody(req)
		return nil, &Error{Code: CodeUsage, Message: "the request has no URL"}
	case req.RequestURI != "":
		closeBody(req)
		return nil, &Error{Code: CodeUsage, Message: "the request is one that a server received: empty its RequestURI to send it on"}
	}
	link := &call{origin: c.base}
	out := req.WithContext(context.WithValue(req.Context(), callKey{}, link))
	if req.URL.Host == "" && req.URL.Scheme == "" {
		out.URL = c.base.ResolveReference(req.URL)
	}
	resp, err := c.http.Do(out)
	if err != nil {
		return nil, failure(err)
	}
	if resp.StatusCode >= 400 {
		p := c.t.policy().plan(false, Operation{})
		return nil, c.refused(resp, link, &p)
	}
	return resp, nil
}

// DoJSON sends a request as Do does, asks for JSON unless the request has an Accept header, and decodes the answer's
// body, of at most 50 MiB, into a value. Nothing is decoded into nil, or of a 204.
func (c *Client) DoJSON(req *http.Request, into any) error {
	if req.Header.Get("Accept") == "" {
		out := req.WithContext(req.Context())
		if out.Header = req.Header.Clone(); out.Header == nil {
			out.Header = http.Header{}
		}
		out.Header.Set("Accept", "application/json")
		req = out
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil || resp.StatusCode == http.StatusNoContent {
		c.t.drain(resp)
		return nil
	}
	undecoded := &Error{Code: CodeAPI, RequestID: requestID(resp.Header)}
	data, err := io.ReadAll(io.LimitReader(resp.Body, jsonBodyLimit+1))
	switch {
	case err != nil:
		return failure(&TransportFailed{Err: err})
	case len(data) > jsonBodyLimit:
		undecoded.Message = fmt.Sprintf("the answer is longer than %d MiB: read it with Do", jsonBodyLimit>>20)
		return undecoded
	}
	if err := json.Unmarshal(data, into); err != nil {
		undecoded.Message, undecoded.Err = "the answer is not the JSON that was expected", err
		return undecoded
	}
	return nil
}

// refused reads an answer of 400 and above, or one that is none at all where it came, and makes an error of it.
func (c *Client) refused(resp *http.Response, link *call, p *plan) *Error {
	asked := c.t.asked(p, resp.Header)
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyLimit)) // what could be read may still say something
	c.t.drain(resp)
	e := newError(resp.StatusCode, resp.Header, body)
	e.RetryAfter, e.Err = asked.Duration(), link.unwaited
	if e.Code == CodeRateLimit {
		e.Err = &RateLimited{RetryAfter: e.RetryAfter, Err: link.unwaited}
	} else if p.unsure {
		e.Err = &TransportFailed{Status: e.Status}
	}
	return e
}

// failure makes an *Error of what kept a request from having an answer.
func failure(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	err = withoutURL(err)
	e := &Error{Code: CodeNetwork, Err: err}
	failed, ok := errors.AsType[*TransportFailed](err)
	limited, throttled := errors.AsType[*RateLimited](err)
	switch {
	case throttled:
		e.Code, e.Message, e.Retryable = CodeRateLimit, "not sent: the host has told another request to wait", true
		e.RetryAfter, e.Err = limited.RetryAfter, limited
	case ok:
		e.Message, e.Retryable = "no answer: "+failed.Err.Error(), !unverified(err)
	case errors.Is(err, context.DeadlineExceeded):
		e.Message, e.Retryable = "there was no answer before the deadline", true
	case errors.Is(err, context.Canceled):
		e.Message = "cancelled before there was an answer"
	default: // net/http gave up on it
		e.Code, e.Message = CodeAPI, err.Error()
	}
	return e
}

func (t *Transport) policy() Policy {
	if t.Policy == nil {
		return Declared{}
	}
	return t.Policy
}

type callKey struct{}

// tripper is the Transport of a Client's http.Client.
type tripper struct{ t *Transport }

func (r tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	link, _ := req.Context().Value(callKey{}).(*call)
	resp, err := r.t.roundTrip(req, link)
	if err != nil {
		return nil, err
	}
	// What http.Client says of a Location that it cannot read has all of it in it.
	if at := resp.Header.Get("Location"); at != "" && resp.StatusCode/100 == 3 {
		if _, err := url.Parse(at); err != nil {
			r.t.drain(resp)
			return nil, &Error{
				Code: CodeAPI, Status: resp.StatusCode, RequestID: requestID(resp.Header),
				Message: "the server redirects to an address that cannot be read",
			}
		}
	}
	return resp, nil
}
