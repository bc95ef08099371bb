package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/interop/browser"
)

// The form's controls stand inside, outside and before it, and the answer depends on a cookie and on the button.
const page = `<!DOCTYPE html><title>hidden</title><style>p{}</style>
<input form="f" name="early" value="1">
<form id="f" method="post" action="../send?x=1">
 <input type="hidden" name="xsrf" value="a&amp;b"><input name="user_code"><input type="submit" name="go" value="Go">
</form>
<form action="/other"><input name="q" value="2"></form>
<p>Type   the
code</p><button form="f" name="abort" value="yes">Abort</button><button type="button" name="no" value="no">x</button>`

func TestFormsCookiesAndRedirects(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /start", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "s", Path: "/"})
		http.Redirect(w, r, "/a/form", http.StatusFound)
	})
	mux.HandleFunc("GET /a/form", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) })
	mux.HandleFunc("POST /send", func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("session"); err != nil || c.Value != "s" {
			http.Error(w, "no session", http.StatusForbidden)
			return
		}
		body := r.FormValue("x") + r.PostFormValue("early") + r.PostFormValue("xsrf") + r.PostFormValue("user_code") +
			r.PostFormValue("abort") + r.PostFormValue("go") + r.PostFormValue("no")
		http.Redirect(w, r, "/done?got="+strings.ReplaceAll(body, "&", "and"), http.StatusSeeOther)
	})
	mux.HandleFunc("GET /done", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.FormValue("got")) })
	mux.HandleFunc("GET /other", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "q="+r.FormValue("q")) })
	server := httptest.NewServer(mux)
	defer server.Close()

	b := browser.New()
	p, err := b.Open(t.Context(), server.URL+"/start")
	if err != nil {
		t.Fatal(err)
	}
	if p.URL.Path != "/a/form" || p.Text != "Type the code Abort x" || len(p.Forms) != 2 {
		t.Fatalf("page %s with text %q and %d forms", p.URL.Path, p.Text, len(p.Forms))
	}
	if p.Form("user_code", "nowhere") != nil {
		t.Fatal("found a form by a field that it does not have")
	}

	f := p.Form("user_code")
	f.Fields.Set("user_code", "WDJB")
	if f.Press("no") || f.Press("nowhere") || !f.Press("abort") {
		t.Fatal("only submit buttons can be pressed")
	}
	done, err := b.Submit(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if want := "11aandbWDJByes"; done.Text != want {
		t.Errorf("the server got %q, want %q", done.Text, want)
	}

	other, err := b.Submit(t.Context(), p.Form("q"))
	if err != nil {
		t.Fatal(err)
	}
	if other.Text != "q=2" {
		t.Errorf("a GET form sent %q", other.Text)
	}
}

func TestErrorShowsNoQuery(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := browser.New().Open(t.Context(), server.URL+"/gone?user_code=SECRET")
	if err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "/gone: 404") {
		t.Errorf("got %v", err)
	}
}
