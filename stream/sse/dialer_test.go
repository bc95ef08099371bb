package sse_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/sse"
)

func TestRequest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(d *sse.Dialer)
		method string
		body   string
		header map[string]string
	}{
		{
			name: "GET", change: func(*sse.Dialer) {}, method: "GET",
			header: map[string]string{"Accept": "text/event-stream", "Cache-Control": "no-cache", "Accept-Encoding": "identity", "Last-Event-Id": ""},
		},
		{
			name: "POST", method: "POST", body: `{"stream":true}`,
			change: func(d *sse.Dialer) {
				d.Body = []byte(`{"stream":true}`)
				d.Header = http.Header{"Content-Type": {"application/json"}}
			},
			header: map[string]string{"Content-Type": "application/json", "Accept": "text/event-stream"},
		},
		{name: "POST without a body", method: "POST", change: func(d *sse.Dialer) { d.Method = "POST" }},
		{
			name: "headers of the caller", method: "GET",
			change: func(d *sse.Dialer) {
				d.Header = http.Header{"x-a": {"b"}, "Accept": {"text/event-stream, */*;q=0.1"}, "Last-Event-ID": {"9"}, "Authorization": {"Basic x"}}
			},
			header: map[string]string{"X-A": "b", "Accept": "text/event-stream, */*;q=0.1", "Last-Event-Id": ""},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := []answer{{raw: []string{"id: é1\ndata: a\n\n"}, then: fakes.Drop}, {raw: []string{"data: b\n\n"}, then: fakes.Stop}}
			inWorld(t, time.Time{}, script, func(w *world) {
				d := w.dialer()
				tt.change(&d)
				messages, err := w.collect(w.config(d), 2)
				want(w, "error", err, nil)
				want(w, "messages", texts(messages), []string{"a", "b"})
				want(w, "ids", messages[0].ID+messages[1].ID, "é1é1")
				for i, r := range w.server.seen() {
					want(w, "method", r.method, tt.method)
					want(w, "body", r.body, tt.body)
					want(w, "Authorization", r.header["Authorization"], []string{fmt.Sprintf("Bearer token-%d", i+1)})
					for name, value := range tt.header {
						if i == 0 || name != "Last-Event-Id" {
							want(w, name, r.header.Get(name), value)
						}
					}
				}
				want(w, "Last-Event-ID", w.server.sent("Last-Event-ID"), []string{"", "é1"})
			})
		})
	}
}

// The position is sent until there is another; an empty id takes it back; and an event that was cut off does not count.
func TestPosition(t *testing.T) {
	script := []answer{
		{raw: []string{"id: 1\ndata: a\n\n"}},
		{raw: []string{"id: 2\n\n"}},
		{raw: []string{"id: 3\ndata: cut\n"}, then: fakes.Drop},
		{raw: []string{"data: c\n\nid\n\n"}},
		{raw: []string{"id: 4\ndata: d\n\n"}, then: fakes.Stop},
	}
	inWorld(t, time.Time{}, script, func(w *world) {
		c := w.config(w.dialer())
		c.Position = "0"
		messages, err := w.collect(c, 3)
		want(w, "error", err, nil)
		ids := []string{}
		for _, m := range messages {
			ids = append(ids, m.ID)
		}
		want(w, "messages", texts(messages), []string{"a", "c", "d"})
		want(w, "ids", ids, []string{"1", "2", "4"})
		want(w, "Last-Event-ID", w.server.sent("Last-Event-ID"), []string{"0", "1", "2", "2", ""})
	})
}

func TestPositionThatCannotBeSent(t *testing.T) {
	inWorld(t, time.Time{}, []answer{{raw: []string{"id: a\x01b\ndata: a\n\n"}}}, func(w *world) {
		_, err := w.collect(w.config(w.dialer()), 5)
		want(w, "reason", reasonOf(err), "dial_failed")
		want(w, "requests", len(w.server.seen()), 1)
	})
}

