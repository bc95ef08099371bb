package main

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/heed-sdk/heed/delay"
)

func (a *app) explain() *cobra.Command {
	var (
		loop        string
		retryAfter  []string
		attempt     int
		draw        float64
		interval    float64
		limit, upTo time.Duration
	)
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Print the composition table, or what a loop would wait and why",
		Long: `Print the composition table: for each loop its own delay, how Retry-After (R) combines with it, the forms of
the header it reads, and what bounds the result.

With any of the flags below, say what the loop would wait after an attempt, and why; without --loop, every loop.
The JSON of a wait is {"loop","local","server","wait","reason"}, in seconds.`,
		Example: `  heed explain
  heed explain --loop reconnect --retry-after 1 --draw 50 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loops := make([]delay.Loop, 0, len(delay.Table()))
			for _, row := range delay.Table() {
				loops = append(loops, row.Loop)
			}
			if loop != "" {
				l, ok := delay.LoopNamed(loop)
				if !ok {
					return usage("--loop %s is not a loop: take one of %s", loop, loopNames())
				}
				loops = []delay.Loop{l}
			}
			switch {
			case attempt < 1:
				return usage("--attempt counts from 1")
			case !(draw >= 0 && draw <= delay.MaxWait.Seconds()):
				return usage("--draw is a number of seconds, from 0 to %d", delay.MaxWait/time.Second)
			case !(interval >= 0 && interval <= delay.MaxWait.Seconds()):
				return usage("--interval is a number of seconds, from 0 to %d", delay.MaxWait/time.Second)
			case limit < 0 || upTo < 0:
				return usage("--limit and --cap are not negative")
			}
			if !anyChanged(cmd, "loop", "retry-after", "attempt", "draw", "interval", "limit", "cap") {
				return a.table()
			}
			h := http.Header{"Retry-After": retryAfter}
			waits := make([]delay.Wait, 0, len(loops))
			for _, l := range loops {
				local := ownDelay(l, attempt, fromSeconds(interval))
				if cmd.Flags().Changed("draw") {
					local = fromSeconds(draw)
					if l == delay.DevicePoll {
						local = max(local, fromSeconds(interval))
					}
				}
				w := l.Compose(local, l.RetryAfter(h, now())).Bounded(upTo, limit)
				w.Attempt = attempt
				waits = append(waits, w)
			}
			return a.waits(waits, loop != "")
		},
	}
	f := cmd.Flags()
	f.StringVar(&loop, "loop", "", "the loop: "+loopNames())
	f.StringArrayVar(&retryAfter, "retry-after", nil, "the server's Retry-After, as it stands in the header; may be given several times")
	f.IntVar(&attempt, "attempt", 1, "how many attempts have failed")
	f.Float64Var(&draw, "draw", 0, "the local delay in seconds, in place of one drawn from the loop's own formula")
	f.Float64Var(&interval, "interval", 0, "the polling interval of device-poll in seconds (0: 5)")
	f.DurationVar(&limit, "limit", 0, "opt-in: a wait longer than this is not waited (0: none)")
	f.DurationVar(&upTo, "cap", 0, "opt-in: a wait is cut to this (0: none)")
	return cmd
}

// ownDelay draws the delay that the loop would take by itself.
func ownDelay(l delay.Loop, attempt int, interval time.Duration) time.Duration {
	if l == delay.DevicePoll {
		return delay.NewCadence(interval).Interval()
	}
	local := l.Row().Local
	local.Base = local.Term(attempt) // the schedule's first draw is then the attempt's
	return local.Schedule(nil).NextBackOff()
}

func (a *app) table() error {
	if a.json {
		type row struct {
			Loop        delay.Loop `json:"loop"`
			Formula     string     `json:"formula"`
			Composition string     `json:"composition"`
			Reads       string     `json:"reads"`
			Clamp       string     `json:"clamp"`
		}
		var rows []row
		for _, r := range delay.Table() {
			rows = append(rows, row{r.Loop, r.Local.String(), r.Composition.String(), r.Forms.String(), r.Clamp.String()})
		}
		return a.out.object(rows)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LOOP\tWITH RETRY-AFTER (R)\tREADS\tBOUNDED BY\tLOCAL DELAY")
	for _, r := range delay.Table() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Loop, r.Composition, r.Forms, r.Clamp, r.Local)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return a.out.printf("%s", b.String())
}

func (a *app) waits(waits []delay.Wait, one bool) error {
	switch {
	case a.json && one:
		return a.out.object(waits[0])
	case a.json:
		return a.out.object(waits)
	}
	for _, w := range waits {
		if err := a.out.printf("%s\n", w); err != nil {
			return err
		}
	}
	return nil
}

func loopNames() string {
	var names []string
	for _, row := range delay.Table() {
		names = append(names, row.Loop.String())
	}
	return strings.Join(names, ", ")
}

func anyChanged(cmd *cobra.Command, flags ...string) bool {
	for _, name := range flags {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

func fromSeconds(s float64) time.Duration {
	return time.Duration(math.Round(s * float64(time.Second)))
}
