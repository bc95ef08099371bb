package requests_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// allowance is a host that serves each credential a number of requests per window, and refuses the rest with the time
// until the next.
type allowance struct {
	limit   int
	every   time.Duration
	latency time.Duration
	began   time.Time

	mu      sync.Mutex
	served  map[string]int    // by credential, in its window
	window  map[string]int    // by credential
	refused map[string][]int  // the windows of refusals, by credential
	order   []string          // the paths of those served
	left    map[time.Time]int // how many arrived at an instant
}

func newAllowance(limit int, every, latency time.Duration) *allowance {
	return &allowance{
		limit: limit, every: every, latency: latency, began: time.Now(),
		served: map[string]int{}, window: map[string]int{}, refused: map[string][]int{}, left: map[time.Time]int{},
	}
}

func (a *allowance) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(a.latency)
	a.mu.Lock()
	defer a.mu.Unlock()
	now, who := time.Now(), req.Header.Get("Authorization")
	window := int(now.Sub(a.began) / a.every)
	if window != a.window[who] {
		a.window[who], a.served[who] = window, 0
	}
	a.left[now]++
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
	if a.served[who] == a.limit {
		a.refused[who] = append(a.refused[who], window)
		rest := a.began.Add(time.Duration(window+1) * a.every).Sub(now)
		resp.StatusCode = 429
		resp.Header.Set("Retry-After", strconv.Itoa(int((rest+time.Second-1)/time.Second)))
		return resp, nil
	}
	a.served[who]++
	a.order = append(a.order, req.URL.Path)
	return resp, nil
}

func as(ctx context.Context, who, path string) *http.Request {
	req := request(ctx, http.MethodGet, path, "")
	req.Header.Set("Authorization", "Bearer "+who)
	return req
}

// Five hundred at once for a host that serves 60 a minute: the ninth minute serves the last of them.
func TestThrottleOfManyAtOnce(t *testing.T) {
	for _, latency := range []time.Duration{0, 5 * time.Millisecond, 80 * time.Millisecond, 700 * time.Millisecond} {
		for _, known := range []bool{true, false} {
			t.Run(latency.String()+", known "+strconv.FormatBool(known), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					host := newAllowance(60, time.Minute, latency)
					tr := &requests.Transport{Base: host}
					many := 500
					if known { // the first minute is used up, and somebody has been told
						many -= 61
						for i := range 60 {
							_, _ = trip(tr, as(t.Context(), "a", "/before/"+strconv.Itoa(i)))
						}
					}
					var all sync.WaitGroup
					run := func() {
						all.Go(func() {
							if status, err := trip(tr, as(t.Context(), "a", "/")); status != 200 || err != nil {
								t.Errorf("%d, %v", status, err)
							}
						})
					}
					if known {
						run()
						time.Sleep(latency)
						synctest.Wait()
					}
					for range many {
						run()
					}
					all.Wait()
					took := time.Since(host.began)
					perWindow := map[int]int{}
					for _, window := range host.refused["Bearer a"] {
						perWindow[window]++
					}
					t.Logf("%v, refusals by minute: %v", took, perWindow)
					if ideal := 8 * time.Minute; took > ideal+ideal/20 {
						t.Errorf("took %v, and the limit alone takes %v", took, ideal)
					}
					for window, n := range perWindow {
						// What is under way when the first refusal comes cannot know of it.
						if n > 1 && (known || window > 0) {
							t.Errorf("%d refusals in minute %d", n, window+1)
						}
					}
				})
			})
		}
	}
}

// told makes a host refuse one request of a credential, and leaves it waiting.
func told(t *testing.T, tr *requests.Transport, who string) {
	t.Helper()
	go func() { _, _ = trip(tr, as(t.Context(), who, "/told")) }()
	synctest.Wait()
}

// refusing answers the first request with a status and a Retry-After, and all others with 200.
func refusing(status int, after string) *base {
	return &base{replies: []reply{{status: status, header: http.Header{"Retry-After": {after}}}, {status: 200}}}
}

