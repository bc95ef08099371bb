package header_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/heed-sdk/heed/stream/internal/header"
)

// TestCheck has net/http for a judge, of each byte in a name and in a value.
func TestCheck(t *testing.T) {
	unreachable := errors.New("unreachable")
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, unreachable }}
	for c := range 256 {
		s := "a" + string([]byte{byte(c)}) + "s3cret"
		for _, h := range []http.Header{{s: {"v"}}, {"Name": {"v", s}}} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h.test/", nil)
			req.Header = h
			_, judged := transport.RoundTrip(req)
			err := header.Check(h)
			if (err == nil) != errors.Is(judged, unreachable) {
				t.Errorf("%q: %v, and net/http says %v", h, err, judged)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q shows in %q", h, err)
			}
		}
	}
	if header.Check(http.Header{"": {"v"}}) == nil {
		t.Error("a header without a name")
	}
}
