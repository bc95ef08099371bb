package fakes_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

// asClient is a client that does not wait by itself.
type asClient struct {
	t    *testing.T
	http *http.Client
}

// send posts a form to https://as.test and returns the status and the members of the answer; the status is 0 when there
// was none.
func (c asClient) send(path string, form url.Values, change ...func(*http.Request)) (int, map[string]any) {
	c.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://as.test"+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	for _, f := range change {
		f(req)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	var m map[string]any
	_ = json.NewDecoder(res.Body).Decode(&m) // what is no object has no members
	return res.StatusCode, m
}

func (c asClient) poll(code any) (int, any) {
	c.t.Helper()
	text, _ := code.(string)
	status, m := c.send(fakes.TokenPath, url.Values{
		"client_id": {"c"}, "device_code": {text}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"},
	})
	return status, m["error"]
}

func serveAS(t *testing.T, s *fakes.AuthServer) asClient {
	n := fakes.NewNetwork(t)
	n.Serve(t, "as.test", s)
	return asClient{t, n.Client()}
}

var asForm = url.Values{"client_id": {"c"}, "scope": {"a b"}}

func TestAuthServerByItself(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s := &fakes.AuthServer{ClientID: "c", ApproveOnPoll: 5, Odd: map[int]fakes.AuthAnswer{
			2: fakes.Throttle(20), 3: fakes.OAuthError(400, "slow_down"), 4: {Drop: true},
		}}
		c := serveAS(t, s)
		status, d := c.send(fakes.DevicePath, asForm)
		if status != 200 || d["interval"] != 5.0 || d["expires_in"] != 900.0 || d["verification_uri"] != "https://as.test/device" || len(d["user_code"].(string)) != 9 {
			t.Fatalf("%d %v", status, d)
		}
		for _, step := range []struct {
			wait   int // seconds
			status int
			code   any
		}{{5, 400, "authorization_pending"}, {5, 429, "too_many_requests"}, {20, 400, "slow_down"}, {10, 0, nil}, {10, 200, nil}} {
			time.Sleep(time.Duration(step.wait) * time.Second)
			if status, code := c.poll(d["device_code"]); status != step.status || code != step.code {
				t.Errorf("%d %v, want %+v", status, code, step)
			}
		}
		if v := s.Violations(); len(v) > 0 {
			t.Error(v)
		}
		if status, code := c.poll(d["device_code"]); status != 400 || code != "invalid_grant" {
			t.Errorf("a spent code: %d %v", status, code)
		}
		if v := s.Violations(); len(v) != 1 {
			t.Error(v)
		}
	})
}

func TestAuthServerDecisions(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		s := &fakes.AuthServer{ApproveAfter: time.Minute, Interval: 1, Scope: "a"}
		c := serveAS(t, s)
		codes := map[string]any{}
		for _, name := range []string{"approved", "denied", "left"} {
			_, d := c.send(fakes.DevicePath, asForm)
			codes[name] = d["device_code"]
			if name == "approved" && !s.Approve(d["user_code"].(string)) || name == "denied" && !s.Deny(d["user_code"].(string)) {
				t.Errorf("%s: no such code", name)
			}
		}
		if s.Approve("nobody's") {
			t.Error("a code of nobody's was approved")
		}
		time.Sleep(time.Second)
		for name, want := range map[string]int{"approved": 200, "denied": 400, "left": 400} {
			if status, code := c.poll(codes[name]); status != want || name == "denied" && code != "access_denied" {
				t.Errorf("%s: %d %v", name, status, code)
			}
		}
		time.Sleep(time.Minute)
		status, m := c.send(fakes.TokenPath, url.Values{"client_id": {"c"}, "device_code": {codes["left"].(string)}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}})
		if status != 200 || m["scope"] != "a" || !s.Valid(m["access_token"].(string)) || s.Valid("another") {
			t.Errorf("%d %v", status, m)
		}
	})
}

