package auth_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

// An API on the same host leaves connections in the pool, which a server closes just when a refresh goes out on one: the
// refresh token would count as spent.
func TestRefreshTakesNoConnectionOfAnotherRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 22\r\n\r\n{\"access_token\":\"new\"}")
				_, _ = http.ReadRequest(r) // and no answer to that
			}()
		}
	}()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	res, err := client.Get("http://" + l.Addr().String() + "/api")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()

	r := auth.Refresher{
		Config:     oauth2.Config{ClientID: "c", Endpoint: oauth2.Endpoint{TokenURL: "http://" + l.Addr().String() + "/token"}},
		HTTPClient: client,
	}
	tok, err := r.Refresh(t.Context(), storedToken(nil))
	if err != nil || tok.AccessToken != "new" {
		t.Errorf("%v", err)
	}
}
