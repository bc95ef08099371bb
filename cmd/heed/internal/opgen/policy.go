package opgen

import (
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/heed-sdk/heed/requests"
)

// declaration is an operation as its file declares it.
type declaration struct {
	at, pathAt   place // of the method, and of the path
	method, path string
	base, id     string
	idAt         place

	// The two members, and the file that they are in. Nil: not declared.
	declaredIn        string
	idempotent, retry *node
	readonly          bool
	readonlyAt        place
}

// in is where a value of the declaration is.
func (d *declaration) in(v *node) place { return place{d.declaredIn, v.line} }

// longest is what the delay never exceeds, whatever its base: see [requests.Operation].
const longest = 30 * time.Second

var (
	repeatable = []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodTrace}
	never      = []int{400, 401, 403, 404, 422}
)

// policy reads what is declared, and refuses what the table could not keep.
func (g *generator) policy(d *declaration) (o requests.Operation) {
	g.retry(d, &o)
	safe := slices.Contains(repeatable, d.method)
	var marked, ok bool
	if d.idempotent != nil {
		marked, ok = d.idempotent.value.(bool)
	}
	switch {
	case d.idempotent != nil && !ok:
		g.wrong(d.in(d.idempotent), "idempotent is %v: use true or false", d.idempotent.plain())
	case d.readonly && !safe:
		g.wrong(d.readonlyAt, "readonly is no mark for %s: say idempotent if it may be repeated", d.method)
	case ok && !marked && safe && o.Max != 1:
		g.wrong(d.in(d.idempotent), "%s may be repeated by its method, and idempotent: false would have no effect: say max: 1 in the retry block", d.method)
	}
	o.Idempotent = marked && !safe // the mark says nothing new on the other methods
	return o
}

func (g *generator) retry(d *declaration, o *requests.Operation) {
	if d.retry == nil {
		return
	}
	if d.retry.members == nil {
		g.wrong(d.in(d.retry), "the retry block is %v: use {max, base_delay_ms, retry_on}", d.retry.plain())
		return
	}
	for _, name := range d.retry.names() {
		v := d.retry.members[name]
		at := d.in(v)
		switch name {
		case "max":
			if n, ok := integer(v.value); !ok || n < 1 || n > math.MaxInt32 {
				g.wrong(at, "max is %v: it is the number of attempts in all, 1 or more", v.plain())
			} else {
				o.Max = n
			}
		case "base_delay_ms":
			if n, ok := integer(v.value); !ok || n < 1 || n > int(longest/time.Millisecond) {
				g.wrong(at, "base_delay_ms is %v: use 1 to %d, because no delay is longer", v.plain(), longest/time.Millisecond)
			} else {
				o.BaseDelay = time.Duration(n) * time.Millisecond
			}
		case "backoff":
			if v.value != "exponential" {
				g.wrong(at, "backoff is %v: an operation's delay is exponential; for another, leave it out and set requests.Declared.Schedule", v.plain())
			}
		case "retry_on":
			o.RetryOn = g.statuses(d, v)
		default:
			g.wrong(place{d.declaredIn, v.key}, "the retry block has the member %q, which is unknown: use max, base_delay_ms, backoff and retry_on", name)
		}
	}
}

func (g *generator) statuses(d *declaration, list *node) []int {
	if !list.array {
		g.wrong(d.in(list), "retry_on is %v: use a list of statuses, such as [429, 503]", list.plain())
	}
	statuses := []int{}
	for _, v := range list.items {
		at := d.in(v)
		switch n, ok := integer(v.value); {
		case !ok || n < 400 || n > 599:
			g.wrong(at, "retry_on has %v, which is no status of a failure: use 400 to 599", v.plain())
		case slices.Contains(never, n):
			g.wrong(at, "retry_on has %d, which is never repeated: take it out", n)
		case slices.Contains(statuses, n):
			g.wrong(at, "retry_on has %d twice: take one out", n)
		default:
			statuses = append(statuses, n)
		}
	}
	return statuses
}
