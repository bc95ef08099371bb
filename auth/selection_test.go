package auth_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestResourceSelection(t *testing.T) {
	const one, two = "https://one.test", "https://two.test"
	first := func(servers []string) (string, error) { return servers[0], nil }
	refuse := func([]string) (string, error) { return "", errors.New("none will do") }
	invent := func([]string) (string, error) { return "https://invented.test", nil }
	tests := []struct {
		name     string
		servers  any // nil leaves the member out
		expected string
		choose   func([]string) (string, error)
		want     string
		failure  discoveryFailure
		asked    int // requests to the authorization servers
	}{
		{"the only one", []string{one}, "", nil, one, discoveryFailure{}, 1},
		{"the same one twice", []string{one, one, one + "/"}, "", nil, one, discoveryFailure{}, 1},
		{"as the resource spells it", []string{one + "/"}, "", nil, one + "/", discoveryFailure{}, 1},
		{"absent", nil, "", nil, "", discoveryFailure{auth.ErrServersAbsent, auth.HopResource, "", 0}, 0},
		{"null", http.HandlerFunc(nil), "", nil, "", discoveryFailure{auth.ErrServersAbsent, auth.HopResource, "", 0}, 0},
		{"empty", []string{}, "", nil, "", discoveryFailure{auth.ErrServersEmpty, auth.HopResource, "", 0}, 0},
		{"absent, and one expected", nil, one, first, "", discoveryFailure{auth.ErrServersAbsent, auth.HopResource, "", 0}, 0},
		{"several", []string{one, two}, "", nil, "", discoveryFailure{auth.ErrSeveralServers, auth.HopResource, "", 0}, 0},
		{"several, one of them malformed", []string{one, "https://two.test#"}, "", nil, "", discoveryFailure{auth.ErrSeveralServers, auth.HopResource, "", 0}, 0},
		{"the expected one", []string{two, one}, one, nil, one, discoveryFailure{}, 1},
		{"the expected one goes before Choose", []string{two, one}, one, first, one, discoveryFailure{}, 1},
		{"the expected one in the resource's spelling", []string{two, one + "/"}, one, nil, one + "/", discoveryFailure{}, 1},
		{"the expected one is not there", []string{one, two}, "https://three.test", first, "", discoveryFailure{auth.ErrNotAdvertised, auth.HopResource, "", 0}, 0},
		{"the expected one in another case", []string{one}, "https://ONE.test", nil, "", discoveryFailure{auth.ErrNotAdvertised, auth.HopResource, "", 0}, 0},
		{"chosen", []string{two, one}, "", first, two, discoveryFailure{}, 1},
		{"chosen though the only one", []string{one}, "", refuse, "", discoveryFailure{auth.ErrNotChosen, auth.HopResource, "", 0}, 0},
		{"chosen but not named", []string{one}, "", invent, "", discoveryFailure{auth.ErrNotAdvertised, auth.HopResource, "", 0}, 0},
		{"malformed", []string{"https://one.test?x"}, "", nil, "", discoveryFailure{auth.ErrServerIdentifier, auth.HopResource, "", 0}, 0},
		{"empty text", []string{""}, "", nil, "", discoveryFailure{auth.ErrServerIdentifier, auth.HopResource, "", 0}, 0},
		{"http", []string{"http://one.test"}, "", nil, "", discoveryFailure{auth.ErrServerIdentifier, auth.HopResource, "", 0}, 0},
		{"no array", one, "", nil, "", discoveryFailure{auth.ErrInvalidMetadata, auth.HopResource, "", 0}, 0},
		{"a number in it", []any{one, 1}, "", nil, "", discoveryFailure{auth.ErrInvalidMetadata, auth.HopResource, "", 0}, 0},
		{"null in it", []any{one, nil}, "", nil, "", discoveryFailure{auth.ErrInvalidMetadata, auth.HopResource, "", 0}, 0},
		{"the chosen one fails, and the other is not asked", []string{"https://broken.test", one}, "https://broken.test", nil, "", discoveryFailure{auth.ErrNoMetadata, auth.HopIssuer, "", 500}, 1},
		{"the chosen one is unreachable, and the other is not asked", []string{"https://nobody.test", one}, "https://nobody.test", nil, "", discoveryFailure{auth.ErrUnreachable, auth.HopIssuer, "", 0}, 0},
		{"the chosen one is another, and the other is not asked", []string{"https://liar.test", one}, "https://liar.test", nil, "", discoveryFailure{auth.ErrMismatch, auth.HopIssuer, "", 0}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				p := newPublished(t)
				doc := map[string]any{"resource": "https://api.test/v1"}
				if handler, ok := tt.servers.(http.HandlerFunc); ok && handler == nil {
					doc["authorization_servers"] = nil
				} else if tt.servers != nil {
					doc["authorization_servers"] = tt.servers
				}
				p.serve(t, "api.test", documents{resourcePath + "/v1": doc})
				p.serve(t, "one.test", documents{serverPath: metadataOf(one)})
				p.serve(t, "two.test", documents{serverPath: metadataOf(two)})
				p.serve(t, "broken.test", documents{serverPath: status(500)})
				p.serve(t, "liar.test", documents{serverPath: metadataOf(one)})
				d := auth.Discovery{HTTPClient: p.client(), ExpectedIssuer: tt.expected, Choose: tt.choose}
				m, err := d.Resource(t.Context(), "https://api.test/v1")
				if got := failureOf(t, err); got != tt.failure {
					t.Fatalf("got %+v (%v), want %+v", got, err, tt.failure)
				}
				if err == nil && (m.Issuer != tt.want || m.Resource != "https://api.test/v1") {
					t.Errorf("issuer %q, resource %q", m.Issuer, m.Resource)
				}
				if asked := p.asked(); len(asked) != 1+tt.asked {
					t.Errorf("asked for %v", asked)
				}
			})
		})
	}
}

// TestServerListsStayDistinguishable is for callers who look at the document themselves.
func TestServerListsStayDistinguishable(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		p.serve(t, "api.test", documents{
			resourcePath + "/absent": map[string]any{"resource": "https://api.test/absent", "scopes_supported": []string{"read"}},
			resourcePath + "/empty":  map[string]any{"resource": "https://api.test/empty", "authorization_servers": []string{}},
		})
		d := auth.Discovery{HTTPClient: p.client()}
		absent, err := d.ProtectedResource(t.Context(), "https://api.test/absent")
		if err != nil || absent.AuthorizationServers != nil || !slices.Equal(absent.ScopesSupported, []string{"read"}) {
			t.Errorf("%+v, %v", absent, err)
		}
		empty, err := d.ProtectedResource(t.Context(), "https://api.test/empty")
		if err != nil || empty.AuthorizationServers == nil || len(empty.AuthorizationServers) != 0 {
			t.Errorf("%+v, %v", empty, err)
		}
	})
}

func TestChooseSeesCopies(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		p := newPublished(t)
		p.serve(t, "api.test", documents{resourcePath: map[string]any{
			"resource": "https://api.test", "authorization_servers": []string{"https://one.test", "https://two.test"},
		}})
		why := errors.New("the user cancelled")
		d := auth.Discovery{HTTPClient: p.client(), Choose: func(servers []string) (string, error) {
			if !slices.Equal(servers, []string{"https://one.test", "https://two.test"}) {
				t.Errorf("asked to choose among %q", servers)
			}
			return "", why
		}}
		if _, err := d.Resource(t.Context(), "https://api.test"); !errors.Is(err, why) || !errors.Is(err, auth.ErrNotChosen) {
			t.Errorf("%v", err)
		}
	})
}
