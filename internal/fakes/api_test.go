package fakes_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

func ask(ctx context.Context, c *http.Client, method, url, body string, header ...string) (int, http.Header, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Transport.RoundTrip(req) // follows no redirect
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

func TestAPI(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		api := fakes.NewAPI(
			fakes.Answer{Status: 503, Header: http.Header{"Retry-After": {"1", "2"}}, Body: "busy", Latency: 2 * time.Second},
			fakes.Answer{Drop: true, Latency: time.Second},
			fakes.Answer{Body: "half", Cut: true},
		)
		net := fakes.NewNetwork(t)
		net.Serve(t, "api.test", api)
		c := net.Client()

		status, header, body, err := ask(t.Context(), c, "PUT", "https://api.test/x?y=1", "data", "X-Mine", "1")
		if status != 503 || len(header["Retry-After"]) != 2 || body != "busy" || err != nil {
			t.Errorf("%d, %v, %q, %v", status, header, body, err)
		}
		time.Sleep(5 * time.Second)
		if _, _, _, err := ask(t.Context(), c, "GET", "https://api.test/x", ""); err == nil {
			t.Error("a broken connection answered")
		}
		if status, _, body, err := ask(t.Context(), c, "GET", "https://api.test/x", ""); status != 200 || body != "half" || err == nil {
			t.Errorf("%d, %q, %v", status, body, err)
		}
		if v := api.Violations(); len(v) != 0 {
			t.Error(v)
		}
		if status, _, _, _ := ask(t.Context(), c, "GET", "https://api.test/beyond", ""); status != 501 || len(api.Violations()) != 1 {
			t.Errorf("%d, %q", status, api.Violations())
		}
		first := api.Received()[0]
		if first.Method != "PUT" || first.Host != "api.test" || first.URL != "/x?y=1" || string(first.Body) != "data" || first.Header.Get("X-Mine") != "1" ||
			!first.Began.Equal(noon) || !first.Ended.Equal(noon.Add(2*time.Second)) {
			t.Errorf("%+v", first)
		}
		if got := api.Waits(); !slices.Equal(got, []time.Duration{5 * time.Second, 0, 0}) {
			t.Errorf("waits %v", got)
		}
	})
}

func TestLimited(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		api := &fakes.Limited{Every: 1500 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "served")
		})}
		net := fakes.NewNetwork(t)
		net.Serve(t, "api.test", api)
		get := func(who string) (int, string) {
			status, header, _, err := ask(t.Context(), net.Client(), "GET", "https://api.test/x", "", "Authorization", who)
			if err != nil {
				t.Fatal(err)
			}
			return status, header.Get("Retry-After")
		}
		expect := func(who string, status int, after string) {
			t.Helper()
			if s, a := get(who); s != status || a != after {
				t.Errorf("%d with %q, want %d with %q", s, a, status, after)
			}
		}
		expect("secret-a", 200, "")
		expect("secret-b", 200, "") // another credential has its own time
		expect("secret-a", 429, "2")
		time.Sleep(2 * time.Second)
		expect("secret-a", 200, "")
		time.Sleep(1499 * time.Millisecond)
		expect("secret-a", 429, "1") // nobody had told it
		if v := api.Violations(); len(v) != 0 {
			t.Error(v)
		}
		time.Sleep(999 * time.Millisecond)
		expect("secret-a", 429, "1")
		if v := api.Violations(); len(v) != 1 || !strings.Contains(v[0], "came 1ms before") || strings.Contains(v[0], "secret") {
			t.Errorf("%q", v)
		}
	})
}

func TestFiles(t *testing.T) {
	fakes.Bubble(t, noon, func(t *testing.T) {
		files := &fakes.Files{Storage: "https://files.test", Content: map[string]string{"/a b.txt": "content"}}
		net := fakes.NewNetwork(t)
		net.Serve(t, "api.test", files.API())
		net.Serve(t, "files.test", files.Store())
		c := net.Client()
		const address = "https://api.test/a%20b.txt"

		if status, _, _, _ := ask(t.Context(), c, "GET", address, ""); status != 401 {
			t.Errorf("without a credential: %d", status)
		}
		if status, _, _, _ := ask(t.Context(), c, "GET", "https://api.test/other", "", "Authorization", "x"); status != 404 {
			t.Errorf("of another file: %d", status)
		}
		status, header, _, _ := ask(t.Context(), c, "GET", address, "", "Authorization", "x")
		to := header.Get("Location")
		if u, err := url.Parse(to); status != 302 || err != nil || u.Host != "files.test" || u.Path != "/a b.txt" || u.Query().Get("signature") == "" {
			t.Fatalf("%d to %s", status, to)
		}
		if status, header, body, _ := ask(t.Context(), c, "GET", to, ""); status != 200 || body != "content" || header.Get("ETag") == "" {
			t.Errorf("%d, %q", status, body)
		}
		if status, _, body, _ := ask(t.Context(), c, "GET", to, "", "Range", "bytes=4-"); status != 206 || body != "ent" {
			t.Errorf("%d, %q", status, body)
		}
		if status, _, _, _ := ask(t.Context(), c, "GET", to+"x", ""); status != 403 {
			t.Errorf("with another signature: %d", status)
		}
		if v := files.Violations(); len(v) != 0 {
			t.Error(v)
		}
		if status, _, _, _ := ask(t.Context(), c, "GET", to, "", "Authorization", "secret"); status != 400 {
			t.Errorf("with a credential: %d", status)
		}
		if v := files.Violations(); len(v) != 1 || !strings.Contains(v[0], "with Authorization") || strings.Contains(v[0], "secret") {
			t.Errorf("%q", v)
		}
		time.Sleep(61 * time.Second)
		if status, _, _, _ := ask(t.Context(), c, "GET", to, ""); status != 403 {
			t.Errorf("after a minute: %d", status)
		}
	})
}