func TestThrottleWaits(t *testing.T) {
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			b := refusing(status, "7")
			var waits []delay.Wait
			tr := &requests.Transport{Base: b, Rand: noJitter, Hooks: requests.Hooks{OnWait: func(w delay.Wait) { waits = append(waits, w) }}}
			told(t, tr, "a")
			time.Sleep(2 * time.Second)
			began := time.Now()
			if status, err := trip(tr, as(t.Context(), "a", "/")); status != 200 || err != nil {
				t.Errorf("%d, %v", status, err)
			}
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("took %v", took)
			}
			time.Sleep(time.Second)
			synctest.Wait() // for the other one
			if len(waits) < 2 || waits[1].Reason != delay.Held || waits[1].For != 5*time.Second || waits[1].Server != 5*time.Second || !waits[1].Until.Equal(began.Add(5*time.Second)) {
				t.Errorf("the waits are %v", waits)
			}
			if len(b.sent) != 3 {
				t.Errorf("%d requests were sent", len(b.sent))
			}
		})
	}
}

// Who does not repeat learns for the others too, and who was held has all of its attempts.
func TestThrottleSpendsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := refusing(429, "7")
		tr := &requests.Transport{Base: b, Rand: noJitter}
		if status, _ := trip(tr, request(t.Context(), "POST", "/", "x")); status != 429 {
			t.Errorf("got %d", status)
		}
		began := time.Now()
		ctx := requests.WithMaxAttempts(t.Context(), 1)
		if status, err := trip(tr, request(ctx, "GET", "/", "")); status != 200 || time.Since(began) != 7*time.Second {
			t.Errorf("%d, %v after %v", status, err, time.Since(began))
		}
	})
}

// What does not wait for whom.
func TestThrottleIsOfOneHostAndCredential(t *testing.T) {
	for _, name := range []string{"another credential", "no credential", "another host", "another port", "another cookie", "another API key"} {
		synctest.Test(t, func(t *testing.T) {
			tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter}
			told(t, tr, "a")
			req := as(t.Context(), "a", "/")
			switch name {
			case "another credential":
				req = as(t.Context(), "b", "/")
			case "no credential":
				req.Header.Del("Authorization")
			case "another host":
				req.URL.Host = "other.test"
			case "another port":
				req.URL.Host += ":8443"
			case "another cookie":
				req.Header.Set("Cookie", "session=1")
			case "another API key":
				req.URL.RawQuery = "api_key=b"
			}
			began := time.Now()
			if status, err := trip(tr, req); status != 200 || time.Since(began) != 0 {
				t.Errorf("%s: %d, %v after %v", name, status, err, time.Since(began))
			}
		})
	}
	for _, same := range []string{"https://API.TEST/other", "https://api.test:443/other?page=2"} {
		synctest.Test(t, func(t *testing.T) {
			tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter}
			told(t, tr, "a")
			req := as(t.Context(), "a", "/")
			req.URL, _ = req.URL.Parse(same)
			req.Header.Set("Idempotency-Key", "k")
			began := time.Now()
			if status, err := trip(tr, req); status != 200 || time.Since(began) != 7*time.Second {
				t.Errorf("%s: %d, %v after %v", same, status, err, time.Since(began))
			}
		})
	}
}

func TestThrottleBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter, ThrottleBy: func(req *http.Request) string {
			return strings.TrimRight(req.Header.Get("Authorization"), "0123456789")
		}}
		told(t, tr, "a1")
		began := time.Now()
		if status, _ := trip(tr, as(t.Context(), "b1", "/")); status != 200 || time.Since(began) != 0 {
			t.Errorf("%d after %v", status, time.Since(began))
		}
		if status, _ := trip(tr, as(t.Context(), "a2", "/")); status != 200 || time.Since(began) != 7*time.Second {
			t.Errorf("%d after %v", status, time.Since(began))
		}
	})
}

