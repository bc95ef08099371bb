package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/heed-sdk/heed/stream/internal/address"
	"github.com/heed-sdk/heed/stream/internal/redact"
)

// DefaultPageLimit is how large the body of a page may be.
const DefaultPageLimit = 16 << 20

// HTTPPoll polls over HTTP. Its Poll is a [PollFunc]: it sends the credential's token in the Authorization header, follows
// no redirect to another origin, classes the status with [ClassOfStatus] and reads Retry-After.
type HTTPPoll[E any] struct {
	// Client sends the requests. If nil, http.DefaultClient does.
	Client *http.Client

	// Request makes the request for the page at a position. It is needed.
	Request func(ctx context.Context, position string) (*http.Request, error)

	// Decode reads a page from the answer's header and its whole body. It is needed. It is not called for 204 and 304, which
	// are empty pages. An error of its own is permanent, unless it is an [*AttemptError] that says otherwise.
	Decode func(h http.Header, body []byte) (Page[E], error)

	// Limit is how large a body may be. If zero, 16 MiB.
	Limit int64
}

// Poll asks for one page.
func (p HTTPPoll[E]) Poll(ctx context.Context, a Attempt) (page Page[E], err error) {
	if p.Request == nil || p.Decode == nil {
		return page, &AttemptError{Class: Permanent, Err: errors.New("HTTPPoll needs Request and Decode")}
	}
	req, err := p.Request(ctx, a.Position)
	if err != nil {
		return page, &AttemptError{Class: Permanent, Err: redact.Error(err, nil)}
	}
	if err := address.Check(req.URL); err != nil {
		return page, &AttemptError{Class: Permanent, Err: err}
	}
	secrets := redact.Secrets(req.URL)
	if t := a.Credential.Token; t != nil {
		t.SetAuthHeader(req)
		secrets = append(secrets, t.AccessToken)
	}
	res, err := p.client().Do(req)
	if err != nil {
		return page, &AttemptError{Err: redact.Error(err, secrets)}
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified:
		return page, nil
	case res.StatusCode < 200 || res.StatusCode > 299:
		return page, a.Refused(res)
	}
	body, err := p.read(res.Body)
	if err != nil {
		return page, &AttemptError{Class: classOfRead(err), Err: redact.Error(err, secrets)}
	}
	page, err = p.Decode(res.Header, body)
	if err == nil {
		return page, nil
	}
	if a, ok := errors.AsType[*AttemptError](err); ok {
		return page, a
	}
	return page, &AttemptError{Class: Permanent, Err: fmt.Errorf("the page cannot be read: %w", redact.Error(err, secrets))}
}

// errTooLarge is permanent: the same page will be as large next time.
var errTooLarge = errors.New("the page is larger than the limit")

func classOfRead(err error) Class {
	if errors.Is(err, errTooLarge) {
		return Permanent
	}
	return Transient
}

// read reads a body whole, so that one that was cut off is told from one that cannot be understood.
func (p HTTPPoll[E]) read(r io.Reader) ([]byte, error) {
	limit := p.Limit
	if limit <= 0 {
		limit = DefaultPageLimit
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = errTooLarge
	}
	return body, err
}

// maxRedirects is net/http's own.
const maxRedirects = 10

// client does not go round in circles, nor elsewhere: the answer is then the redirect itself, which is permanent.
func (p HTTPPoll[E]) client() *http.Client {
	client := *http.DefaultClient
	if p.Client != nil {
		client = *p.Client
	}
	next := client.CheckRedirect
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= maxRedirects:
			return http.ErrUseLastResponse
		case next != nil:
			return next(req, via)
		}
		return nil
	}
	client.Transport = sameOrigin{client.Transport}
	return &client
}

// sameOrigin takes the address out of a redirect to another origin, and out of one that cannot be read, which net/http would
// quote.
type sameOrigin struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (s sameOrigin) RoundTrip(req *http.Request) (*http.Response, error) {
	next := s.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(req)
	if err != nil || res == nil || res.StatusCode < 300 || res.StatusCode > 399 {
		return res, err
	}
	if u, err := req.URL.Parse(res.Header.Get("Location")); err != nil || !address.SameOrigin(u, req.URL) {
		res.Header.Del("Location")
	}
	return res, nil
}
