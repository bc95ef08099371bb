package auth_test

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/heed-sdk/heed/auth"
)

// freshSource has a token that is good for as long as a benchmark runs.
func freshSource(t testing.TB) *auth.TokenSource {
	t.Helper()
	s, err := auth.NewTokenSource(
		auth.Credential{AccessToken: "at", RefreshToken: "rt", Obtained: time.Now(), Expiry: time.Now().Add(24 * time.Hour)},
		auth.SourceConfig{Refresher: auth.Refresher{Config: oauth2.Config{ClientID: "cli", Endpoint: oauth2.Endpoint{TokenURL: "https://as.test/token"}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTokenAllocatesNothing(t *testing.T) {
	s, ctx := freshSource(t), t.Context()
	for name, f := range map[string]func() (*oauth2.Token, error){
		"Token":        s.Token,
		"TokenContext": func() (*oauth2.Token, error) { return s.TokenContext(ctx) },
	} {
		n := testing.AllocsPerRun(1000, func() {
			if _, err := f(); err != nil {
				t.Error(err)
			}
		})
		if n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// BenchmarkToken compares a fresh token from here with one from the library's own source, by one goroutine and by a
// thousand.
func BenchmarkToken(b *testing.B) {
	for _, source := range []struct {
		name string
		oauth2.TokenSource
	}{
		{"heed", freshSource(b)},
		{"oauth2", oauth2.ReuseTokenSource(&oauth2.Token{AccessToken: "at", Expiry: time.Now().Add(24 * time.Hour)}, nil)},
	} {
		b.Run("alone/"+source.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := source.Token(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("thousand/"+source.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(1000 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := source.Token(); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
