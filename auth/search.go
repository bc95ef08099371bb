package auth

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
)

// The names of the documents. An authorization server may have the one or the other (RFC 8414, section 5).
const (
	wellKnownResource = "oauth-protected-resource"
	wellKnownServer   = "oauth-authorization-server"
	wellKnownOpenID   = "openid-configuration"
)

// search is one call of a Discovery under way.
type search struct {
	transport  http.RoundTripper
	policy     *addressPolicy
	originRoot bool
}

// resource reads a resource's document.
func (s *search) resource(ctx context.Context, resource string) (*ResourceMetadata, error) {
	u, err := parseIdentifier(resource, s.originRoot)
	if err != nil {
		return nil, &DiscoveryError{Reason: ErrIdentifier, Hop: HopResource, Err: err}
	}
	m, failure := s.document(ctx, true, insertWellKnown(u, wellKnownResource))
	var md *ResourceMetadata
	if failure == nil {
		md, failure = readResourceMetadata(m, resource)
	}
	if failure != nil {
		failure.Hop, failure.Issuer = HopResource, resource
		return nil, failure
	}
	return md, nil
}

// issuer reads an authorization server's document. own is true for one that the caller asked for.
func (s *search) issuer(ctx context.Context, issuer string, u *url.URL, own bool) (*Metadata, error) {
	addresses := []string{insertWellKnown(u, wellKnownServer), appendWellKnown(u, wellKnownOpenID)}
	if inserted := insertWellKnown(u, wellKnownOpenID); inserted != addresses[1] {
		addresses = append(addresses, inserted)
	}
	m, failure := s.document(ctx, own, addresses...)
	var md *Metadata
	if failure == nil {
		md, failure = readMetadata(m, issuer)
	}
	if failure == nil {
		failure = s.checkEndpoints(md)
	}
	if failure != nil {
		failure.Hop, failure.Issuer = HopIssuer, issuer
		return nil, failure
	}
	md.transport = guarded(s.transport, s.policy, false)
	return md, nil
}

// checkEndpoints tells early what HTTPClient would refuse, as far as the spelling of the hosts shows it.
func (s *search) checkEndpoints(md *Metadata) *DiscoveryError {
	for _, e := range md.endpoints() {
		to, err := url.Parse(*e.value)
		if err != nil || *e.value == "" {
			continue // absent, since those that are there were parsed before
		}
		if err := s.policy.checkHost(to.Hostname()); err != nil {
			return &DiscoveryError{Reason: ErrRefusedAddress, Endpoint: e.name, Err: err}
		}
	}
	return nil
}

// document reads the document that is at one of the addresses, all of them of the same server. The next address is asked
// only when a document is not there; of several that are not, the error tells the most telling. It lacks the hop.
func (s *search) document(ctx context.Context, own bool, addresses ...string) (members, *DiscoveryError) {
	transport := guarded(s.transport, s.policy, own)
	var failure *DiscoveryError
	for _, address := range addresses {
		r, err := get(ctx, transport, address)
		if err != nil {
			return members{}, unfetched(err)
		}
		if r.status == http.StatusOK && r.bad == nil {
			return r.members, nil
		}
		if failure == nil || failure.Status == http.StatusNotFound {
			failure = unusable(r)
		}
		if !elsewhere(r) {
			break
		}
	}
	return members{}, failure
}

// unusable is the end of a discovery whose answer has no document in it.
func unusable(r *reply) *DiscoveryError {
	switch {
	case r.status != http.StatusOK:
		return &DiscoveryError{Reason: ErrNoMetadata, Status: r.status}
	case errors.Is(r.bad, errTooLarge):
		return &DiscoveryError{Reason: ErrOversizedMetadata, Err: r.bad}
	}
	return &DiscoveryError{Reason: ErrInvalidMetadata, Err: r.bad}
}

// elsewhere reports whether an answer says no more than that the document is not at this address. Applications that answer
// every path with their own page, or with the way to it, say it in these ways too.
func elsewhere(r *reply) bool {
	switch {
	case r.status == http.StatusRequestTimeout, r.status == http.StatusTooManyRequests:
		return false
	case r.status >= 300 && r.status < 500:
		return true
	}
	media, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	return r.status == http.StatusOK && media == "text/html"
}

// get fetches one document. Like a post it goes to the transport directly, which follows no redirect.
func get(ctx context.Context, transport http.RoundTripper, address string) (*reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Close = true // each connection is checked, and none is left behind
	res, err := roundTrip(transport, req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	r := &reply{status: res.StatusCode, header: res.Header}
	if r.status != http.StatusOK {
		return r, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case len(body) > maxBody:
		r.bad = errTooLarge
		return r, nil
	case err != nil:
		return nil, err
	}
	r.members, r.bad = readMembers("application/json", body, false) // whatever the server calls it
	return r, nil
}

// unfetched is the end of a discovery for which there was no answer.
func unfetched(err error) *DiscoveryError {
	if refused, ok := errors.AsType[*AddressError](err); ok {
		return &DiscoveryError{Reason: ErrRefusedAddress, Err: refused}
	}
	if errors.Is(err, errProxy) {
		return &DiscoveryError{Reason: ErrUnreachable, Err: errProxy}
	}
	return &DiscoveryError{Reason: ErrUnreachable, Err: newUnanswered(err)}
}
