package delay_test

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is an ordinary instant: a Sunday.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// seconds is n s, for tables in whole seconds.
func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// lines is a header with these Retry-After lines.
func lines(values ...string) http.Header { return http.Header{"Retry-After": values} }
