package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/stream/internal/redact"
)

// Credential authorizes one attempt. It prints as "redacted", whatever the verb.
type Credential struct {
	// Token, if set, is sent in the Authorization header.
	Token *oauth2.Token
	// URL, if set, is dialled in place of the dialer's own address, exactly as it is: it carries a ticket.
	URL string
}

// IsZero reports whether there is nothing in the credential.
func (c Credential) IsZero() bool { return c.Token == nil && c.URL == "" }

// secrets lists what must not be shown.
func (c Credential) secrets() []string {
	var all []string
	if c.Token != nil {
		all = append(all, c.Token.AccessToken, c.Token.RefreshToken)
	}
	if c.URL != "" {
		all = append(all, c.URL)
		if u, err := url.Parse(c.URL); err == nil {
			all = append(all, redact.Secrets(u)...)
		}
	}
	return all
}

const redacted = "redacted"

// Format writes "redacted".
func (Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue returns "redacted".
func (Credential) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "redacted".
func (Credential) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// CredentialFunc obtains the credential of one attempt. It is called anew for every attempt, and returns promptly when
// ctx ends. refused is the credential of the attempt before, if the server has just refused it as unauthorized, and zero
// otherwise: whoever keeps credentials must not hand out that one again.
//
// An error is classed like one of a [Dialer]; an oauth2.RetrieveError is classed by its status, and a refused grant is
// unauthorized.
type CredentialFunc func(ctx context.Context, refused Credential) (Credential, error)

// TokenRefresher is a token source that can be told that its token was refused although it has not expired, and asks for
// another. Refresh returns at once if the refused token has been replaced meanwhile.
type TokenRefresher interface {
	oauth2.TokenSource
	Refresh(ctx context.Context, refused *oauth2.Token) (*oauth2.Token, error)
}

// Tokens takes the credential of each attempt from a token source. If the source is a [TokenRefresher], a refused token is
// replaced; if it has a method TokenContext(context.Context) (*oauth2.Token, error), that is called in place of Token, which
// cannot be interrupted and is left to finish by itself when the attempt is given up.
func Tokens(source oauth2.TokenSource) CredentialFunc {
	return func(ctx context.Context, refused Credential) (Credential, error) {
		token, err := tokenFrom(ctx, source, refused.Token)
		if err != nil {
			return Credential{}, err
		}
		if token == nil || token.AccessToken == "" {
			return Credential{}, errors.New("the token source returned no token")
		}
		return Credential{Token: token}, nil
	}
}

func tokenFrom(ctx context.Context, source oauth2.TokenSource, refused *oauth2.Token) (*oauth2.Token, error) {
	if r, ok := source.(TokenRefresher); ok && refused != nil {
		return r.Refresh(ctx, refused)
	}
	if s, ok := source.(interface {
		TokenContext(context.Context) (*oauth2.Token, error)
	}); ok {
		return s.TokenContext(ctx)
	}
	type result struct {
		token *oauth2.Token
		err   error
	}
	done := make(chan result, 1)
	go func() {
		token, err := source.Token()
		done <- result{token, err}
	}()
	select {
	case r := <-done:
		return r.token, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
