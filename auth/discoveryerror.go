package auth

import (
	"fmt"
	"strings"
)

// DiscoveryReason is why discovery failed. Its values are errors themselves, so that errors.Is tells them apart, and
// machine-readable words, so that string(r) can be printed and compared.
type DiscoveryReason string

// The reasons of a [DiscoveryError].
const (
	// ErrIdentifier is an issuer or resource that the caller asked for and that is malformed. Nothing was sent.
	ErrIdentifier DiscoveryReason = "invalid_identifier"
	// ErrServerIdentifier is an authorization server that a resource's document names and whose identifier is malformed.
	ErrServerIdentifier DiscoveryReason = "invalid_server_identifier"
	// ErrUnreachable is a document that got no answer, within the time there is for it.
	ErrUnreachable DiscoveryReason = "unreachable"
	// ErrNoMetadata is an answer that is not 200: there is no document, or a redirect, or the server failed.
	ErrNoMetadata DiscoveryReason = "no_metadata"
	// ErrInvalidMetadata is a document that cannot be used: it is no JSON object, has a member of the wrong type, or an
	// endpoint that is empty or not https.
	ErrInvalidMetadata DiscoveryReason = "invalid_metadata"
	// ErrOversizedMetadata is a document of more than 1 MiB. No more than that was read.
	ErrOversizedMetadata DiscoveryReason = "oversized_metadata"
	// ErrMismatch is a document about another issuer or resource than the one asked for.
	ErrMismatch DiscoveryReason = "identifier_mismatch"
	// ErrRefusedAddress is a host that a document names and that the address policy refuses; Err is an *AddressError.
	ErrRefusedAddress DiscoveryReason = "refused_address"
	// ErrServersAbsent is a resource whose document says nothing about authorization servers.
	ErrServersAbsent DiscoveryReason = "servers_absent"
	// ErrServersEmpty is a resource whose document says that it has no authorization server.
	ErrServersEmpty DiscoveryReason = "servers_empty"
	// ErrSeveralServers is a resource with several authorization servers, none of them chosen.
	ErrSeveralServers DiscoveryReason = "several_servers"
	// ErrNotAdvertised is a chosen authorization server that the resource's document does not name.
	ErrNotAdvertised DiscoveryReason = "server_not_advertised"
	// ErrNotChosen is a Choose function that failed; Err is its error.
	ErrNotChosen DiscoveryReason = "server_not_chosen"
	// ErrMissingEndpoint is a grant for which the server has published no endpoint.
	ErrMissingEndpoint DiscoveryReason = "missing_endpoint"
)

// Error describes the reason in a few words.
func (r DiscoveryReason) Error() string {
	switch r {
	case ErrIdentifier:
		return "auth: the identifier asked for is malformed"
	case ErrServerIdentifier:
		return "auth: the resource names an authorization server whose identifier is malformed"
	case ErrUnreachable:
		return "auth: the metadata could not be fetched"
	case ErrNoMetadata:
		return "auth: the server has no metadata to give"
	case ErrInvalidMetadata:
		return "auth: the metadata cannot be used"
	case ErrOversizedMetadata:
		return "auth: the metadata is too large"
	case ErrMismatch:
		return "auth: the metadata is about another identifier than the one asked for"
	case ErrRefusedAddress:
		return "auth: the metadata leads to an address that is not public"
	case ErrServersAbsent:
		return "auth: the resource does not say which authorization server it trusts"
	case ErrServersEmpty:
		return "auth: the resource says that it has no authorization server"
	case ErrSeveralServers:
		return "auth: the resource has several authorization servers"
	case ErrNotAdvertised:
		return "auth: the resource does not name the authorization server that was chosen"
	case ErrNotChosen:
		return "auth: no authorization server was chosen"
	case ErrMissingEndpoint:
		return "auth: the authorization server has published no endpoint for this grant"
	}
	return "auth: discovery failed"
}

// Hop is one of the two documents that discovery reads.
type Hop string

const (
	// HopResource is the protected resource's metadata (RFC 9728).
	HopResource Hop = "resource"
	// HopIssuer is the authorization server's metadata (RFC 8414, OpenID Connect Discovery).
	HopIssuer Hop = "issuer"
)

// DiscoveryError is how discovery fails. One that its context ended does not end in it: that is the context's own error.
//
// No field holds a query, user info or a body: an identifier that is malformed is not repeated.
type DiscoveryError struct {
	Reason DiscoveryReason
	// Hop is the document at fault.
	Hop Hop
	// Issuer is the identifier asked for at that hop: the resource's or the issuer's; "" if it is malformed.
	Issuer string
	// Endpoint is the member of the document at fault, such as "token_endpoint"; "" when it is none of them.
	Endpoint string
	// Status is the HTTP status of the answer, 0 when there was none or it does not matter.
	Status int
	// Err is the cause, where there is one.
	Err error
}

// Error says what happened and what to do next.
func (e *DiscoveryError) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.Error())
	if e.Issuer != "" {
		fmt.Fprintf(&b, " (%s %s)", e.Hop, e.Issuer)
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	if e.Endpoint != "" {
		b.WriteString(": " + e.Endpoint)
	}
	if e.Err != nil {
		b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "auth: "))
	}
	if advice := e.advice(); advice != "" {
		b.WriteString("; " + advice)
	}
	return b.String()
}

// advice is the next step for whoever reads the error.
func (e *DiscoveryError) advice() string {
	switch e.Reason {
	case ErrIdentifier:
		return "give the https address exactly as the server publishes it"
	case ErrServerIdentifier, ErrServersEmpty:
		return "tell the resource's operator, or ask for the issuer directly"
	case ErrUnreachable:
		return "check the address and the connection, and try again"
	case ErrNoMetadata:
		switch {
		case e.Status >= 300 && e.Status < 400:
			return "redirects are not followed: ask for the address that the server itself calls its identifier"
		case e.Status >= 500 || e.Status == 429:
			return "try again later"
		}
		return "check the address, or give the endpoints themselves"
	case ErrInvalidMetadata, ErrOversizedMetadata:
		return "tell the server's operator, or give the endpoints themselves"
	case ErrMismatch:
		return "ask for it exactly as the server spells it, if that is the server you mean"
	case ErrServersAbsent:
		return "ask for the issuer directly"
	case ErrSeveralServers:
		return "choose one with ExpectedIssuer or Choose"
	case ErrNotAdvertised:
		return "check its spelling against the resource's documentation"
	case ErrMissingEndpoint:
		return "use another grant, or give the endpoint itself"
	}
	return "" // the cause has it
}

// Is makes the error the one of its reason.
func (e *DiscoveryError) Is(target error) bool { return target == e.Reason }

// Unwrap returns the cause.
func (e *DiscoveryError) Unwrap() error { return e.Err }
