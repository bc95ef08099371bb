package interop_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/interop/internal/line"
	"github.com/heed-sdk/heed/interop/internal/testmain"
)

// patience bounds whatever a test waits for. No test needs half of it, except on a machine that has other things to do.
const patience = 45 * time.Second

// TestMain looks, when all servers are gone, whether anybody has left a goroutine behind: in between the servers in this
// process have goroutines of their own, which come and go.
func TestMain(m *testing.M) {
	testmain.Parallel(64)
	goleak.VerifyTestMain(m, append(line.Leftovers(),
		// Centrifuge's, which sleeps for a second before it looks whether its node was shut down.
		goleak.IgnoreAnyFunction("github.com/centrifugal/centrifuge/internal/dissolve.(*Dissolver).runWorker"),
		goleak.Cleanup(func(code int) {
			if buildDir != "" {
				_ = os.RemoveAll(buildDir)
			}
			os.Exit(code)
		}))...)
}
