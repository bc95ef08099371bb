package prompt

import (
	"fmt"
	"time"

	"github.com/heed-sdk/heed/auth"
)

const unapproved = "not approved yet"

// status is what the line below the code tells of a login.
type status struct {
	expires time.Time
	polls   int
	said    string    // what the last step was
	detail  string    // more about it, where there is room
	next    time.Time // the next poll; zero before it is known
	few     bool      // the code has almost expired
	granted bool
}

// on takes an event in. news is true when the line has to be drawn at once: after a poll that is when the wait begins,
// which says all there is to say.
func (s *status) on(e auth.Event) (news bool) {
	switch e := e.(type) {
	case auth.Browser:
		s.said, s.detail = "browser opened", ""
		if !e.Opened {
			s.said, s.detail = "no browser opened", ": "+e.Cause
		}
	case auth.Polled:
		s.polls = e.Count
		s.said, s.detail = e.Outcome, ""
		if e.Outcome == "authorization_pending" {
			s.said = unapproved
		}
	case auth.Slowed:
		s.said, s.detail = unapproved, ", asked to poll less often"
	case auth.Throttled:
		s.said, s.detail = "server is busy", ""
	case auth.Unreachable:
		s.said, s.detail = "no answer", ": "+e.Cause
		if e.Failures > 1 {
			s.detail = fmt.Sprintf(", %d times: %s", e.Failures, e.Cause)
		}
	case auth.Waiting:
		s.next = e.Wait.Until
		return true
	case auth.AlmostExpired:
		s.few = true
		return true
	case auth.Granted:
		s.granted = true
	}
	return false
}

// line is the line at an instant, for a window of so many columns. The last column stays free: in some terminals a
// character there moves the cursor on.
func (s status) line(now time.Time, width int) string {
	left := clockTime(s.expires.Sub(now)) + " left"
	poll, next := "", ""
	if s.polls > 0 {
		poll = fmt.Sprintf("poll %d: ", s.polls)
	}
	if wait := seconds(s.next.Sub(now)); wait > 0 {
		next = fmt.Sprintf(", next in %d s", wait)
	}
	text := ""
	for _, text = range []string{ // the first that fits
		poll + s.said + s.detail + next, poll + s.said + s.detail, s.said + s.detail + next, s.said + s.detail, s.said,
	} {
		text = ", " + clean(text)
		if columns(left+text) < width {
			break
		}
	}
	text = cut(text, max(width-1-len(left), 0))
	if s.few {
		return urgent + left + plain + text
	}
	return left + text
}

// tick is how long the line stays as it is, 0 for ever.
func (s status) tick(now time.Time) time.Duration {
	left := s.expires.Sub(now)
	if left <= 0 {
		return 0
	}
	return left - time.Duration(seconds(left)-1)*time.Second
}

// seconds rounds up: as long as something is left, that is a second.
func seconds(d time.Duration) int64 {
	return int64((max(d, 0) + time.Second - 1) / time.Second)
}

// clockTime writes a duration as 1:02:03 or 2:03.
func clockTime(d time.Duration) string {
	s := seconds(d)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
