package browser

import (
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// newPage reads the text and the forms of a parsed document.
func newPage(address *url.URL, root *html.Node) *Page {
	p := &Page{URL: address}
	var words []string
	byNode := map[*html.Node]*Form{}
	byID := map[string]*Form{}
	var controls []*html.Node
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode && visible(n):
			words = append(words, strings.Fields(n.Data)...)
		case n.DataAtom == atom.Form:
			f := newForm(address, n)
			byNode[n] = f
			if id := attr(n, "id"); id != "" {
				byID[id] = f
			}
			p.Forms = append(p.Forms, f)
		case n.DataAtom == atom.Input, n.DataAtom == atom.Button:
			controls = append(controls, n)
		}
	}
	// A control may name its form and stand outside of it, even before it.
	for _, n := range controls {
		f := byID[attr(n, "form")]
		for up := n.Parent; f == nil && up != nil; up = up.Parent {
			f = byNode[up]
		}
		if f != nil {
			f.add(n)
		}
	}
	p.Text = strings.Join(words, " ")
	return p
}

func newForm(page *url.URL, n *html.Node) *Form {
	f := &Form{Action: page, Method: http.MethodGet, Fields: url.Values{}, buttons: map[string]string{}}
	if strings.EqualFold(attr(n, "method"), "post") {
		f.Method = http.MethodPost
	}
	if action := attr(n, "action"); action != "" {
		if u, err := page.Parse(action); err == nil {
			f.Action = u
		}
	}
	return f
}

func (f *Form) add(control *html.Node) {
	name, value := attr(control, "name"), attr(control, "value")
	kind := strings.ToLower(attr(control, "type"))
	switch {
	case name == "":
	case control.DataAtom == atom.Button && (kind == "" || kind == "submit"), kind == "submit":
		f.buttons[name] = value
	case control.DataAtom == atom.Input && kind != "button" && kind != "reset":
		f.Fields.Add(name, value)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func visible(text *html.Node) bool {
	switch text.Parent.DataAtom {
	case atom.Script, atom.Style, atom.Title, atom.Noscript:
		return false
	}
	return true
}
