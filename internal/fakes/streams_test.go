package fakes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/heed-sdk/heed/internal/fakes"
)

func inBubble(t *testing.T, h http.Handler, f func(t *testing.T, client *http.Client)) {
	t.Helper()
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		net := fakes.NewNetwork(t)
		net.Serve(t, "ws.test", h)
		f(t, net.Client())
	})
}

func connect(t *testing.T, client *http.Client, header http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	return websocket.Dial(t.Context(), "wss://ws.test/live?q", &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
}

func TestStreamServerFollowsItsScript(t *testing.T) {
	s := fakes.NewStreamServer(
		fakes.StreamStep{Refuse: 503, RetryAfter: "7"},
		fakes.StreamStep{Messages: []string{"a", "b"}, Alive: 3 * time.Second, Then: fakes.End, Code: 1012, Reason: "bye"},
		fakes.StreamStep{Then: fakes.Drop},
		fakes.StreamStep{Then: fakes.Stop},
	)
	inBubble(t, s, func(t *testing.T, client *http.Client) {
		defer s.Close()
		_, res, err := connect(t, client, http.Header{"Authorization": {"Bearer x"}, "Last-Event-Id": {"9"}})
		if err == nil || res.StatusCode != 503 || res.Header.Get("Retry-After") != "7" {
			t.Fatalf("the first attempt: %v, %v", res, err)
		}
		time.Sleep(time.Second)
		c, _, err := connect(t, client, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"a", "b"} {
			if _, b, err := c.Read(t.Context()); err != nil || string(b) != want {
				t.Errorf("%q, %v, want %q", b, err, want)
			}
		}
		_, _, err = c.Read(t.Context())
		if websocket.CloseStatus(err) != 1012 {
			t.Errorf("the end: %v", err)
		}
		c, _, _ = connect(t, client, nil)
		if _, _, err = c.Read(t.Context()); err == nil || websocket.CloseStatus(err) != -1 {
			t.Errorf("the drop: %v", err)
		}
		c, _, _ = connect(t, client, nil)
		synctest.Wait()
		if s.Alive() != 1 || s.MostAlive() != 1 {
			t.Errorf("%d alive, %d at most", s.Alive(), s.MostAlive())
		}
		_ = c.CloseNow()
		synctest.Wait()
		if s.Alive() != 0 {
			t.Error("alive after the client has gone")
		}
		attempts := s.Attempts()
		if a := attempts[0]; a.Authorization != "Bearer x" || a.LastEventID != "9" || a.Query != "q" || a.Accepted {
			t.Errorf("recorded %+v", a)
		}
		if got := fakes.Waited(attempts); !slices.Equal(got, []time.Duration{time.Second, 0, 0}) {
			t.Errorf("waited %v", got)
		}
		if lived := attempts[1].Ended.Sub(attempts[1].At); lived != 3*time.Second {
			t.Errorf("lived %v", lived)
		}
		if len(s.Violations()) != 0 {
			t.Errorf("violations %q", s.Violations())
		}
		if _, _, err := connect(t, client, nil); err == nil || len(s.Violations()) != 1 {
			t.Errorf("beyond the script: %v, %q", err, s.Violations())
		}
	})
}

func TestStreamServerOfEvents(t *testing.T) {
	s := fakes.NewStreamServer(
		fakes.StreamStep{Refuse: 503, RetryAfter: "7"},
		fakes.StreamStep{Messages: []string{"a\nb"}, Raw: ": c", Alive: 3 * time.Second, Then: fakes.End},
		fakes.StreamStep{ContentType: "text/html", Then: fakes.Drop},
		fakes.StreamStep{Then: fakes.Stop},
		fakes.StreamStep{Then: fakes.Stop},
	)
	inBubble(t, s, func(t *testing.T, client *http.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		get := func() string {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://ws.test/", nil)
			req.Header.Set("Accept", "text/event-stream")
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			return fmt.Sprintf("%d %s %q broken: %t", res.StatusCode, res.Header.Get("Content-Type"), body, err != nil)
		}
		for _, want := range []string{
			`503  "" broken: false`,
			`200 text/event-stream "data: a\ndata: b\n\n: c" broken: false`,
			`200 text/html "" broken: true`,
		} {
			if got := get(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		time.AfterFunc(time.Second, func() {
			if s.Alive() != 1 {
				t.Errorf("%d alive", s.Alive())
			}
			_ = s.Close()
		})
		time.AfterFunc(2*time.Second, cancel)
		for range 2 { // broken by the server, and by the client
			if got := get(); got != `200 text/event-stream "" broken: true` {
				t.Error(got)
			}
		}
		synctest.Wait()
		attempts := s.Attempts()
		if lived := attempts[1].Ended.Sub(attempts[1].At); lived != 3*time.Second || !attempts[1].Accepted || attempts[0].Accepted {
			t.Errorf("%+v", attempts)
		}
		if s.Alive() != 0 || s.MostAlive() != 1 || len(s.Violations()) != 0 {
			t.Errorf("%d alive, %d at most, %q", s.Alive(), s.MostAlive(), s.Violations())
		}
	})
}

func TestPollServerFollowsItsScript(t *testing.T) {
	s := fakes.NewPollServer(fakes.PollStep{Status: 429, RetryAfter: "2"}, fakes.PollStep{Drop: true},
		fakes.PollStep{Status: 200, Events: []any{1}}, fakes.PollStep{Status: 200})
	inBubble(t, s, func(t *testing.T, client *http.Client) {
		var got []string
		for range 5 {
			res, err := client.Get("https://ws.test/")
			if err != nil {
				got = append(got, "dropped")
				continue
			}
			var page struct {
				Events []int
				Next   string
			}
			_ = json.NewDecoder(res.Body).Decode(&page)
			res.Body.Close()
			got = append(got, res.Status+" "+res.Header.Get("Retry-After")+page.Next)
		}
		want := []string{"429 Too Many Requests 2", "dropped", "200 OK 3", "200 OK ", "501 Not Implemented "}
		if !slices.Equal(got, want) || len(s.Violations()) != 1 || len(s.Polls()) != 5 {
			t.Errorf("%q, want %q; %q", got, want, s.Violations())
		}
	})
}

func TestEventServer(t *testing.T) {
	fakes.Bubble(t, time.Time{}, func(t *testing.T) {
		net := fakes.NewNetwork(t)
		s := fakes.NewEventServer(nil)
		s.Authorize = func(bearer string) bool { return bearer == "good" }
		net.Serve(t, "ws.test", s)
		client := net.Client()
		if _, res, err := connect(t, client, nil); err == nil || res.StatusCode != 401 {
			t.Errorf("without a token: %v, %v", res, err)
		}
		good := http.Header{"Authorization": {"Bearer good"}}
		c, _, err := connect(t, client, good)
		if err != nil {
			t.Fatal(err)
		}
		s.PublishEvery(time.Second, "tick")
		began := time.Now()
		for id := 1; id <= 3; id++ {
			_, b, err := c.Read(t.Context())
			var e fakes.Event
			if json.Unmarshal(b, &e) != nil || err != nil || e.ID != id || time.Since(began) != time.Duration(id)*time.Second {
				t.Errorf("event %d after %v: %s, %v", id, time.Since(began), b, err)
			}
		}
		s.Restart(1012, 1, 5*time.Second)
		if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != 1012 {
			t.Errorf("restart: %v", err)
		}
		if _, res, err := connect(t, client, good); err == nil || res.StatusCode != 503 || res.Header.Get("Retry-After") != "5" {
			t.Errorf("while restarting: %v, %v", res, err)
		}
		c, _, err = connect(t, client, good)
		if err != nil {
			t.Fatal(err)
		}
		s.Restart(0, 0, 0)
		if _, _, err := c.Read(t.Context()); err == nil || websocket.CloseStatus(err) != -1 {
			t.Errorf("dropped: %v", err)
		}
		c, _, _ = connect(t, client, good)
		synctest.Wait()
		_ = s.Close()
		if _, _, err := c.Read(context.Background()); err == nil {
			t.Error("alive after Close")
		}
		s.PublishEvery(time.Second, "never")
		time.Sleep(time.Minute)
	})
}
