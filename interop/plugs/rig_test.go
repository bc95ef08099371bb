package plugs_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

// start is when every test begins.
var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// rig is an API on a network in memory, in a bubble whose time is virtual.
type rig struct {
	*testing.T
	api *fakes.API
	net *fakes.Network
}

// run runs a test against an API with a script, all of which has to be played.
func run(t *testing.T, host string, script []fakes.Answer, test func(r *rig)) {
	t.Helper()
	fakes.Bubble(t, start, func(t *testing.T) {
		r := &rig{T: t, api: fakes.NewAPI(script...), net: fakes.NewNetwork(t)}
		r.net.Serve(t, host, r.api)
		test(r)
		for _, v := range r.api.Violations() {
			t.Error(v)
		}
		if n := len(r.api.Received()); n != len(script) {
			t.Errorf("%d requests, want %d", n, len(script))
		}
	})
}

func (r *rig) transport() *requests.Transport {
	return &requests.Transport{
		Base:   r.net.Transport(),
		Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "example"}),
		Rand:   func(int64) int64 { return 0 }, // no jitter
	}
}

// wantWaits checks how long the API was left alone between requests.
func (r *rig) wantWaits(want ...time.Duration) {
	r.Helper()
	if got := r.api.Waits(); !slices.Equal(got, want) {
		r.Errorf("the waits were %v, want %v", got, want)
	}
}

// answer is one with headers, given as names and values in turn.
func answer(status int, body string, headers ...string) fakes.Answer {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return fakes.Answer{Status: status, Body: body, Header: h}
}

// unix is so long after the beginning, in seconds since 1970.
func unix(d time.Duration) string { return strconv.FormatInt(start.Add(d).Unix(), 10) }