func TestThrottleRefuses(t *testing.T) {
	for name, set := range map[string]func(tr *requests.Transport){
		"by option": func(tr *requests.Transport) { tr.Throttle = requests.ThrottleRefuse },
		"limit":     func(tr *requests.Transport) { tr.Limit = 4 * time.Second },
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter}
			set(tr)
			client, err := requests.NewClient(api, tr)
			if err != nil {
				t.Fatal(err)
			}
			told(t, tr, "a")
			time.Sleep(2 * time.Second)
			began := time.Now()
			_, err = trip(tr, as(t.Context(), "a", "/"))
			limited, ok := errors.AsType[*requests.RateLimited](err)
			if !ok || limited.RetryAfter != 5*time.Second || !errors.Is(err, requests.ErrThrottled) || time.Since(began) != 0 {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			_, err = client.Do(as(t.Context(), "a", "/"))
			e, ok := errors.AsType[*requests.Error](err)
			if !ok || e.Code != requests.CodeRateLimit || !e.Retryable || e.RetryAfter != 5*time.Second || e.Status != 0 || !errors.Is(err, &requests.RateLimited{}) {
				t.Errorf("%s: %#v", name, err)
			}
			_, err = client.Download(t.Context(), "/file") // without the credential of this test
			if errors.Is(err, requests.ErrThrottled) {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(5 * time.Second)
			if status, err := trip(tr, as(t.Context(), "a", "/")); status != 200 {
				t.Errorf("%s: %d, %v after the moment", name, status, err)
			}
		})
	}
}

func TestThrottleOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &requests.Transport{Base: refusing(429, "7"), Rand: noJitter, Throttle: requests.ThrottleOff}
		told(t, tr, "a")
		began := time.Now()
		if status, err := trip(tr, as(t.Context(), "a", "/")); status != 200 || time.Since(began) != 0 {
			t.Errorf("%d, %v after %v", status, err, time.Since(began))
		}
	})
}

// Without a wait that can be used, there is nothing to wait for.
func TestThrottleNeedsAMoment(t *testing.T) {
	for _, first := range []reply{{status: 429}, {status: 429, header: http.Header{"Retry-After": {"0"}}}, {status: 500, header: http.Header{"Retry-After": {"7"}}}} {
		quick(t, []reply{first, {status: 200}}, func(t *testing.T, tr *requests.Transport, _ *base) {
			_, _ = trip(tr, request(t.Context(), "POST", "/", ""))
			began := time.Now()
			if status, err := trip(tr, get()); status != 200 || time.Since(began) != 0 {
				t.Errorf("%v: %d, %v after %v", first, status, err, time.Since(began))
			}
		})
	}
}

func TestThrottleIsCancellable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newAllowance(0, time.Minute, 0)
		tr := &requests.Transport{Base: host, MaxAttempts: 1}
		if status, _ := trip(tr, as(t.Context(), "a", "/")); status != 429 {
			t.Fatal(status)
		}
		why := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := trip(tr, as(ctx, "a", "/")); !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
			})
		}
		time.Sleep(time.Second)
		began := time.Now()
		cancel(why)
		all.Wait()
		if time.Since(began) != 0 || len(host.refused["Bearer a"]) != 1 {
			t.Errorf("%v later, %v", time.Since(began), host.refused)
		}
	})
}

// They are served in the order in which they came, and do not leave at the same instant.
func TestThrottleIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newAllowance(10, 10*time.Second, 0)
		tr := &requests.Transport{Base: host}
		var want []string
		var all sync.WaitGroup
		for i := range 35 {
			path := "/" + strconv.Itoa(100+i)
			want = append(want, path)
			all.Go(func() {
				if status, err := trip(tr, as(t.Context(), "a", path)); status != 200 {
					t.Errorf("%d, %v", status, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		for i, path := range host.order {
			// One that was refused comes back at the moment, together with those that waited for it.
			if was := slices.Index(want, path); was < i-1 || was > i+1 {
				t.Errorf("%s was served in place %d: %v", path, i, host.order)
			}
		}
		for at, n := range host.left {
			if !at.Equal(host.began) && n > 1 {
				t.Errorf("%d arrived at %v", n, at.Sub(host.began))
			}
		}
	})
}

// One that hangs does not keep the others for ever.
func TestThrottleIsNotHeldByOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n int
		var mu sync.Mutex
		tr := &requests.Transport{MaxAttempts: 1, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			n++
			first := n == 1
			mu.Unlock()
			if first {
				return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
			}
			<-req.Context().Done()
			return nil, req.Context().Err()
		})}
		ctx, cancel := context.WithCancel(t.Context())
		_, _ = trip(tr, as(ctx, "a", "/"))
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { _, _ = trip(tr, as(ctx, "a", "/")) })
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if n != 6 {
			t.Errorf("%d were sent", n)
		}
		cancel()
		all.Wait()
	})
}

