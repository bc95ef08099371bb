package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/benbjohnson/clock"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// server is an authorization server on loopback that issues the code WDJB-MJHT, and a clock on which nobody has to wait:
// it goes on to the next poll by itself. In an application, these are the addresses of a real server, and no clock.
func server(polls ...fakes.AuthAnswer) (endpoint oauth2.Endpoint, clk clock.Clock, stop func()) {
	device := fakes.AuthJSON(200, map[string]any{
		"device_code": "secret", "user_code": "WDJB-MJHT", "verification_uri": "https://as.example.com/device", "expires_in": 900,
	})
	c := fakes.NewClock(noon)
	s := httptest.NewServer(&fakes.AuthServer{Clock: c, Device: &device, Polls: polls})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if timers, err := c.Await(ctx, delay.KindDevicePoll); err == nil {
				c.Advance(timers[0].Delay())
			}
		}
	}()
	return oauth2.Endpoint{DeviceAuthURL: s.URL + fakes.DevicePath, TokenURL: s.URL + fakes.TokenPath}, c, func() {
		cancel()
		<-done
		s.Close()
	}
}

func ExampleDeviceFlow_Login() {
	endpoint, clk, stop := server(fakes.AuthJSON(200, map[string]any{"access_token": "at", "expires_in": 3600, "scope": "files"}))
	defer stop()

	flow := &auth.DeviceFlow{
		Config:   oauth2.Config{ClientID: "my-app", Scopes: []string{"files", "mail"}, Endpoint: endpoint},
		Clock:    clk,
		Prompter: auth.Lines(os.Stdout), // a program whose output matters takes os.Stderr
		OnEvent: func(e auth.Event) {
			if g, ok := e.(auth.Granted); ok {
				fmt.Println("not granted:", g.NotGranted)
			}
		},
	}
	token, err := flow.Login(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(token.Type(), token.Extra("scope"))
	// Output:
	// To log in, open  https://as.example.com/device
	// and enter the code  WDJB-MJHT
	// The code is good for 15 minutes.
	// not granted: [mail]
	// Bearer files
}

func ExampleDeviceFlow_Start() {
	endpoint, clk, stop := server(fakes.AuthJSON(200, map[string]any{"access_token": "at"}))
	defer stop()

	flow := &auth.DeviceFlow{Config: oauth2.Config{ClientID: "my-app", Endpoint: endpoint}, Clock: clk}
	pending, err := flow.Start(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("enter", pending.UserCode, "at", pending.VerificationURI)
	token, err := pending.Poll(context.Background())
	fmt.Println(token.Type(), err)
	// Output:
	// enter WDJB-MJHT at https://as.example.com/device
	// Bearer <nil>
}

// One process shows the code and ends; another, with the same configuration, finishes the login.
func ExamplePending_Save() {
	endpoint, clk, stop := server(fakes.AuthJSON(200, map[string]any{"access_token": "at"}))
	defer stop()
	flow := &auth.DeviceFlow{Config: oauth2.Config{ClientID: "my-app", Endpoint: endpoint}, Clock: clk}

	pending, err := flow.Start(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("enter", pending.UserCode, "at", pending.VerificationURI)
	saved, err := pending.Save() // to be kept as secret as a token
	if err != nil {
		fmt.Println(err)
		return
	}

	pending, err = flow.Resume(saved)
	if errors.Is(err, auth.ErrExpired) {
		fmt.Println("start again")
	}
	if e, ok := errors.AsType[*auth.ResumeError](err); ok {
		fmt.Println("not to be used here:", e.Problems)
	}
	if err != nil {
		return
	}
	token, err := pending.Finish(context.Background())
	fmt.Println(token.Type(), err)
	// Output:
	// enter WDJB-MJHT at https://as.example.com/device
	// Bearer <nil>
}

func ExampleDeviceError() {
	endpoint, clk, stop := server(fakes.OAuthError(400, "access_denied"))
	defer stop()

	flow := &auth.DeviceFlow{
		Config:   oauth2.Config{ClientID: "my-app", Endpoint: endpoint},
		Clock:    clk,
		Prompter: auth.PrompterFunc(func(context.Context, auth.Prompt) error { return nil }),
	}
	_, err := flow.Login(context.Background())
	if errors.Is(err, auth.ErrAccessDenied) {
		fmt.Println("the user said no")
	}
	if e, ok := errors.AsType[*auth.DeviceError](err); ok {
		fmt.Println(string(e.Reason), e.Status, e.Code)
	}
	fmt.Println(err)
	// Output:
	// the user said no
	// access_denied 400 access_denied
	// auth: the login was declined (400 access_denied); start again to be asked once more
}

func ExampleConfigError() {
	_, err := (&auth.DeviceFlow{}).Start(context.Background())
	if e, ok := errors.AsType[*auth.ConfigError](err); ok {
		for _, p := range e.Problems {
			fmt.Println(p)
		}
	}
	// Output:
	// Config.ClientID is missing
	// Config.Endpoint.DeviceAuthURL is missing
	// Config.Endpoint.TokenURL is missing
}
