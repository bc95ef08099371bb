package requests

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
)

// final reports whether an error is none of the transport's: the request was not sent, or somebody cancelled it.
func final(err error) bool {
	if errors.Is(err, context.Canceled) {
		return true
	}
	for _, known := range []func(error) bool{is[*Error], is[*TransportFailed], is[*RateLimited]} {
		if known(err) {
			return true
		}
	}
	return false
}

// passing reports whether a failure without an answer may pass: whether it makes sense to send the request again. A
// certificate that does not verify stays so, and so does a request that cannot be written.
func passing(req *http.Request, err error) bool {
	return !final(err) && !unverified(err) && wellFormed(req)
}

func unverified(err error) bool {
	return is[*tls.CertificateVerificationError](err) || is[x509.UnknownAuthorityError](err) ||
		is[x509.HostnameError](err) || is[x509.CertificateInvalidError](err) || is[tls.RecordHeaderError](err)
}

func timeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// wellFormed reports whether a request can be written at all. http.Transport refuses others, with errors that have no
// type to know them by.
func wellFormed(req *http.Request) bool {
	if req.Method != "" && !token(req.Method) {
		return false
	}
	for name, values := range req.Header {
		if !token(name) {
			return false
		}
		for _, v := range values {
			if !printable(v) {
				return false
			}
		}
	}
	return true
}

// token is RFC 9110, section 5.6.2.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// printable reports whether a string may be a header's value: no control character but the tab.
func printable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
