package heed

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
)

// Login logs in by device flow, keeps the login in the store, and revokes what an earlier login left. Where the login
// will be kept is settled before the code is shown, so that a good login is not lost to a missing keyring.
//
// A token that could not be stored is returned with the error beside it, and serves until the program ends. Errors are
// those of [auth.Discovery], [auth.StorePolicy] and [auth.DeviceFlow].
func (a *App) Login(ctx context.Context) (*oauth2.Token, error) {
	choice, err := a.choose(ctx)
	if err != nil {
		return nil, err
	}
	if choice.Name != "" {
		a.tell(ctx, auth.StoreChosen{Choice: choice})
	}
	if choice.Name == auth.InEnv {
		c, err := choice.Store.Load(ctx, a.key)
		if err != nil {
			return nil, err
		}
		return c.Token(), nil // it goes before every login
	}
	m, client, err := a.metadata(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.For(auth.GrantDeviceCode); err != nil {
		return nil, err
	}
	device, token := a.params()
	flow := auth.DeviceFlow{
		Config: a.config(m), Prompter: a.cfg.Prompter, HTTPClient: client, Params: device, TokenParams: token,
		PKCE: a.cfg.PKCE, Strict: a.cfg.Strict, Clock: a.cfg.Clock, OnEvent: a.cfg.OnEvent, Logger: a.cfg.Logger,
	}
	tok, err := flow.Login(ctx)
	if err != nil {
		return nil, err
	}
	// The approval is spent: what is left is done whatever becomes of ctx.
	return tok, a.keep(context.WithoutCancel(ctx), choice, tok, m)
}

// keep stores a new login, takes it for the present session, and tidies up after the one before.
func (a *App) keep(ctx context.Context, choice auth.Choice, tok *oauth2.Token, m *auth.Metadata) error {
	c := auth.NewCredential(tok, delay.TimersOn(a.cfg.Clock).Now())
	if len(c.Resources) == 0 {
		c.Resources = a.cfg.Resources
	}
	if err := a.take(ctx); err != nil {
		return err
	}
	defer a.release()
	old, lookup := choice.Store.Load(ctx, a.key)
	stored := choice.Store.Save(ctx, a.key, c)
	if stored != nil {
		choice.Store = nil // it lives in this process alone
	}
	if _, err := a.begin(ctx, choice, c); err != nil {
		return errors.Join(stored, err)
	}
	if stored != nil {
		return fmt.Errorf("heed: the login is good until the program ends: %w", stored)
	}
	if a.cfg.Stores != nil {
		if err := a.cfg.Stores.Forget(ctx, a.key, choice.Name); err != nil && !errors.Is(err, auth.ErrStoreNotFound) {
			a.tell(ctx, auth.StoreTrouble{Err: err})
		}
	}
	if lookup == nil && old.RefreshToken != c.RefreshToken {
		// Best effort: the new login is what matters, and it is stored.
		if err := a.revoker(m, a.cfg.HTTPClient).Revoke(ctx, old); err != nil {
			a.tell(ctx, auth.RevokeFailed{Err: err})
		}
	}
	return nil
}

// Logout revokes the tokens of the login, as far as the server takes part, and deletes it wherever it may be kept,
// whatever the server has said. Without a login it does nothing. The error joins what the server and the stores could not
// do; the login is deleted all the same where that was possible.
func (a *App) Logout(ctx context.Context) error {
	if err := a.take(ctx); err != nil {
		return err
	}
	defer a.release()
	choice, c, err := a.find(ctx)
	if errors.Is(err, auth.ErrStoreNotFound) {
		a.session = nil
		return nil
	}
	if choice.Name == auth.InEnv {
		return errors.New("heed: the token is in the environment: unset its variable to log out")
	}
	var revoked error
	if err == nil {
		if m, client, err := a.metadata(ctx); err != nil {
			revoked = err
		} else {
			revoked = a.revoker(m, client).Revoke(ctx, c)
		}
	}
	a.session = nil
	gone := context.WithoutCancel(ctx)
	var deleted error
	if a.cfg.Store != nil {
		deleted = a.cfg.Store.Delete(gone, a.key)
	} else {
		deleted = a.cfg.Stores.Forget(gone, a.key, "")
	}
	if errors.Is(deleted, auth.ErrStoreNotFound) {
		deleted = nil
	}
	return errors.Join(revoked, deleted)
}

// Session says where the login is kept and what it is good for, without a request. Without one the error is
// auth.ErrStoreNotFound.
func (a *App) Session(ctx context.Context) (auth.Choice, auth.Credential, error) { return a.find(ctx) }

func (a *App) revoker(m *auth.Metadata, client *http.Client) *auth.Revoker {
	return &auth.Revoker{Config: a.config(m), URL: m.RevocationEndpoint, HTTPClient: client, Clock: a.cfg.Clock}
}

func (a *App) tell(ctx context.Context, e auth.Event) {
	if a.cfg.Logger != nil {
		a.cfg.Logger.WarnContext(ctx, "heed: "+e.Name(), "text", e.String())
	}
	if a.cfg.OnEvent != nil {
		a.cfg.OnEvent(e)
	}
}

// choose settles where the login will be kept.
func (a *App) choose(ctx context.Context) (auth.Choice, error) {
	if a.cfg.Store == nil {
		return a.cfg.Stores.Choose(ctx, a.key)
	}
	if p, ok := a.cfg.Store.(auth.Prober); ok {
		if err := p.Probe(ctx); err != nil {
			return auth.Choice{}, err
		}
	}
	return auth.Choice{Store: a.cfg.Store}, nil
}
