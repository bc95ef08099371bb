package auth

import (
	"net/http"
	"time"

	"golang.org/x/oauth2"
)

// WholeNumber is wholeNumber.
var WholeNumber = wholeNumber

// Judge judges an answer to a poll.
func Judge(status int, contentType string, body []byte, cut, strict bool, now time.Time, secret string) (token *oauth2.Token, said string, err *DeviceError) {
	r := &reply{status: status, header: http.Header{}}
	r.members, r.bad = readMembers(contentType, body, cut)
	if cut {
		r.cut = errCutShort
	}
	v := judge(r, strict, now, secrets{}.with(secret))
	return v.token, v.said, v.err
}

// Clean makes an untrusted text fit for an error.
func Clean(text, secret string) string { return secrets{}.with(secret).clean(text) }
