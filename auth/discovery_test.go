package auth_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

func TestIssuerDocuments(t *testing.T) {
	const as = "https://as.test"
	html := body("text/html; charset=utf-8", "<html>our application</html>")
	good := func(issuer string) map[string]any { return metadataOf(issuer) }
	tests := []struct {
		name   string
		issuer string
		docs   documents
		asked  int
		want   discoveryFailure
	}{
		{"RFC 8414", as, documents{serverPath: good(as), openIDPath: status(500)}, 1, discoveryFailure{}},
		{"OpenID Connect", as, documents{openIDPath: good(as)}, 2, discoveryFailure{}},
		{"RFC 8414 with a path", as + "/realms/x", documents{serverPath + "/realms/x": good(as + "/realms/x")}, 1, discoveryFailure{}},
		{"OpenID Connect with a path", as + "/api/oidc", documents{"/api/oidc" + openIDPath: good(as + "/api/oidc")}, 2, discoveryFailure{}},
		{"OpenID Connect by path insertion", as + "/t", documents{openIDPath + "/t": good(as + "/t")}, 3, discoveryFailure{}},
		{"the origin's document is not the path's", as + "/t", documents{serverPath: good(as)}, 3, discoveryFailure{auth.ErrNoMetadata, auth.HopIssuer, "", 404}},
		{"a page instead of a document", as, documents{serverPath: html, openIDPath: good(as)}, 2, discoveryFailure{}},
		{"a way to log in instead of a document", as, documents{serverPath: status(302, "Location", "/login"), openIDPath: good(as)}, 2, discoveryFailure{}},
		{"forbidden, and there is another", as, documents{serverPath: status(403), openIDPath: good(as)}, 2, discoveryFailure{}},
		{"nothing", as, documents{}, 2, discoveryFailure{auth.ErrNoMetadata, auth.HopIssuer, "", 404}},
		{"nothing but pages", as, documents{serverPath: html, openIDPath: html}, 2, discoveryFailure{auth.ErrInvalidMetadata, auth.HopIssuer, "", 0}},
		{"the redirect says more than the 404", as, documents{openIDPath: status(301, "Location", "https://elsewhere.test/")}, 2, discoveryFailure{auth.ErrNoMetadata, auth.HopIssuer, "", 301}},
		{"500 is the end", as, documents{serverPath: status(500), openIDPath: good(as)}, 1, discoveryFailure{auth.ErrNoMetadata, auth.HopIssuer, "", 500}},
		{"429 is the end", as, documents{serverPath: status(429), openIDPath: good(as)}, 1, discoveryFailure{auth.ErrNoMetadata, auth.HopIssuer, "", 429}},
		{"408 is the end", as, documents{serverPath: status(408), openIDPath: good(as)}, 1, discoveryFailure{auth.ErrNoMetadata, auth.HopIssuer, "", 408}},
		{"201 is no 200", as, documents{serverPath: status(201)}, 1, discoveryFailure{auth.ErrNoMetadata, auth.HopIssuer, "", 201}},
		{"a document that is wrong is the end", as, documents{serverPath: good("https://other.test"), openIDPath: good(as)}, 1, discoveryFailure{auth.ErrMismatch, auth.HopIssuer, "", 0}},
		{"JSON whatever it is called", as, documents{serverPath: body("application/octet-stream", `{"issuer":"https://as.test"}`)}, 1, discoveryFailure{}},
		{"JSON called a form", as, documents{serverPath: body("application/x-www-form-urlencoded", `{"issuer":"https://as.test"}`)}, 1, discoveryFailure{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				p := newPublished(t)
				p.serve(t, "as.test", tt.docs)
				p.serve(t, "elsewhere.test", documents{"/": good(as)})
				d := auth.Discovery{HTTPClient: p.client()}
				m, err := d.Issuer(t.Context(), tt.issuer)
				if got := failureOf(t, err); got != tt.want {
					t.Errorf("got %+v (%v), want %+v", got, err, tt.want)
				}
				if err == nil && m.Issuer != tt.issuer {
					t.Errorf("the issuer is %q", m.Issuer)
				}
				if asked := p.asked(); len(asked) != tt.asked || strings.Contains(fmt.Sprint(asked), "elsewhere") {
					t.Errorf("asked for %v, want %d", asked, tt.asked)
				}
			})
		})
	}
}

