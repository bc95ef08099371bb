package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// tokenVariable holds an access token for commands that send one.
const tokenVariable = "HEED_TOKEN"

func (a *app) get() *cobra.Command {
	var (
		login          authFlags
		headers        []string
		policy         string
		attempts       int
		limit, timeout time.Duration
		file           string
	)
	cmd := &cobra.Command{
		Use:   "get URL",
		Short: "Make a request that waits as the server asks",
		Long: `Send a GET request, repeat it where that is right and wait as the server asks, and print the body of the answer.

The access token in ` + tokenVariable + `, or of the login that is named by --client-id and --issuer or --token-url, is sent to
the address's origin and nowhere else.`,
		Example: `  heed get https://api.example.com/projects
  heed get --verbose --attempts 5 --limit 1m https://api.example.com/report -o report.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := policyNamed(policy)
			if err != nil {
				return err
			}
			if limit < 0 || timeout < 0 || attempts < 0 {
				return usage("--attempts, --limit and --timeout are not negative")
			}
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel func()
				ctx, cancel = delay.TimersOn(nil).WithTimeout(ctx, delay.KindRequestTimeout, timeout)
				defer cancel()
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
			if err != nil || req.URL.Host == "" {
				return usage("that is not an address of the form https://host/path")
			}
			for _, h := range headers {
				name, value, ok := strings.Cut(h, ":")
				if !ok {
					return usage("--header takes 'Name: value'")
				}
				req.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
			}
			t := &requests.Transport{
				Base:        a.transport,
				Policy:      p,
				MaxAttempts: attempts,
				Limit:       limit,
				Hooks:       requests.Hooks{OnWait: a.tellWait},
			}
			tokens, done, err := a.tokens(&login)
			if err != nil {
				return err
			}
			defer done()
			t.Tokens = tokens
			client, err := requests.NewClient(req.URL.Scheme+"://"+req.URL.Host, t)
			if err != nil {
				return err
			}
			res, err := client.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if file != "" {
				// With the permissions that the user's umask leaves, as any other tool writes a file it is asked for.
				return writeFile(file, res.Body, 0o666)
			}
			return a.body(res)
		},
	}
	login.name(cmd)
	f := cmd.Flags()
	f.StringArrayVarP(&headers, "header", "H", nil, "a header of the request, 'Name: value'; may be given several times")
	f.StringVar(&policy, "policy", "declared", "what is repeated: declared, refused-only or throttled")
	f.IntVar(&attempts, "attempts", 0, "how many requests in all, the first included (0: as the policy says)")
	f.DurationVar(&limit, "limit", 0, "the longest wait to make; a longer one ends the command with the wait asked for (0: none)")
	f.DurationVar(&timeout, "timeout", 0, "the time for all of it, waits included (0: none)")
	f.StringVarP(&file, "output", "o", "", "write the body to a file, which appears when it is complete")
	return cmd
}

func policyNamed(name string) (requests.Policy, error) {
	switch name {
	case "declared":
		return requests.Declared{}, nil
	case "refused-only":
		return requests.RefusedOnly{Times: 3}, nil
	case "throttled":
		return requests.Throttled{}, nil
	}
	return nil, usage("--policy %s is not a policy: take declared, refused-only or throttled", name)
}

// body prints an answer: as it is, or as {"status","headers","body"}.
func (a *app) body(res *http.Response) error {
	if !a.json {
		_, err := io.Copy(a.out, res.Body)
		return interrupted(err)
	}
	const most = 50 << 20
	b, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err != nil {
		return interrupted(err)
	}
	if len(b) > most {
		return usage("the body is over 50 MiB, too much for --json: leave --json out")
	}
	result := struct {
		Status  int         `json:"status"`
		Headers http.Header `json:"headers"`
		Body    any         `json:"body"`
	}{res.StatusCode, res.Header, string(b)}
	if json.Valid(b) {
		result.Body = json.RawMessage(b)
	}
	return a.out.object(result)
}

// brokenOff is a body that ended before its end.
type brokenOff struct{ err error }

func (e *brokenOff) Error() string {
	return fmt.Sprintf("the answer broke off: %v: run it again", e.err)
}
func (e *brokenOff) Unwrap() error { return e.err }

func interrupted(err error) error {
	if err == nil {
		return nil
	}
	if output, ok := errors.AsType[*outputError](err); ok { // it is not the answer that is at fault
		return output
	}
	return &brokenOff{err}
}

// writeFile makes the file appear only when all of the body is in it, with the mode from its first byte. A device or a pipe is
// there already, is written to and not replaced, and is nothing that nobody else can read.
func writeFile(name string, body io.Reader, mode os.FileMode) (err error) {
	if special(name) {
		if mode&0o077 == 0 {
			return usage("%s is no file that nobody else can read: name another one", name)
		}
		return writeSpecial(name, body)
	}
	temp := filepath.Join(filepath.Dir(name), ".heed-"+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return &outputError{err}
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(temp)
		}
	}()
	if _, err := io.Copy(writeOnly{f}, body); err != nil {
		return interrupted(err)
	}
	for _, step := range []func() error{
		f.Sync, f.Close, func() error { return os.Rename(temp, name) },
	} {
		if err := step(); err != nil {
			return &outputError{err}
		}
	}
	return nil
}

// special reports whether a name is taken by what cannot be replaced by a file: a device, a pipe or a socket.
func special(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

func writeSpecial(name string, body io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return &outputError{err}
	}
	if _, err := io.Copy(writeOnly{f}, body); err != nil {
		_ = f.Close()
		return interrupted(err)
	}
	if err := f.Close(); err != nil {
		return &outputError{err}
	}
	return nil
}

// writeOnly tells a failure to write from a failure to read.
type writeOnly struct{ w io.Writer }

func (w writeOnly) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		return n, &outputError{err}
	}
	return n, nil
}

// tellWait says on standard error that a wait begins, if asked to.
func (a *app) tellWait(w delay.Wait) {
	switch {
	case !a.verbose:
	case a.json:
		_ = a.out.remark(waitEvent(w))
	default:
		a.out.line("%s", w)
	}
}

// waitEvent is a wait as an event: {"event":"wait","loop":...}.
func waitEvent(w delay.Wait) json.RawMessage {
	b, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	return append([]byte(`{"event":"wait",`), b[1:]...)
}
