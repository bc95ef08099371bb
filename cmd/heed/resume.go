package main

import (
	"bytes"
	"context"
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

// resumeLogin finishes a login that startLogin has kept.
func (a *app) resumeLogin(ctx context.Context, flow *auth.DeviceFlow, file string, in io.Reader) (*oauth2.Token, error) {
	data, err := readLogin(ctx, file, in)
	if err != nil {
		return nil, err
	}
	p, err := flow.Resume(data)
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