// What cannot be sent is not tried again and again.
func TestWhatCannotBeSent(t *testing.T) {
	client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("sent") })}
	token := stream.Attempt{Credential: stream.Credential{Token: &oauth2.Token{AccessToken: "s3cret\n"}}}
	for name, tt := range map[string]struct {
		header  http.Header
		attempt stream.Attempt
	}{
		"a value": {header: http.Header{"X-Key": {"s3cret\r\n"}}},
		"a name":  {header: http.Header{"X Key": {"s3cret"}}},
		"a token": {attempt: token},
	} {
		_, err := sse.Dialer{URL: "https://sse.test/", Client: client, Header: tt.header}.Dial(t.Context(), tt.attempt)
		e, ok := errors.AsType[*stream.AttemptError](err)
		if !ok || e.Class != stream.Permanent || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTypes(t *testing.T) {
	inWorld(t, time.Time{}, []answer{{raw: []string{"event: e\ndata: a\n\ndata: b\n\n"}, then: fakes.Stop}}, func(w *world) {
		messages, _ := w.collect(w.config(w.dialer()), 2)
		want(w, "types", fmt.Sprintf("%q", []string{messages[0].Type, messages[1].Type}), `["e" ""]`)
	})
}

// Messages are the consumer's to keep, unless it has said otherwise.
func TestReuseBuffer(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		inWorld(t, time.Time{}, []answer{{raw: []string{"data: a\n\n", "data: b\n\n"}, then: fakes.Stop}}, func(w *world) {
			d := w.dialer()
			d.ReuseBuffer = reuse
			messages, _ := w.collect(w.config(d), 2)
			if !reuse {
				want(w, "messages", texts(messages), []string{"a", "b"})
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		name   string
		answer answer
		reason string // "" ends without an error, "waits" comes back
		text   string
	}{
		{name: "no content", answer: answer{status: 204}},
		{name: "no content, with a Retry-After", answer: answer{status: 204, header: http.Header{"Retry-After": {"5"}}}},
		{name: "reset content", answer: answer{status: 205}, reason: "dial_failed"},
		{name: "partial content", answer: answer{status: 206}, reason: "dial_failed"},
		{name: "HTML", answer: answer{contentType: "text/html; charset=utf-8"}, reason: "dial_failed", text: `the answer is "text/html", not text/event-stream`},
		{name: "JSON", answer: answer{contentType: "application/json"}, reason: "dial_failed"},
		{name: "no type", answer: answer{contentType: "-"}, reason: "dial_failed", text: "does not say"},
		{name: "no readable type", answer: answer{contentType: ";;"}, reason: "dial_failed"},
		{name: "almost the type", answer: answer{contentType: "text/event-streams"}, reason: "dial_failed"},
		{name: "compressed", answer: answer{header: http.Header{"Content-Encoding": {"gzip"}}}, reason: "dial_failed", text: "Content-Encoding"},
		{name: "not compressed", answer: answer{header: http.Header{"Content-Encoding": {"Identity"}}}, reason: "waits"},
		{name: "any case", answer: answer{contentType: "Text/Event-Stream"}, reason: "waits"},
		{name: "a charset", answer: answer{contentType: "text/event-stream;charset=UTF-8"}, reason: "waits"},
		{name: "a bad parameter", answer: answer{contentType: "text/event-stream; charset"}, reason: "waits"},
		{name: "bad request", answer: answer{status: 400}, reason: "dial_failed"},
		{name: "not found", answer: answer{status: 404}, reason: "dial_failed"},
		{name: "gone", answer: answer{status: 410}, reason: "dial_failed"},
		{name: "bad gateway", answer: answer{status: 502}, reason: "waits"},
		{name: "throttled", answer: answer{status: 429}, reason: "waits"},
		{name: "moved", answer: answer{status: 301, header: http.Header{"Location": {"https://sse.test/other"}}}, reason: "dial_failed", text: "redirects are not followed"},
		{name: "moved away", answer: answer{status: 307, header: http.Header{"Location": {"https://other.test/"}}}, reason: "dial_failed"},
		{name: "moved to no address", answer: answer{status: 307, header: http.Header{"Location": {"https://%zz/?ticket=s3cret"}}}, reason: "dial_failed", text: "redirects are not followed"},
		{name: "moved nowhere", answer: answer{status: 302}, reason: "dial_failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			script := []answer{tt.answer}
			if tt.reason == "waits" {
				script = append(script, answer{status: 204})
			}
			inWorld(t, time.Time{}, script, func(w *world) {
				w.net.Serve(w.T, "other.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
				messages, err := w.collect(w.config(w.dialer()), 1)
				want(w, "messages", len(messages), 0)
				want(w, "requests", len(w.server.seen()), len(script))
				switch tt.reason {
				case "", "waits":
					want(w, "error", err, nil)
				default:
					want(w, "reason", reasonOf(err), tt.reason)
					if !strings.Contains(fmt.Sprint(err), tt.text) {
						t.Errorf("error: %v, want it to say %q", err, tt.text)
					}
				}
			})
		})
	}
}

func TestUnauthorized(t *testing.T) {
	refused := answer{status: 401, header: http.Header{"Retry-After": {"50"}}}
	inWorld(t, time.Time{}, []answer{refused, refused, refused}, func(w *world) {
		_, err := w.collect(w.config(w.dialer()), 1)
		want(w, "reason", reasonOf(err), "authorization_failed")
		want(w, "waits", w.waits, []time.Duration{time.Second, 2 * time.Second})
		want(w, "Authorization", w.server.sent("Authorization"), []string{"Bearer token-1", "Bearer token-2", "Bearer token-3"})
	})
}

// A ticket address is dialled as it is.
func TestTicket(t *testing.T) {
	inWorld(t, time.Time{}, []answer{{status: 503}, {status: 204}}, func(w *world) {
		c := w.config(sse.Dialer{Client: w.net.Client()})
		n := 0
		c.Credential = func(context.Context, stream.Credential) (stream.Credential, error) {
			n++
			return stream.Credential{URL: fmt.Sprintf("https://sse.test/s?b=%d&a=%%2F", n)}, nil
		}
		_, err := w.collect(c, 1)
		want(w, "error", err, nil)
		for i, r := range w.server.seen() {
			want(w, "query", r.query, fmt.Sprintf("b=%d&a=%%2F", i+1))
			want(w, "Authorization", r.header.Get("Authorization"), "")
		}
	})
}

// retry: does not undercut Retry-After, and does not reset the count.
func TestRetry(t *testing.T) {
	throttled := answer{status: 429, header: http.Header{"Retry-After": {"7"}}}
	script := []answer{
		{raw: []string{"retry: 2000\n"}},
		{raw: []string{"retry: 1\n"}},
		throttled,
		{raw: []string{"retry: 5000\n\n"}, then: fakes.Drop},
		{status: 503},
		{status: 204},
	}
	inWorld(t, time.Time{}, script, func(w *world) {
		_, err := w.collect(w.config(w.dialer()), 1)
		want(w, "error", err, nil)
		ms := time.Millisecond
		want(w, "waits", w.waits, []time.Duration{2000 * ms, 200 * ms, 7000 * ms, 40000 * ms, 60000 * ms})
	})
}

// An event over the limit ends the stream once, with the position before it.
func TestEventTooLong(t *testing.T) {
	inWorld(t, time.Time{}, []answer{{raw: []string{"id: 1\ndata: a\n\nid: 2\ndata: " + strings.Repeat("x", 100) + "\n\n"}, then: fakes.Stop}}, func(w *world) {
		d := w.dialer()
		d.MaxBytes = 50
		messages, err := w.collect(w.config(d), 5)
		want(w, "messages", texts(messages), []string{"a"})
		want(w, "reason", reasonOf(err), "protocol_fatal")
		tooLong, ok := errors.AsType[*sse.TooLongError](err)
		if !ok || tooLong.LastEventID != "1" || tooLong.Limit != 50 || tooLong.Part != sse.PartLine {
			t.Errorf("error: %v", err)
		}
	})
}

func TestMistakes(t *testing.T) {
	inWorld(t, time.Time{}, nil, func(w *world) {
		for name, change := range map[string]func(d *sse.Dialer){
			"Client has a Timeout":       func(d *sse.Dialer) { d.Client.Timeout = time.Hour },
			"URL cannot be used":         func(d *sse.Dialer) { d.URL = "http://sse.test/" },
			"wss://sse.test is a Web":    func(d *sse.Dialer) { d.URL = "wss://sse.test/" },
			"Method is neither":          func(d *sse.Dialer) { d.Method = "PUT" },
			"Body is not sent with GET":  func(d *sse.Dialer) { d.Method, d.Body = "GET", []byte{} },
			"the address cannot be pars": func(d *sse.Dialer) { d.URL = ":" },
		} {
			d := w.dialer()
			change(&d)
			err := d.Validate()
			if mistake, ok := errors.AsType[*stream.ConfigError](err); !ok || !strings.Contains(mistake.Error(), name) {
				t.Fatalf("%s: %v", name, err)
			}
			_, err = w.collect(w.config(d), 1) // nothing is sent
			if reason := reasonOf(err); reason != "dial_failed" && reason != "usage" {
				t.Errorf("%s: %v", name, err)
			}
		}
		d := w.dialer()
		d.Client.Timeout, d.Method, d.URL = 1, "PUT", "ftp://x"
		all, ok := d.Validate().(interface{ Unwrap() []error })
		if !ok || len(all.Unwrap()) != 3 {
			t.Errorf("not all mistakes: %v", d.Validate())
		}
		_, err := w.collect(w.config(sse.Dialer{Client: w.net.Client()}), 1)
		want(w, "no address", reasonOf(err), "dial_failed")
		ticket := stream.Attempt{Credential: stream.Credential{URL: "wss://sse.test/?ticket=s3cret"}}
		_, err = w.dialer().Dial(w.Context(), ticket)
		refused, ok := errors.AsType[*stream.AttemptError](err)
		want(w, "a WebSocket's ticket is permanent", ok && refused.Class == stream.Permanent, true)
		want(w, "and does not show", strings.Contains(fmt.Sprint(err), "s3cret"), false)
	})
}

// What http.Client puts up with in a RoundTripper costs an attempt, and not the program.
func TestCarelessTransport(t *testing.T) {
	for _, res := range []*http.Response{nil, {StatusCode: http.StatusFound}, {StatusCode: http.StatusServiceUnavailable}} {
		client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return res, nil })}
		if _, err := (sse.Dialer{URL: "https://events.test/", Client: client}).Dial(t.Context(), stream.Attempt{}); err == nil {
			t.Errorf("%+v is a stream", res)
		}
	}
}

// TestWhatDialsIsTheConsumers: what a RoundTripper does to its goroutine it does to the one that called Dial, though that
// is another one.
func TestWhatDialsIsTheConsumers(t *testing.T) {
	dial := func(does func()) {
		client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			does()
			return nil, errors.New("unreachable")
		})}
		_, _ = sse.Dialer{URL: "https://events.test/", Client: client}.Dial(t.Context(), stream.Attempt{})
	}
	func() {
		defer func() {
			if r := recover(); r != "a bug" {
				t.Errorf("recovered %v", r)
			}
		}()
		dial(func() { panic("a bug") })
	}()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		dial(runtime.Goexit)
		t.Error("the goroutine goes on")
	}()
	<-ended
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
