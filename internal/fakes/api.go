package fakes

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/heed-sdk/heed/delay"
)

// Answer is what an API answers to one request.
type Answer struct {
	Status  int           // zero is 200
	Header  http.Header   // may be nil
	Body    string        // sent as it is
	Latency time.Duration // passes before the answer begins
	Drop    bool          // the connection breaks instead
	Cut     bool          // the connection breaks behind the body, of which one more byte was announced
}

// Received is a request as an API received it.
type Received struct {
	Method string
	Host   string
	URL    string // path and query
	Header http.Header
	Body   []byte
	Began  time.Time // its header was read
	Ended  time.Time // its answer was written, or its connection broken
}

// API answers one request after the other from a script. The last answer does not repeat: a request beyond the script is
// a violation, and gets a 501.
type API struct {
	// Clock is the clock of latency and of what is recorded. If it is nil, it is the real one.
	Clock clock.Clock

	watch
	script   []Answer
	received []Received
}

// NewAPI returns an API with a script.
func NewAPI(script ...Answer) *API { return &API{script: script} }

// ServeHTTP answers the next request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	timers := a.on(a.Clock)
	got := Received{Method: r.Method, Host: r.Host, URL: r.URL.RequestURI(), Header: r.Header.Clone(), Began: timers.Now()}
	got.Body, _ = io.ReadAll(r.Body)
	a.mu.Lock()
	n := len(a.received)
	a.received = append(a.received, got)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.received[n].Ended = timers.Now()
		a.mu.Unlock()
	}()
	if n >= len(a.script) {
		a.violated("request %d, %s %s, is beyond the script of %d", n+1, r.Method, r.URL.Path, len(a.script))
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	a.script[n].write(w, r, timers)
}

func (answer Answer) write(w http.ResponseWriter, r *http.Request, timers *delay.Timers) {
	if answer.Latency > 0 && pass(r.Context(), timers, answer.Latency) != nil || answer.Drop {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header)
	if answer.Cut {
		w.Header().Set("Content-Length", strconv.Itoa(len(answer.Body)+1))
	}
	if answer.Status != 0 {
		w.WriteHeader(answer.Status)
	}
	_, _ = io.WriteString(w, answer.Body)
	if answer.Cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// pass lets time pass on a clock.
func pass(ctx context.Context, timers *delay.Timers, d time.Duration) error {
	return delay.Pause{Timers: timers, Kind: "latency"}.Sleep(ctx, delay.Wait{For: d})
}

// Received lists the requests so far.
func (a *API) Received() []Received {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.received)
}

// Waits lists the times from the end of each answer to the beginning of the next request.
func (a *API) Waits() []time.Duration {
	list := a.Received()
	waits := make([]time.Duration, 0, len(list))
	for i := 1; i < len(list); i++ {
		waits = append(waits, list[i].Began.Sub(list[i-1].Ended))
	}
	return waits
}

// watch is what fakes have in common: a clock, and a list of what clients did wrong.
type watch struct {
	mu         sync.Mutex
	timers     *delay.Timers
	violations []string
}

func (v *watch) on(c clock.Clock) *delay.Timers {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.timers == nil {
		v.timers = delay.TimersOn(c)
	}
	return v.timers
}

func (v *watch) violated(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.violations = append(v.violations, fmt.Sprintf(format, args...))
}

// Violations lists what clients did that they must not do. No credential is in it.
func (v *watch) Violations() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.violations)
}

// Limited serves each credential one request per interval. Others it refuses with a 429 and a Retry-After, and whoever
// comes back before that time has violated it.
type Limited struct {
	// Clock is the clock of the interval. If it is nil, it is the real one.
	Clock clock.Clock
	// Handler serves what is not refused.
	Handler http.Handler
	// Every is the interval. If it is zero, it is one second.
	Every time.Duration

	watch
	next map[string]time.Time // when a credential is served again
	told map[string]time.Time // when a credential was told to come back
}

// ServeHTTP serves a request or refuses it.
func (l *Limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := l.on(l.Clock).Now()
	who := r.Header.Get("Authorization")
	wait, early := l.admit(who, now)
	if early > 0 {
		l.violated("%s %s came %v before the time it was told", r.Method, r.URL.Path, early)
	}
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":"Too many requests"}`)
		return
	}
	l.Handler.ServeHTTP(w, r)
}

// admit returns how long a credential has to wait, in whole seconds, and by how much it came early.
func (l *Limited) admit(who string, now time.Time) (wait, early time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next, l.told = map[string]time.Time{}, map[string]time.Time{}
	}
	early = max(l.told[who].Sub(now), 0)
	if rest := max(l.next[who].Sub(now), early); rest > 0 {
		wait = (rest + time.Second - 1).Truncate(time.Second)
		l.told[who] = now.Add(wait)
		return wait, early
	}
	every := l.Every
	if every <= 0 {
		every = time.Second
	}
	l.next[who] = now.Add(every)
	return 0, 0
}

// Files is a file host in two places: an API that redirects who has a credential to a signed address, and the storage
// behind it, at another origin, where a credential is a violation.
type Files struct {
	// Clock is the clock of the signatures, which are good for a minute. If it is nil, it is the real one.
	Clock clock.Clock
	// Storage is the origin of the storage, such as "https://files.test".
	Storage string
	// Content has the files by their paths, such as "/report.pdf".
	Content map[string]string

	watch
	once   sync.Once
	secret []byte
}

const signatureLife = time.Minute

// API returns the first place.
func (f *Files) API() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, ok := f.Content[r.URL.Path]; {
		case r.Header.Get("Authorization") == "":
			w.WriteHeader(http.StatusUnauthorized)
			return
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		until := strconv.FormatInt(f.on(f.Clock).Now().Add(signatureLife).Unix(), 10)
		w.Header().Set("Location", f.Storage+r.URL.EscapedPath()+"?until="+until+"&signature="+f.sign(r.URL.Path, until))
		w.WriteHeader(http.StatusFound)
	})
}

// Store returns the second place.
func (f *Files) Store() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Authorization", "Cookie", "Idempotency-Key"} {
			if r.Header.Get(name) != "" {
				f.violated("%s %s came to the storage with %s", r.Method, r.URL.Path, name)
				w.WriteHeader(http.StatusBadRequest)
				return
			}
		}
		until, signature := r.URL.Query().Get("until"), r.URL.Query().Get("signature")
		end, _ := strconv.ParseInt(until, 10, 64)
		content, ok := f.Content[r.URL.Path]
		if !ok || !hmac.Equal([]byte(signature), []byte(f.sign(r.URL.Path, until))) || f.on(f.Clock).Now().Unix() > end {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		sum := sha256.Sum256([]byte(content))
		w.Header().Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:9])+`"`)
		http.ServeContent(w, r, r.URL.Path, time.Time{}, strings.NewReader(content))
	})
}

func (f *Files) sign(path, until string) string {
	f.once.Do(func() { f.secret = []byte(rand.Text()) })
	mac := hmac.New(sha256.New, f.secret)
	_, _ = io.WriteString(mac, path+"\n"+until)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
