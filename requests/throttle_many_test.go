package requests_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/requests"
)

// allowance is a host that serves each credential a number of requests per window, and refuses the rest with the time
// until the next.
type allowance struct {
	limit   int
	every   time.Duration
	latency time.Duration
	now     func() time.Time
	began   time.Time

	mu      sync.Mutex
	served  map[string]int    // by credential, in its window
	window  map[string]int    // by credential
	refused map[string][]int  // the windows of refusals, by credential
	order   []string          // the paths of those served
	left    map[time.Time]int // how many arrived at an instant
}

func newAllowance(limit int, every, latency time.Duration) *allowance {
	return allowanceOn(time.Now, limit, every, latency)
}

func allowanceOn(now func() time.Time, limit int, every, latency time.Duration) *allowance {
	return &allowance{
		limit: limit, every: every, latency: latency, now: now, began: now(),
		served: map[string]int{}, window: map[string]int{}, refused: map[string][]int{}, left: map[time.Time]int{},
	}
}

func (a *allowance) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(a.latency)
	a.mu.Lock()
	defer a.mu.Unlock()
	now, who := a.now(), req.Header.Get("Authorization")
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
