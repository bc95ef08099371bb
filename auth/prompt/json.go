package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/heed-sdk/heed/auth"
)

// JSON returns a [Display] that writes each event as a JSON object on a line of its own, for a program that follows the
// login: {"event":"code_issued","user_code":"WDJB-MJHT",…}. "event" is the event's Name; durations are in seconds, and
// instants in RFC 3339, in UTC. More events and more members may come.
func JSON(w io.Writer) Display { return &events{w: w} }

type events struct {
	mu     sync.Mutex
	w      io.Writer
	issued auth.CodeIssued // the code that was written last
	failed error           // if that could not be written
}

// Prompt writes the code, if OnEvent has not done so: of a login that was resumed there is no event.
func (d *events) Prompt(_ context.Context, p auth.Prompt) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.issued.UserCode != p.UserCode || !d.issued.ExpiresAt.Equal(p.ExpiresAt) {
		d.issue(auth.CodeIssued{
			UserCode: p.UserCode, VerificationURI: p.VerificationURI, VerificationURIComplete: p.VerificationURIComplete,
			ExpiresAt: p.ExpiresAt,
		})
	}
	return d.failed
}

func (d *events) OnEvent(e auth.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if issued, ok := e.(auth.CodeIssued); ok {
		d.issue(issued)
		return
	}
	_, _ = d.w.Write(encode(e))
}

func (d *events) issue(e auth.CodeIssued) {
	d.issued = e
	_, d.failed = d.w.Write(encode(e))
}

func (*events) Wait() {}

// encode writes an event on one line.
func encode(e auth.Event) []byte {
	o := object{}
	o.add("event", e.Name())
	switch e := e.(type) {
	case auth.CodeIssued:
		o.add("user_code", e.UserCode)
		o.add("verification_uri", e.VerificationURI)
		if e.VerificationURIComplete != "" {
			o.add("verification_uri_complete", e.VerificationURIComplete)
		}
		o.add("expires_at", instant(e.ExpiresAt))
		if e.Interval > 0 {
			o.add("interval", e.Interval.Seconds())
		}
	case auth.CodeShown:
		o.add("left", e.Left.Seconds())
	case auth.Browser:
		o.add("opened", e.Opened)
		if e.Cause != "" {
			o.add("cause", e.Cause)
		}
	case auth.Polled:
		o.add("count", e.Count)
		o.add("status", e.Status)
		o.add("outcome", e.Outcome)
	case auth.Slowed:
		o.add("from", e.From.Seconds())
		o.add("to", e.To.Seconds())
	case auth.Throttled:
		o.add("status", e.Status)
		var after any // null when nothing usable was asked for, as in a wait
		if d := e.RetryAfter.Duration(); d > 0 {
			after = d.Seconds()
		}
		o.add("retry_after", after)
	case auth.Unreachable:
		o.add("failures", e.Failures)
		o.add("cause", e.Cause)
	case auth.Waiting:
		w := e.Wait
		w.Until = w.Until.Round(0).UTC()
		if members, err := json.Marshal(w); err == nil {
			o.WriteByte(',')
			o.Write(bytes.Trim(members, "{}")) // a wait holds no object
		}
	case auth.AlmostExpired:
		o.add("left", e.Left.Seconds())
	case auth.Granted:
		o.add("scopes", list(e.Scopes))
		o.add("not_granted", list(e.NotGranted))
		if !e.ExpiresAt.IsZero() {
			o.add("expires_at", instant(e.ExpiresAt))
		}
	default:
		o.add("text", e.String())
	}
	return append(o.Bytes(), "}\n"...)
}

// object is a JSON object whose members keep their order.
type object struct{ bytes.Buffer }

func (o *object) add(name string, value any) {
	before := byte(',')
	if o.Len() == 0 {
		before = '{'
	}
	o.WriteByte(before)
	e := json.NewEncoder(o)
	e.SetEscapeHTML(false)
	for i, v := range []any{name, value} {
		if i == 1 {
			o.WriteByte(':')
		}
		if err := e.Encode(v); err != nil {
			_ = e.Encode(nil)
		}
		o.Truncate(o.Len() - 1) // the encoder's line break
	}
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// list is never null.
func list(texts []string) []string { return append([]string{}, texts...) }
