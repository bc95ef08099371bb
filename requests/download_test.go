package requests_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

func to(location string) fakes.Answer {
	return fakes.Answer{Status: 302, Header: http.Header{"Location": {location}}}
}

// twoHops is a rig with a storage at https://files.test besides the API.
func twoHops(t *testing.T, first, second []fakes.Answer, run func(r *rig, c *requests.Client, storage *fakes.API)) {
	t.Helper()
	bubble(t, first, func(r *rig) {
		storage := fakes.NewAPI(second...)
		r.net.Serve(r.t, "files.test", storage)
		tr := r.transport()
		tr.Tokens = &source{}
		run(r, r.client(tr), storage)
		for _, v := range storage.Violations() {
			r.t.Error(v)
		}
	})
}

func TestDownload(t *testing.T) {
	file := fakes.Answer{Body: "pixels", Header: http.Header{
		"Content-Type": {"image/png"}, "Content-Disposition": {`attachment; filename="logo.png"`}, "Etag": {`"v1"`},
	}}
	twoHops(t, []fakes.Answer{{Status: 503}, to("https://files.test/abc?sig=s3cret")}, []fakes.Answer{file},
		func(r *rig, c *requests.Client, storage *fakes.API) {
			ctx := requests.WithIdempotencyKey(r.t.Context(), "k")
			d, err := c.Download(ctx, "https://elsewhere.test/blobs/7/download?disposition=inline#top")
			if err != nil {
				r.t.Fatal(err)
			}
			defer d.Body.Close()
			body, _ := io.ReadAll(d.Body)
			if string(body) != "pixels" || d.ContentType != "image/png" || d.Length != 6 || d.FileName != "logo.png" || d.Validator != `"v1"` || d.Offset != 0 {
				r.t.Errorf("%q, %+v", body, d)
			}
			r.waits(time.Second)
			for _, got := range r.api.Received() {
				if got.URL != "/blobs/7/download?disposition=inline" || got.Header.Get("Authorization") != "Bearer t1" {
					r.t.Errorf("hop 1 was %s with %v", got.URL, got.Header)
				}
			}
			got := storage.Received()[0]
			for name := range got.Header {
				if name != "User-Agent" && name != "Accept-Encoding" && name != "Connection" {
					r.t.Errorf("hop 2 had %s", name)
				}
			}
			if got.URL != "/abc?sig=s3cret" {
				r.t.Errorf("hop 2 was %s", got.URL)
			}
		})
}

