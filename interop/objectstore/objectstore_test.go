package objectstore_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/interop/internal/line"
	"github.com/heed-sdk/heed/interop/objectstore"
	"github.com/heed-sdk/heed/requests"
)

const (
	token = "api-token-0123456789"
	key   = "reports/2026 11/all.bin"
)

// content is something that no two parts of are alike.
func content(seed uint64, size int) []byte {
	var s [32]byte
	s[0] = byte(seed)
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(s).Read(b)
	return b
}

// rig is a client of an API, which knows who may have what of a store.
type rig struct {
	t      *testing.T
	client *requests.Client

	base *http.Transport

	mu   sync.Mutex
	link objectstore.Link // what the API signs
	more string           // what it adds to the query when that is signed
	hops []*http.Request  // of both hops, in their order
}

// newRig starts an API for the store. It answers to its own token alone, and signs anew for each request.
func newRig(t *testing.T, store *objectstore.Server, link objectstore.Link) *rig {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	r := &rig{t: t, base: base, link: link}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		http.Redirect(w, req, store.Sign(r.link)+r.more, http.StatusFound)
	}))
	t.Cleanup(api.Close)
	var err error
	r.client, err = requests.NewClient(api.URL, &requests.Transport{
		Base: r, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.hops = append(r.hops, req)
	r.mu.Unlock()
	return r.base.RoundTrip(req)
}

// wantHops checks how many requests there were.
func (r *rig) wantHops(n int) {
	r.t.Helper()
	if len(r.hops) != n {
		r.t.Errorf("%d requests, want %d", len(r.hops), n)
	}
}

// from downloads from an offset on, and reads the body to its end, which may be an early one.
func (r *rig) from(offset int64, validator string) (*requests.Download, []byte, error) {
	r.t.Helper()
	d, err := r.client.DownloadFrom(r.t.Context(), "/files/7", offset, validator)
	if err != nil {
		r.t.Fatal(err)
	}
	defer d.Body.Close()
	body, err := io.ReadAll(d.Body)
	return d, body, err
}

// refused downloads what is not to be had.
func (r *rig) refused(offset int64, validator string) *requests.Error {
	r.t.Helper()
	_, err := r.client.DownloadFrom(r.t.Context(), "/files/7", offset, validator)
	e, ok := errors.AsType[*requests.Error](err)
	if !ok {
		r.t.Fatalf("the error is %v", err)
	}
	for _, secret := range []string{"X-Amz", "Signature", "?", token} {
		if strings.Contains(err.Error(), secret) {
			r.t.Errorf("%s is in the error %v", secret, err)
		}
	}
	return e
}

func TestDownload(t *testing.T) {
	t.Parallel()
	store := objectstore.Start(t)
	whole := content(1, 1<<20)
	store.Put(key, whole)
	good := objectstore.Link{Key: key, Name: "all of it.bin"}

	t.Run("whole", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, store, good)
		d, body, err := r.from(0, "")
		if err != nil || sha256.Sum256(body) != sha256.Sum256(whole) || d.Length != int64(len(whole)) || d.FileName != "all of it.bin" || d.Validator == "" {
			t.Errorf("%d bytes, %v: %+v", len(body), err, d)
		}
		r.wantHops(2)
		if first, second := r.hops[0].Header, r.hops[1].Header; first.Get("Authorization") == "" || len(second) != 1 || second.Get("Accept-Encoding") != "identity" {
			t.Errorf("hop 1 had %v, hop 2 had %v", first, second)
		}
	})
	// What the tests above and below rely on: that the store would say so if it got the credential.
	t.Run("both mechanisms", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, store, good)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, store.Sign(good), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := r.base.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
	for _, tt := range []struct {
		name   string
		link   objectstore.Link
		more   string
		status int
		code   requests.Code
	}{
		{"expired", objectstore.Link{Key: key, At: time.Now().Add(-time.Hour)}, "", http.StatusForbidden, requests.CodeForbidden},
		{"another signature", good, "&versionId=7", http.StatusForbidden, requests.CodeForbidden},
		{"not there", objectstore.Link{Key: "nothing"}, "", http.StatusNotFound, requests.CodeNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, store, tt.link)
			r.more = tt.more
			if e := r.refused(0, ""); e.Status != tt.status || e.Code != tt.code || e.Retryable {
				t.Errorf("%+v", e)
			}
			r.wantHops(2)
		})
	}
	// As S3 sends one to the region that a bucket is in.
	t.Run("moved", func(t *testing.T) {
		t.Parallel()
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, store.Sign(good), http.StatusTemporaryRedirect)
		}))
		t.Cleanup(elsewhere.Close)
		r := newRig(t, store, objectstore.Link{Key: key, Host: elsewhere.Listener.Addr().String()})
		if e := r.refused(0, ""); e.Status != http.StatusTemporaryRedirect || e.Code != requests.CodeAPI {
			t.Errorf("%+v", e)
		}
		r.wantHops(2)
		if last := r.hops[1].URL.Host; last != elsewhere.Listener.Addr().String() {
			t.Errorf("the last request went to %s", last)
		}
	})
}

