package requests_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

func TestResume(t *testing.T) {
	part := func(status int, contentRange string) fakes.Answer {
		return fakes.Answer{Status: status, Body: "rest", Header: http.Header{"Content-Range": {contentRange}}}
	}
	tests := []struct {
		name   string
		answer fakes.Answer
		offset int64 // -1: an error
	}{
		{"goes on", part(206, "bytes 6-9/10"), 6},
		{"goes on, of unknown length", part(206, "bytes 6-9/*"), 6},
		{"the file has changed", fakes.Answer{Body: "other"}, 0},
		{"another part", part(206, "bytes 0-9/10"), -1},
		{"no part", part(206, ""), -1},
		{"the file is shorter", part(416, "bytes */3"), -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			twoHops(t, []fakes.Answer{to("https://files.test/f")}, []fakes.Answer{tt.answer}, func(r *rig, c *requests.Client, storage *fakes.API) {
				d, err := c.DownloadFrom(r.t.Context(), "/f", 6, `"v1"`)
				for _, got := range append(r.api.Received(), storage.Received()...) {
					if got.Header.Get("Range") != "bytes=6-" || got.Header.Get("If-Range") != `"v1"` {
						r.t.Errorf("sent %v", got.Header)
					}
				}
				if tt.offset < 0 {
					if err == nil {
						r.t.Errorf("%+v", d)
					}
					return
				}
				if err != nil {
					r.t.Fatal(err)
				}
				defer d.Body.Close()
				if d.Offset != tt.offset {
					r.t.Errorf("goes on at %d, want %d", d.Offset, tt.offset)
				}
			})
		})
	}
	c := clientOn(t, reply{status: 200})
	for _, bad := range []struct {
		offset    int64
		validator string
	}{{-1, `"v"`}, {1, ""}} {
		if _, err := c.DownloadFrom(context.Background(), "/f", bad.offset, bad.validator); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// A storage that takes no notice of If-Range sends a part of whatever file it has.
func TestResumeReplaced(t *testing.T) {
	const date, other = "Mon, 30 Nov 2026 12:00:00 GMT", "Mon, 30 Nov 2026 12:00:01 GMT"
	for _, tt := range []struct {
		name      string
		validator string
		header    http.Header // of the part
		replaced  bool
	}{
		{"the same tag", `"v1"`, http.Header{"Etag": {`"v1"`}, "Last-Modified": {other}}, false},
		{"another tag", `"v1"`, http.Header{"Etag": {`"v2"`}}, true},
		{"a weak tag is another", `"v1"`, http.Header{"Etag": {`W/"v1"`}}, true},
		{"no tag", `"v1"`, http.Header{"Last-Modified": {other}}, false},
		{"the same date", date, http.Header{"Etag": {`"v1"`}, "Last-Modified": {date}}, false},
		{"another date", date, http.Header{"Last-Modified": {other}}, true},
		{"no date", date, http.Header{"Etag": {`"v1"`}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.header.Set("Content-Range", "bytes 6-9/10")
			signed := to("https://files.test/f?sig=s3cret")
			twoHops(t, []fakes.Answer{signed, signed}, []fakes.Answer{
				{Status: 206, Body: "rest", Header: tt.header},
				{Body: "the other file", Header: http.Header{"Etag": {`"v2"`}}},
			}, func(r *rig, c *requests.Client, storage *fakes.API) {
				d, err := c.DownloadFrom(r.t.Context(), "/f", 6, tt.validator)
				if err != nil {
					r.t.Fatal(err)
				}
				defer d.Body.Close()
				body, _ := io.ReadAll(d.Body)
				if !tt.replaced {
					if d.Offset != 6 || string(body) != "rest" || len(storage.Received()) != 1 {
						r.t.Errorf("%q from %d on", body, d.Offset)
					}
					return
				}
				if d.Offset != 0 || string(body) != "the other file" || d.Validator != `"v2"` {
					r.t.Errorf("%q from %d on, with %s", body, d.Offset, d.Validator)
				}
				for hop, received := range [][]fakes.Received{r.api.Received(), storage.Received()} {
					if len(received) != 2 {
						r.t.Fatalf("hop %d was made %d times", hop+1, len(received))
					}
					if again := received[1].Header; again.Get("Range") != "" || again.Get("If-Range") != "" {
						r.t.Errorf("hop %d, again, with %v", hop+1, again)
					}
				}
			})
		})
	}
}

// A whole download that broke off twice, from a host that signs and forgets.
func TestResumeFromFileHost(t *testing.T) {
	fakes.Bubble(t, start, func(t *testing.T) {
		content := strings.Repeat("0123456789", 1000)
		files := &fakes.Files{Storage: "https://files.test", Content: map[string]string{"/report.txt": content}}
		net := fakes.NewNetwork(t)
		net.Serve(t, "api.test", files.API())
		net.Serve(t, "files.test", files.Store())
		c, err := requests.NewClient(api, &requests.Transport{Base: net.Transport(), Tokens: &source{}})
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		var validator string
		for _, n := range []int64{100, 2000, 1 << 20} {
			d, err := c.DownloadFrom(t.Context(), "/report.txt", int64(len(got)), validator)
			if err != nil {
				t.Fatal(err)
			}
			if d.Offset != int64(len(got)) || d.FileName != "report.txt" || d.Length != int64(len(content)-len(got)) {
				t.Errorf("%+v behind %d bytes", d, len(got))
			}
			data, _ := io.ReadAll(io.LimitReader(d.Body, n))
			d.Body.Close()
			got, validator = append(got, data...), d.Validator
			time.Sleep(time.Hour)
		}
		if string(got) != content {
			t.Errorf("got %d bytes that are not the file's", len(got))
		}
		for _, v := range files.Violations() {
			t.Error(v)
		}
	})
}

func TestFileName(t *testing.T) {
	for _, tt := range []struct{ disposition, path, want string }{
		{`attachment; filename="a b.txt"`, "/x", "a b.txt"},
		{`attachment; filename=plain.txt`, "/x", "plain.txt"},
		{`attachment; filename="fallback.txt"; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt`, "/x", "naïve €.txt"},
		{`inline; filename*=utf-8'en'%e2%82%ac.txt`, "/x", "€.txt"},
		{`attachment; filename="../../etc/passwd"`, "/x", "passwd"},
		{`attachment; filename="C:\\Users\\me\\evil.exe"`, "/x", "evil.exe"},
		{`attachment; filename*=UTF-8''..%2F..%2Fevil`, "/x", "evil"},
		{`attachment; filename=".."`, "/x/real.txt", "real.txt"},
		{`attachment; filename="a/"`, "/x/real.txt", "real.txt"},
		{"attachment; filename*=UTF-8''a%0Ab%1B%5B31m%00.txt", "/x", "ab[31m.txt"},
		{"attachment; filename*=UTF-8''ev%E2%80%AEgpj.exe", "/x", "evgpj.exe"},
		{`attachment; filename="  spaced.txt  "`, "/x", "spaced.txt"},
		{`attachment`, "/x/real.txt", "real.txt"},
		{`;;;`, "/x/real.txt", "real.txt"},
		{"", "/x/real.txt", "real.txt"},
		{"", "/x/na\u00efve.txt", "naïve.txt"},
		{"", "/x/dir/", "download"},
		{"", "", "download"},
		{"", "/..", "download"},
		{`attachment; filename="` + strings.Repeat("é", 200) + `"`, "/x", strings.Repeat("é", 127)},
	} {
		resp := reply{status: 200, header: http.Header{"Content-Disposition": {tt.disposition}}}
		c := clientOn(t, resp)
		req, err := http.NewRequest("GET", api, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Path = tt.path
		d, err := c.Download(context.Background(), req.URL.String())
		if err != nil {
			t.Fatal(err)
		}
		d.Body.Close()
		if d.FileName != tt.want {
			t.Errorf("%q of %q is %q, want %q", tt.disposition, tt.path, d.FileName, tt.want)
		}
	}
}
