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

// credential is the token of the login, for streams and polls.
func (d *demo) credential() stream.CredentialFunc {
	return stream.Tokens(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: d.token}))
}

func (d *demo) stream(ctx context.Context) error {
	const before, after = 2, 2 // events on each side of the restart
	d.events = fakes.NewEventServer(d.clock)
	d.close = append(d.close, func() { _ = d.events.Close() })
	d.events.Authorize = func(bearer string) bool { return bearer == d.token }
	origin, err := d.serve(d.events)
	if err != nil {
		return err
	}
	d.eventsURL = origin
	s := stream.Reconnect(stream.Config{
		Dialer:     websocket.Dialer{URL: "ws" + strings.TrimPrefix(origin, "http"), Client: d.http()},
		Credential: d.credential(),
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
	d.events.PublishEvery(2*time.Second, "tick")
	var ids []int
	for msg, err := range s.Messages(ctx) {
		if err != nil {
			return err
		}
		var e fakes.Event
		if err := json.Unmarshal(msg.Data, &e); err != nil {
			return err
		}
		ids = append(ids, e.ID)
		if err := d.note("event %d", e.ID); err != nil {
			return err
		}
		if len(ids) == before {
			d.events.Restart(1012, 1, 20*time.Second)
		}
		if len(ids) == before+after {
			break
		}
	}
	if len(ids) != before+after {
		return fmt.Errorf("%d events in place of %d", len(ids), before+after)
	}
	d.seen, d.missed = ids[before-1], ids[before]-ids[before-1]-1
	if len(d.waits) != 2 || d.waits[1].Server != 20*time.Second || d.waits[1].For != max(d.waits[1].Local, d.waits[1].Server) {
		return fmt.Errorf("the waits were %v", d.waits)
	}
	if n := d.events.MostAlive(); n != 1 {
		return fmt.Errorf("%d connections at once", n)
	}
	return d.note("%d events came meanwhile", d.missed)
}

func (d *demo) catchUp(ctx context.Context) error {
	poll := stream.HTTPPoll[fakes.Event]{
		Client: d.http(),
		Request: func(ctx context.Context, position string) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, d.eventsURL+"/?after="+position, nil)
		},
		Decode: func(_ http.Header, body []byte) (page stream.Page[fakes.Event], err error) {
			return page, json.Unmarshal(body, &page)
		},
	}
	walk := stream.Walk[fakes.Event]{Poll: poll.Poll, Credential: d.credential(), Clock: d.clock, Trace: &stream.Trace{Waiting: d.wait}}
	d.events.ThrottleOnce(12 * time.Second)
	next := d.seen + 1
	for page, err := range walk.Pages(ctx, fmt.Sprint(d.seen)) {
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			if e.ID != next {
				return fmt.Errorf("event %d came in place of %d", e.ID, next)
			}
			next++
		}
	}
	if next <= d.seen+d.missed {
		return fmt.Errorf("the events from %d on are missing", next)
	}
	if err := d.note("events %d to %d, each once and in order", d.seen+1, next-1); err != nil {
		return err
	}
	return d.waited(12 * time.Second)
}
