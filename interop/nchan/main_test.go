//go:build unix

package nchan_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/heed-sdk/heed/interop/internal/line"
	"github.com/heed-sdk/heed/interop/internal/testmain"
)

func TestMain(m *testing.M) {
	testmain.Parallel(32)
	goleak.VerifyTestMain(m, line.Leftovers()...)
}
