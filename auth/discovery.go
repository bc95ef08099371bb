package auth

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// Discovery finds the endpoints of an authorization server in what it publishes about itself: RFC 8414 and OpenID Connect
// metadata, and before that, for a resource whose authorization server is not known, RFC 9728 metadata. It is
// configuration only: the zero value works, and one value serves any number of calls.
//
// What a document says is believed only if the document is about exactly what was asked for. Hosts that a document names
// must have public addresses, unless the resource or issuer that the caller asked for is itself at an address of that
// kind; the check is made as each connection is, here and later on [Metadata.HTTPClient]. Behind a proxy only a host's
// spelling can be checked, because it is the proxy that resolves it. No redirect is followed, and a document is read up
// to 1 MiB.
type Discovery struct {
	// HTTPClient has the Transport that carries the requests. If it or its Transport is nil, http.DefaultTransport does.
	// Nothing else of it is used. The address policy reaches into an *http.Transport, of which it uses a copy; of a
	// RoundTripper of another type it can only check which hosts it is asked for.
	HTTPClient *http.Client

	// Clock is what the timeout runs on. If it is nil, the real one.
	Clock clock.Clock

	// Timeout bounds one call with all its requests. If it is zero, 30 s.
	Timeout time.Duration

	// OriginRoot refuses issuers and resources that have a path beyond "/".
	OriginRoot bool

	// AllowPrivate lets documents name hosts at loopback and private addresses. What is link-local, multicast or a
	// cloud's metadata service is refused all the same.
	AllowPrivate bool

	// ExpectedIssuer is the authorization server that Resource takes. It has to be one that the resource names; it is not
	// held to the address policy, being the caller's own choice. It goes before Choose.
	ExpectedIssuer string

	// Choose, if not nil, chooses among the authorization servers that a resource names, also when there is only one. It
	// returns one of them. If it is nil, Resource takes the only one, and fails when there are several.
	Choose func(servers []string) (string, error)
}

// Issuer reads the metadata of an authorization server. It returns a *DiscoveryError, a *ConfigError, or an error that is
// ctx's own (by errors.Is) when ctx ended it.
func (d *Discovery) Issuer(ctx context.Context, issuer string) (*Metadata, error) {
	return bounded(ctx, d, func(ctx context.Context, s *search) (*Metadata, error) {
		u, err := parseIdentifier(issuer, d.OriginRoot)
		if err != nil {
			return nil, &DiscoveryError{Reason: ErrIdentifier, Hop: HopIssuer, Err: err}
		}
		return s.issuer(ctx, issuer, u, true)
	})
}

// ProtectedResource reads the metadata of a protected resource (RFC 9728), and nothing after that: whether it names
// authorization servers is for the caller to see. It fails as Issuer does.
func (d *Discovery) ProtectedResource(ctx context.Context, resource string) (*ResourceMetadata, error) {
	return bounded(ctx, d, func(ctx context.Context, s *search) (*ResourceMetadata, error) {
		return s.resource(ctx, resource)
	})
}

// Resource reads the metadata of a protected resource, takes the authorization server that it names, and reads the
// metadata of that. Which of several is never guessed. Once one is taken there is no other: if its metadata cannot be
// had, that is the end. It fails as Issuer does.
func (d *Discovery) Resource(ctx context.Context, resource string) (*Metadata, error) {
	return bounded(ctx, d, func(ctx context.Context, s *search) (*Metadata, error) {
		r, err := s.resource(ctx, resource)
		if err != nil {
			return nil, err
		}
		issuer, failure := d.choose(r.AuthorizationServers)
		if failure != nil {
			failure.Hop, failure.Issuer = HopResource, resource
			return nil, failure
		}
		u, err := parseIdentifier(issuer, d.OriginRoot)
		if err != nil {
			return nil, &DiscoveryError{Reason: ErrServerIdentifier, Hop: HopResource, Issuer: resource, Err: err}
		}
		m, err := s.issuer(ctx, issuer, u, d.ExpectedIssuer != "")
		if err != nil {
			return nil, err
		}
		m.Resource = resource
		return m, nil
	})
}

// bounded makes one call, under the timeout.
func bounded[T any](ctx context.Context, d *Discovery, call func(context.Context, *search) (*T, error)) (*T, error) {
	if d.Timeout < 0 {
		return nil, &ConfigError{[]Problem{{"Timeout", "is negative"}}}
	}
	s := &search{policy: &addressPolicy{allowPrivate: d.AllowPrivate}, originRoot: d.OriginRoot}
	if d.HTTPClient != nil {
		s.transport = d.HTTPClient.Transport
	}
	timeout := d.Timeout
	if timeout == 0 {
		timeout = defaultRequestTimeout
	}
	inner, done := delay.TimersOn(d.Clock).WithTimeout(ctx, delay.KindRequestTimeout, timeout)
	defer done()
	v, err := call(inner, s)
	if ended := delay.Ended(ctx); err != nil && ended != nil {
		return nil, fmt.Errorf("auth: discovery was interrupted: %w", ended)
	}
	return v, err
}

// choose takes one of the servers that a resource names, as the resource spells it.
func (d *Discovery) choose(servers []string) (string, *DiscoveryError) {
	if servers == nil {
		return "", &DiscoveryError{Reason: ErrServersAbsent}
	}
	servers = distinct(servers)
	chosen := d.ExpectedIssuer
	switch {
	case len(servers) == 0:
		return "", &DiscoveryError{Reason: ErrServersEmpty}
	case chosen != "":
	case d.Choose != nil:
		var err error
		if chosen, err = d.Choose(slices.Clone(servers)); err != nil {
			return "", &DiscoveryError{Reason: ErrNotChosen, Err: err}
		}
	case len(servers) > 1:
		return "", &DiscoveryError{Reason: ErrSeveralServers, Err: named(servers)}
	default:
		return servers[0], nil
	}
	i := slices.IndexFunc(servers, func(server string) bool { return sameIdentifier(chosen, server) })
	if i < 0 {
		return "", &DiscoveryError{Reason: ErrNotAdvertised, Err: named(servers)}
	}
	return servers[i], nil
}

func distinct(servers []string) []string {
	var list []string
	for _, server := range servers {
		if !slices.ContainsFunc(list, func(s string) bool { return sameIdentifier(s, server) }) {
			list = append(list, server)
		}
	}
	return list
}

// named lists servers for an error, which a long list must not flood.
func named(servers []string) error {
	var list []string
	for _, server := range servers {
		if server = fitToPrint(server); server != "" && len(list) < 5 {
			list = append(list, server)
		}
	}
	return fmt.Errorf("it names %d: %s", len(servers), strings.Join(list, ", "))
}
