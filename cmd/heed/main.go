// Command heed logs in by OAuth device flow, makes requests that wait right and keeps an event stream alive.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C kills the process as usual.
	context.AfterFunc(ctx, stop)
	// A write for a reader that has gone, as behind head, is to fail and not to end the process: there may be a line at the
	// bottom of the terminal to take away.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}
