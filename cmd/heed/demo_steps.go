package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/websocket"
)

func (d *demo) login(ctx context.Context) error {
	as := &fakes.AuthServer{
		Clock: d.clock, ClientID: "demo", Interval: 5, ExpiresIn: 600,
		Odd: map[int]fakes.AuthAnswer{
			2: fakes.OAuthError(http.StatusBadRequest, "slow_down"),
			3: fakes.Throttle(25),
			4: {Drop: true},
		},
		ApproveOnPoll: 5,
	}
	origin, err := d.serve(as)
	if err != nil {
		return err
	}
	as.Issuer = origin
	flow := auth.DeviceFlow{
		Config: oauth2.Config{
			ClientID: "demo", Scopes: []string{"files", "events"},
			Endpoint: oauth2.Endpoint{DeviceAuthURL: origin + fakes.DevicePath, TokenURL: origin + fakes.TokenPath},
		},
		Prompter: auth.PrompterFunc(func(_ context.Context, p auth.Prompt) error {
			return d.note("the user is shown the code %s", p.UserCode)
		}),
		HTTPClient: d.http(),
		Clock:      d.clock,
		OnEvent: func(e auth.Event) {
			if w, ok := e.(auth.Waiting); ok {
				d.wait(w.Wait)
			}
		},
	}
	token, err := flow.Login(ctx)
	if err != nil {
		return err
	}
	if !as.Valid(token.AccessToken) {
		return fmt.Errorf("the token is not one that the server has issued")
	}
	d.token = token.AccessToken
	if err := d.note("approved: a token that is good for %s", time.Duration(token.ExpiresIn)*time.Second); err != nil {
		return err
	}
	// The interval, twice; 10 s after slow_down; Retry-After once, since it is longer; and the backoff doubled from the
	// interval in force, since there was no answer.
	if err := d.waited(5*time.Second, 5*time.Second, 10*time.Second, 25*time.Second, 20*time.Second); err != nil {
		return err
	}
	return clean(as.Violations())
}

func (d *demo) http() *http.Client { return &http.Client{Transport: d.app.transport} }

// client is a client of an API whose waits are shown.
func (d *demo) client(origin string) (*requests.Client, error) {
	return requests.NewClient(origin, &requests.Transport{
		Base:   d.app.transport,
		Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: d.token}),
		Clock:  d.clock,
		Hooks:  requests.Hooks{OnWait: d.wait},
	})
}

func (d *demo) requests(ctx context.Context) error {
	throttled := fakes.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"8"}}}
	api := fakes.NewAPI(
		fakes.Answer{Body: "project /1"},
		throttled, fakes.Answer{Body: "project /2"},
		throttled, fakes.Answer{Body: "project /3"},
	)
	api.Clock = d.clock
	origin, err := d.serve(api)
	if err != nil {
		return err
	}
	client, err := d.client(origin)
	if err != nil {
		return err
	}
	for _, path := range []string{"/1", "/2", "/3"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+path, nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return err
		}
		if want := "project " + path; string(body) != want {
			return fmt.Errorf("the answer is %q in place of %q", body, want)
		}
		if err := d.note("GET %s: %d", path, res.StatusCode); err != nil {
			return err
		}
	}
	if err := d.waited(8*time.Second, 8*time.Second); err != nil {
		return err
	}
	for _, r := range api.Received() {
		if r.Header.Get("Authorization") != "Bearer "+d.token {
			return fmt.Errorf("a request came without the token")
		}
	}
	for i, w := range api.Waits() {
		if i%2 == 1 && w < 8*time.Second {
			return fmt.Errorf("the API was asked again after %v", w)
		}
	}
	return clean(api.Violations())
}

