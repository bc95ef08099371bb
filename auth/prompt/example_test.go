package prompt_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/prompt"
	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/internal/fakes"
)

// A program takes os.Stderr, and has the countdown and the QR code where that is a terminal. Here it is none.
func ExampleTerminal() {
	clk := fakes.NewClock(noon) // in an application, none
	denied := fakes.OAuthError(400, "access_denied")
	server := httptest.NewServer(&fakes.AuthServer{Clock: clk, Device: device(900, complete), Polls: []fakes.AuthAnswer{denied}})
	defer server.Close()
	go func() {
		if timers, err := clk.Await(context.Background(), delay.KindDevicePoll); err == nil {
			clk.Advance(timers[0].Delay())
		}
	}()

	screen := prompt.Terminal(os.Stdout, nil)
	flow := &auth.DeviceFlow{
		Config: oauth2.Config{ClientID: "my-app", Endpoint: oauth2.Endpoint{
			DeviceAuthURL: server.URL + fakes.DevicePath, TokenURL: server.URL + fakes.TokenPath,
		}},
		Clock:    clk,
		Prompter: screen,
		OnEvent:  screen.OnEvent,
		// Browser: prompt.OpenBrowser,
	}
	_, err := flow.Login(context.Background())
	fmt.Println(err)
	// Output:
	// To log in, open  https://as.example.com/device
	// and enter the code  WDJB-MJHT
	// or open  https://as.example.com/device?user_code=WDJB-MJHT
	// The code is good for 15 minutes.
	// auth: the login was declined (400 access_denied); start again to be asked once more
}

func ExampleLines() {
	d := prompt.Lines(os.Stdout)
	d.Prompt(context.Background(), auth.Prompt{UserCode: "WDJB-MJHT", VerificationURI: uri, ExpiresIn: 10 * time.Minute})
	d.OnEvent(auth.Browser{Opened: true})
	// Output:
	// To log in, open  https://as.example.com/device
	// and enter the code  WDJB-MJHT
	// The code is good for 10 minutes.
	// A browser was opened.
}

func ExampleJSON() {
	d := prompt.JSON(os.Stdout)
	d.OnEvent(auth.CodeIssued{UserCode: "WDJB-MJHT", VerificationURI: uri, ExpiresAt: noon, Interval: 5 * time.Second})
	d.OnEvent(auth.Polled{Count: 1, Status: 400, Outcome: "authorization_pending"})
	// Output:
	// {"event":"code_issued","user_code":"WDJB-MJHT","verification_uri":"https://as.example.com/device","expires_at":"2026-11-29T12:00:00Z","interval":5}
	// {"event":"polled","count":1,"status":400,"outcome":"authorization_pending"}
}
