package main

import (
	"fmt"
	"io"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// progress draws how far a download is, in place. It draws as bytes come, so that it needs no timer and a download that
// stands still leaves the line as it is.
type progress struct {
	w      io.Writer // nil: nobody is looking
	timers *delay.Timers
	total  int64 // −1 when it is not known

	began, drawn time.Time
	start, at    int64
}

const redraw = 200 * time.Millisecond

func (a *app) progress(from *requests.Download) *progress {
	p := &progress{timers: delay.TimersOn(nil), total: -1, start: from.Offset, at: from.Offset}
	if (a.out.terminal() || a.watched) && !a.json {
		p.w = a.out.stderr
	}
	if from.Length >= 0 {
		p.total = from.Offset + from.Length
	}
	p.began = p.timers.Now()
	return p
}

// Write counts bytes that were written.
func (p *progress) Write(b []byte) (int, error) {
	p.at += int64(len(b))
	if p.w == nil {
		return len(b), nil
	}
	if now := p.timers.Now(); now.Sub(p.drawn) >= redraw {
		p.drawn = now
		_, _ = io.WriteString(p.w, "\r\x1b[K"+p.text(now.Sub(p.began)))
	}
	return len(b), nil
}

// clear takes the line away.
func (p *progress) clear() {
	if p.w != nil && !p.drawn.IsZero() {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
}

func (p *progress) text(took time.Duration) string {
	s := amount(float64(p.at))
	if p.total > 0 {
		s += fmt.Sprintf(" of %s, %d %%", amount(float64(p.total)), int(float64(p.at)/float64(p.total)*100))
	}
	// The rate is of what has come in this run; a first glimpse says nothing.
	came := p.at - p.start
	if took < time.Second || came <= 0 {
		return s
	}
	rate := float64(came) / took.Seconds()
	s += ", " + amount(rate) + "/s"
	if p.total > 0 {
		left := max(float64(p.total-p.at)/rate, 0)
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
