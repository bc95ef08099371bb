package auth

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// AddressError is a connection that was refused because of where it would lead: a document named the host, and it is at
// an address that nobody on the public network has any business naming. It is [ErrUnavailable] to errors.Is, so that a
// login ends with it instead of trying again.
type AddressError struct {
	// Host is the host's name, or its address where that was written out.
	Host string
	// Kind is what the address is: "loopback", "private", "link-local", "cloud metadata", "multicast", "unspecified" or
	// "reserved".
	Kind string
}

// Error says which host it was and what to do.
func (e *AddressError) Error() string {
	next := "do not use this server"
	if e.Kind == kindLoopback || e.Kind == kindPrivate {
		next = "set AllowPrivate if the server is meant to be on your own network"
	}
	return fmt.Sprintf("auth: a document named the host %q, which is at a %s address; %s", e.Host, e.Kind, next)
}

// Is makes the error an ErrUnavailable.
func (e *AddressError) Is(target error) bool { return target == ErrUnavailable }

// The kinds of address that are not public.
const (
	kindLoopback    = "loopback"
	kindPrivate     = "private"
	kindLinkLocal   = "link-local"
	kindMetadata    = "cloud metadata"
	kindMulticast   = "multicast"
	kindUnspecified = "unspecified"
	kindReserved    = "reserved"
)

// ranges is read from the top, and the first range that has an address says what it is. The special-purpose registries
// of RFC 6890 have more: what is listed here leads somewhere.
var ranges = []struct {
	kind   string
	prefix netip.Prefix
}{
	{kindMetadata, netip.MustParsePrefix("169.254.169.254/32")}, // most clouds
	{kindMetadata, netip.MustParsePrefix("169.254.170.2/32")},   // container credentials
	{kindMetadata, netip.MustParsePrefix("168.63.129.16/32")},   // a public number that a cloud answers on itself
	{kindMetadata, netip.MustParsePrefix("100.100.100.200/32")}, // within the shared range
	{kindMetadata, netip.MustParsePrefix("192.0.0.192/32")},
	{kindMetadata, netip.MustParsePrefix("fd00:ec2::254/128")}, // within the private range
	{kindMetadata, netip.MustParsePrefix("fd20:ce::254/128")},
	{kindUnspecified, netip.MustParsePrefix("0.0.0.0/8")}, // some systems connect it to themselves
	{kindUnspecified, netip.MustParsePrefix("::/128")},
	{kindLoopback, netip.MustParsePrefix("127.0.0.0/8")},
	{kindLoopback, netip.MustParsePrefix("::1/128")},
	{kindLinkLocal, netip.MustParsePrefix("169.254.0.0/16")},
	{kindLinkLocal, netip.MustParsePrefix("fe80::/10")},
	{kindPrivate, netip.MustParsePrefix("10.0.0.0/8")}, // RFC 1918
	{kindPrivate, netip.MustParsePrefix("172.16.0.0/12")},
	{kindPrivate, netip.MustParsePrefix("192.168.0.0/16")},
	{kindPrivate, netip.MustParsePrefix("100.64.0.0/10")}, // RFC 6598
	{kindPrivate, netip.MustParsePrefix("fc00::/7")},      // RFC 4193
	{kindPrivate, netip.MustParsePrefix("fec0::/10")},     // RFC 3879, deprecated and still routed by some
	{kindPrivate, netip.MustParsePrefix("64:ff9b:1::/48")},
	{kindMulticast, netip.MustParsePrefix("224.0.0.0/4")},
	{kindMulticast, netip.MustParsePrefix("ff00::/8")},
	{kindReserved, netip.MustParsePrefix("240.0.0.0/4")}, // with the broadcast address
	{kindReserved, netip.MustParsePrefix("192.0.0.0/24")},
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixTo4 = netip.MustParsePrefix("2002::/16")    // RFC 3056
)

// kindOf returns what an address is, "" for a public one. An IPv6 address that stands for an IPv4 one is what that is.
func kindOf(addr netip.Addr) string {
	addr = addr.WithZone("").Unmap()
	switch b := addr.As16(); {
	case nat64.Contains(addr):
		return kindOf(netip.AddrFrom4([4]byte(b[12:])))
	case sixTo4.Contains(addr):
		return kindOf(netip.AddrFrom4([4]byte(b[2:6])))
	}
	for _, r := range ranges {
		if r.prefix.Contains(addr) {
			return r.kind
		}
	}
	return ""
}

// kindOfHost returns what a host is by its spelling alone: an address, or a name that is not public by definition. All
// other names are public as far as this can see; the address that they resolve to is looked at when it is dialled.
func kindOfHost(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return kindOf(addr)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case loopback(name):
		return kindLoopback
	case name == "metadata.google.internal", name == "instance-data.ec2.internal":
		return kindMetadata
	case !strings.Contains(name, "."): // the search domains decide what it is
		return kindPrivate
	}
	// RFC 6762 and RFC 8375, and the name that ICANN has set aside.
	for _, suffix := range []string{".local", ".home.arpa", ".internal"} {
		if strings.HasSuffix(name, suffix) {
			return kindPrivate
		}
	}
	return ""
}

// addressPolicy decides which hosts a document may name, the resource or the issuer that the caller asked for being
// exempt: that one is learned. It may be used by several goroutines.
//
// A document from a public address may name public addresses. One from a loopback or private address may also name
// others of that kind, because a caller who asks for an issuer on its own network means that network. What is link-local
// or worse may only be named where the caller's own server is, at that very address.
type addressPolicy struct {
	allowPrivate bool

	mu    sync.Mutex
	kinds []string     // of the caller's own servers
	own   []netip.Addr // of the caller's own servers
}

// learn records an address at which the caller's own server is.
func (p *addressPolicy) learn(addr netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	addr = addr.WithZone("").Unmap()
	p.own = append(p.own, addr)
	p.kinds = append(p.kinds, kindOf(addr))
}

// learnHost records the name of the caller's own server, for the connections that somebody else makes.
func (p *addressPolicy) learnHost(host string) {
	if addr, err := netip.ParseAddr(host); err == nil {
		p.learn(addr)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kinds = append(p.kinds, kindOfHost(host))
}

// check decides about an address to which host leads.
func (p *addressPolicy) check(host string, addr netip.Addr) error {
	p.mu.Lock()
	own := slices.Contains(p.own, addr.WithZone("").Unmap())
	p.mu.Unlock()
	if own {
		return nil
	}
	return p.checkKind(host, kindOf(addr))
}

// checkHost decides about a host by its spelling.
func (p *addressPolicy) checkHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		return p.check(host, addr)
	}
	return p.checkKind(host, kindOfHost(host))
}

func (p *addressPolicy) checkKind(host, kind string) error {
	switch kind {
	case "":
		return nil
	case kindLoopback, kindPrivate:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.allowPrivate || slices.Contains(p.kinds, kind) {
			return nil
		}
	}
	return &AddressError{Host: host, Kind: kind}
}
