package auth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// EnvVariable is the variable that an EnvStore reads unless it names another.
const EnvVariable = "HEED_TOKEN"

// EnvStore lends the access token that an environment variable holds, as on a build server: whatever the key, for the
// environment is its owner's word. It cannot be written to, and a token from it cannot be refreshed.
type EnvStore struct {
	// Variable is the name of the variable. If it is empty, it is EnvVariable.
	Variable string
}

var _ Store = (*EnvStore)(nil)

// Load returns the token that the variable holds now, without the white space around it. A variable that is unset or
// empty holds none.
func (s *EnvStore) Load(ctx context.Context, key Key) (Credential, error) {
	if _, err := beginOp(ctx, key); err != nil {
		return Credential{}, storeError(OpLoad, err)
	}
	token := strings.TrimSpace(os.Getenv(s.variable()))
	if token == "" {
		return Credential{}, storeError(OpLoad, ErrStoreNotFound)
	}
	// RFC 6750, section 2.1 allows even less.
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Credential{}, storeError(OpLoad, fmt.Errorf("%s holds what no token can hold", s.variable()))
	}
	return Credential{AccessToken: token, TokenType: "Bearer"}, nil
}

// Save fails.
func (s *EnvStore) Save(ctx context.Context, key Key, _ Credential) error {
	return s.refuse(ctx, OpSave, key)
}

// Delete fails: only who has set the variable can unset it.
func (s *EnvStore) Delete(ctx context.Context, key Key) error { return s.refuse(ctx, OpDelete, key) }

func (s *EnvStore) refuse(ctx context.Context, op StoreOp, key Key) error {
	if _, err := beginOp(ctx, key); err != nil {
		return storeError(op, err)
	}
	err := errors.New("the token comes from " + s.variable() + ": unset it to log in or out")
	return &StoreError{Op: op, Reason: ErrStoreReadOnly, Err: err}
}

func (s *EnvStore) variable() string {
	if s.Variable == "" {
		return EnvVariable
	}
	return s.Variable
}
