package requests_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/requests"
)

func TestTLSOnly(t *testing.T) {
	tests := []struct {
		url string
		ok  bool
	}{
		{"https://api.test/", true},
		{"http://api.test/", false},
		{"http://10.0.0.1/", false},
		{"http://localhost.evil.test/", false},
		{"http://evillocalhost/", false},
		{"http://127.0.0.1.evil.test/", false},
		{"http://[::2]/", false},
		{"ftp://api.test/", false},
		{"unix:///var/run/x", false},
		{"http://localhost:8080/", true},
		{"http://a.LocalHost/", true},
		{"http://127.0.0.1:1/", true},
		{"http://127.1.2.3/", true},
		{"http://[::1]:1/", true},
		{"http://[::ffff:127.0.0.1]/", true},
	}
	for _, tt := range tests {
		b := &base{replies: statusReplies(200)}
		req, err := http.NewRequest("GET", tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = trip(&requests.Transport{Base: b}, req)
		if e, typed := errors.AsType[*requests.Error](err); (err == nil) != tt.ok || len(b.sent) > 0 != tt.ok || err != nil && (!typed || e.Code != requests.CodeUsage) {
			t.Errorf("%s: %v after %d attempts", tt.url, err, len(b.sent))
		}
		if req.URL.Scheme == "http" && !tt.ok && !errors.Is(err, requests.ErrInsecure) {
			t.Errorf("%s: %v is no ErrInsecure", tt.url, err)
		}
	}
}

func TestOrigin(t *testing.T) {
	for _, tt := range []struct {
		origin, url string
		given       bool
	}{
		{"", "https://anything.test/", true},
		{"https://api.test", "https://api.test/x", true},
		{"https://api.test/", "https://API.test:443/x", true},
		{"https://api.test:443", "https://api.test/x", true},
		{"https://api.test", "https://api.test:8443/x", false},
		{"https://api.test", "https://www.api.test/x", false},
		{"https://api.test", "https://api.test.evil.test/x", false},
		{"http://localhost", "https://localhost/x", false},
		{"http://localhost:80", "http://localhost/x", true},
	} {
		b := &base{replies: statusReplies(200)}
		req, err := http.NewRequest("GET", tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr := &requests.Transport{Base: b, Origin: tt.origin, Tokens: oauth2.StaticTokenSource(token("s"))}
		if _, err := trip(tr, req); err != nil {
			t.Fatal(err)
		}
		if given := b.sent[0].header.Get("Authorization") != ""; given != tt.given {
			t.Errorf("origin %q: %s was given credentials: %v", tt.origin, tt.url, given)
		}
	}
	for _, bad := range []string{"api.test", "https://", "https://u:s3cret@api.test", "https://api.test/v1", "https://api.test?x", "http://api.test", ":"} {
		b := &base{replies: statusReplies(200)}
		if _, err := trip(&requests.Transport{Base: b, Origin: bad}, get()); err == nil || len(b.sent) > 0 {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Authorization does not cross to another origin, whoever attached it, and does not come back from there.
func TestRedirects(t *testing.T) {
	const (
		a     = "https://api.test"
		sub   = "https://sub.api.test"
		port  = "https://api.test:8443"
		local = "http://localhost"
	)
	tests := []struct {
		name   string
		origin string
		chain  []string
		want   []bool
	}{
		{"within an origin", "", []string{a, a, a}, []bool{true, true, true}},
		{"to a subdomain", "", []string{a, sub}, []bool{true, false}},
		{"to a port", "", []string{a, port}, []bool{true, false}},
		{"to plain http", "", []string{"https://localhost", local}, []bool{true, false}},
		{"to plain http on the same port", "", []string{"https://localhost:1", local + ":1"}, []bool{true, false}},
		{"there and back", "", []string{a, sub, a}, []bool{true, false, false}},
		{"to the origin", a, []string{sub, a}, []bool{false, false}},
		{"from the origin", a, []string{a, sub}, []bool{true, false}},
	}
	for _, tt := range tests {
		for _, own := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				var given []bool
				var referers []string
				n := 0
				base := roundTripper(func(req *http.Request) (*http.Response, error) {
					given = append(given, req.Header.Get("Authorization") != "")
					referers = append(referers, req.Header.Get("Referer"))
					resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
					if n++; n < len(tt.chain) {
						resp.StatusCode = 302
						resp.Header.Set("Location", tt.chain[n]+"/x?sig=s3cret")
					}
					return resp, nil
				})
				tr := &requests.Transport{Base: base, Origin: tt.origin}
				req, err := http.NewRequestWithContext(t.Context(), "GET", tt.chain[0]+"/?sig=s3cret", nil)
				if err != nil {
					t.Fatal(err)
				}
				want := tt.want
				if own {
					req.Header.Set("Authorization", "Basic b3du")
					if want = slices.Clone(want); tt.origin != "" {
						want[0] = true // the caller's own, where the caller sends it
					}
				} else {
					tr.Tokens = oauth2.StaticTokenSource(token("s"))
				}
				resp, err := (&http.Client{Transport: tr}).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if !slices.Equal(given, want) {
					t.Errorf("own %v: credentials were sent %v, want %v", own, given, want)
				}
				for i, referer := range referers {
					if referer != "" && !want[i] {
						t.Errorf("request %d had the Referer %s", i, referer)
					}
				}
			})
		}
	}
}

// net/http sends the names of fields as they are in the map, and reads them whatever their case.
func TestSpelledOtherwise(t *testing.T) {
	var headers []http.Header
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		headers = append(headers, req.Header.Clone())
		resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
		if len(headers) == 1 {
			resp.StatusCode = 307
			resp.Header.Set("Location", "https://api.test:8443/")
		}
		return resp, nil
	})
	req := request(requests.WithIdempotencyKey(t.Context(), "context"), "POST", "/", "x")
	req.Header["authorization"] = []string{"Basic b3du"}
	req.Header["idempotency-key"] = []string{"own"}
	resp, err := (&http.Client{Transport: &requests.Transport{Base: base, Tokens: fixed{}}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	fields := func(h http.Header, name string) (all []string) {
		for is, values := range h {
			if strings.EqualFold(is, name) {
				all = append(all, values...)
			}
		}
		return all
	}
	for i, want := range [][]string{{"Bearer f"}, nil} {
		if got := fields(headers[i], "Authorization"); !slices.Equal(got, want) {
			t.Errorf("request %d was sent with the credentials %q, want %q", i+1, got, want)
		}
	}
	if got := fields(headers[0], "Idempotency-Key"); !slices.Equal(got, []string{"own"}) {
		t.Errorf("sent the keys %q, and the request had one", got)
	}
}

// Of a redirect that does not say where it came from, nobody knows whether it stayed.
func TestRedirectFromNowhere(t *testing.T) {
	b := &base{replies: statusReplies(200)}
	req := get()
	req.Response = &http.Response{}
	if _, err := trip(&requests.Transport{Base: b, Tokens: fixed{}}, req); err != nil || b.sent[0].header.Get("Authorization") != "" {
		t.Errorf("%v, sent %v", err, b.sent[0].header)
	}
}

// An idempotency key is for the origin that the request was made for.
func TestKeyDoesNotCross(t *testing.T) {
	var keys []string
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		keys = append(keys, req.Header.Get("Idempotency-Key"))
		resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
		if len(keys) == 1 {
			resp.StatusCode = 307
			resp.Header.Set("Location", "https://other.test/")
		}
		return resp, nil
	})
	ctx := requests.WithIdempotencyKey(context.Background(), "k")
	resp, err := (&http.Client{Transport: &requests.Transport{Base: base}}).Do(request(ctx, "POST", "/", "x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !slices.Equal(keys, []string{"k", ""}) {
		t.Errorf("keys %q", keys)
	}
}
