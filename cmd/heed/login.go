package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

// authFlags say which authorization server to use, and as whom.
type authFlags struct {
	deviceURL, tokenURL string
	clientID            string
	scopes              []string
	audience            string
	resources           []string
	store               string
	strict              bool
	noBrowser           bool
}

func (f *authFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.deviceURL, "device-url", "", "the device authorization endpoint")
	flags.StringVar(&f.tokenURL, "token-url", "", "the token endpoint")
	flags.StringVar(&f.clientID, "client-id", "", "the client id")
	flags.StringArrayVar(&f.scopes, "scope", nil, "a scope to ask for; may be given several times, or hold several separated by spaces")
	flags.StringVar(&f.audience, "audience", "", "the API that the token is for, on servers that want it")
	flags.StringArrayVar(&f.resources, "resource", nil, "the resource that the token is for (RFC 8707); may be given several times")
	flags.StringVar(&f.store, "store", "memory", "where the token is kept: memory, until heed exits")
	flags.BoolVar(&f.strict, "strict", false, "read answers as RFC 8628 writes them, without leniency")
	flags.BoolVar(&f.noBrowser, "no-browser", false, "do not open a browser")
}

func (f *authFlags) flow() (*auth.DeviceFlow, error) {
	var missing []string
	for _, x := range []struct{ flag, value string }{
		{"--device-url", f.deviceURL}, {"--token-url", f.tokenURL}, {"--client-id", f.clientID},
	} {
		if x.value == "" {
			missing = append(missing, x.flag)
		}
	}
	if len(missing) > 0 {
		return nil, usage("the login needs %s", strings.Join(missing, ", "))
	}
	if f.store != "memory" {
		return nil, usage("--store %s is not a store: take memory", f.store)
	}
	params := map[string][]string{}
	if f.audience != "" {
		params["audience"] = []string{f.audience}
	}
	tokenParams := map[string][]string{}
	if len(f.resources) > 0 {
		params["resource"] = f.resources
		tokenParams["resource"] = f.resources
	}
	return &auth.DeviceFlow{
		Config: oauth2.Config{
			ClientID: f.clientID,
			Scopes:   strings.Fields(strings.Join(f.scopes, " ")),
			Endpoint: oauth2.Endpoint{DeviceAuthURL: f.deviceURL, TokenURL: f.tokenURL, AuthStyle: oauth2.AuthStyleInParams},
		},
		Params:      params,
		TokenParams: tokenParams,
		Strict:      f.strict,
	}, nil
}

func (a *app) login() *cobra.Command {
	var f authFlags
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in by device flow (RFC 8628)",
		Long: `Log in by device flow: show a code, wait until it is approved in a browser on any device, and print when the
token expires and what it is good for. The token itself is never printed.

The code goes to standard error and the result to standard output.`,
		Example: `  heed login --device-url https://as.example.com/device --token-url https://as.example.com/token --client-id app`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flow, err := f.flow()
			if err != nil {
				return err
			}
			flow.HTTPClient = &http.Client{Transport: a.transport}
			flow.Prompter = auth.PrompterFunc(func(ctx context.Context, p auth.Prompt) error {
				return a.prompt(ctx, p, f.noBrowser)
			})
			granted := auth.Granted{}
			flow.OnEvent = func(e auth.Event) {
				if g, ok := e.(auth.Granted); ok {
					granted = g
				}
				a.tellLogin(e)
			}
			token, err := flow.Login(cmd.Context())
			if err != nil {
				return err
			}
			return a.loggedIn(token, granted, f.store)
		},
	}
	f.register(cmd)
	return cmd
}

// prompt shows the code on standard error.
func (a *app) prompt(ctx context.Context, p auth.Prompt, noBrowser bool) error {
	address := p.VerificationURI
	if p.VerificationURIComplete != "" {
		address = p.VerificationURIComplete
	}
	opened := !noBrowser && a.out.terminal() && openBrowser(ctx, address)
	if a.json {
		return a.out.remark(struct {
			Event     string    `json:"event"`
			UserCode  string    `json:"user_code"`
			Address   string    `json:"verification_uri"`
			Complete  string    `json:"verification_uri_complete,omitempty"`
			ExpiresAt time.Time `json:"expires_at"`
			Opened    bool      `json:"browser_opened"`
		}{"code", p.UserCode, p.VerificationURI, p.VerificationURIComplete, p.ExpiresAt, opened})
	}
	a.out.line("Open %s", p.VerificationURI)
	a.out.line("and enter the code: %s", p.UserCode)
	if p.VerificationURIComplete != "" {
		a.out.line("or open %s", p.VerificationURIComplete)
	}
	if opened {
		a.out.line("(a browser was opened)")
	}
	a.out.line("The code is good for %s.", p.ExpiresIn.Round(time.Second))
	return nil
}

// tellLogin says what happens, as far as the user has asked for it.
func (a *app) tellLogin(e auth.Event) {
	switch e := e.(type) {
	case auth.Waiting:
		a.tellWait(e.Wait)
	default:
		if a.verbose && !a.json {
			a.out.line("%s", e)
		}
	}
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
	if len(granted.NotGranted) > 0 {
		text += fmt.Sprintf("Asked for and not granted: %s.\n", oneLine(strings.Join(granted.NotGranted, " ")))
	}
	return a.out.printf("%s", text)
}
