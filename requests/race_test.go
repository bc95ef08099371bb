package requests_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-sdk/heed/requests"
)

// Many requests at once on one Transport, each refused, failed and served in its own order.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]int{}
		tr := &requests.Transport{
			Tokens: &source{}, AttemptTimeout: time.Minute,
			Hooks: requests.Hooks{OnRetry: func(context.Context, requests.Retry) {}},
			Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				seen[req.URL.Path]++
				n := seen[req.URL.Path]
				mu.Unlock()
				resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
				switch {
				case n == 1 && req.Header.Get("Authorization") == "Bearer t1":
					resp.StatusCode = 401
				case n == 2:
					return nil, errBroken
				}
				return resp, nil
			}),
		}
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				req := request(t.Context(), "PUT", fmt.Sprintf("/%d", i), "body")
				if status, err := trip(tr, req); status != 200 || err != nil {
					t.Errorf("%d: %d, %v after %d attempts", i, status, err, seen[req.URL.Path])
				}
			})
		}
		all.Wait()
	})
}
