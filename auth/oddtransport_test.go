package auth_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
)

// What net/http's client puts up with in a transport is put up with here; TestTransportWithoutContract has the rest.
func TestTransportThatAnswersWithNothing(t *testing.T) {
	nothing := roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil })
	bodiless := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}}, nil
	})
	for name, transport := range map[string]http.RoundTripper{"nothing": nothing, "no body": bodiless} {
		t.Run(name, func(t *testing.T) {
			client := &http.Client{Transport: transport}
			r, _ := newRefresher(t, nil)
			r.HTTPClient = client
			_, err := r.Refresh(t.Context(), storedToken(nil))
			e, ok := errors.AsType[*auth.RefreshError](err)
			if !ok || (e.Reason == auth.ErrReplyLost) != (name == "nothing") || (e.Status == http.StatusServiceUnavailable) != (name == "no body") {
				t.Errorf("a refresh: %v", err)
			}
			revoker := auth.Revoker{Config: r.Config, URL: "https://as.test/revoke", HTTPClient: client}
			if _, ok := errors.AsType[*auth.RevokeError](revoker.Revoke(t.Context(), auth.Credential{AccessToken: "a"})); !ok {
				t.Error("a revocation that nobody has answered succeeds")
			}
		})
	}
}

// Part of an answer is not the empty one that some servers give to a token that they do not take any more.
func TestRefusalThatIsCutShort(t *testing.T) {
	fakes.Bubble(t, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		whole := r.cfg.Refresher.HTTPClient
		r.cfg.Refresher.HTTPClient = &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}},
				Body: &cutBody{strings.NewReader(`{"error":"temporarily_un`)},
			}, nil
		})}
		time.Sleep(2 * time.Hour)
		e := refusal(t, r.open())
		if e.Reason != auth.ErrRefused || e.Status != http.StatusBadRequest || !strings.HasSuffix(e.Error(), "try again later, and log in again if that is refused") {
			t.Errorf("it is %v", e)
		}
		r.cfg.Refresher.HTTPClient = whole
		r.fresh(r.open())
	})
}

type cutBody struct{ *strings.Reader }

func (b *cutBody) Read(p []byte) (int, error) {
	if b.Len() == 0 {
		return 0, errors.New("connection reset by peer")
	}
	return b.Reader.Read(p)
}

func (*cutBody) Close() error { return nil }

// A hook that ends its goroutine, as a test that fails does, ends one refresh and not the source.
func TestHookThatEndsItsGoroutine(t *testing.T) {
	fakes.Bubble(t, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), func(t *testing.T) {
		r := newSourceRig(t, time.Hour)
		s := r.open()
		time.Sleep(2 * time.Hour)
		r.store.onLoad = func() error {
			r.store.onLoad = nil
			runtime.Goexit()
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if tok, err := s.TokenContext(ctx); tok != nil || err == nil || ctx.Err() != nil {
			t.Errorf("the refresh that was ended returns %v", err)
		}
		r.fresh(s)
		r.refreshed(1)
	})
}
