package main

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/heed-sdk/heed/stream"
	"github.com/heed-sdk/heed/stream/sse"
	"github.com/heed-sdk/heed/stream/websocket"
)

func (a *app) tail() *cobra.Command {
	var (
		login        authFlags
		subprotocols []string
		headers      []string
		since        string
		staleness    time.Duration
		count        int
		texts        []string
	)
	cmd := &cobra.Command{
		Use:   "tail URL",
		Short: "Follow a WebSocket or an event stream and reconnect as the server asks",
		Long: `Connect to a WebSocket (wss://) or to a stream of server-sent events (https://), print each message as a line, and come
back whenever the connection ends, waiting as the server asks. Plain ws:// and http:// are for this machine. What happens
is told on standard error: at a terminal in one line that stays at the bottom, and there r ends a wait; with NO_COLOR or no
terminal in plain lines, which --verbose adds at a terminal, too; with --json as JSON.

What --send gives is sent over a WebSocket once, when there is a connection; --count ends after that, or five seconds after
the last message. Standard input is not sent.

The access token in ` + tokenVariable + `, or of the login that is named by --client-id and --issuer or --token-url, is sent
with each handshake. Ctrl-C ends it.`,
		Example: `  heed tail wss://events.example.com/live
  heed tail --send '{"subscribe":"orders"}' wss://events.example.com/live
  heed tail --json --count 10 ws://localhost:8080/live
  heed tail --json --since 1795988561:1 https://events.example.com/sse`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if staleness < 0 || count < 0 {
				return usage("--staleness and --count are not negative")
			}
			header := http.Header{}
			for _, h := range headers {
				name, value, ok := strings.Cut(h, ":")
				if !ok {
					return usage("--header takes 'Name: value'")
				}
				header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
			}
			dialer, err := a.dialer(args[0], header, subprotocols, since, len(texts) > 0)
			if err != nil {
				return err
			}
			cfg := stream.Config{
				Dialer:    dialer,
				Position:  since,
				Staleness: staleness,
				WakeCheck: 5 * time.Second,
			}
			tokens, done, err := a.tokens(&login)
			if err != nil {
				return err
			}
			defer done()
			if tokens != nil {
				cfg.Credential = stream.Tokens(tokens)
			}
			return a.follow(cmd.Context(), cfg, texts, count)
		},
	}
	login.name(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&subprotocols, "subprotocol", nil, "a subprotocol to offer; may be given several times, best first")
	f.StringArrayVarP(&headers, "header", "H", nil, "a header of the handshake, 'Name: value'; may be given several times")
	f.StringVar(&since, "since", "", "the id of the last event that was seen, to go on behind it; event streams only")
	f.StringArrayVar(&texts, "send", nil, "a text to send once connected; may be given several times; WebSockets only")
	f.DurationVar(&staleness, "staleness", 0, "give a connection up when nothing came for so long (0: never)")
	f.IntVar(&count, "count", 0, "end after so many messages (0: go on)")
	return cmd
}

// dialer takes the transport from the scheme of an address.
func (a *app) dialer(address string, header http.Header, subprotocols []string, since string, sends bool) (stream.Dialer, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, usage("that is not an address of the form wss://host/path or https://host/path")
	}
	client := &http.Client{Transport: a.transport}
	switch u.Scheme {
	case "ws", "wss":
		if since != "" {
			return nil, usage("--since is for event streams: a WebSocket has no ids")
		}
		return websocket.Dialer{URL: address, Client: client, Header: header, Subprotocols: subprotocols}, nil
	case "http", "https":
		if len(subprotocols) > 0 {
			return nil, usage("--subprotocol is for WebSockets: an event stream has none")
		}
		if sends {
			return nil, usage("--send is for WebSockets: an event stream takes nothing")
		}
		return sse.Dialer{URL: address, Client: client, Header: header}, nil
	}
	return nil, usage("that is not an address of the form wss://host/path or https://host/path")
}

func (a *app) message(msg stream.Message) error {
	switch {
	case a.json:
	case a.out.shown():
		return a.out.printf("%s\n", visible(string(msg.Data)))
	default:
		return a.out.printf("%s\n", msg.Data)
	}
	line := struct {
		ID     string `json:"id,omitempty"`
		Type   string `json:"type,omitempty"`
		Data   string `json:"data"`
		Base64 bool   `json:"base64,omitempty"`
	}{msg.ID, msg.Type, string(msg.Data), msg.Binary}
	if msg.Binary {
		line.Data = base64.StdEncoding.EncodeToString(msg.Data)
	}
	return a.out.object(line)
}

// visible writes control characters as Go does, so that nothing that a server sends moves the cursor of somebody's terminal.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
