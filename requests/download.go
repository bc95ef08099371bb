package requests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Download is a file on its way: its body is read from the network as the caller reads it, and the caller closes it.
// What breaks the body off is the caller's to see; DownloadFrom goes on from there.
type Download struct {
	Body        io.ReadCloser
	ContentType string
	Length      int64  // of Body; −1 when it is not known
	FileName    string // a base name without separators and control characters; never empty
	Offset      int64  // where in the file Body begins: 0, unless DownloadFrom could go on
	Validator   string // tells this version of the file from others, for DownloadFrom; empty when the server has none
}

// Download fetches a file in two hops. The first is authenticated and goes to the client's base, whatever the origin of
// the URL is; its path, query and fragment are kept. It is repeated on 429, 502, 503, 504 and failures without an
// answer. If it redirects, the second hop goes to where it points, once, without credentials, and follows no further
// redirect. Both ask for the bytes of the file as they are, uncompressed. The error is always an *Error, and never has a
// signed query in it.
//
// The context holds for the body too.
func (c *Client) Download(ctx context.Context, url string) (*Download, error) {
	return c.DownloadFrom(ctx, url, 0, "")
}

// DownloadFrom is Download from an offset, for one that broke off there, given the Validator it had. When the file has
// changed, or the server does not serve parts, Body is the whole file and Offset is 0 (RFC 9110, section 13.1.5): a server
// that takes no notice of the validator is asked once more, from the first hop and without an offset.
func (c *Client) DownloadFrom(ctx context.Context, url string, offset int64, validator string) (*Download, error) {
	switch {
	case offset < 0:
		return nil, &Error{Code: CodeUsage, Message: fmt.Sprintf("the offset %d is negative", offset)}
	case offset > 0 && validator == "":
		return nil, &Error{Code: CodeUsage, Message: "without a validator the rest may be another file's: download it from the start"}
	}
	at, err := c.fileURL(url)
	if err != nil {
		return nil, err
	}
	d, err := c.hops(ctx, at, offset, validator)
	if errors.Is(err, errReplaced) {
		return c.hops(ctx, at, 0, "")
	}
	return d, err
}

// errReplaced is a part of another file than the one that is gone on with.
var errReplaced = errors.New("requests: the file was replaced")

// hops makes both hops. The error may be errReplaced.
func (c *Client) hops(ctx context.Context, at *url.URL, offset int64, validator string) (*Download, error) {
	req := fileRequest(ctx, at, offset, validator)
	if err := c.t.admit(req); err != nil {
		return nil, failure(err)
	}
	link := &call{origin: c.base}
	first := c.t.exchange(req, link)
	p := hop()
	first.decide(p)
	resp, err := first.run("")
	if err != nil {
		return nil, failure(err)
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		c.t.drain(resp)
		next, err := target(resp, at)
		if err != nil {
			return nil, err
		}
		return c.signed(ctx, next, at, offset, validator)
	}
	if resp.StatusCode/100 == 2 {
		return file(resp, at, offset, validator)
	}
	return nil, c.refused(resp, link, &p)
}

// fileURL moves a URL to the client's origin.
func (c *Client) fileURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" {
		return nil, &Error{Code: CodeUsage, Message: "the URL of the download cannot be read: use an absolute one, or a path"}
	}
	if u.Scheme == "" && u.Host == "" {
		return c.base.ResolveReference(u), nil
	}
	u.Scheme, u.Host, u.User = c.base.Scheme, c.base.Host, nil
	return u, nil
}

func fileRequest(ctx context.Context, u *url.URL, offset int64, validator string) *http.Request {
	// Uncompressed, since only so are the length and the offsets those of the file.
	header := http.Header{"Accept-Encoding": {"identity"}}
	req := (&http.Request{Method: http.MethodGet, URL: u, Header: header}).WithContext(ctx)
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
		req.Header.Set("If-Range", validator)
	}
	return req
}

// target is where the first hop leads.
func target(resp *http.Response, from *url.URL) (*url.URL, error) {
	e := &Error{Code: CodeAPI, Status: resp.StatusCode, RequestID: requestID(resp.Header)}
	to := resp.Header.Get("Location")
	if to == "" {
		e.Message = "the download redirects with no Location to go to"
		return nil, e
	}
	u, err := from.Parse(to)
	if err != nil || u.Host == "" {
		e.Message = "the download redirects to an address that cannot be read"
		return nil, e
	}
	if err := secure(u); err != nil {
		e.Message, e.Err = "the download redirects to "+u.Scheme+"://"+u.Host+", which is not sent to: it is not https", ErrInsecure
		return nil, e
	}
	u.User = nil
	return u, nil
}

// signed is the second hop. Its address is a credential by itself, and its answers may repeat it, so that nothing of
// either is in an error.
func (c *Client) signed(ctx context.Context, to, from *url.URL, offset int64, validator string) (*Download, error) {
	p := hop()
	second := &exchange{t: c.t, req: fileRequest(ctx, to, offset, validator)}
	second.decide(plan{loop: p.loop, attempts: 1})
	resp, err := second.run("the first hop led here")
	if err != nil {
		return nil, failure(err)
	}
	if resp.StatusCode/100 == 2 {
		return file(resp, from, offset, validator)
	}
	e := newError(resp.StatusCode, resp.Header, nil)
	e.RetryAfter = c.t.asked(&p, resp.Header).Duration()
	c.t.drain(resp)
	if resp.StatusCode/100 == 3 {
		e.Message = "the signed address of the download redirects, and that is not followed"
		return nil, e
	}
	e.Message = "the signed address of the download: " + e.Message
	if e.Code == CodeAuthRequired {
		e.Hint = "" // there was nothing to log in with
	}
	return nil, e
}

// file is an answer as a download, asked for with a validator.
func file(resp *http.Response, named *url.URL, offset int64, asked string) (*Download, error) {
	d := &Download{
		Body: resp.Body, ContentType: resp.Header.Get("Content-Type"), Length: resp.ContentLength,
		FileName: fileName(resp.Header.Get("Content-Disposition"), named.Path), Validator: validator(resp),
	}
	if resp.StatusCode != http.StatusPartialContent {
		return d, nil
	}
	if start, ok := rangeStart(resp.Header.Get("Content-Range")); !ok || start != offset || offset == 0 {
		_ = resp.Body.Close()
		return nil, &Error{
			Code: CodeAPI, Status: resp.StatusCode, RequestID: requestID(resp.Header),
			Message: "the server sent another part of the file than was asked for",
		}
	}
	if replaced(resp.Header, asked) {
		_ = resp.Body.Close()
		return nil, errReplaced
	}
	d.Offset = offset
	return d, nil
}

// replaced reports whether a part is of another file than the validator is of. Not every object store looks at If-Range,
// and parts are put together only if their validators are the same (RFC 9110, section 15.3.7.3).
func replaced(h http.Header, asked string) bool {
	name := "Last-Modified"
	if strings.HasPrefix(asked, `"`) {
		name = "ETag"
	}
	is := h.Get(name)
	return is != "" && is != asked
}

// validator is what If-Range takes: a strong entity tag, or else the date (RFC 9110, section 13.1.5). What the transport
// has decompressed has other offsets than the file.
func validator(resp *http.Response) string {
	if resp.Uncompressed {
		return ""
	}
	if tag := resp.Header.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	return resp.Header.Get("Last-Modified")
}

// rangeStart reads the start of a Content-Range (RFC 9110, section 14.4).
func rangeStart(s string) (int64, bool) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	first, _, dash := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	return n, ok && dash && err == nil && n >= 0
}
