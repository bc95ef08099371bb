package requests

import (
	"context"
	"errors"
	"net"
	"net/http"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/delay"
)

// Refresher is a TokenSource that can replace a token which a server refused.
//
//   - Refresh returns a token to use in place of the refused one.
//   - If the refused token is no longer the source's current one, Refresh returns the current one and refreshes nothing: so
//     that requests refused together lead to one refresh.
//   - Refresh returns when ctx ends. Many goroutines may call it at once.
type Refresher interface {
	Refresh(ctx context.Context, refused *oauth2.Token) (*oauth2.Token, error)
}

// ContextTokenSource is a TokenSource that can be asked with a context.
type ContextTokenSource interface {
	TokenContext(ctx context.Context) (*oauth2.Token, error)
}

// authorise attaches the token to an attempt: the one that a 401 was renewed to, or the source's current one, which may
// have changed during a wait.
func (e *exchange) authorise(ctx context.Context, h http.Header) error {
	tok := e.renewed
	e.renewed = nil
	if tok == nil {
		var err error
		if tok, err = e.t.current(ctx); err != nil {
			return authError(ctx, err, &Error{Message: "there is no token to send"})
		}
	}
	if tok == nil || tok.AccessToken == "" {
		return &Error{Code: CodeAuthRequired, Message: "there is no token to send", Hint: "log in"}
	}
	credentials := tok.Type() + " " + tok.AccessToken
	if !printable(credentials) {
		return &Error{Code: CodeAuthRequired, Message: "the token has a character that no header takes", Hint: "log in again"}
	}
	e.token = tok
	remove(h, "Authorization")
	h.Set("Authorization", credentials)
	return nil
}

func (t *Transport) current(ctx context.Context) (*oauth2.Token, error) {
	if s, ok := t.Tokens.(ContextTokenSource); ok {
		return s.TokenContext(ctx)
	}
	return t.Tokens.Token()
}

func (e *exchange) refresher() Refresher {
	if !e.trusted {
		return nil
	}
	r, _ := e.t.Tokens.(Refresher)
	return r
}

// mayReplay reports whether a 401 leads to a refresh. The budget comes first: a refresh that no attempt could use would
// only spend the refresh token.
func (e *exchange) mayReplay(resp *http.Response) bool {
	return resp != nil && resp.StatusCode == http.StatusUnauthorized && e.replays == 0 &&
		e.attempt < e.plan().attempts && e.token != nil && e.refresher() != nil && e.rewinds()
}

// renew replaces the token that a 401 refused. The answer is done with before that, because the refresh may need its
// connection.
func (e *exchange) renew(resp *http.Response) error {
	ctx := e.req.Context()
	e.t.drain(resp)
	e.replays++
	if ended := delay.Ended(ctx); ended != nil {
		return ended
	}
	e.counted().NextUnheeded() // the replay is an attempt like another, but nothing waits for it
	tok, err := e.refresher().Refresh(ctx, e.token)
	if ended := delay.Ended(ctx); ended != nil {
		return ended
	}
	if err != nil {
		return authError(ctx, err, &Error{
			Message: "the token was refused and could not be replaced", Status: resp.StatusCode, RequestID: requestID(resp.Header),
		})
	}
	e.renewed = tok
	return nil
}

// authError completes an error about a token that could not be had, unless that is because the caller's context ended.
func authError(ctx context.Context, err error, e *Error) error {
	if ended := delay.Ended(ctx); ended != nil {
		if errors.Is(err, ctx.Err()) {
			return err
		}
		return ended
	}
	err = withoutURL(err)
	e.Code, e.Hint = CodeAuthRequired, "log in again"
	if passes(err) {
		// The login may be as good as before.
		e.Retryable, e.Hint = true, "try again later"
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		err = &endpointError{code: refused.ErrorCode, err: err}
	}
	e.Err = err
	e.Message += ": " + err.Error()
	return e
}

// passes reports whether a token may be had later although there was none now: its source says so, or the authorization
// server was not there or would not serve.
func passes(err error) bool {
	if source, ok := errors.AsType[interface {
		error
		Repeatable() bool
	}](err); ok {
		return source.Repeatable()
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return refused.Response != nil &&
			(refused.Response.StatusCode >= 500 || refused.Response.StatusCode == http.StatusTooManyRequests)
	}
	_, unanswered := errors.AsType[net.Error](err)
	return unanswered && !unverified(err)
}

// endpointError stands for an oauth2.RetrieveError, whose own text quotes the answer's body.
type endpointError struct {
	code string
	err  error
}

func (e *endpointError) Error() string {
	if !token(e.code) || len(e.code) > 64 {
		return "the token endpoint refused to issue a token"
	}
	return "the token endpoint refused to issue a token (" + e.code + ")"
}

func (e *endpointError) Unwrap() error { return e.err }
