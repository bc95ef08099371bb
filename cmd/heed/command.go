package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// app is what every command shares.
type app struct {
	out     *output
	json    bool
	verbose bool
	env     func(string) (string, bool)

	in      io.Reader                                       // nil: standard input
	browser func(ctx context.Context, address string) error // nil: the desktop's, if somebody is looking at it

	console   *console // nil: that of the process, if it has one
	interrupt func()   // ends the command as Ctrl-C does

	dir string // of stored logins; "" is the user's

	disk    func(io.Writer) io.Writer // what a download is written through; nil: nothing
	watched bool                      // somebody is looking at stderr, though it is no terminal

	// The network; tests have one in memory.
	transport http.RoundTripper // nil: http.DefaultTransport
	listen    func() (net.Listener, error)
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	a := &app{
		out: &output{stdout: stdout, stderr: stderr},
		env: env,
		listen: func() (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		},
	}
	return a.execute(ctx, args)
}

func (a *app) execute(ctx context.Context, args []string) int {
	ctx, a.interrupt = context.WithCancel(ctx)
	defer a.interrupt()
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.out.err()
	}
	if err == nil {
		return 0
	}
	code, line := verdict(ctx, err)
	if unread(err) {
		return code
	}
	a.out.line("heed: %s", strings.TrimPrefix(line, "heed: "))
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "heed",
		Short:         "Log in by OAuth device flow, make requests that wait right, keep an event stream alive",
		SilenceUsage:  true,
		SilenceErrors: true,
		Long: "Log in by OAuth device flow, make requests that wait as the server asks, keep an event stream alive.\n\n" +
			"Every flag can be set by a variable: --client-id by HEED_CLIENT_ID.\n\n" + exitCodes,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("%s is not a command: see 'heed --help'", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnvironment(cmd.Flags(), a.env)
		},
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON instead of text")
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "say on standard error what happens, every wait included")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return usage("--%s does not take %q: see '%s --help'", invalid.GetFlag().Name, invalid.GetValue(), cmd.CommandPath())
		}
		return usage("%s: see '%s --help'", err, cmd.CommandPath())
	})
	root.AddCommand(a.login(), a.whoami(), a.printToken(), a.logout(), a.get(), a.download(), a.tail(), a.explain(), a.operations(), a.demo())
	root.SetOut(a.out) // before the command completion is made, which looks where to write
	root.SetErr(a.out.stderr)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && !cmd.Runnable() { // cobra takes any word behind one as a wish for help
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		if cmd.Name() == "help" {
			cmd.Args = helpTopic
			continue
		}
		asUsage(cmd)
	}
	return root
}

// helpTopic makes help about what is no command an error of use.
func helpTopic(cmd *cobra.Command, args []string) error {
	if _, rest, err := cmd.Root().Find(args); err != nil || len(rest) > 0 {
		return usage("%s is not a command: see 'heed --help'", strings.Join(args, " "))
	}
	return nil
}

// asUsage makes a wrong number of arguments an error of use.
func asUsage(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		check = cobra.NoArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) != nil {
			return usage("the command is '%s': see '%s --help'", strings.TrimSuffix(cmd.UseLine(), " [flags]"), cmd.CommandPath())
		}
		return nil
	}
}

// fromEnvironment sets each flag that was not given from its variable: --client-id from HEED_CLIENT_ID.
func fromEnvironment(flags *pflag.FlagSet, env func(string) (string, bool)) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		value, ok := env(name)
		if f.Changed || !ok || f.Name == "help" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, usage("the variable %s is not a valid --%s: correct it or unset it", name, f.Name))
		}
	})
	return errors.Join(errs...)
}

func variable(flag string) string {
	return "HEED_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// usageError is a mistake in how the command was called.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}
