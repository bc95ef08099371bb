package heed

import (
	"context"
	"errors"
	"fmt"

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
	choice, err := a.Choose(ctx)
	if err != nil {
		return nil, err
	}
	if choice.Name == auth.InEnv {
		c, err := choice.Store.Load(ctx, a.key)
		if err != nil {
			return nil, err
		}
		return c.Token(), nil // it goes before every login
	}
	flow, err := a.Flow(ctx)
	if err != nil {
		return nil, err
	}
	tok, err := flow.Login(ctx)
	if err != nil {
		return nil, err
	}
	return tok, a.Keep(ctx, choice, tok)
}

// Choose settles where a login will be kept, and says so by the event [auth.StoreChosen]. It is a part of Login, for
// whoever takes that apart.
func (a *App) Choose(ctx context.Context) (auth.Choice, error) {
	if a.cfg.Store == nil {
		choice, err := a.cfg.Stores.Choose(ctx, a.key)
		if err == nil {
			a.tell(ctx, auth.StoreChosen{Choice: choice})
		}
		return choice, err
	}
	if p, ok := a.cfg.Store.(auth.Prober); ok {
		if err := p.Probe(ctx); err != nil {
			return auth.Choice{}, err
		}
	}
	return auth.Choice{Store: a.cfg.Store}, nil
}

// Flow returns the device flow of a login, its endpoints discovered. It is a part of Login, for whoever takes that apart:
// to start a login here and finish it elsewhere.
func (a *App) Flow(ctx context.Context) (*auth.DeviceFlow, error) {
	m, client, err := a.metadata(ctx)
	if err != nil {
		return nil, err
	}
	if a.cfg.Endpoint.TokenURL == "" { // the server has published them; of the caller's own the flow says what is missing
		if err := m.For(auth.GrantDeviceCode); err != nil {
			return nil, err
		}
	}
	device, token := a.params()
	flow := auth.DeviceFlow{
		Config: a.config(m), Prompter: a.cfg.Prompter, HTTPClient: client, Params: device, TokenParams: token,
		PKCE: a.cfg.PKCE, Strict: a.cfg.Strict, Clock: a.cfg.Clock, OnEvent: a.cfg.OnEvent, Logger: a.cfg.Logger,
	}
	if a.cfg.Provider.Name != "" {
		return a.cfg.Provider.Apply(flow)
	}
	return &flow, nil
}

// Keep stores a new login where Choose has said, takes it for the present session, and revokes what an earlier login left
// there. It is a part of Login, for whoever takes that apart. The approval is spent, so that it is done whatever becomes
// of ctx.
func (a *App) Keep(ctx context.Context, choice auth.Choice, tok *oauth2.Token) error {
	return a.keep(context.WithoutCancel(ctx), choice, tok)
}

func (a *App) keep(ctx context.Context, choice auth.Choice, tok *oauth2.Token) error {
	c := auth.NewCredential(tok, delay.TimersOn(a.cfg.Clock).Now())
	if len(c.Resources) == 0 {
		c.Resources = a.cfg.Resources
	}
	if err := a.take(ctx); err != nil {
		return err
	}
	defer a.release()
	unlock := a.lock(ctx, choice.Store, true)
	old, lookup := choice.Store.Load(ctx, a.key)
	stored := choice.Store.Save(ctx, a.key, c)
	unlock()
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
	if old.AccessToken == c.AccessToken {
		old.AccessToken = "" // some servers give the same one again
	}
	if lookup == nil && (old.RefreshToken != c.RefreshToken || c.RefreshToken == "") {
		// Best effort: the new login is what matters, and it is stored.
		if err := a.revoke(ctx, old); err != nil {
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
	if choice.Name == auth.InEnv {
		return errors.New("heed: the token is in the environment: unset its variable to log out")
	}
	unlock := a.lock(ctx, choice.Store, err == nil)
	defer unlock()
	if err == nil {
		choice, c, err = a.find(ctx) // it may just have been refreshed
	}
	var revoked error
	if err == nil && choice.Name != auth.InEnv {
		revoked = a.revoke(ctx, c)
	}
	if a.unkept && a.session != nil {
		revoked = errors.Join(revoked, a.revoke(ctx, a.session.Credential()))
	}
	a.session, a.unkept = nil, false
	if errors.Is(err, auth.ErrStoreNotFound) {
		return revoked
	}
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

func (a *App) revoke(ctx context.Context, c auth.Credential) error {
	m, client, err := a.metadata(ctx)
	if err != nil {
		return err
	}
	r := auth.Revoker{Config: a.config(m), URL: m.RevocationEndpoint, HTTPClient: client, Clock: a.cfg.Clock}
	return r.Revoke(ctx, c)
}

func (a *App) tell(ctx context.Context, e auth.Event) {
	if a.cfg.Logger != nil {
		a.cfg.Logger.InfoContext(ctx, "heed: "+e.Name(), "text", e.String())
	}
	if a.cfg.OnEvent != nil {
		a.cfg.OnEvent(e)
	}
}
