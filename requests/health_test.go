package requests_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/requests"
)

func TestHealth(t *testing.T) {
	const none = -1
	for name, c := range map[string]struct {
		replies []reply
		at      time.Duration // when it is asked, after the last of them; one a second
		want    requests.Condition
		until   time.Duration // after the beginning
		since   time.Duration
		cause   string
	}{
		"nobody asked":               {nil, 0, requests.ConditionHealthy, none, none, ""},
		"200":                        {statusReplies(200), 0, requests.ConditionHealthy, none, none, ""},
		"404 is an answer":           {statusReplies(404), 0, requests.ConditionHealthy, none, none, ""},
		"500":                        {statusReplies(500), 0, requests.ConditionFailing, none, 0, "500"},
		"since the first in a row":   {statusReplies(200, 503, 0, 502), time.Minute, requests.ConditionFailing, none, time.Second, "502"},
		"no answer":                  {statusReplies(0), 0, requests.ConditionFailing, none, 0, "no answer"},
		"works again":                {statusReplies(500, 0, 404), 0, requests.ConditionHealthy, none, none, ""},
		"429":                        {[]reply{refuse(429, "7")}, 0, requests.ConditionThrottled, 7 * time.Second, none, "429"},
		"503 with a wait":            {[]reply{refuse(503, "7")}, 6 * time.Second, requests.ConditionThrottled, 7 * time.Second, none, "503"},
		"the moment has come":        {[]reply{refuse(429, "7")}, 7 * time.Second, requests.ConditionHealthy, none, none, ""},
		"429 without a wait":         {statusReplies(429), 0, requests.ConditionHealthy, none, none, ""},
		"a wait after a failure":     {[]reply{{status: 500}, refuse(429, "7")}, 0, requests.ConditionThrottled, 8 * time.Second, none, "429"},
		"still failing after that":   {[]reply{{status: 500}, refuse(503, "2")}, 2 * time.Second, requests.ConditionFailing, none, 0, "503"},
		"served although throttled":  {[]reply{refuse(429, "7"), {status: 200}}, 0, requests.ConditionHealthy, none, none, ""},
		"an earlier moment":          {[]reply{refuse(429, "7"), refuse(429, "2")}, 0, requests.ConditionThrottled, 7 * time.Second, none, "429"},
		"another header":             {[]reply{{status: 429, header: http.Header{"Retry-After-Ms": {"1500"}}}}, 0, requests.ConditionThrottled, 1500 * time.Millisecond, none, "429"},
		"cancelled says nothing":     {[]reply{{err: context.Canceled}}, 0, requests.ConditionHealthy, none, none, ""},
		"not sent says nothing":      {[]reply{{err: &requests.Error{Code: requests.CodeUsage}}}, 0, requests.ConditionHealthy, none, none, ""},
		"held back by a Transport":   {[]reply{{err: &requests.RateLimited{RetryAfter: 7 * time.Second}}}, 0, requests.ConditionThrottled, 7 * time.Second, none, "not sent"},
		"held back for nobody knows": {[]reply{{err: &requests.RateLimited{}}}, 0, requests.ConditionHealthy, none, none, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			h := &requests.Health{Base: &base{replies: c.replies}, ReadWait: requests.ReadMilliseconds}
			for i := range c.replies {
				if i > 0 {
					time.Sleep(time.Second)
				}
				_, _ = trip(h, get())
			}
			time.Sleep(c.at)
			got := h.Of("API.test")
			when := func(at time.Time) time.Duration {
				if at.IsZero() {
					return none
				}
				return at.Sub(began)
			}
			if got.Condition != c.want || when(got.Until) != c.until || when(got.Since) != c.since || got.Cause != c.cause {
				t.Errorf("%s: %v (%+v)", name, got, got)
			}
			if all := h.Ailing(); (len(all) == 1) != (c.want != requests.ConditionHealthy) || len(all) == 1 && all["api.test"] != got {
				t.Errorf("%s: ailing are %v", name, all)
			}
		})
	}
}

func refuse(status int, after string) reply {
	return reply{status: status, header: http.Header{"Retry-After": {after}}}
}

func TestHealthIsOfOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &requests.Health{Base: &base{replies: statusReplies(500)}}
		for _, u := range []string{"https://API.test:443/", "http://localhost:80/", "https://other.test:8443/", "https://[::1]/"} {
			req := get()
			req.URL, _ = req.URL.Parse(u)
			_, _ = trip(h, req)
		}
		for host, want := range map[string]requests.Condition{
			"api.test": requests.ConditionFailing, "localhost": requests.ConditionFailing, "other.test:8443": requests.ConditionFailing,
			"[::1]": requests.ConditionFailing, "other.test": requests.ConditionHealthy, "third.test": requests.ConditionHealthy,
		} {
			if got := h.Of(host).Condition; got != want {
				t.Errorf("%s is %v", host, got)
			}
		}
	})
}

// What was sent before a host asked to wait says nothing against that, even when it is served later.
func TestHealthOfRequestsThatOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &requests.Health{Base: &base{replies: []reply{{status: 200, latency: 3 * time.Second}, refuse(429, "7")}}}
		var slow sync.WaitGroup
		slow.Go(func() { _, _ = trip(h, get()) })
		time.Sleep(time.Second)
		_, _ = trip(h, get())
		slow.Wait()
		if got := h.Of("api.test"); got.Condition != requests.ConditionThrottled {
			t.Error(got)
		}
	})
}

// Around a Transport it sees the end of a request only.
func TestHealthAroundATransport(t *testing.T) {
	quick(t, statusReplies(503, 503, 200), func(t *testing.T, tr *requests.Transport, b *base) {
		inside := &requests.Health{Base: b}
		tr.Base = inside
		around := &requests.Health{Base: tr}
		var end sync.WaitGroup
		end.Go(func() {
			if status, err := trip(around, get()); status != 200 {
				t.Errorf("%d, %v", status, err)
			}
		})
		time.Sleep(500 * time.Millisecond)
		if a, b := around.Of("api.test").Condition, inside.Of("api.test").Condition; a != requests.ConditionHealthy || b != requests.ConditionFailing {
			t.Errorf("around %v, inside %v", a, b)
		}
		end.Wait()
		if got := inside.Of("api.test"); got.Condition != requests.ConditionHealthy || got.String() != "healthy" {
			t.Error(got)
		}
		around.CloseIdleConnections()
	})
}

// A host that lets attempts time out is failing; one whose caller does not wait for it may be as well as before.
func TestHealthOfTimeouts(t *testing.T) {
	for _, c := range []struct {
		attempt, caller time.Duration
		want            requests.Condition
	}{
		{time.Second, time.Hour, requests.ConditionFailing},
		{time.Hour, time.Second, requests.ConditionHealthy},
	} {
		quick(t, []reply{{status: 200, latency: time.Minute}}, func(t *testing.T, tr *requests.Transport, b *base) {
			h := &requests.Health{Base: b}
			tr.Base, tr.AttemptTimeout = h, c.attempt
			ctx, cancel := context.WithTimeout(t.Context(), c.caller)
			defer cancel()
			_, err := trip(tr, request(ctx, "POST", "/", ""))
			if got := h.Of("api.test"); got.Condition != c.want || got.Condition == requests.ConditionFailing && got.Cause != "timeout" {
				t.Errorf("%v after %v: %v", c, err, got)
			}
		})
	}
}

func TestHealthAllocatesNothing(t *testing.T) {
	m := newMemory(0)
	req := get()
	counts := make([]float64, 2)
	for i, rt := range []http.RoundTripper{m, &requests.Health{Base: m}} {
		counts[i] = testing.AllocsPerRun(50, func() { _, _ = rt.RoundTrip(req) })
	}
	if counts[1] > counts[0] {
		t.Errorf("%v allocations, and %v without Health", counts[1], counts[0])
	}
}

func TestHealthWhileItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		n := 0
		h := &requests.Health{Base: roundTripper(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			n++
			i := n
			mu.Unlock()
			switch i % 4 {
			case 0:
				return nil, errors.New("broken")
			case 1:
				return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		})}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _, _ = trip(h, get()) })
			all.Go(func() { _ = h.Of("api.test").String(); _ = h.Ailing() })
		}
		all.Wait()
	})
}
