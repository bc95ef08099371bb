package main

import (
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
	start               bool
	resume, output      string
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
	flags.BoolVar(&f.start, "start", false, "start a login, print it as JSON for --resume, and exit; keep what is printed secret")
	flags.StringVarP(&f.output, "output", "o", "", "with --start: write it to a file that nobody else can read")
	flags.StringVar(&f.resume, "resume", "", "finish the login that --start has written to a file; - reads standard input")
}

func (f *authFlags) flow() (*auth.DeviceFlow, error) {
	switch {
	case f.start && f.resume != "":
		return nil, usage("--start begins a login and --resume finishes one: give one of them")
	case f.output != "" && !f.start:
		return nil, usage("--output is where --start writes the login: give both, or none")
	}
	var missing []string
	for _, x := range []struct{ flag, value string }{
		{"--device-url", f.deviceURL}, {"--token-url", f.tokenURL}, {"--client-id", f.clientID},
	} {
		if x.value == "" && f.resume == "" {
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

The code goes to standard error and the result to standard output. On a terminal the code is shown with a countdown and,
where there is room, a QR code; with NO_COLOR, --verbose or no terminal in plain lines; with --json as JSON, one event a line.

--start only asks for the code and shows it. What it prints or writes is for --resume, here or on another machine, before
the code expires. --resume needs no other flag; --token-url and --client-id, if given, have to be those of the start.`,
		Example: `  heed login --device-url https://as.example.com/device --token-url https://as.example.com/token --client-id app
  heed login --start --output login.json --device-url ... --token-url ... --client-id app
  heed login --resume login.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flow, err := f.flow()
			if err != nil {
				return err
			}
			flow.HTTPClient = &http.Client{Transport: a.transport}
			granted := a.show(flow, &f)
			var token *oauth2.Token
			switch {
			case f.start:
				return a.startLogin(cmd.Context(), flow, f.output)
			case f.resume != "":
				token, err = a.resumeLogin(cmd.Context(), flow, f.resume, cmd.InOrStdin())
			default:
				token, err = flow.Login(cmd.Context())
			}
			if err != nil {
				return err
			}
			return a.loggedIn(token, *granted, f.store)
		},
	}
	f.register(cmd)
	return cmd
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
