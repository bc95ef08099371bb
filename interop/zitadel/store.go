package zitadel

import (
	"context"
	"errors"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// store adds to the example storage what it lacks: public device clients, slow_down, device codes that are spent once, the
// client's name on tokens from the device flow (without it they can be neither refreshed nor revoked), and a shorter life
// for access tokens. Requests come one by one (see oneByOne), so it has no lock.
type store struct {
	*storage.Storage
	config   Config
	lastPoll map[string]time.Time // by device code
	spent    map[*op.DeviceAuthorizationState]bool
	expires  map[string]time.Time // by access token ID
}

func newStore(users storage.UserStore, config Config) *store {
	return &store{
		// The library has a map of clients for the whole process as well; this one is only ours.
		Storage: storage.NewStorageWithClients(users, map[string]*storage.Client{
			ClientID:       storage.NativeClient(ClientID),
			ConfidentialID: storage.DeviceClient(ConfidentialID, ConfidentialSecret),
		}),
		config:   config,
		lastPoll: map[string]time.Time{},
		spent:    map[*op.DeviceAuthorizationState]bool{},
		expires:  map[string]time.Time{},
	}
}

// client has the device grant, which the example gives to no public client, and scopes of our own.
type client struct{ op.Client }

func (client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeDeviceCode, oidc.GrantTypeRefreshToken}
}

func (c client) IsScopeAllowed(scope string) bool {
	return scope == "read" || scope == "write" || c.Client.IsScopeAllowed(scope)
}

func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{c}, nil
}

// GetDeviceAuthorizatonState is what the library asks at every poll.
func (s *store) GetDeviceAuthorizatonState(ctx context.Context, clientID, deviceCode string) (*op.DeviceAuthorizationState, error) {
	state, err := s.Storage.GetDeviceAuthorizatonState(ctx, clientID, deviceCode)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	last, polled := s.lastPoll[deviceCode]
	s.lastPoll[deviceCode] = now
	if polled && now.Sub(last) < s.config.MinPoll {
		return nil, context.DeadlineExceeded // the library makes slow_down of exactly this
	}
	if s.spent[state] {
		return nil, errors.New("device code already used") // and access_denied of any other error
	}
	return state, nil
}

// DenyDeviceAuthorization refuses an unknown code, on which the example's panics.
func (s *store) DenyDeviceAuthorization(ctx context.Context, userCode string) error {
	if _, err := s.GetDeviceAuthorizationByUserCode(ctx, userCode); err != nil {
		return err
	}
	return s.Storage.DenyDeviceAuthorization(ctx, userCode)
}

func (s *store) CreateAccessToken(ctx context.Context, r op.TokenRequest) (string, time.Time, error) {
	id, expires, err := s.Storage.CreateAccessToken(ctx, s.spend(r))
	return id, s.shorten(id, expires), err
}

func (s *store) CreateAccessAndRefreshTokens(ctx context.Context, r op.TokenRequest, current string) (id, refresh string, expires time.Time, err error) {
	id, refresh, expires, err = s.Storage.CreateAccessAndRefreshTokens(ctx, s.spend(r), current)
	return id, refresh, s.shorten(id, expires), err
}

// spend marks a device code as used when its tokens are made, not when it is looked up: the library looks a code up before
// it has checked how the client authenticated. The storage knows the client of its own AuthRequest only.
func (s *store) spend(r op.TokenRequest) op.TokenRequest {
	d, ok := r.(*op.DeviceAuthorizationState)
	if !ok {
		return r
	}
	s.spent[d] = true
	return &storage.AuthRequest{ApplicationID: d.ClientID, UserID: d.Subject, Scopes: d.Scopes}
}

func (s *store) shorten(id string, expires time.Time) time.Time {
	if ttl := s.config.AccessTTL; ttl > 0 && time.Until(expires) > ttl {
		expires = time.Now().Add(ttl)
	}
	s.expires[id] = expires
	return expires
}

func (s *store) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	if time.Now().After(s.expires[tokenID]) {
		return errors.New("token is expired")
	}
	return s.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin)
}

func (s *store) SetIntrospectionFromToken(ctx context.Context, r *oidc.IntrospectionResponse, tokenID, subject, clientID string) error {
	if time.Now().After(s.expires[tokenID]) {
		return errors.New("token is expired")
	}
	return s.Storage.SetIntrospectionFromToken(ctx, r, tokenID, subject, clientID)
}
