package requests_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// trial is one random exchange.
type trial struct {
	method   string
	policy   string // declared, refused-only, throttled
	times    int    // of refused-only
	op       *requests.Operation
	key      bool
	body     string // none, rewindable, stream, long
	token    string // none, fixed, refreshable, broken
	cap      int    // −1: none
	limit    time.Duration
	deadline time.Duration // 0: none
	jitter   int64         // permille
	replies  []trialReply
}

type trialReply struct {
	status  int // 0: broken
	header  string
	asked   time.Duration // what the header says, however the policy reads it
	kind    string        // of the header: none, digits, date, fraction, malformed
	latency time.Duration
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomTrial(r *rand.Rand) trial {
	x := trial{
		method: pick(r, "GET", "HEAD", "PUT", "DELETE", "POST", "POST", "PATCH", "MOVE"),
		policy: pick(r, "declared", "declared", "declared", "refused-only", "throttled"),
		times:  r.IntN(5),
		key:    r.IntN(5) == 0,
		body:   pick(r, "none", "none", "rewindable", "stream", "long"),
		token:  pick(r, "none", "fixed", "refreshable", "refreshable", "broken"),
		cap:    pick(r, -1, -1, -1, 0, 1, 2, 4),
		jitter: pick[int64](r, 0, 500, 1000),
	}
	if r.IntN(2) == 0 {
		x.op = &requests.Operation{
			Idempotent: r.IntN(2) == 0, Max: pick(r, 0, 1, 2, 5, 9, -1),
			BaseDelay: pick(r, 0, time.Nanosecond, 100*time.Millisecond, 2*time.Second, time.Minute),
			RetryOn:   pick(r, nil, nil, []int{}, []int{500, 502}, []int{401, 404, 429}),
		}
	}
	if r.IntN(4) == 0 {
		x.limit = pick(r, 400*time.Millisecond, 3*time.Second, time.Minute)
	}
	if r.IntN(4) == 0 {
		// Never at an instant at which something else happens too.
		x.deadline = time.Duration(1+r.IntN(60))*time.Second + 777*time.Microsecond
	}
	for range 10 {
		p := trialReply{status: pick(r, 200, 204, 429, 429, 429, 503, 503, 503, 0, 0, 500, 502, 504, 401, 404, 422), kind: "none"}
		n := 1 + r.IntN(20)
		switch r.IntN(8) {
		case 0, 1:
			p.kind, p.header, p.asked = "digits", strconv.Itoa(n), time.Duration(n)*time.Second
		case 2:
			p.kind, p.asked = "date", time.Duration(n)*time.Second // written when it is sent
		case 3:
			p.kind, p.header, p.asked = "fraction", fmt.Sprintf("%d.25", n), time.Duration(n)*time.Second+250*time.Millisecond
		case 4:
			p.kind, p.header = "malformed", pick(r, "0", "-1", "soon", "", "1e3", "5 s")
		}
		if r.IntN(6) == 0 {
			p.latency = time.Duration(r.IntN(9)) * time.Second
		}
		x.replies = append(x.replies, p)
	}
	return x
}

// verdict is what came of a trial, or what should.
type verdict struct {
	attempts  int
	refreshes int
	waits     []time.Duration
	outcome   string // a status, or broken, ended or unauthorised
	elapsed   time.Duration
}

// expect works out a verdict from the words of the rules, without any of the code.
func (x *trial) expect() verdict {
	safe := slices.Contains([]string{"GET", "HEAD", "PUT", "DELETE"}, x.method)
	marked := x.key || x.op != nil && x.op.Idempotent
	max, base, retryOn := 3, time.Second, []int{429, 503}
	if x.op != nil && (safe || marked) {
		switch {
		case x.op.Max > 0:
			max = x.op.Max
		case x.op.Max < 0:
			max = 1
		}
		if x.op.BaseDelay > 0 {
			base = x.op.BaseDelay
		}
		if x.op.RetryOn != nil {
			retryOn = x.op.RetryOn
		}
	}
	switch x.policy {
	case "refused-only":
		max, retryOn = x.times+1, []int{429}
	case "throttled":
		max, retryOn = 3, []int{429}
	default:
		if !safe && !marked {
			retryOn = nil
		}
	}
	broken := x.policy == "declared" && (safe || marked)
	if x.cap >= 0 && x.cap < max {
		max = x.cap
	}
	if max < 1 {
		max = 1
	}
	var v verdict
	for n := 1; ; n++ {
		v.attempts = n
		r := x.replies[n-1]
		if x.deadline > 0 && v.elapsed+r.latency > x.deadline {
			v.elapsed, v.outcome = x.deadline, "ended"
			return v
		}
		v.elapsed += r.latency
		v.outcome = strconv.Itoa(r.status)
		if r.status == 0 {
			v.outcome = "broken"
		}
		again := n < max && x.body != "long"
		if r.status == 401 && again && v.refreshes == 0 && (x.token == "refreshable" || x.token == "broken") {
			v.refreshes++
			if x.token == "broken" {
				v.outcome = "unauthorised"
				return v
			}
			continue
		}
		if r.status == 0 {
			again = again && broken
		} else {
			again = again && slices.Contains(retryOn, r.status) && !slices.Contains([]int{400, 401, 403, 404, 422}, r.status)
		}
		if !again {
			return v
		}
		wait := x.wait(n, base, r)
		if x.limit > 0 && wait > x.limit || x.deadline > 0 && v.elapsed+wait > x.deadline {
			return v
		}
		v.waits = append(v.waits, wait)
		v.elapsed += wait
	}
}

func (x *trial) wait(n int, base time.Duration, r trialReply) time.Duration {
	readable := r.status != 0 && (r.kind == "digits" || r.kind == "date")
	var local time.Duration
	switch x.policy {
	case "refused-only":
		local = time.Duration(n) * 3 * time.Second
	case "throttled":
		readable = r.kind == "digits" || r.kind == "fraction"
		local = min(500*time.Millisecond*time.Duration(1<<(n-1)), 5*time.Second)
	default:
		local = base
		for range n - 1 {
			local *= 2
		}
		local = min(local, 30*time.Second) + 100*time.Millisecond*time.Duration(x.jitter)/1000
	}
	if readable {
		local = r.asked
	}
	if x.policy == "throttled" {
		local = min(local, 5*time.Second)
	}
	return local
}

// run makes the exchange.
func (x *trial) run(ctx context.Context) verdict {
	s := &source{}
	var v verdict
	tr := &requests.Transport{
		Limit: x.limit, Rand: func(n int64) int64 { return n * x.jitter / 1000 },
		Hooks: requests.Hooks{OnWait: func(w delay.Wait) { v.waits = append(v.waits, w.For) }},
		Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			r := x.replies[v.attempts]
			v.attempts++
			if req.Body != nil {
				_, _ = io.Copy(io.Discard, req.Body)
				_ = req.Body.Close()
			}
			select {
			case <-time.After(r.latency):
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
			if r.status == 0 {
				return nil, errBroken
			}
			h := http.Header{}
			switch r.kind {
			case "none":
			case "date":
				h.Set("Retry-After", time.Now().Add(r.asked).UTC().Format(http.TimeFormat))
			default:
				h.Set("Retry-After", r.header)
			}
			return &http.Response{StatusCode: r.status, Header: h, Body: io.NopCloser(strings.NewReader("x")), ContentLength: 1}, nil
		}),
	}
	switch x.policy {
	case "refused-only":
		tr.Policy = requests.RefusedOnly{Times: x.times, Sleep: 3 * time.Second}
	case "throttled":
		tr.Policy = requests.Throttled{}
	}
	switch x.token {
	case "fixed":
		tr.Tokens = fixed{}
	case "refreshable":
		tr.Tokens = s
	case "broken":
		s.err = errBroken
		tr.Tokens = s
	}
	if x.op != nil {
		tr.Operations = requests.MustOperations(map[string]requests.Operation{x.method + " /{id}": *x.op})
	}
	if x.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.deadline)
		defer cancel()
	}
	if x.cap >= 0 {
		ctx = requests.WithMaxAttempts(ctx, x.cap)
	}
	if x.key {
		ctx = requests.WithIdempotencyKey(ctx, "k")
	}
	req := request(ctx, x.method, "/7", "")
	switch x.body {
	case "rewindable":
		req = request(ctx, x.method, "/7", "body")
	case "stream":
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader("body")), -1
	case "long":
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, 10))), -1
		tr.BufferLimit = 9
	}
	began := time.Now()
	status, err := trip(tr, req)
	v.elapsed = time.Since(began)
	v.refreshes = s.refreshes
	switch failed := new(requests.Error); {
	case err == nil:
		v.outcome = strconv.Itoa(status)
	case errors.As(err, &failed) && failed.Code == requests.CodeAuthRequired:
		v.outcome = "unauthorised"
	case errors.Is(err, &requests.TransportFailed{}):
		v.outcome = "broken"
	case errors.Is(err, context.DeadlineExceeded):
		v.outcome = "ended"
	default:
		v.outcome = err.Error()
	}
	return v
}

func TestRandomExchanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	outcomes := map[string]int{}
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			for range 100 {
				x := randomTrial(r)
				want, got := x.expect(), x.run(t.Context())
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("seed %d: got %+v, want %+v, of %+v", seed, got, want, x)
				}
				outcomes[got.outcome]++
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // dates are of whole seconds
			}
		})
	}
	t.Log(outcomes)
	for _, o := range []string{"200", "429", "503", "500", "401", "404", "broken", "ended", "unauthorised"} {
		if outcomes[o] == 0 {
			t.Errorf("no trial ended in %s", o)
		}
	}
}
