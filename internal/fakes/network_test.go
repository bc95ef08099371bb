package fakes_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/heed-sdk/heed/internal/fakes"
)

func TestNetworkInBubble(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	fakes.Bubble(t, at, func(t *testing.T) {
		net := fakes.NewNetwork(t)
		net.Serve(t, "as.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/drop" {
				panic(http.ErrAbortHandler)
			}
			io.WriteString(w, time.Now().UTC().String())
		}))
		res, err := net.Client().Get("https://as.test/")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if got := string(b[:19]); got != "2026-11-29 12:00:00" {
			t.Errorf("the server's clock shows %s", b)
		}
		if _, err := net.Client().Get("https://as.test/drop"); err == nil {
			t.Error("a dropped request succeeded")
		}
		if _, err := net.Client().Get("https://nobody.test/"); err == nil {
			t.Error("a closed port answered")
		}
	})
}
