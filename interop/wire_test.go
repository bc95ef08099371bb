package interop_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// wire is the RoundTripper of a login, and keeps what goes over it. What was on the wire, and when, is the one witness
// that is not the SDK's own.
type wire struct {
	next http.RoundTripper

	// beforePoll, if set, is called before a poll is sent; n counts from 1. resend sends the same poll as somebody else
	// would who knows the code.
	beforePoll func(n int, resend func() exchange)

	mu     sync.Mutex
	device []exchange // device authorization requests
	polls  []exchange
}

// exchange is a request and its answer.
type exchange struct {
	sent, answered time.Time
	header         http.Header // of the request
	form           url.Values
	status         int
	answer         http.Header
	body           []byte
}

func newWire(t *testing.T) *wire {
	return &wire{next: newClient(t).Transport}
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	send := func() (exchange, *http.Response, error) {
		x := exchange{sent: time.Now(), header: req.Header.Clone(), form: form}
		out := req.Clone(req.Context())
		out.Body = io.NopCloser(bytes.NewReader(body))
		res, err := w.next.RoundTrip(out)
		if err != nil {
			return x, nil, err
		}
		defer res.Body.Close()
		if x.body, err = io.ReadAll(res.Body); err != nil {
			return x, nil, err
		}
		x.answered, x.status, x.answer = time.Now(), res.StatusCode, res.Header
		res.Body = io.NopCloser(bytes.NewReader(x.body))
		return x, res, nil
	}
	isPoll := form.Get("grant_type") == deviceGrant
	if isPoll && w.beforePoll != nil {
		w.beforePoll(len(w.polled())+1, func() exchange {
			x, _, err := send()
			if err != nil {
				x.body = []byte(err.Error())
			}
			return x
		})
	}
	x, res, err := send()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if isPoll {
		w.polls = append(w.polls, x)
	} else {
		w.device = append(w.device, x)
	}
	return res, nil
}

// asked returns the device authorization requests so far.
func (w *wire) asked() []exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.device
}

// polled returns the polls so far.
func (w *wire) polled() []exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.polls
}

// wantPace checks how long after the answer before it each poll was sent.
func (w *wire) wantPace(t *testing.T, least ...time.Duration) {
	t.Helper()
	all := append(w.asked(), w.polled()...)
	if len(all) != len(least)+1 {
		t.Errorf("%d requests, want one for a code and %d polls", len(all), len(least))
	}
	for i := 0; i < len(least) && i+1 < len(all); i++ {
		if gap := all[i+1].sent.Sub(all[i].answered); gap < least[i] {
			t.Errorf("poll %d was sent %v after the answer before it, want at least %v", i+1, gap, least[i])
		}
	}
}

// wantNoSecret checks that a text has in it nothing that only the server and the client may know.
func (w *wire) wantNoSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, x := range append(w.asked(), w.polled()...) {
		for _, name := range []string{"device_code", "access_token", "refresh_token", "id_token"} {
			if secret := x.member(name); secret != "" && strings.Contains(text, secret) {
				t.Errorf("%s has the %s in it", where, name)
			}
		}
		if secret := x.form.Get("client_secret"); secret != "" && strings.Contains(text, secret) {
			t.Errorf("%s has the client's secret in it", where)
		}
	}
}

// member returns a string of the answer's JSON object, or "".
func (x exchange) member(name string) string {
	var object map[string]any
	if json.Unmarshal(x.body, &object) != nil {
		return ""
	}
	text, _ := object[name].(string)
	return text
}
