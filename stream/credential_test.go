package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream"
)

func TestFreshCredentialForEveryAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		var refusals []string
		n := 0
		d := dials(refused(503, 0), refused(401, 0), refused(503, 0), step{messages: []string{"a"}, end: &stream.DisconnectError{Class: stream.Unauthorized}}, last)
		_, err := follow(t, c, d, func(c *stream.Config) {
			c.Credential = func(_ context.Context, refused stream.Credential) (stream.Credential, error) {
				refusals = append(refusals, refused.URL)
				n++
				return stream.Credential{URL: fmt.Sprint("ticket-", n)}, nil
			}
		})
		want(t, "error", err, nil)
		tickets := []string{}
		for _, a := range d.attempts {
			tickets = append(tickets, a.Credential.URL)
		}
		wantList(t, "tickets", tickets, []string{"ticket-1", "ticket-2", "ticket-3", "ticket-4", "ticket-5"})
		wantList(t, "told that it was refused", refusals, []string{"", "", "ticket-2", "", "ticket-4"})
	})
}

func retrieve(status int, code, retryAfter string) error {
	res := &http.Response{StatusCode: status, Header: http.Header{}}
	if retryAfter != "" {
		res.Header.Set("Retry-After", retryAfter)
	}
	return fmt.Errorf("minting: %w", &oauth2.RetrieveError{Response: res, ErrorCode: code, Body: []byte("secret-body")})
}

func TestCredentialFailures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		wait   time.Duration
		reason delay.Reason
		ends   stream.Reason // the first failure is the last
	}{
		{"no answer", errors.New("no route"), time.Second, delay.OwnDelay, ""},
		{"throttled", retrieve(429, "", "30"), 30 * time.Second, delay.Floored, ""},
		{"unavailable", retrieve(503, "", "20"), 20 * time.Second, delay.Floored, ""},
		{"temporarily unavailable", retrieve(400, "temporarily_unavailable", ""), time.Second, delay.OwnDelay, ""},
		{"slow down", retrieve(400, "slow_down", "7"), 7 * time.Second, delay.Floored, ""},
		{"refused grant", retrieve(400, "invalid_grant", "300"), time.Second, delay.Unheeded, ""},
		{"refused grant with 200", retrieve(200, "bad_refresh_token", ""), time.Second, delay.Unheeded, ""},
		{"refused client", retrieve(401, "invalid_client", "300"), time.Second, delay.Unheeded, ""},
		{"login required", loginRequired{}, 0, 0, stream.MintFailed},
		{"not found", retrieve(404, "", "300"), 0, 0, stream.MintFailed},
		{"as the source says", &stream.AttemptError{Class: stream.Throttled, RetryAfter: delay.Asked(time.Minute)}, time.Minute, delay.Floored, ""},
		{"permanent, as the source says", fmt.Errorf("no account: %w", &stream.AttemptError{Class: stream.Permanent}), 0, 0, stream.MintFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c watched) {
				failed := false
				d := dials(last)
				l, err := follow(t, c, d, func(c *stream.Config) {
					c.Credential = func(context.Context, stream.Credential) (stream.Credential, error) {
						if failed {
							return stream.Credential{URL: "ticket"}, nil
						}
						failed = true
						return stream.Credential{}, tt.err
					}
				})
				want(t, "step", l.failed[0].Step, "credential")
				if strings.Contains(l.failed[0].Err.Error(), "secret") {
					t.Errorf("the body is in the text: %v", l.failed[0].Err)
				}
				if tt.ends != "" {
					want(t, "reason", errors.Is(err, tt.ends), true)
					want(t, "dials", d.count(), 0)
					return
				}
				want(t, "error", err, nil)
				wantDurations(t, "waits", l.waited(), []time.Duration{tt.wait})
				want(t, "reason", l.waits[0].Reason, tt.reason)
				want(t, "dials", d.count(), 1)
			})
		})
	}
}

type loginRequired struct{}

func (loginRequired) Error() string       { return "the session has expired" }
func (loginRequired) LoginRequired() bool { return true }

func TestRefusedGrantCountsOnTheSharedCounter(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		n := 0
		d := dials(refused(401, 0))
		_, err := follow(t, c, d, func(c *stream.Config) {
			c.Credential = func(context.Context, stream.Credential) (stream.Credential, error) {
				if n++; n == 1 {
					return stream.Credential{URL: "ticket"}, nil
				}
				return stream.Credential{}, retrieve(400, "invalid_grant", "")
			}
		})
		want(t, "reason", errors.Is(err, stream.AuthorizationFailed), true)
		want(t, "asked", n, 3)
		want(t, "dials", d.count(), 1)
	})
}

// tokens is a source that counts, and can be told that a token was refused.
type tokens struct {
	current   int
	refreshed []string
}

func (s *tokens) Token() (*oauth2.Token, error) {
	return &oauth2.Token{AccessToken: fmt.Sprint("token-", s.current)}, nil
}

func (s *tokens) Refresh(_ context.Context, refused *oauth2.Token) (*oauth2.Token, error) {
	s.refreshed = append(s.refreshed, refused.AccessToken)
	s.current++
	return s.Token()
}

func TestTokens(t *testing.T) {
	bubble(t, func(t *testing.T, c watched) {
		source := &tokens{}
		d := dials(refused(503, 0), refused(401, 0), refused(401, 0), last)
		_, err := follow(t, c, d, func(c *stream.Config) { c.Credential = stream.Tokens(source) })
		want(t, "error", err, nil)
		sent := []string{}
		for _, a := range d.attempts {
			sent = append(sent, a.Credential.Token.AccessToken)
		}
		wantList(t, "sent", sent, []string{"token-0", "token-0", "token-1", "token-2"})
		wantList(t, "refreshed", source.refreshed, []string{"token-0", "token-1"})
	})
}

// contextTokens must be asked through its context.
type contextTokens struct{ tokens }

func (*contextTokens) Token() (*oauth2.Token, error) {
	return nil, errors.New("asked without a context")
}

func (s *contextTokens) TokenContext(ctx context.Context) (*oauth2.Token, error) {
	return s.tokens.Token()
}

func TestTokensWithContext(t *testing.T) {
	credential, err := stream.Tokens(&contextTokens{})(t.Context(), stream.Credential{})
	want(t, "error", err, nil)
	want(t, "token", credential.Token.AccessToken, "token-0")
	_, err = stream.Tokens(tokenFunc(func() (*oauth2.Token, error) { return &oauth2.Token{}, nil }))(t.Context(), stream.Credential{})
	want(t, "an empty token fails", err != nil, true)
}

func TestCredentialNeverPrints(t *testing.T) {
	c := stream.Credential{Token: &oauth2.Token{AccessToken: "canary"}, URL: "wss://h/?t=canary"}
	a := stream.Attempt{Number: 1, Credential: c}
	var out strings.Builder
	for _, v := range []any{c, &c, a, &a, []stream.Credential{c}, struct{ C stream.Credential }{c}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		b, _ := json.Marshal(v)
		out.Write(b)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v)
	}
	if strings.Contains(out.String(), "canary") || strings.Contains(out.String(), fmt.Sprintf("%x", "canary")) {
		t.Errorf("the credential shows:\n%s", out.String())
	}
}
