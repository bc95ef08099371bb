package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/conformance"
)

// oauthFixture is a fixture of the family oauth: see its schema.json.
type oauthFixture struct {
	Name           string    `json:"name"`
	Description    string    `json:"description"`
	Operation      string    `json:"operation"`
	ResourceOrigin string    `json:"resourceOrigin"`
	IssuerOrigin   string    `json:"issuerOrigin"`
	ExpectedIssuer string    `json:"expectedIssuer"`
	BC5Committed   *bool     `json:"bc5Committed"` // documentation, says the schema
	Hop1           *exchange `json:"hop1"`
	Hop2           *exchange `json:"hop2"`
	Expect         struct {
		Outcome            string `json:"outcome"`
		SelectedIssuer     string `json:"selectedIssuer"`
		FallbackReason     string `json:"fallbackReason"`
		Error              string `json:"error"`
		ErrorCategory      string `json:"errorCategory"`
		LaunchpadContacted *bool  `json:"launchpadContacted"`
	} `json:"expect"`
}

// exchange is what a host answers.
type exchange struct {
	Origin         string          `json:"origin"`
	Status         int             `json:"status"`
	TransportError bool            `json:"transportError"`
	Body           json.RawMessage `json:"body"`
	Oversized      bool            `json:"oversized"`
	RedirectTo     string          `json:"redirectTo"`
}

func (e *exchange) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if e.TransportError {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	if e.RedirectTo != "" {
		w.Header().Set("Location", e.RedirectTo)
	}
	status := e.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	if e.Oversized {
		// White space, so that only the size is wrong.
		fmt.Fprint(w, strings.Repeat(" ", 2<<20))
	}
	_, _ = w.Write(e.Body)
}

const (
	hop1Path = "/.well-known/oauth-protected-resource"
	hop2Path = "/.well-known/oauth-authorization-server"
)

// placeholders are the hosts that a fixture knows by name.
var placeholders = []string{"RESOURCE_ORIGIN", "ISSUER_ORIGIN", "LAUNCHPAD_ORIGIN", "BC5_ISSUER"}

// internet has each host on a loopback listener of its own, and knows which of them were contacted. Every other host is
// refused, and remembered.
type internet struct {
	origins map[string]string // by placeholder

	mu        sync.Mutex
	listeners map[string]string         // by host:port as dialled
	handlers  map[string]*http.ServeMux // by host:port as dialled
	closed    map[string]bool           // nobody listens there
	contacted []string                  // host:port as dialled
}

func newInternet(t *testing.T) *internet {
	n := &internet{origins: map[string]string{}, listeners: map[string]string{}, handlers: map[string]*http.ServeMux{}, closed: map[string]bool{}}
	for _, name := range placeholders {
		n.origins[name] = "http://" + n.listen(t, "")
	}
	return n
}

// listen opens a host under the name it will be dialled by, or under its own.
func (n *internet) listen(t *testing.T, as string) string {
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	addr := s.Listener.Addr().String()
	if as == "" {
		as = addr
	}
	n.listeners[as], n.handlers[as] = addr, mux
	return as
}

func (n *internet) replacer() *strings.Replacer {
	var pairs []string
	for name, origin := range n.origins {
		pairs = append(pairs, "{{"+name+"}}", origin)
	}
	return strings.NewReplacer(pairs...)
}

// serve makes an origin answer an exchange at a path.
func (n *internet) serve(t *testing.T, origin, path string, e *exchange) {
	t.Helper()
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		t.Fatalf("the fixture serves %q, which is no origin", origin)
	}
	if n.handlers[u.Host] == nil {
		n.listen(t, u.Host) // a literal origin
	}
	n.closed[u.Host] = e.TransportError
	n.handlers[u.Host].Handle(path, e)
}

func (n *internet) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.contacted = append(n.contacted, addr)
	to, known := n.listeners[addr]
	n.mu.Unlock()
	if !known || n.closed[addr] {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

func (n *internet) reached(placeholder string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.contacted, strings.TrimPrefix(n.origins[placeholder], "http://"))
}

// foreign returns the hosts that were contacted and are none of the fixture's.
func (n *internet) foreign() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.contacted), func(addr string) bool { return n.listeners[addr] != "" })
}

// The vendor's own policy: a fallback server, Launchpad, that is taken when a resource names no other. It is never chosen
// among those named, and never taken once another was.

var errOnlyLaunchpad = errors.New("the resource names nobody but the fallback server")

// choose takes the only server that is not Launchpad.
func (n *internet) choose(servers []string) (string, error) {
	others := slices.DeleteFunc(servers, n.isLaunchpad)
	switch len(others) {
	case 0:
		return "", errOnlyLaunchpad
	case 1:
		return others[0], nil
	}
	return "", auth.ErrSeveralServers
}

// isLaunchpad compares origins; what has more than an origin is somebody else, however alike it looks.
func (n *internet) isLaunchpad(server string) bool {
	u, err := url.Parse(server)
	return err == nil && (u.Path == "" || u.Path == "/") && strings.TrimSuffix(strings.ToLower(server), "/") == n.origins["LAUNCHPAD_ORIGIN"]
}

// result is what an operation came to, in the vendor's words.
type result struct {
	outcome, issuer, fallback, err, category string
}

