package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/heed-sdk/heed"
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/interop/oidcprovider"
	"github.com/heed-sdk/heed/interop/streams"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

// tokenExpired is the code with which centrifuge closes a connection whose token has expired.
const tokenExpired = 3005

// TestChain is everything together: a login at one server, whose token another one checks by the first one's keys alone.
// That one streams events until the token expires, and then closes the connection. The stream comes back with a new token
// and goes on after the last event that it has delivered, so that of those that are published all the time none is lost
// and none comes twice.
func TestChain(t *testing.T) {
	t.Parallel()
	op := oidcprovider.Start(t, oidcprovider.Config{AccessTTL: 4 * time.Second, Interval: time.Second})
	v := &verifier{issuer: op.Issuer(), keys: keys(t, op.Issuer())}
	s := streams.Start(t, streams.Config{
		Authorize: func(bearer string) bool { _, err := v.verify(bearer); return err == nil },
		Expires: func(bearer string) time.Time {
			expiry, err := v.verify(bearer)
			if err != nil { // it has expired since
				return time.Now()
			}
			return expiry
		},
		PingInterval: pingInterval,
	})

	a := newApp(t, op, heed.Config{
		ClientID: publicID, Scopes: scopes, Resources: []string{oidcprovider.Resource}, Store: &auth.FileStore{Dir: t.TempDir()},
	})
	first := a.login()
	if _, err := v.verify(first.AccessToken); err != nil {
		t.Fatalf("the token of the login: %v", err)
	}

	f := follow(t, s, centrifuge{websocket.Dialer{URL: s.URL(), Client: newClient(t)}, channel})
	f.config.Credential = stream.Tokens(a.TokenSource())

	// Events go on whether anybody hears them or not.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var publishing sync.WaitGroup
	defer publishing.Wait()
	defer cancel()
	started := false
	f.connected = func(int) {
		if started {
			return
		}
		started = true
		publishing.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				s.Publish(channel, n)
				time.Sleep(20 * time.Millisecond)
			}
		})
	}

	const expiries = 2
	want, after := 1, 0 // after: messages on the last connection
	for m, err := range stream.Reconnect(f.config).Messages(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Data) != strconv.Itoa(want) {
			t.Fatalf("received %s, want %d", m.Data, want)
		}
		want++
		if len(f.disconnected) < expiries {
			continue
		}
		if after++; after == 10 {
			break
		}
	}
	if after != 10 {
		t.Fatalf("the stream ended before message %d: %v", want, ctx.Err())
	}
	f.wantConnections(0)

	if n := len(f.disconnected); n != expiries+1 || f.disconnected[expiries].By != stream.ByConsumer {
		t.Errorf("disconnected %d times: %+v", n, f.disconnected)
	}
	for _, d := range f.disconnected[:expiries] {
		closed, _ := errors.AsType[*stream.DisconnectError](d.Err)
		if closed == nil || closed.Code != tokenExpired || !d.Healthy || d.By != stream.ByServer {
			t.Errorf("a disconnect: %+v", d)
		}
	}
	// Every connection had a token of its own. In between, one that the server counts as expired and the client does not yet
	// may have been refused, and has then been replaced.
	var let []string
	for i, h := range s.Handshakes() {
		switch h.Status {
		case http.StatusSwitchingProtocols:
			if slices.Contains(let, h.Bearer) {
				t.Errorf("handshake %d came with an old token", i+1)
			}
			let = append(let, h.Bearer)
		case http.StatusUnauthorized:
			if i == 0 || h.Bearer != s.Handshakes()[i-1].Bearer {
				t.Errorf("handshake %d was refused", i+1)
			}
		default:
			t.Errorf("handshake %d was answered with %d", i+1, h.Status)
		}
	}
	if len(let) != expiries+1 || let[0] != first.AccessToken {
		t.Errorf("%d tokens were let in, want %d", len(let), expiries+1)
	}
	if got := a.refreshed(); len(got) < expiries {
		t.Errorf("the refreshes were %v", got)
	}
	if got := a.stored(); !slices.Equal(got.Resources, []string{oidcprovider.Resource}) {
		t.Errorf("the resources of the login are %q", got.Resources)
	}
}

// verifier is what a resource server does with a JWT: it knows the issuer and its keys, and asks nobody.
type verifier struct {
	issuer string
	keys   *jose.JSONWebKeySet
}

func (v *verifier) verify(bearer string) (expiry time.Time, err error) {
	token, err := jwt.ParseSigned(bearer, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return expiry, err
	}
	var claims jwt.Claims
	if err := token.Claims(v.keys, &claims); err != nil {
		return expiry, err
	}
	want := jwt.Expected{Issuer: v.issuer, AnyAudience: jwt.Audience{oidcprovider.Resource}}
	if err := claims.ValidateWithLeeway(want, 0); err != nil {
		return expiry, err
	}
	if claims.Subject != user || claims.Expiry == nil {
		return expiry, fmt.Errorf("the claims are %+v", claims)
	}
	return claims.Expiry.Time(), nil
}

// keys fetches the keys that a server signs with.
func keys(t *testing.T, issuer string) *jose.JSONWebKeySet {
	t.Helper()
	client := newClient(t)
	get := func(address string, into any) {
		res, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	var metadata struct {
		JWKS string `json:"jwks_uri"`
	}
	get(issuer+"/.well-known/openid-configuration", &metadata)
	set := &jose.JSONWebKeySet{}
	get(metadata.JWKS, set)
	return set
}