func (d *demo) download(ctx context.Context) error {
	const content = "It is later than you think, and it was worth the wait.\n"
	files := &fakes.Files{Clock: d.clock, Content: map[string]string{"/report.txt": content}}
	storage, err := d.serve(files.Store())
	if err != nil {
		return err
	}
	files.Storage = storage
	var asked atomic.Int32
	api := files.API()
	origin, err := d.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "6")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		default:
			api.ServeHTTP(w, r)
		}
	}))
	if err != nil {
		return err
	}
	client, err := d.client(origin)
	if err != nil {
		return err
	}
	file, err := client.Download(ctx, origin+"/report.txt")
	if err != nil {
		return err
	}
	defer file.Body.Close()
	body, err := io.ReadAll(file.Body)
	if err != nil {
		return err
	}
	if string(body) != content {
		return fmt.Errorf("the file holds %q", body)
	}
	if err := d.note("%s: %d bytes, and the storage saw no credential", file.FileName, len(body)); err != nil {
		return err
	}
	if len(d.waits) != 2 || d.waits[0].For != 6*time.Second || d.waits[1].For != d.waits[1].Local {
		return fmt.Errorf("the waits were %v", d.waits)
	}
	return clean(files.Violations())
}

func (d *demo) stream(ctx context.Context) error {
	server := &restartingServer{clock: d.clock, token: d.token, before: 3, after: 3, retryAfter: 20}
	origin, err := d.serve(server)
	if err != nil {
		return err
	}
	s := stream.Reconnect(stream.Config{
		Dialer:     websocket.Dialer{URL: "ws" + strings.TrimPrefix(origin, "http"), Client: d.http()},
		Credential: stream.Tokens(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: d.token})),
		Clock:      d.clock,
		// On the fast clock the default could be too little for a busy machine.
		HandshakeDeadline: time.Minute,
		Trace: &stream.Trace{
			Waiting: d.wait,
			Disconnected: func(i stream.DisconnectedInfo) {
				if i.By == stream.ByServer {
					_ = d.note("disconnected: %v", i.Err)
				}
			},
		},
	})
	defer s.Close()
	n := 0
	for msg, err := range s.Messages(ctx) {
		if err != nil {
			return err
		}
		n++
		if want := fmt.Sprintf("event %d", n); string(msg.Data) != want {
			return fmt.Errorf("%q came in place of %q", msg.Data, want)
		}
		if err := d.note("%s", msg.Data); err != nil {
			return err
		}
		if n == 6 {
			break
		}
	}
	if n != 6 {
		return fmt.Errorf("%d events in place of 6", n)
	}
	if len(d.waits) != 2 || d.waits[1].For < 20*time.Second || d.waits[1].For != max(d.waits[1].Local, d.waits[1].Server) {
		return fmt.Errorf("the waits were %v", d.waits)
	}
	return clean(server.violations())
}

func (d *demo) catchUp(ctx context.Context) error {
	var polls atomic.Int32
	origin, err := d.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch polls.Add(1) {
		case 1:
			_, _ = io.WriteString(w, `{"events":[1,2],"next":"2"}`)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			w.Header().Set("Retry-After", "12")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			_, _ = io.WriteString(w, `{"events":[3],"next":""}`)
		}
	}))
	if err != nil {
		return err
	}
	poll := stream.HTTPPoll[int]{
		Client: d.http(),
		Request: func(ctx context.Context, position string) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, origin+"/?since="+position, nil)
		},
		Decode: func(_ http.Header, body []byte) (page stream.Page[int], err error) {
			return page, json.Unmarshal(body, &page)
		},
	}
	walk := stream.Walk[int]{Poll: poll.Poll, Clock: d.clock, Trace: &stream.Trace{Waiting: d.wait}}
	var events []int
	for page, err := range walk.Pages(ctx, "0") {
		if err != nil {
			return err
		}
		events = append(events, page.Events...)
		if err := d.note("a page of %d events", len(page.Events)); err != nil {
			return err
		}
	}
	if fmt.Sprint(events) != "[1 2 3]" {
		return fmt.Errorf("the events are %v", events)
	}
	if len(d.waits) != 2 || d.waits[1].For != 12*time.Second {
		return fmt.Errorf("the waits were %v", d.waits)
	}
	return nil
}
