package requests_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

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
	cap      int    // by the context; −1: none
	most     int    // by the Transport; 0: none
	limit    time.Duration
	deadline time.Duration // 0: none
	attempt  time.Duration // 0: none
	millis   bool          // whether Retry-After-Ms is read
	jitter   int64         // permille
	clock    string        // exact, early, coarse
	replies  []trialReply
}

type trialReply struct {
	status  int    // 0: a failure
	failure string // broken, timeout, certificate, abandoned
	header  []string
	asked   time.Duration // what the header says, however the policy reads it
	kind    string        // of the header: none, digits, date, fraction, malformed, millis
	cut     bool          // the body breaks off
	latency time.Duration
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomTrial(r *rand.Rand) trial {
	x := trial{
		method: pick(r, "GET", "HEAD", "PUT", "DELETE", "GET", "PUT", "POST", "POST", "PATCH", "MOVE"),
		policy: pick(r, "declared", "declared", "declared", "refused-only", "throttled"),
		times:  r.IntN(5),
		key:    r.IntN(5) == 0,
		body:   pick(r, "none", "none", "none", "rewindable", "rewindable", "stream", "stream", "long"),
		token:  pick(r, "none", "fixed", "refreshable", "refreshable", "broken"),
		cap:    pick(r, -1, -1, -1, -1, -1, 0, 1, 2, 4, 9),
		most:   pick(r, 0, 0, 0, 0, 0, 0, -2, 1, 2, 5),
		millis: r.IntN(2) == 0,
		jitter: pick[int64](r, 0, 500, 1000),
		clock:  pick(r, "exact", "exact", "early", "coarse"),
	}
	if r.IntN(2) == 0 {
		x.op = &requests.Operation{
			Idempotent: r.IntN(2) == 0, Max: pick(r, 0, 1, 2, 5, 5, 9, 9, -1),
			BaseDelay: pick(r, 0, time.Nanosecond, 100*time.Millisecond, 2*time.Second, time.Minute),
			RetryOn:   pick(r, nil, nil, []int{}, []int{500, 502}, []int{401, 404, 429}),
		}
	}
	if r.IntN(4) == 0 {
		x.limit = pick(r, 400*time.Millisecond, 3*time.Second, time.Minute)
	}
	if r.IntN(5) == 0 {
		x.attempt = time.Duration(2+3*r.IntN(2))*time.Second + 333*time.Microsecond
	}
	if r.IntN(3) == 0 && x.clock == "exact" { // on another clock nobody can tell when it falls
		// Never at an instant at which something else happens too.
		x.deadline = time.Duration(1+r.IntN(60))*time.Second + 777*time.Microsecond
	}
	for range 10 {
		p := trialReply{status: pick(r, 200, 204, 429, 429, 429, 429, 503, 503, 503, 503, 0, 0, 0, 500, 502, 504, 401, 401, 404, 422), kind: "none"}
		p.failure = pick(r, "broken", "broken", "broken", "timeout", "certificate", "abandoned")
		p.cut = r.IntN(8) == 0
		n := 1 + r.IntN(20)
		switch r.IntN(10) {
		case 0, 1:
			p.kind, p.header, p.asked = "digits", []string{strconv.Itoa(n)}, time.Duration(n)*time.Second
		case 2:
			p.kind, p.asked = "date", time.Duration(n)*time.Second // written when it is sent
		case 3:
			p.kind, p.header, p.asked = "fraction", []string{fmt.Sprintf("%d.25", n)}, time.Duration(n)*time.Second+250*time.Millisecond
		case 4:
			p.kind, p.header = "malformed", []string{pick(r, "0", "-1", "soon", "", "1e3", "5 s", "99999999999999999999")}
		case 5:
			p.kind, p.header, p.asked = "millis", []string{strconv.Itoa(n * 250)}, time.Duration(n)*250*time.Millisecond
		case 6:
			p.kind, p.header, p.asked = "digits", []string{"1", "soon", strconv.Itoa(n), "0"}, time.Duration(n)*time.Second
		case 7:
			if x.limit > 0 { // nobody waits that long
				p.kind, p.header, p.asked = "digits", []string{"99999999999"}, 2147483647*time.Second
			}
		}
		if r.IntN(4) == 0 {
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
	early     time.Duration // the most by which an attempt came before it was asked to
	outcome   string        // a status or failure, or ended or unauthorised
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
	if x.most != 0 && x.most < max {
		max = x.most
	}
	if max < 1 {
		max = 1
	}
	var v verdict
	for n := 1; ; n++ {
		v.attempts = n
		r := x.replies[n-1]
		status, failure, took := r.status, r.failure, r.latency
		if x.attempt > 0 && took > x.attempt {
			status, failure, took = 0, "timeout", x.attempt
		}
		if x.deadline > 0 && v.elapsed+took > x.deadline {
			v.elapsed, v.outcome = x.deadline, "ended"
			return v
		}
		v.elapsed += took
		v.outcome = strconv.Itoa(status)
		if status == 0 {
			v.outcome = failure
		}
		again := n < max && x.body != "long"
		if status == 401 && again && v.refreshes == 0 && (x.token == "refreshable" || x.token == "broken") {
			v.refreshes++
			if x.token == "broken" {
				v.outcome = "unauthorised"
				return v
			}
			continue
		}
		if status == 0 {
			again = again && broken && (failure == "broken" || failure == "timeout")
		} else {
			again = again && slices.Contains(retryOn, status) && !slices.Contains([]int{400, 401, 403, 404, 422}, status)
		}
		if !again {
			return v
		}
		wait := x.wait(n, base, r, status != 0)
		if x.limit > 0 && wait > x.limit || x.deadline > 0 && v.elapsed+wait > x.deadline {
			return v
		}
		v.waits = append(v.waits, wait)
		v.elapsed += wait
	}
}

// wait is how long attempt n is waited for.
func (x *trial) wait(n int, base time.Duration, r trialReply, answered bool) time.Duration {
	readable := r.kind == "digits" || r.kind == "date"
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
	if answered && (readable || r.kind == "millis" && x.millis) {
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
	var notBefore time.Time
	tr := &requests.Transport{
		Limit: x.limit, MaxAttempts: x.most, AttemptTimeout: x.attempt, Rand: func(n int64) int64 { return n * x.jitter / 1000 },
		Hooks: requests.Hooks{OnWait: func(w delay.Wait) { v.waits = append(v.waits, w.For) }},
		Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			r := x.replies[v.attempts]
			v.attempts++
			v.early = max(v.early, time.Until(notBefore))
			notBefore = time.Time{}
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
				return nil, failures[r.failure]
			}
			h := http.Header{}
			name := "Retry-After"
			switch r.kind {
			case "date":
				r.header = []string{time.Now().Add(r.asked).UTC().Format(http.TimeFormat)}
			case "millis":
				name = "Retry-After-Ms"
			}
			h[name] = r.header
			if r.status != 401 { // which is answered by a refresh, and not by a wait
				notBefore = time.Now().Add(x.heeded(r))
			}
			var body io.Reader = strings.NewReader("x")
			if r.cut {
				body = iotest.ErrReader(io.ErrUnexpectedEOF)
			}
			return &http.Response{StatusCode: r.status, Header: h, Body: io.NopCloser(body), ContentLength: 1}, nil
		}),
	}
	switch x.clock {
	case "early":
		tr.Clock = shifted{clock.New(), fireEarly}
	case "coarse":
		tr.Clock = shifted{clock.New(), fireOnTick}
	}
	if x.millis {
		tr.ReadWait = requests.ReadMilliseconds
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
	resp, err := tr.RoundTrip(req)
	v.elapsed = time.Since(began)
	v.refreshes = s.refreshes
	switch failed := new(requests.Error); {
	case err == nil:
		v.outcome = strconv.Itoa(resp.StatusCode)
		_ = resp.Body.Close()
	case errors.As(err, &failed) && failed.Code == requests.CodeAuthRequired:
		v.outcome = "unauthorised"
	case errors.Is(err, &requests.TransportFailed{}):
		v.outcome = "unknown"
		for name, failure := range failures {
			if errors.Is(err, failure) {
				v.outcome = name
			}
		}
		if timeout := (*delay.TimeoutError)(nil); errors.As(err, &timeout) {
			v.outcome = "timeout"
		}
	case err == failures["abandoned"]: //nolint:errorlint // as the base said it
		v.outcome = "abandoned"
	case errors.Is(err, context.DeadlineExceeded):
		v.outcome = "ended"
	default:
		v.outcome = err.Error()
	}
	return v
}

// heeded is what the request has to heed of an answer's header: what it reads, up to the cap that one of the policies is.
func (x *trial) heeded(r trialReply) time.Duration {
	switch {
	case r.kind == "millis" && !x.millis, r.kind == "fraction" && x.policy != "throttled", r.kind == "date" && x.policy == "throttled":
		return 0
	case x.policy == "throttled":
		return min(r.asked, 5*time.Second)
	}
	return r.asked
}

// failures is what a base may say in place of an answer.
var failures = map[string]error{
	"broken":      errBroken,
	"timeout":     os.ErrDeadlineExceeded,
	"certificate": x509.UnknownAuthorityError{},
	"abandoned":   context.Canceled,
}

// shifted is a clock whose timers fire at other times than they should, as those of an operating system may.
type shifted struct {
	clock.Clock
	shift func(time.Duration) time.Duration
}

func (c shifted) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return c.Clock.AfterFunc(c.shift(d), f)
}

// fireEarly is up to 15 ms early. (It is never early by all of a delay: the clock of a bubble would stand still.)
func fireEarly(d time.Duration) time.Duration { return d - min(d/2, 15*time.Millisecond) }

// fireOnTick is late, on one of 64 ticks a second.
func fireOnTick(d time.Duration) time.Duration {
	const tick = time.Second / 64
	at := time.Duration(time.Now().Add(d).Nanosecond())
	return d + (tick-at%tick)%tick
}

// Ten thousand exchanges come out as the rules say: attempts, refreshes, waits, outcome, and the time that it all took. On
// a clock whose timers are late it took longer, by a tick for an attempt's own time and one for its wait. On no clock is an
// attempt early.
func TestRandomExchanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	outcomes, waited := map[string]int{}, map[string]int{}
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			for range 100 {
				x := randomTrial(r)
				want, got := x.expect(), x.run(t.Context())
				if late := got.elapsed - want.elapsed; x.clock == "coarse" && late >= 0 && late <= time.Duration(got.attempts)*time.Second/32 {
					got.elapsed = want.elapsed
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("seed %d: got %+v, want %+v, of %+v", seed, got, want, x)
				}
				outcomes[got.outcome]++
				waited[x.clock] += len(got.waits)
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // dates are of whole seconds
			}
		})
	}
	t.Log(outcomes, "waits by clock:", waited)
	for _, o := range []string{"200", "429", "503", "500", "401", "404", "broken", "timeout", "certificate", "abandoned", "ended", "unauthorised"} {
		if outcomes[o] == 0 {
			t.Errorf("no trial ended in %s", o)
		}
	}
}
