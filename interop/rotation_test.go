package interop_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heed-sdk/heed"
	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/interop/internal/optest"
	"github.com/heed-sdk/heed/interop/oidcprovider"
)

// What a process of TestRotation is told.
const (
	rotationIssuer = "HEED_INTEROP_ROTATION_ISSUER"
	rotationStore  = "HEED_INTEROP_ROTATION_STORE"
)

// rotations is how many times a token expires under two processes.
const rotations = 2

// TestRotation has two programs share a login at a server that takes a refresh token which comes twice for stolen, and
// then revokes everything. At each expiry both want a new token at the same moment; one refreshes, and the other takes
// what the first has stored.
func TestRotation(t *testing.T) {
	t.Parallel()
	const life = 3 * time.Second
	s := oidcprovider.Start(t, oidcprovider.Config{AccessTTL: life, Interval: time.Second})
	store := &auth.FileStore{Dir: t.TempDir()}
	a := newApp(t, s, heed.Config{ClientID: publicID, Scopes: scopes, Store: store})
	first := a.login()

	var programs [2][]renewal
	var ready, all sync.WaitGroup
	ready.Add(len(programs))
	for i := range programs {
		all.Go(func() { programs[i] = rotate(t, s.Issuer(), store.Dir, &ready) })
	}
	all.Wait()
	if len(programs[0]) != rotations || len(programs[1]) != rotations {
		t.Fatalf("the programs had %d and %d tokens, want %d", len(programs[0]), len(programs[1]), rotations)
	}
	seen := map[string]bool{digest(first.AccessToken): true}
	for i, one := range programs[0] {
		other := programs[1][i]
		if one.Token != other.Token || seen[one.Token] {
			t.Errorf("expiry %d: the same token for both: %v; an old one: %v", i+1, one.Token == other.Token, seen[one.Token])
		}
		seen[one.Token] = true
		if one.Subject != user || other.Subject != user {
			t.Errorf("expiry %d: the subjects are %q and %q", i+1, one.Subject, other.Subject)
		}
		if one.Own+other.Own != 1 || one.ByOther+other.ByOther != 1 {
			t.Errorf("expiry %d: %d and %d refreshes, and %d and %d adopted, want one of each",
				i+1, one.Own, other.Own, one.ByOther, other.ByOther)
		}
	}

	// Somebody has copied the first refresh token, and uses it now.
	raw := optest.NewClient(t, s.Issuer(), publicID, "")
	if answer := raw.Refresh(first.RefreshToken); answer.String("error") != "invalid_grant" {
		t.Fatalf("the old refresh token was answered with %d %s", answer.Status, answer.Raw)
	}
	info := userInfoURL(t, s)
	for range 2 {
		_, err := a.get(info)
		if ended, ok := errors.AsType[*auth.SessionExpired](err); !ok || ended.Reason != auth.ErrSessionRefused {
			t.Errorf("the next request ended with %v", err)
		}
		if _, _, err := a.Session(t.Context()); !errors.Is(err, auth.ErrStoreNotFound) {
			t.Errorf("the store has still the login: %v", err)
		}
	}
	// A token that has not expired is handed out all the same: the server may have refused it for another reason.
	time.Sleep(life)
	if _, err := a.TokenSource().Token(); !errors.Is(err, auth.ErrSessionRefused) {
		t.Errorf("the next token ended with %v", err)
	}
	// Another program, which has heard of nothing.
	b := newApp(t, s, heed.Config{ClientID: publicID, Store: store})
	if _, err := b.TokenSource().Token(); !errors.Is(err, auth.ErrStoreNotFound) {
		t.Errorf("another program has the token %v", err)
	}
	// The way back is another login.
	a.login()
	if sub, err := a.get(info); err != nil || sub != user {
		t.Errorf("after another login: subject %q: %v", sub, err)
	}
}

// renewal is what a process tells of an expiry, without a secret.
type renewal struct {
	Token        string // its digest
	Subject      string
	Own, ByOther int // refreshes
}

func digest(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }

// rotate runs TestRotationProcess in a process of its own, which begins when all of them are ready.
func rotate(t *testing.T, issuer, store string, ready *sync.WaitGroup) (all []renewal) {
	waiting := sync.OnceFunc(func() { ready.Done(); ready.Wait() })
	defer waiting()
	self, err := os.Executable()
	if err != nil {
		t.Error(err)
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestRotationProcess$", "-test.v")
	cmd.Env = append(os.Environ(), rotationIssuer+"="+issuer, rotationStore+"="+store, "GORACE=atexit_sleep_ms=0")
	begin, sign := io.Pipe() // whose end is the sign to begin
	cmd.Stdin = begin
	defer sign.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return nil
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if lines.Text() == "ready" {
			waiting()
			sign.Close()
		}
		if line, ok := strings.CutPrefix(lines.Text(), "renewal "); ok {
			var r renewal
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			all = append(all, r)
		}
	}
	sign.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("a process: %v\n%s", err, strings.Join(said, "\n"))
	}
	return all
}

// TestRotationProcess is a program that finds a login in the store and waits for its token to expire, some times over.
func TestRotationProcess(t *testing.T) {
	issuer := os.Getenv(rotationIssuer)
	if issuer == "" {
		t.Skip("part of TestRotation")
	}
	a := newApp(t, known(issuer), heed.Config{ClientID: publicID, Store: &auth.FileStore{Dir: os.Getenv(rotationStore)}})
	info := userInfoURL(t, known(issuer))
	tokens := a.TokenSource()
	token, err := tokens.Token()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin)
	before := len(a.refreshed())
	for range rotations {
		// Nobody asks in the early window, so that everybody has to wait for the one refresh.
		time.Sleep(time.Until(token.Expiry) + 10*time.Millisecond)
		if token, err = tokens.Token(); err != nil {
			t.Fatal(err)
		}
		r := renewal{Token: digest(token.AccessToken)}
		if r.Subject, err = a.get(info); err != nil {
			t.Fatal(err)
		}
		done := a.refreshed()
		for _, e := range done[before:] {
			if e.ByOther {
				r.ByOther++
			} else {
				r.Own++
			}
		}
		before = len(done)
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("renewal %s\n", line)
	}
}

// known is a server that another process has started.
type known string

func (k known) Issuer() string { return string(k) }

func (known) Approve(context.Context, string, string) error { return errors.New("nobody logs in here") }