func (n *internet) run(ctx context.Context, t *testing.T, c oauthFixture) result {
	client := &http.Client{Transport: &http.Transport{DialContext: n.dial}}
	d := auth.Discovery{HTTPClient: client, OriginRoot: true, ExpectedIssuer: c.ExpectedIssuer, Choose: n.choose}
	switch c.Operation {
	case "discover":
		m, err := d.Issuer(ctx, c.IssuerOrigin)
		if err == nil {
			err = m.For(auth.GrantRefreshToken) // without a token endpoint there is no grant at all
		}
		if err != nil {
			return raised(t, err, false)
		}
		return result{outcome: "selected", issuer: m.Issuer}
	case "discoverProtectedResource":
		m, err := d.ProtectedResource(ctx, c.ResourceOrigin)
		if err != nil {
			return raised(t, err, false)
		}
		return result{outcome: "selected", issuer: m.Resource}
	case "discoverFromResource":
		m, err := d.Resource(ctx, c.ResourceOrigin)
		if err == nil {
			err = m.For(auth.GrantRefreshToken)
		}
		if err == nil {
			return result{outcome: "selected", issuer: m.Issuer}
		}
		why := soft(err, c.ExpectedIssuer != "")
		if why == "" {
			return raised(t, err, true)
		}
		m, err = d.Issuer(ctx, n.origins["LAUNCHPAD_ORIGIN"])
		if err != nil {
			t.Fatalf("the fallback server: %v", err)
		}
		return result{outcome: "fallback", issuer: m.Issuer, fallback: why}
	}
	t.Fatalf("the operation %q is unknown", c.Operation)
	return result{}
}

// soft returns the reason for falling back, or "". Everything that goes wrong with the resource's own document is one.
func soft(err error, expected bool) string {
	e, ok := errors.AsType[*auth.DiscoveryError](err)
	switch {
	case !ok || e.Hop != auth.HopResource || errors.Is(err, auth.ErrIdentifier):
		return ""
	case errors.Is(err, auth.ErrServersAbsent), errors.Is(err, auth.ErrServersEmpty), errors.Is(err, errOnlyLaunchpad):
		if expected {
			return "" // whoever expects a server does not want another
		}
		return "no_as_advertised"
	case errors.Is(err, auth.ErrUnreachable), errors.Is(err, auth.ErrNoMetadata), errors.Is(err, auth.ErrInvalidMetadata),
		errors.Is(err, auth.ErrOversizedMetadata), errors.Is(err, auth.ErrMismatch), errors.Is(err, auth.ErrRefusedAddress):
		return "resource_discovery_failed"
	}
	return ""
}

// raised puts an error into the vendor's words. orchestrated is true when a server had been selected by then.
func raised(t *testing.T, err error, orchestrated bool) result {
	e, ok := errors.AsType[*auth.DiscoveryError](err)
	if !ok {
		t.Fatalf("the error is %T: %v", err, err)
	}
	r := result{outcome: "raise", category: "api_error"}
	switch {
	case errors.Is(err, auth.ErrSeveralServers):
		r.err = "ambiguous_issuers"
	case errors.Is(err, auth.ErrNotAdvertised), errors.Is(err, auth.ErrServersAbsent), errors.Is(err, auth.ErrServersEmpty):
		r.err = "expected_issuer_unavailable"
	case e.Reason == auth.ErrIdentifier:
		r.err, r.category = "usage", "usage"
	case e.Reason == auth.ErrServerIdentifier:
		r.err = "invalid_issuer_origin"
	case e.Reason == auth.ErrMismatch && e.Hop == auth.HopIssuer:
		r.err = "issuer_mismatch"
	case e.Reason == auth.ErrInvalidMetadata, e.Reason == auth.ErrMissingEndpoint:
		r.err = "invalid_metadata"
	case orchestrated:
		r.err = "as_fetch_failed"
	default:
		r.err = "api_error"
		if e.Reason == auth.ErrUnreachable {
			r.category = "network"
		}
	}
	return r
}

func TestOAuth(t *testing.T) {
	var n *internet
	replace := func(t *testing.T) *strings.Replacer {
		n = newInternet(t)
		return n.replacer()
	}
	conformance.Run(t, "oauth", replace, func(t *testing.T, c oauthFixture) {
		launchpad := n.origins["LAUNCHPAD_ORIGIN"]
		n.serve(t, launchpad, hop2Path, &exchange{Body: json.RawMessage(fmt.Sprintf(`{"issuer":%q,"token_endpoint":%q}`, launchpad, launchpad+"/token"))})
		if c.Hop1 != nil {
			n.serve(t, c.ResourceOrigin, hop1Path, c.Hop1)
		}
		if c.Hop2 != nil {
			origin := c.Hop2.Origin
			if origin == "" {
				origin = n.origins["BC5_ISSUER"]
			}
			if origin != launchpad {
				n.serve(t, origin, hop2Path, c.Hop2)
			}
		}

		got := n.run(t.Context(), t, c)
		want := c.Expect
		if got.outcome != want.Outcome || got.fallback != want.FallbackReason || got.err != want.Error {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if want.SelectedIssuer != "" && got.issuer != want.SelectedIssuer {
			t.Errorf("selected %q, want %q", got.issuer, want.SelectedIssuer)
		}
		if want.ErrorCategory != "" && got.category != want.ErrorCategory {
			t.Errorf("the error is of the category %q, want %q", got.category, want.ErrorCategory)
		}
		if want.LaunchpadContacted != nil && n.reached("LAUNCHPAD_ORIGIN") != *want.LaunchpadContacted {
			t.Errorf("the fallback server was contacted: %v", n.contacted)
		}
		if got.err == "usage" && len(n.contacted) != 0 {
			t.Errorf("contacted %v before the identifier was refused", n.contacted)
		}
		if foreign := n.foreign(); len(foreign) != 0 {
			t.Errorf("foreign hosts were contacted: %v", foreign)
		}
	})
}
