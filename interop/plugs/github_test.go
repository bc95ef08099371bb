package plugs_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-github/v88/github"

	"github.com/heed-sdk/heed/internal/fakes"
	"github.com/heed-sdk/heed/requests"
)

const gitHubHost = "api.github.com"

// What GitHub says to who sends too much at once.
const secondaryLimit = `{"message":"You have exceeded a secondary rate limit.",
	"documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`

var octocat = answer(200, `{"login":"octocat"}`, "X-RateLimit-Remaining", "4999")

// gitHub is a client with nothing but a transport of ours.
func (r *rig) gitHub(tr http.RoundTripper, more ...github.ClientOptionsFunc) *github.Client {
	r.Helper()
	c, err := github.NewClient(append(more, github.WithTransport(tr))...)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// wantOctocat asks for a user.
func (r *rig) wantOctocat(c *github.Client) {
	r.Helper()
	user, _, err := c.Users.Get(r.Context(), "octocat")
	if err != nil || user.GetLogin() != "octocat" {
		r.Errorf("%v, %v", user, err)
	}
}

// TestGoGitHubWaited is what go-github never hears of.
func TestGoGitHubWaited(t *testing.T) {
	t.Parallel()
	limited := func(r *rig) *requests.Transport {
		tr := r.transport()
		tr.Base = limits{tr.Base}
		return tr
	}
	for _, tt := range []struct {
		name      string
		refusal   fakes.Answer
		transport func(*rig) *requests.Transport
		wait      time.Duration
	}{
		{"429", answer(429, secondaryLimit, "Retry-After", "90"), (*rig).transport, 90 * time.Second},
		{"503", answer(503, "", "Retry-After", "7"), (*rig).transport, 7 * time.Second},
		{"503 without a wait", answer(503, ""), (*rig).transport, time.Second},
		{"403 that is a 429", answer(403, secondaryLimit, "Retry-After", "60"), limited, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run(t, gitHubHost, []fakes.Answer{tt.refusal, octocat, octocat}, func(r *rig) {
				c := r.gitHub(tt.transport(r))
				r.wantOctocat(c)
				r.wantOctocat(c) // it knows of no limit that it would have to keep
				r.wantWaits(tt.wait, 0)
				for _, got := range r.api.Received() {
					if got.Header.Get("Authorization") != "Bearer example" || got.URL != "/users/octocat" {
						r.Errorf("%s with %v", got.URL, got.Header)
					}
				}
			})
		})
	}
}

// TestGoGitHubForbidden has a 403 as it is: nobody repeats it, since most are for good. go-github tells what it is from its
// body, and refuses by itself what comes too early.
func TestGoGitHubForbidden(t *testing.T) {
	t.Parallel()
	run(t, gitHubHost, []fakes.Answer{answer(403, secondaryLimit, "Retry-After", "60"), octocat}, func(r *rig) {
		c := r.gitHub(r.transport())
		for range 2 {
			_, _, err := c.Users.Get(r.Context(), "octocat")
			if limited, ok := errors.AsType[*github.AbuseRateLimitError](err); !ok || limited.GetRetryAfter() != time.Minute {
				r.Errorf("%v", err)
			}
		}
		time.Sleep(time.Minute)
		r.wantOctocat(c)
	})
	// One that is for good stays so, even with Base as in the example.
	run(t, gitHubHost, []fakes.Answer{answer(403, `{"message":"Must have admin rights"}`)}, func(r *rig) {
		tr := r.transport()
		tr.Base = limits{tr.Base}
		_, resp, err := r.gitHub(tr).Users.Get(r.Context(), "octocat")
		if err == nil || resp.StatusCode != http.StatusForbidden {
			r.Errorf("%v", err)
		}
	})
}

