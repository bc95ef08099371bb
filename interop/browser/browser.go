// Package browser is the user's browser in miniature: it follows redirects, keeps cookies, and reads and submits HTML
// forms. It runs no scripts; a page that submits itself by script is submitted by whoever drives it.
package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// maxPage bounds what is read of one page.
const maxPage = 1 << 20

// Browser holds one user's cookies. Every approval takes a new one, so that nobody is logged in already.
type Browser struct {
	client *http.Client
}

// New returns a browser with an empty cookie jar and connections of its own.
func New() *Browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // only an invalid option can fail, and there is none
	}
	return &Browser{client: &http.Client{
		Jar: jar,
		// Nothing is kept alive: a server that is closed at the end of a test waits for no idle connection of ours.
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
}

// Open gets the page at address.
func (b *Browser) Open(ctx context.Context, address string) (*Page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	return b.do(req)
}

// Submit sends the form with the fields it holds now.
func (b *Browser) Submit(ctx context.Context, f *Form) (*Page, error) {
	target := *f.Action
	if f.Method == http.MethodGet {
		target.RawQuery = f.Fields.Encode()
		return b.Open(ctx, target.String())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(f.Fields.Encode()))
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

func (b *Browser) do(req *http.Request) (*Page, error) {
	req.Header.Set("Accept", "text/html")
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		return nil, fmt.Errorf("browser: %s %s: %s", req.Method, resp.Request.URL.Path, resp.Status)
	}
	root, err := html.Parse(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		return nil, fmt.Errorf("browser: %s: %w", resp.Request.URL.Path, err)
	}
	return newPage(resp.Request.URL, root), nil
}

// Page is what the user sees after the last redirect.
type Page struct {
	URL   *url.URL
	Text  string  // the visible text, with runs of white space collapsed
	Forms []*Form // in the order of the document
}

// Form returns the first form that has all the named fields, or nil.
func (p *Page) Form(fields ...string) *Form {
forms:
	for _, f := range p.Forms {
		for _, name := range fields {
			if !f.Fields.Has(name) {
				continue forms
			}
		}
		return f
	}
	return nil
}

// Form is one form, as a browser would submit it. Fields may be edited before that.
type Form struct {
	Action *url.URL
	Method string
	Fields url.Values

	buttons map[string]string
}

// Press adds the named submit button to the fields, as a click on it does, and reports whether the form has it.
func (f *Form) Press(name string) bool {
	value, ok := f.buttons[name]
	if ok {
		f.Fields.Set(name, value)
	}
	return ok
}
