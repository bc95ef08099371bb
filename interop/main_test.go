package interop_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds whatever a test waits for. No test needs half of it, except on a machine that has other things to do.
const patience = 45 * time.Second

// TestMain looks, when all servers are gone, whether anybody has left a goroutine behind: in between the servers in this
// process have goroutines of their own, which come and go.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		// These tests wait much and compute little: how many run at once is not for the number of processors to say.
		if err := flag.Set("test.parallel", "64"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m,
		// Centrifuge's, which sleeps for a second before it looks whether its node was shut down.
		goleak.IgnoreAnyFunction("github.com/centrifugal/centrifuge/internal/dissolve.(*Dissolver).runWorker"),
		goleak.Cleanup(func(code int) {
			if buildDir != "" {
				_ = os.RemoveAll(buildDir)
			}
			os.Exit(code)
		}))
}