// TestGoGitHubExhausted has more refusals than attempts. The last one is go-github's.
func TestGoGitHubExhausted(t *testing.T) {
	t.Parallel()
	refusal := answer(429, secondaryLimit, "Retry-After", "5")
	run(t, gitHubHost, []fakes.Answer{refusal, refusal, refusal}, func(r *rig) {
		_, _, err := r.gitHub(r.transport()).Users.Get(r.Context(), "octocat")
		if limited, ok := errors.AsType[*github.AbuseRateLimitError](err); !ok || limited.GetRetryAfter() != 5*time.Second {
			r.Errorf("%v", err)
		}
		r.wantWaits(5*time.Second, 5*time.Second)
	})
}

// TestGoGitHubPrimary is the limit that every answer counts down. go-github has read of it that nothing is left, and sends
// nothing before the reset, so that there is nothing for a transport to wait for; unless it is told to leave that to it.
func TestGoGitHubPrimary(t *testing.T) {
	t.Parallel()
	const body = `{"login":"octocat"}`
	last := answer(200, body, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(10*time.Minute))
	over := answer(403, `{"message":"API rate limit exceeded"}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(10*time.Minute))
	t.Run("kept by go-github", func(t *testing.T) {
		t.Parallel()
		run(t, gitHubHost, []fakes.Answer{last, octocat}, func(r *rig) {
			c := r.gitHub(r.transport())
			r.wantOctocat(c)
			_, _, err := c.Users.Get(r.Context(), "octocat")
			if limited, ok := errors.AsType[*github.RateLimitError](err); !ok || !limited.Rate.Reset.Time.Equal(start.Add(10*time.Minute)) {
				r.Errorf("%v", err)
			}
			time.Sleep(10 * time.Minute)
			r.wantOctocat(c)
		})
	})
	t.Run("left to the transport", func(t *testing.T) {
		t.Parallel()
		run(t, gitHubHost, []fakes.Answer{last, over, octocat}, func(r *rig) {
			tr := r.transport()
			tr.Base, tr.ReadWait = limits{tr.Base}, requests.ReadRateLimitReset
			c := r.gitHub(tr, github.WithDisableRateLimitCheck())
			r.wantOctocat(c)
			r.wantOctocat(c)
			r.wantWaits(0, 10*time.Minute)
		})
	})
}

// TestGoGitHubWrite creates something, which happens twice if it is sent twice.
func TestGoGitHubWrite(t *testing.T) {
	t.Parallel()
	title := "found a bug"
	create := func(r *rig, tr *requests.Transport) (*github.Issue, error) {
		issue, _, err := r.gitHub(tr).Issues.Create(r.Context(), "octo", "cat", &github.IssueRequest{Title: &title})
		return issue, err
	}
	refusal, created := answer(429, secondaryLimit, "Retry-After", "90"), answer(201, `{"number":7}`)
	run(t, gitHubHost, []fakes.Answer{refusal}, func(r *rig) {
		if _, err := create(r, r.transport()); err == nil {
			r.Error("a POST that is refused has no error")
		}
	})
	// What was refused by 429 has not happened: a policy that says so repeats it, and nothing else.
	run(t, gitHubHost, []fakes.Answer{refusal, created}, func(r *rig) {
		tr := r.transport()
		tr.Policy = requests.RefusedOnly{Times: 3}
		if issue, err := create(r, tr); err != nil || issue.GetNumber() != 7 {
			r.Errorf("%v, %v", issue, err)
		}
		r.wantWaits(90 * time.Second)
		if sent := r.api.Received(); len(sent) == 2 && (len(sent[1].Body) == 0 || string(sent[0].Body) != string(sent[1].Body)) {
			r.Errorf("sent %q, then %q", sent[0].Body, sent[1].Body)
		}
	})
	run(t, gitHubHost, []fakes.Answer{answer(503, "")}, func(r *rig) {
		tr := r.transport()
		tr.Policy = requests.RefusedOnly{Times: 3}
		if _, err := create(r, tr); err == nil {
			r.Error("a POST that may have happened has no error")
		}
	})
}
