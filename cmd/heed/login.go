package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed"
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/auth/prompt"
)

// authFlags say which authorization server to use, and as whom.
type authFlags struct {
	issuer                             string
	deviceURL, tokenURL, revocationURL string
	clientID                           string
	account                            string
	scopes                             []string
	audience                           string
	resources                          []string
	store                              string
	pkce, strict                       bool
	noBrowser                          bool
	start                              bool
	resume, output                     string
}

func (f *authFlags) register(cmd *cobra.Command) {
	f.name(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.deviceURL, "device-url", "", "the device authorization endpoint, of a server that publishes none")
	flags.StringVar(&f.revocationURL, "revocation-url", "", "the revocation endpoint, of a server that publishes none")
	flags.StringArrayVar(&f.scopes, "scope", nil, "a scope to ask for; may be given several times, or hold several separated by spaces")
	flags.StringVar(&f.audience, "audience", "", "the API that the token is for, on servers that want it")
	flags.StringArrayVar(&f.resources, "resource", nil, "the resource that the token is for (RFC 8707); may be given several times")
	flags.BoolVar(&f.pkce, "pkce", false, "give the login a proof key (RFC 7636)")
	flags.BoolVar(&f.strict, "strict", false, "read answers as RFC 8628 writes them, without leniency")
	flags.BoolVar(&f.noBrowser, "no-browser", false, "do not open a browser")
	flags.BoolVar(&f.start, "start", false, "start a login, print it as JSON for --resume, and exit; keep what is printed secret")
	flags.StringVarP(&f.output, "output", "o", "", "with --start: write it to a file that nobody else can read")
	flags.StringVar(&f.resume, "resume", "", "finish the login that --start has written to a file; - reads standard input")
}

// check finds what the flags contradict, or lack.
func (f *authFlags) check() error {
	switch {
	case f.start && f.resume != "":
		return usage("--start begins a login and --resume finishes one: give one of them")
	case f.output != "" && !f.start:
		return usage("--output is where --start writes the login: give both, or none")
	}
	if f.resume != "" {
		return nil // what is missing is in the saved login
	}
	var missing []string
	if f.clientID == "" {
		missing = append(missing, "--client-id")
	}
	if f.issuer == "" && f.tokenURL == "" {
		missing = append(missing, "--issuer, or --device-url and --token-url")
	} else if f.tokenURL != "" && f.deviceURL == "" {
		missing = append(missing, "--device-url")
	}
	if len(missing) > 0 {
		return usage("the login needs %s", strings.Join(missing, "; and "))
	}
	return nil
}

func (a *app) login() *cobra.Command {
	var f authFlags
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in by device flow (RFC 8628)",
		Long: `Log in by device flow: show a code, wait until it is approved in a browser on any device, and print when the
token expires and what it is good for. The token itself is never printed.

The code goes to standard error and the result to standard output. On a terminal the code is shown with a countdown and,
where there is room, a QR code; with NO_COLOR, --verbose or no terminal in plain lines; with --json as JSON, one event a line.

The login is kept in the keyring of the system, or in a file that only you can read where there is no keyring; --store says
which, and where it will be is said before the code is shown.

--start only asks for the code and shows it. What it prints or writes is for --resume, here or on another machine, before
the code expires. --resume needs no other flag, but --issuer if the login is to be found by that again.`,
		Example: `  heed login --issuer https://as.example.com --client-id app --scope read
  heed login --device-url https://as.example.com/device --token-url https://as.example.com/token --client-id app
  heed login --start --output login.json --issuer https://as.example.com --client-id app
  heed login --resume login.json --issuer https://as.example.com`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			var saved []byte
			if f.resume != "" {
				var err error
				if saved, err = readLogin(cmd.Context(), f.resume, cmd.InOrStdin()); err != nil {
					return err
				}
				if err := f.adopt(saved); err != nil {
					return err
				}
			}
			granted := &auth.Granted{}
			d := a.display(&f)
			login, err := a.open(&f, a.follower(d, granted))
			if err != nil {
				return err
			}
			return a.logIn(cmd.Context(), &f, saved, login, d, granted)
		},
	}
	f.register(cmd)
	return cmd
}

// logIn starts a login, finishes one, or does both.
func (a *app) logIn(ctx context.Context, f *authFlags, saved []byte, login *heed.App, d prompt.Display, granted *auth.Granted) error {
	flow, err := login.Flow(ctx)
	if err != nil {
		return err
	}
	a.show(flow, f, d)
	if f.start {
		return a.startLogin(ctx, flow, f.output)
	}
	if saved == nil {
		// What is wrong is said before anything else is.
		if err := flow.Validate(); err != nil {
			return err
		}
	}
	choice, err := login.Choose(ctx)
	switch {
	case err != nil:
		return err
	case choice.Name == auth.InEnv:
		return usage("%s holds a token, which goes before every login: unset it to log in", tokenVariable)
	}
	var token *oauth2.Token
	if saved != nil {
		token, err = finishLogin(ctx, flow, saved)
	} else {
		token, err = flow.Login(ctx)
	}
	if err != nil {
		return err
	}
	if err := login.Keep(ctx, choice, token); err != nil {
		return err
	}
	return a.loggedIn(token, *granted, storeName(choice, f))
}

// storeName is the name by which --store knows where a login is kept.
func storeName(choice auth.Choice, f *authFlags) string {
	if choice.Name == "" {
		return f.store
	}
	return choice.Name
}

func (a *app) loggedIn(token *oauth2.Token, granted auth.Granted, store string) error {
	scope := strings.Join(granted.Scopes, " ")
	if a.json {
		result := struct {
			TokenType   string     `json:"token_type"`
			Expiry      *time.Time `json:"expiry"`
			ExpiresIn   *int64     `json:"expires_in"`
			Scope       string     `json:"scope"`
			NotGranted  []string   `json:"not_granted,omitempty"`
			Refreshable bool       `json:"refreshable"`
			Store       string     `json:"store"`
		}{TokenType: token.Type(), Scope: scope, NotGranted: granted.NotGranted, Refreshable: token.RefreshToken != "", Store: store}
		if !token.Expiry.IsZero() {
			at := token.Expiry.UTC()
			result.Expiry, result.ExpiresIn = &at, &token.ExpiresIn
		}
		return a.out.object(result)
	}
	expiry := "has no known expiry"
	if !token.Expiry.IsZero() {
		expiry = "expires at " + token.Expiry.Format(time.RFC3339)
	}
	text := fmt.Sprintf("Logged in. The token %s", expiry)
	if scope != "" {
		text += fmt.Sprintf(" and is good for: %s", oneLine(scope))
	}
	text += ".\n"
	if store != "memory" {
		text += fmt.Sprintf("It is kept in the %s.\n", store)
	}
	if len(granted.NotGranted) > 0 {
		text += fmt.Sprintf("Asked for and not granted: %s.\n", oneLine(strings.Join(granted.NotGranted, " ")))
	}
	return a.out.printf("%s", text)
}