// TestIdentifierBinding compares code point by code point, but for the one concession.
func TestIdentifierBinding(t *testing.T) {
	tests := []struct {
		asked, says string
		same        bool
	}{
		{"https://as.test", "https://as.test", true},
		{"https://as.test/", "https://as.test/", true},
		{"https://as.test", "https://as.test/", true},
		{"https://as.test/", "https://as.test", true},
		{"https://as.test", "https://as.test//", false},
		{"https://as.test", "https://AS.test", false},
		{"https://as.test", "HTTPS://as.test", false},
		{"https://as.test", "https://as.test:443", false},
		{"https://as.test", "https://as.test.", false},
		{"https://as.test", "http://as.test", false},
		{"https://as.test", " https://as.test", false},
		{"https://as.test", "https://as.test\u200b", false},
		{"https://as.test", "https://as.test?", false},
		{"https://as.test", "https://impostor.test", false},
		{"https://as.test/a", "https://as.test/a", true},
		{"https://as.test/a", "https://as.test/a/", false},
		{"https://as.test/a/", "https://as.test/a", false},
		{"https://as.test/a", "https://as.test/A", false},
		{"https://as.test/a", "https://as.test", false},
		{"https://as.test/%61", "https://as.test/a", false},
		{"https://as.test/%c3%a9", "https://as.test/%C3%A9", false},
		{"https://as.test/a", "https://canary:canary@as.test/a?canary", false},
	}
	for _, tt := range tests {
		fakes.Bubble(t, noon, func(t *testing.T) {
			p := newPublished(t)
			answer := body("application/json", fmt.Sprintf(`{"issuer":%q,"resource":%q,"authorization_servers":[]}`, tt.says, tt.says))
			all := documents{}
			for _, path := range []string{serverPath, resourcePath} {
				for _, under := range []string{"", "/a", "/A", "/%61", "/%c3%a9"} {
					all[path+under] = answer
				}
			}
			p.serve(t, "as.test", all)
			d := auth.Discovery{HTTPClient: p.client()}
			_, hop2 := d.Issuer(t.Context(), tt.asked)
			_, hop1 := d.ProtectedResource(t.Context(), tt.asked)
			for _, err := range []error{hop1, hop2} {
				if (err == nil) != tt.same || err != nil && !errors.Is(err, auth.ErrMismatch) {
					t.Errorf("asked for %q and told %q: %v", tt.asked, tt.says, err)
				}
				if err != nil && strings.Contains(err.Error(), "canary") {
					t.Errorf("the error repeats what it must not: %v", err)
				}
			}
		})
	}
}

func TestDocumentSizes(t *testing.T) {
	const limit = 1 << 20
	padded := func(size int) string {
		head, tail := `{"issuer":"https://as.test","padding":"`, `"}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	zipped := func(text string) http.HandlerFunc {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, text)
		z.Close()
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(b.Bytes())
		}
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		for {
			lasts(r, time.Millisecond)
			w.Write(bytes.Repeat([]byte(" "), 1<<16))
		}
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"issuer":"https://as.test"}`)
	}
	tests := []struct {
		name string
		doc  http.HandlerFunc
		want auth.DiscoveryReason
	}{
		{"as large as may be", body("application/json", padded(limit)), ""},
		{"a byte more", body("application/json", padded(limit+1)), auth.ErrOversizedMetadata},
		{"small on the wire", zipped(padded(limit)), ""},
		{"small on the wire alone", zipped(padded(8 * limit)), auth.ErrOversizedMetadata},
		{"endless", endless, auth.ErrOversizedMetadata},
		{"cut short", cut, auth.ErrUnreachable},
		{"empty", body("application/json", ""), auth.ErrInvalidMetadata},
		{"an array", body("application/json", `[{"issuer":"https://as.test"}]`), auth.ErrInvalidMetadata},
		{"two values", body("application/json", `{"issuer":"https://as.test"}{}`), auth.ErrInvalidMetadata},
		{"null", body("application/json", `null`), auth.ErrInvalidMetadata},
		{"no JSON", body("application/json", `issuer: https://as.test`), auth.ErrInvalidMetadata},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakes.Bubble(t, noon, func(t *testing.T) {
				p := newPublished(t)
				p.serve(t, "as.test", documents{serverPath: tt.doc})
				d := auth.Discovery{HTTPClient: p.client()}
				_, err := d.Issuer(t.Context(), "https://as.test")
				if got := failureOf(t, err).reason; got != tt.want {
					t.Errorf("got %q (%v), want %q", got, err, tt.want)
				}
			})
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		fakes.Bubble(t, noon, func(t *testing.T) {
			p := newPublished(t)
			redirect := status(code, "Location", "https://attacker.test"+serverPath)
			p.serve(t, "as.test", documents{serverPath: redirect, openIDPath: redirect, resourcePath: redirect})
			p.serve(t, "attacker.test", documents{serverPath: metadataOf("https://as.test")})
			client := p.client()
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
			d := auth.Discovery{HTTPClient: client}
			_, err := d.Issuer(t.Context(), "https://as.test")
			if got, want := failureOf(t, err), (discoveryFailure{auth.ErrNoMetadata, auth.HopIssuer, "", code}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			_, err = d.Resource(t.Context(), "https://as.test")
			if got, want := failureOf(t, err), (discoveryFailure{auth.ErrNoMetadata, auth.HopResource, "", code}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if hosts := p.hosts(); !slices.Equal(hosts, []string{"as.test:443"}) {
				t.Errorf("dialled %v", hosts)
			}

			p.serve(t, "token.test", documents{serverPath: metadataOf("https://token.test"), "/token": redirect})
			m, err := d.Issuer(t.Context(), "https://token.test")
			if err != nil {
				t.Fatal(err)
			}
			res, err := m.HTTPClient().PostForm(m.TokenEndpoint, nil)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != code {
				t.Errorf("status %d", res.StatusCode)
			}
			m.HTTPClient().CloseIdleConnections()
		})
	}
}