// TestResume downloads over a line that breaks after some hundred thousand bytes.
func TestResume(t *testing.T) {
	t.Parallel()
	store := objectstore.Start(t)
	const size, upTo = 1 << 20, 300_000

	t.Run("goes on", func(t *testing.T) {
		t.Parallel()
		const key = "steady"
		whole := content(2, size)
		store.Put(key, whole)
		l := line.New(t, store.Addr())
		l.Add("limit_data", map[string]any{"bytes": upTo})
		r := newRig(t, store, objectstore.Link{Key: key, Host: l.Addr()})

		var got []byte
		validator, breaks := "", 0
		for len(got) < size && breaks < 20 {
			d, body, err := r.from(int64(len(got)), validator)
			if d.Offset != int64(len(got)) || d.Length != int64(size-len(got)) || d.Validator == "" {
				t.Fatalf("behind %d bytes: %+v", len(got), d)
			}
			if got, validator = append(got, body...), d.Validator; err != nil {
				breaks++
			}
		}
		if !bytes.Equal(got, whole) {
			t.Errorf("%d bytes that are not the object's", len(got))
		}
		if breaks < size/upTo {
			t.Errorf("the line broke %d times", breaks)
		}
		// Each time from the first hop again, for a signature that is good.
		r.wantHops(2 * (breaks + 1))
		for i, hop := range r.hops[2:] {
			if hop.Header.Get("Range") == "" || hop.Header.Get("If-Range") != validator {
				t.Errorf("hop %d had %v", i+3, hop.Header)
			}
			if signed := i%2 == 1; signed == (hop.Header.Get("Authorization") != "") {
				t.Errorf("hop %d had %v", i+3, hop.Header)
			}
		}
	})

	for _, tt := range []struct {
		name string
		key  string
		size int // of the object that comes in place of the other
		hops int // of the download that goes on from there
	}{
		// This store takes no notice of If-Range, so that it is asked twice.
		{"replaced by a longer one", "longer", 2 * size, 4},
		{"replaced by a shorter one", "shorter", upTo / 10, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store.Put(tt.key, content(3, size))
			l := line.New(t, store.Addr())
			l.Add("limit_data", map[string]any{"bytes": upTo})
			r := newRig(t, store, objectstore.Link{Key: tt.key, Host: l.Addr()})
			broken, body, err := r.from(0, "")
			if err == nil || len(body) == 0 || len(body) > upTo {
				t.Fatalf("%d bytes, %v", len(body), err)
			}
			other := content(4, tt.size)
			store.Put(tt.key, other)
			r.link.Host = "" // by a good line
			r.hops = nil
			if tt.hops == 0 {
				if e := r.refused(int64(len(body)), broken.Validator); e.Status != http.StatusRequestedRangeNotSatisfiable {
					t.Errorf("%+v", e)
				}
				return
			}
			d, body, err := r.from(int64(len(body)), broken.Validator)
			if err != nil || d.Offset != 0 || !bytes.Equal(body, other) || d.Validator == broken.Validator {
				t.Errorf("%d bytes from %d on, %v", len(body), d.Offset, err)
			}
			r.wantHops(tt.hops)
		})
	}
}
