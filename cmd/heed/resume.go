package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

// startLogin asks for a code, keeps the login, and shows the code only when it is kept.
func (a *app) startLogin(ctx context.Context, flow *auth.DeviceFlow, file string) error {
	p, err := flow.Start(ctx)
	if err != nil {
		return err
	}
	data, err := p.Save()
	if err != nil {
		return err
	}
	if file != "" {
		err = writeFile(file, bytes.NewReader(data), 0o600)
	} else {
		_, err = a.out.Write(data)
	}
	if err != nil {
		return err
	}
	return flow.Prompter.Prompt(ctx, p.Prompt())
}

// adopt takes from a saved login what the flags leave out, and finds what is wrong with it.
func (f *authFlags) adopt(saved []byte) error {
	flow := auth.DeviceFlow{Config: oauth2.Config{ClientID: f.clientID, Endpoint: oauth2.Endpoint{TokenURL: f.tokenURL}}}
	if _, err := flow.Resume(saved); err != nil {
		return err
	}
	var login struct {
		ClientID string `json:"client_id"`
		TokenURL string `json:"token_endpoint"`
	}
	if err := json.Unmarshal(saved, &login); err != nil {
		return err
	}
	f.clientID = login.ClientID
	if f.issuer == "" {
		f.tokenURL = login.TokenURL
	}
	return nil
}

// finishLogin finishes a login that startLogin has kept.
func finishLogin(ctx context.Context, flow *auth.DeviceFlow, saved []byte) (*oauth2.Token, error) {
	p, err := flow.Resume(saved)
	if err != nil {
		return nil, err
	}
	return p.Finish(ctx)
}

// maxLogin is more than any login takes.
const maxLogin = 1 << 20

func readLogin(ctx context.Context, file string, in io.Reader) ([]byte, error) {
	name := "standard input"
	if file != "-" {
		name = file
		f, err := os.Open(file)
		if err != nil {
			return nil, unreadable(name, err)
		}
		defer f.Close()
		in = f
	}
	type result struct {
		data []byte
		err  error
	}
	// Nothing ends a read from a terminal or a pipe that nobody writes to, so it is left behind when the command ends.
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, maxLogin+1))
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, unreadable(name, r.err)
		}
		return r.data, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func unreadable(name string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return usage("--resume: %s cannot be read: %v: give it what --start has written", name, err)
}
