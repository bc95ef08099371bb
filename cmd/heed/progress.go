package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// progress draws how far a download is, in place: as bytes come, and each second in which none do.
type progress struct {
	w      io.Writer // nil: nobody is looking
	timers *delay.Timers
	total  int64 // −1 when it is not known
	ticks  chan struct{}
	stop   chan struct{}
	gone   chan struct{} // the goroutine that draws each second

	mu    sync.Mutex
	drawn time.Time
	last  mark   // where the last bytes ended
	marks []mark // the last seconds, the oldest first
}

// mark is how far a download was at an instant.
type mark struct {
	when time.Time
	at   int64
}

const (
	redraw = 200 * time.Millisecond
	// rateOver is how far back the rate looks, so that one that changes is seen and one that only trembles is not.
	rateOver = 10 * time.Second
	// stalled is how long nothing may come before a rate and a time left would be promises.
	stalled = 3 * time.Second
)

func (a *app) progress(from *requests.Download) *progress {
	p := &progress{timers: delay.TimersOn(nil), total: -1}
	if from.Length >= 0 {
		p.total = from.Offset + from.Length
	}
	p.last = mark{p.timers.Now(), from.Offset}
	p.marks = []mark{p.last}
	if (a.out.terminal() || a.watched) && !a.json {
		p.w, p.ticks, p.stop, p.gone = a.out.stderr, make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
		go p.tick()
	}
	return p
}

// Write counts bytes that were written.
func (p *progress) Write(b []byte) (int, error) {
	if p.w == nil {
		return len(b), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.last.when
	if p.last = (mark{p.timers.Now(), p.last.at + int64(len(b))}); p.last.when.Sub(before) >= stalled {
		p.marks = []mark{p.last} // what it did before says nothing any more
	}
	p.draw(redraw)
	return len(b), nil
}

// tick draws each second, until clear ends it.
func (p *progress) tick() {
	defer close(p.gone)
	for {
		t := p.timers.After(delay.KindStatus, time.Second, func() { p.ticks <- struct{}{} })
		select {
		case <-p.ticks:
		case <-p.stop:
			t.Stop()
			return
		}
		p.mu.Lock()
		p.draw(time.Second)
		p.mu.Unlock()
	}
}

// draw draws unless it was done so shortly before. The caller holds mu.
func (p *progress) draw(every time.Duration) {
	now := p.timers.Now()
	if now.Sub(p.drawn) < every {
		return
	}
	if p.drawn = now; p.last.when.After(p.marks[len(p.marks)-1].when) {
		p.marks = append(p.marks, p.last)
	}
	for len(p.marks) > 2 && now.Sub(p.marks[1].when) >= rateOver {
		p.marks = p.marks[1:]
	}
	_, _ = io.WriteString(p.w, "\r\x1b[K"+p.text(now))
}

// clear takes the line away.
func (p *progress) clear() {
	if p.w == nil {
		return
	}
	close(p.stop)
	<-p.gone
	if !p.drawn.IsZero() {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
}

func (p *progress) text(now time.Time) string {
	s := amount(float64(p.last.at))
	if p.total > 0 {
		s += fmt.Sprintf(" of %s, %d %%", amount(float64(p.total)), int(float64(p.last.at)/float64(p.total)*100))
	}
	if idle := now.Sub(p.last.when); idle >= stalled {
		return s + ", stalled for " + idle.Truncate(time.Second).String()
	}
	// The rate is of what has come lately, in this run; a first glimpse says nothing.
	since := p.marks[0]
	came, took := p.last.at-since.at, now.Sub(since.when)
	if took < time.Second || came <= 0 {
		return s
	}
	rate := float64(came) / took.Seconds()
	s += ", " + amount(rate) + "/s"
	if p.total > 0 {
		left := max(float64(p.total-p.last.at)/rate, 0)
		if left < 100*time.Hour.Seconds() { // more is no news, and may be more than a Duration holds
			s += fmt.Sprintf(", %v left", time.Duration(left)*time.Second)
		}
	}
	return s
}

// amount is a number of bytes for somebody to read.
func amount(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n >= 1024 && i < len(units)-1 {
		n /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%.0f %s", n, units[i])
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}
