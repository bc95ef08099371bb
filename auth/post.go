package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// maxBody is how much of an answer is read.
const maxBody = 1 << 20

// poster sends the one kind of request that an authorization server gets: a form, by POST, to an endpoint that is not
// left. It is bounded in time and size.
type poster struct {
	transport http.RoundTripper
	timers    *delay.Timers
	id        string
	secret    string
	style     oauth2.AuthStyle
}

// reply is an answer of the server's.
type reply struct {
	status  int
	header  http.Header
	members members
	bad     error // why there are no members
	cut     error // what ended the answer before its end
}

// post sends a form with the client's id and authentication. It goes to the transport directly, which follows no
// redirect, so that a code or a token cannot be carried to another address whatever an http.Client is set up to do; a
// redirect is an answer like any other. The error is an *unanswered.
func (p *poster) post(ctx context.Context, endpoint string, form url.Values, timeout time.Duration) (*reply, error) {
	ctx, cancel := p.timers.WithTimeout(ctx, delay.KindRequestTimeout, timeout)
	defer cancel()

	form.Set("client_id", p.id)
	header := p.style == oauth2.AuthStyleInHeader || p.style == oauth2.AuthStyleAutoDetect && p.secret != ""
	if !header && p.secret != "" {
		form.Set("client_secret", p.secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, newUnanswered(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if header {
		// RFC 6749, section 2.3.1: both are form-encoded first.
		req.SetBasicAuth(url.QueryEscape(p.id), url.QueryEscape(p.secret))
	}
	// Some servers close an idle connection after 5 s, just when the next poll goes out on it.
	req.Close = true

	res, err := roundTrip(withoutPool(p.transport), req)
	if err != nil {
		return nil, newUnanswered(err)
	}
	defer res.Body.Close()
	r := &reply{status: res.StatusCode, header: res.Header}
	if r.status >= 300 && r.status < 400 {
		return r, nil // what comes with a redirect is about the way, and no OAuth error whatever it says
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if len(body) > maxBody {
		r.bad = errTooLarge
		return r, nil
	}
	if err != nil {
		r.cut = newUnanswered(err)
	}
	r.members, r.bad = readMembers(res.Header.Get("Content-Type"), body, err != nil)
	return r, nil
}

// withoutPool is a transport like another one that takes none of its idle connections either: requests to an API on the
// same host leave some.
func withoutPool(transport http.RoundTripper) http.RoundTripper {
	std, ok := transport.(*http.Transport)
	if !ok {
		return transport
	}
	own := std.Clone()
	own.DisableKeepAlives = true
	return own
}

// roundTrip sends a request as net/http's client does: of a transport of the caller's own, an answer may be without a body,
// and no answer is a failure.
func roundTrip(transport http.RoundTripper, req *http.Request) (*http.Response, error) {
	res, err := transport.RoundTrip(req)
	switch {
	case err != nil:
		return nil, err
	case res == nil:
		return nil, errors.New("auth: the transport returned neither an answer nor an error")
	case res.Body == nil:
		res.Body = http.NoBody
	}
	return res, nil
}

// unanswered is a request that got no answer. Its text is made here: those of package net/http may quote what the server
// sent, or the address with its query. So the error that it stands for can be asked about, but is not unwrapped.
type unanswered struct {
	text  string
	final bool // nothing that another attempt would change
	err   error
}

func newUnanswered(err error) *unanswered {
	u := &unanswered{err: err}
	u.text, u.final = describe(err)
	return u
}

func (u *unanswered) Error() string { return u.text }

// Is asks the error behind, except about the ends of contexts: the one that ended was the request's own, and nobody may
// take that for the caller's.
func (u *unanswered) Is(target error) bool {
	return target != context.DeadlineExceeded && target != context.Canceled && errors.Is(u.err, target)
}

// As asks the error behind.
func (u *unanswered) As(target any) bool { return errors.As(u.err, target) }

// describe says in a few words of our own why there was no answer, and whether that is final.
func describe(err error) (text string, final bool) {
	if text := distrust(err); text != "" {
		return text, true
	}
	if errors.Is(err, ErrUnavailable) {
		return "a policy refuses its address", true
	}
	if timeout, ok := errors.AsType[*delay.TimeoutError](err); ok {
		return "no answer within " + timeout.After.String(), false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "its name was not found", false
		}
		return "its name could not be resolved", false
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error(), false
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return alert.Error(), false
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS", false
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "timed out", false
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the connection was closed", false
	}
	return "the connection failed", false
}

// distrust says why a certificate did not verify, or "".
func distrust(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate was issued by nobody that this machine trusts"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for another name"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return "its certificate has expired or is not valid yet"
		}
		return "its certificate does not verify"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate does not verify"
	}
	return ""
}