func TestFirstHop(t *testing.T) {
	header := func(status int, name, value string) fakes.Answer {
		return fakes.Answer{Status: status, Header: http.Header{name: {value}}}
	}
	location := func(status int) fakes.Answer { return header(status, "Location", "https://files.test/f") }
	tests := []struct {
		name   string
		first  []fakes.Answer
		second int // requests that reach the storage
		code   requests.Code
		status int
		text   string
	}{
		{name: "301", first: []fakes.Answer{location(301)}, second: 1},
		{name: "303", first: []fakes.Answer{location(303)}, second: 1},
		{name: "307", first: []fakes.Answer{location(307)}, second: 1},
		{name: "308", first: []fakes.Answer{location(308)}, second: 1},
		{name: "300 is none", first: []fakes.Answer{location(300)}, code: requests.CodeAPI, status: 300},
		{name: "304 is none", first: []fakes.Answer{location(304)}, code: requests.CodeAPI, status: 304},
		{name: "no Location", first: statuses(307), code: requests.CodeAPI, status: 307, text: "no Location"},
		{name: "no readable Location", first: []fakes.Answer{to("https://files.test/%zz?sig=s3cret")}, code: requests.CodeAPI, status: 302},
		{name: "not https", first: []fakes.Answer{to("http://files.test/f?sig=s3cret")}, code: requests.CodeAPI, status: 302, text: "https"},
		{name: "not http at all", first: []fakes.Answer{to("file:///etc/passwd")}, code: requests.CodeAPI, status: 302},
		{name: "never 500", first: statuses(500), code: requests.CodeAPI, status: 500},
		{name: "404", first: statuses(404), code: requests.CodeNotFound, status: 404},
		{name: "all of the set", first: []fakes.Answer{{Drop: true}, retryAfter(504, "3"), location(302)}, second: 1},
		{name: "429 exhausted", first: statuses(429, 429, 429), code: requests.CodeRateLimit, status: 429},
		{name: "drops exhausted", first: statuses(0, 0, 0), code: requests.CodeNetwork},
		{name: "401, then renewed", first: []fakes.Answer{{Status: 401}, location(302)}, second: 1},
		{name: "the file itself", first: []fakes.Answer{{Status: 200, Body: "pixels"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			twoHops(t, tt.first, []fakes.Answer{{Body: "pixels"}}, func(r *rig, c *requests.Client, storage *fakes.API) {
				d, err := c.Download(r.t.Context(), api+"/f")
				if n := len(storage.Received()); n != tt.second {
					r.t.Errorf("%d requests reached the storage, want %d", n, tt.second)
				}
				if n := len(r.api.Received()); n != len(tt.first) {
					r.t.Errorf("%d requests reached the API, want %d", n, len(tt.first))
				}
				if tt.code == "" {
					if err != nil {
						r.t.Fatal(err)
					}
					defer d.Body.Close()
					if body, err := io.ReadAll(d.Body); string(body) != "pixels" || err != nil {
						r.t.Errorf("%q, %v", body, err)
					}
					return
				}
				e, ok := errors.AsType[*requests.Error](err)
				if !ok || e.Code != tt.code || e.Status != tt.status || !strings.Contains(e.Message, tt.text) || strings.Contains(err.Error(), "s3cret") {
					r.t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestSecondHop(t *testing.T) {
	tests := []struct {
		name   string
		answer fakes.Answer
		code   requests.Code
		status int
		text   string
	}{
		{name: "503", answer: retryAfter(503, "1"), code: requests.CodeAPI, status: 503},
		{name: "drop", answer: fakes.Answer{Drop: true}, code: requests.CodeNetwork},
		{name: "403", answer: fakes.Answer{Status: 403, Body: `{"error":"bad signature s3cret"}`}, code: requests.CodeForbidden, status: 403},
		{name: "401", answer: fakes.Answer{Status: 401}, code: requests.CodeAuthRequired, status: 401},
		{name: "302", answer: to("https://api.test/further?sig=s3cret"), code: requests.CodeAPI, status: 302, text: "redirects"},
		{name: "302 without Location", answer: fakes.Answer{Status: 302}, code: requests.CodeAPI, status: 302, text: "redirects"},
		{name: "206 unasked", answer: fakes.Answer{Status: 206, Header: http.Header{"Content-Range": {"bytes 0-5/6"}}}, code: requests.CodeAPI, status: 206},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first := []fakes.Answer{to("https://user:s3cret@files.test/f?sig=s3cret")}
			twoHops(t, first, []fakes.Answer{tt.answer}, func(r *rig, c *requests.Client, storage *fakes.API) {
				_, err := c.Download(r.t.Context(), "/f")
				e, ok := errors.AsType[*requests.Error](err)
				if !ok || e.Code != tt.code || e.Status != tt.status || !strings.Contains(e.Message, tt.text) || strings.Contains(fmt.Sprintf("%v %+v", err, e), "s3cret") {
					r.t.Errorf("%v", err)
				}
				if len(storage.Received()) != 1 || len(r.api.Received()) != 1 || storage.Received()[0].Header.Get("Authorization") != "" {
					r.t.Error("more, or less, than one request each without credentials")
				}
			})
		})
	}
}

// A cap of 1 is one request of the first hop; the second is another request.
func TestDownloadBudget(t *testing.T) {
	for _, cap := range []int{0, 1} {
		twoHops(t, statuses(503), nil, func(r *rig, c *requests.Client, _ *fakes.API) {
			if _, err := c.Download(requests.WithMaxAttempts(r.t.Context(), cap), "/f"); err == nil {
				r.t.Error("no error")
			}
		})
	}
	twoHops(t, []fakes.Answer{to("https://files.test/f")}, []fakes.Answer{{Body: "x"}}, func(r *rig, c *requests.Client, _ *fakes.API) {
		d, err := c.Download(requests.WithMaxAttempts(r.t.Context(), 1), "/f")
		if err != nil {
			r.t.Fatal(err)
		}
		d.Body.Close()
	})
}

func TestDownloadURLs(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"/a/b?x=1", "/a/b?x=1"},
		{"https://evil.test/a/b", "/a/b"},
		{"http://api.test:81/a%2Fb", "/a%2Fb"},
		{"//evil.test/a", "/a"},
		{"https://u:p@evil.test/", "/"},
	} {
		twoHops(t, []fakes.Answer{{Body: "x"}}, nil, func(r *rig, c *requests.Client, _ *fakes.API) {
			d, err := c.Download(r.t.Context(), tt.url)
			if err != nil {
				r.t.Fatal(err)
			}
			d.Body.Close()
			if got := r.api.Received()[0].URL; got != tt.want {
				r.t.Errorf("%s went to %s, want %s", tt.url, got, tt.want)
			}
		})
	}
	c := clientOn(t, reply{status: 200})
	for _, bad := range []string{"https://files.test/%zz?sig=s3cret", "mailto:s3cret@x", "https://files.test:s3cret/"} {
		_, err := c.Download(context.Background(), bad)
		if e, ok := errors.AsType[*requests.Error](err); !ok || e.Code != requests.CodeUsage || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	}
}

// What a URL names before its host is no credential of ours, and goes nowhere.
func TestDownloadWithoutUserinfo(t *testing.T) {
	n := 0
	c, err := requests.NewClient(api, &requests.Transport{Base: roundTripper(func(req *http.Request) (*http.Response, error) {
		n++
		if req.URL.User != nil {
			t.Errorf("hop %d was sent to %s", n, req.URL)
		}
		resp := &http.Response{StatusCode: 302, Header: http.Header{"Location": {"https://u:p@files.test/"}}, Body: http.NoBody}
		if n == 2 {
			// Decompressed by the transport: its offsets are not the file's.
			resp = &http.Response{StatusCode: 200, Header: http.Header{"Etag": {`"v1"`}}, Body: http.NoBody, Uncompressed: true}
		}
		return resp, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Download(context.Background(), "https://u:p@elsewhere.test/f")
	if err != nil || n != 2 || d.Validator != "" {
		t.Fatalf("%+v, %v after %d requests", d, err, n)
	}
	d.Body.Close()
}

func TestDownloadDeadline(t *testing.T) {
	slow := fakes.Answer{Latency: time.Minute}
	twoHops(t, []fakes.Answer{slow}, nil, func(r *rig, c *requests.Client, _ *fakes.API) {
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
		defer cancel()
		_, err := c.Download(ctx, "/f")
		if e, ok := errors.AsType[*requests.Error](err); !ok || e.Code != requests.CodeNetwork || !errors.Is(err, context.DeadlineExceeded) {
			r.t.Errorf("%v", err)
		}
	})
}

// A host that compresses whatever may be compressed would leave a download without a length, and its rest without offsets.
func TestDownloadUncompressed(t *testing.T) {
	fakes.Bubble(t, start, func(t *testing.T) {
		content := strings.Repeat("0123456789", 1000)
		net := fakes.NewNetwork(t)
		net.Serve(t, "api.test", http.RedirectHandler("https://files.test/f", http.StatusFound))
		net.Serve(t, "files.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"v1"`)
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				http.ServeContent(w, r, "f.txt", time.Time{}, strings.NewReader(content))
				return
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, content)
			_ = z.Close()
		}))
		c, err := requests.NewClient(api, &requests.Transport{Base: net.Transport()})
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Download(t.Context(), "/f")
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(d.Body)
		d.Body.Close()
		if string(got) != content || d.Length != int64(len(content)) || d.Validator != `"v1"` {
			t.Errorf("%d bytes of %d, validator %s", len(got), d.Length, d.Validator)
		}
	})
}
