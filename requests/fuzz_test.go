package requests_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/heed-sdk/heed/requests"
)

func FuzzErrorBody(f *testing.F) {
	for _, body := range []string{
		"", "null", "{}", "[]", `"x"`, `{"error":"x"}`, `{"message":"x","error_description":"y"}`,
		`{"errors":{"a":["b",1,null]}}`, `{"a":["b"],"c":["d"]}`, `{"error":` + strings.Repeat("[", 50), "{\"error\":\"\xff\xfe\"}",
	} {
		f.Add(422, "application/json", body)
		f.Add(503, "application/problem+json", body)
	}
	f.Fuzz(func(t *testing.T, status int, contentType, body string) {
		if status = status % 600; status < 400 {
			return
		}
		b := &base{replies: []reply{{status: status, body: body, header: http.Header{"Content-Type": {contentType}}}}}
		c, err := requests.NewClient(api, &requests.Transport{Base: b, MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(get())
		e, ok := errors.AsType[*requests.Error](err)
		switch {
		case !ok || e.Status != status:
			t.Fatalf("%v", err)
		case e.Message == "" || len(e.Message) > 500 || !utf8.ValidString(e.Message):
			t.Errorf("the message is %q", e.Message)
		case e.FieldErrors != nil && (len(e.FieldErrors) == 0 || status != 400 && status != 422):
			t.Errorf("field errors %v", e.FieldErrors)
		case !b.answers[0].closed:
			t.Error("the body was not closed")
		}
	})
}

func FuzzFileName(f *testing.F) {
	for _, d := range []string{
		"", `attachment; filename="a.txt"`, `attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd`,
		`attachment; filename="..\\..\\a"`, `inline; filename=.`, "x; filename*0=a; filename*1=b", `a; filename="` + strings.Repeat("é", 300) + `"`,
	} {
		f.Add(d, "/path/to/file.bin")
		f.Add(d, "/../..")
	}
	f.Fuzz(func(t *testing.T, disposition, path string) {
		b := &base{replies: []reply{{status: 200, header: http.Header{"Content-Disposition": {disposition}}}}}
		c, err := requests.NewClient(api, &requests.Transport{Base: b})
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Download(context.Background(), path)
		if err != nil {
			return // no URL
		}
		d.Body.Close()
		name := d.FileName
		bad := strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) })
		if name == "" || bad || len(name) > 255 || !utf8.ValidString(name) || strings.Trim(name, ".") == "" || !filepath.IsLocal(name) {
			t.Errorf("%q of %q is %q", disposition, path, name)
		}
	})
}
