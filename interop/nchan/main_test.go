//go:build unix

package nchan_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/interop/internal/testmain"
)

func TestMain(m *testing.M) {
	testmain.Parallel(32)
	goleak.VerifyTestMain(m,
		// Toxiproxy's, when a connection ends while something is added to its line or removed.
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"))
}