func TestAuthServerEnforces(t *testing.T) {
	const grant = "urn:ietf:params:oauth:grant-type:device_code"
	basic := func(id, secret string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(id, secret) }
	}
	tests := []struct {
		name      string
		path      string
		form      url.Values
		change    func(*http.Request)
		status    int
		violation string
	}{
		{"method", fakes.DevicePath, asForm, func(r *http.Request) { r.Method = http.MethodPut }, 405, "the method is PUT"},
		{"content type", fakes.DevicePath, asForm, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, 400, "the content type is application/json"},
		{"accept", fakes.DevicePath, asForm, func(r *http.Request) { r.Header.Del("Accept") }, 400, "it does not ask for JSON"},
		{"client", fakes.DevicePath, url.Values{"client_id": {"d"}}, nil, 401, "the client is unknown"},
		{"no client", fakes.DevicePath, url.Values{"scope": {"a"}}, nil, 401, "the client is unknown"},
		{"no secret", fakes.DevicePath, asForm, nil, 401, "the client is unknown"},
		{"twice", fakes.DevicePath, url.Values{"client_id": {"c"}, "scope": {"a", "b"}}, nil, 400, "scope comes twice"},
		{"empty", fakes.DevicePath, url.Values{"client_id": {"c"}, "scope": {""}}, nil, 400, "scope is empty"},
		{"two ways", fakes.DevicePath, url.Values{"client_id": {"c"}, "client_secret": {"s"}}, basic("c", "s"), 400, "it authenticates in two ways"},
		{"another's secret", fakes.DevicePath, asForm, basic("d", "s"), 401, "client_id is not the one that authenticates"},
		{"grant type", fakes.TokenPath, url.Values{"client_id": {"c"}, "device_code": {"dc"}, "grant_type": {"password"}}, basic("c", "s"), 400, "the grant type is not the device grant"},
		{"device code", fakes.TokenPath, url.Values{"client_id": {"c"}, "device_code": {"another"}, "grant_type": {grant}}, basic("c", "s"), 400, "the device code is unknown"},
		{"in time", fakes.DevicePath, asForm, basic("c", "s"), 200, ""},
		{"early", fakes.TokenPath, url.Values{"client_id": {"c"}, "device_code": {"dc"}, "grant_type": {grant}}, basic("c", "s"), 400, "the poll is 5s early"},
		{"elsewhere", "/authorize", asForm, nil, 404, ""},
	}
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		device := fakes.AuthJSON(200, map[string]any{"device_code": "dc", "user_code": "A", "verification_uri": "https://as.test", "expires_in": 20})
		s := &fakes.AuthServer{ClientID: "c", ClientSecret: "s", Device: &device}
		c := serveAS(t, s)
		var want []string
		for _, tt := range tests {
			change := tt.change
			if change == nil {
				change = func(*http.Request) {}
			}
			if status, _ := c.send(tt.path, tt.form, change); status != tt.status {
				t.Errorf("%s: %d, want %d", tt.name, status, tt.status)
			}
			if tt.violation != "" {
				want = append(want, tt.path+": "+tt.violation)
			}
		}
		// The early poll has slowed the polling down, and so the code dies before the next.
		time.Sleep(20 * time.Second)
		dead := tests[len(tests)-2]
		if status, m := c.send(dead.path, dead.form, dead.change); status != 400 || m["error"] != "expired_token" {
			t.Errorf("%d %v", status, m)
		}
		want = append(want, fakes.TokenPath+": the device code is dead for 0s")
		if got := s.Violations(); !slices.Equal(got, want) {
			t.Errorf("violations %q\nwant       %q", got, want)
		}
	})
}

func TestAuthServerAnswers(t *testing.T) {
	raw := `{"access_token":"at"}`
	answers := []fakes.AuthAnswer{
		{Body: json.RawMessage(`"plain"`), Status: 418},
		{Body: json.RawMessage(`[1]`), Headers: map[string]string{"Content-Type": "x/y"}},
		{RawBody: &raw, ContentLength: 500},
		{Oversized: true},
		{Latency: 4},
		{Drop: true},
	}
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		device := fakes.AuthJSON(200, map[string]any{"device_code": "dc", "user_code": "A", "verification_uri": "https://as.test", "expires_in": 900})
		s := &fakes.AuthServer{Device: &device, Polls: answers}
		c := serveAS(t, s)
		c.send(fakes.DevicePath, asForm)
		form := url.Values{"client_id": {"c"}, "device_code": {"dc"}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}}
		for i, want := range []string{"418 text/plain plain", "200 x/y [1]", "200 application/json " + raw + " unexpected EOF", "200 application/json {\"access_token\":\"at\"", "200 application/json ", "no answer"} {
			time.Sleep(5 * time.Second)
			got := "no answer"
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://as.test"+fakes.TokenPath, strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Accept", "application/json")
			res, err := c.http.Do(req)
			if err == nil {
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				got = strings.Fields(res.Status)[0] + " " + res.Header.Get("Content-Type") + " " + string(b)
				if err != nil {
					got += " " + err.Error()
				}
			}
			if answers[i].Oversized {
				if len(got) < 2<<20 || !json.Valid([]byte(got[len("200 application/json "):])) {
					t.Errorf("oversized: %d bytes", len(got))
				}
				got = got[:len(want)]
			}
			if got != want {
				t.Errorf("answer %d: %.80s, want %s", i, got, want)
			}
		}
		// A request that is not answered ends with its client.
		s.Odd = map[int]fakes.AuthAnswer{7: {Hang: true}}
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if status, _ := c.send(fakes.TokenPath, form, func(r *http.Request) { *r = *r.WithContext(ctx) }); status != 0 {
			t.Errorf("status %d", status)
		}
		time.Sleep(time.Second) // the server hears of it
		var took []time.Duration
		for _, r := range s.Requests() {
			took = append(took, r.End.Sub(r.Begin))
		}
		if want := []time.Duration{0, 0, 0, 0, 0, 4 * time.Second, 0, time.Minute}; !slices.Equal(took, want) {
			t.Errorf("requests took %v, want %v", took, want)
		}
		if v := s.Violations(); len(v) > 0 {
			t.Error(v)
		}
	})
}