// A token that was refreshed during the wait is the one that is sent, and it has a throttle of its own.
func TestThrottleSendsTheCurrentToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := refusing(429, "7")
		s := &source{}
		tr := &requests.Transport{Base: b, Tokens: s, Rand: noJitter, MaxAttempts: 1}
		_, _ = trip(tr, get())
		var all sync.WaitGroup
		all.Go(func() { _, _ = trip(tr, get()) })
		synctest.Wait()
		_, _ = s.Refresh(t.Context(), token("t1"))
		all.Wait()
		if len(b.sent) != 2 || b.sent[1].header.Get("Authorization") != "Bearer t2" {
			t.Errorf("sent were %v", b.sent)
		}
	})
}

// When nothing is throttled any more, success costs nothing again.
func TestThrottleAllocatesNothingWhenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(0)
		b := refusing(429, "7")
		tr := &requests.Transport{Base: b, Rand: noJitter}
		for _, who := range []string{"a", "b"} {
			_, _ = trip(tr, as(t.Context(), who, "/"))
		}
		tr.Base = m
		time.Sleep(time.Minute)
		req := get()
		_, _ = trip(tr, req)
		counts := make([]float64, 2)
		for i, rt := range []http.RoundTripper{m, tr} {
			counts[i] = testing.AllocsPerRun(50, func() { _, _ = rt.RoundTrip(req) })
		}
		if counts[1] > counts[0] {
			t.Errorf("%v allocations, and %v without Transport", counts[1], counts[0])
		}
	})
}

// A wait that would end after the caller's deadline is not begun.
func TestThrottleAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := refusing(429, "7")
		client, err := requests.NewClient(api, &requests.Transport{Base: b, Rand: noJitter, MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = client.Do(get())
		for _, c := range []struct {
			after time.Duration
			sent  bool
		}{{3 * time.Second, false}, {8 * time.Second, true}} {
			ctx, cancel := context.WithTimeout(t.Context(), c.after)
			began := time.Now()
			resp, err := client.Do(request(ctx, "GET", "/", ""))
			switch {
			case c.sent && err == nil:
				_ = resp.Body.Close()
			case c.sent || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, &requests.RateLimited{}) ||
				!errors.Is(err, requests.ErrThrottled) || time.Since(began) != 0:
				t.Errorf("%v: %v after %v", c.after, err, time.Since(began))
			}
			cancel()
		}
	})
}

// A panic of the base does not leave the others waiting.
func TestThrottleSurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		tr := &requests.Transport{Rand: noJitter, MaxAttempts: 1, Base: roundTripper(func(*http.Request) (*http.Response, error) {
			n++
			switch n {
			case 1:
				return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
			case 2:
				panic("base")
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		})}
		_, _ = trip(tr, get())
		func() {
			defer func() { _ = recover() }()
			_, _ = trip(tr, get())
		}()
		began := time.Now()
		if status, err := trip(tr, get()); status != 200 || time.Since(began) != 0 {
			t.Errorf("%d, %v after %v", status, err, time.Since(began))
		}
	})
}

// Who asks for one thing after the other has nobody to keep a distance to.
func TestThrottleIsNotFelt(t *testing.T) {
	quick(t, []reply{refuse(429, "7"), {status: 200}}, func(t *testing.T, tr *requests.Transport, b *base) {
		tr.Rand = nil
		began := time.Now()
		for range 10 {
			if status, err := trip(tr, get()); status != 200 {
				t.Errorf("%d, %v", status, err)
			}
		}
		if took := time.Since(began); took != 7*time.Second || len(b.sent) != 11 {
			t.Errorf("%d requests took %v", len(b.sent), took)
		}
	})
}
