package auth_test

import (
	"context"
	"net"
	"net/http"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// roundTripper is a function that is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var noSuchHost = &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "as.test", IsNotFound: true}}

// policyError is what a transport of the caller's may refuse an address with.
type policyError struct{}

func (policyError) Error() string { return "that address is private" }
func (policyError) Unwrap() error { return auth.ErrUnavailable }

// failing fails the first n requests for a path.
func failing(c *http.Client, path string, err error, n int) *http.Client {
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == path && n > 0 {
			n--
			return nil, err
		}
		return c.Transport.RoundTrip(r)
	})}
}

// routed sends the requests for a path with a transport through another network.
func routed(c *http.Client, path string, transport *http.Transport, net *fakes.Network) *http.Client {
	transport.DialContext = net.DialContext
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == path {
			return transport.RoundTrip(r)
		}
		return c.Transport.RoundTrip(r)
	})}
}

// dialling connects to one address, whatever was asked for.
func dialling(n *fakes.Network, addr string) *http.Client {
	t := n.Transport()
	t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return n.DialContext(ctx, network, addr)
	}
	return &http.Client{Transport: t}
}
