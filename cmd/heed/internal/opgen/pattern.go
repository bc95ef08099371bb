package opgen

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	wildcard  = regexp.MustCompile(`^\{[A-Za-z0-9_.-]+\}$`)
	wildcards = regexp.MustCompile(`\{[A-Za-z0-9_.-]+\}`)
	noName    = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// pattern turns a path template of OpenAPI into the path of a ServeMux pattern, and says whether it matches more.
func pattern(template string, widen bool) (p string, widened bool, err error) {
	if !strings.HasPrefix(template, "/") {
		return "", false, errors.New("does not begin with a slash")
	}
	if strings.ContainsAny(template, "?#") {
		return "", false, errors.New("has a query or a fragment, and a request is told from others by its path alone")
	}
	var b strings.Builder
	used := map[string]bool{}
	segments := strings.Split(template[1:], "/")
	for i, s := range segments {
		b.WriteByte('/')
		switch braces := strings.ContainsAny(wildcards.ReplaceAllString(s, ""), "{}"); {
		case s == "" && i == len(segments)-1:
			b.WriteString("{$}") // "/todos/" alone would match all that begins with it
		case s == "" || s == "." || s == "..":
			return "", false, fmt.Errorf("has a segment %q, which no request has", s)
		case braces:
			return "", false, fmt.Errorf("has a segment %q, which is not understood: a wildcard is {name}", s)
		case wildcard.MatchString(s):
			b.WriteString(named(s, used))
		case !wildcards.MatchString(s):
			b.WriteString(s)
		case !widen:
			return "", false, fmt.Errorf("has a wildcard in a part of the segment %q, for which http.ServeMux has no pattern: with --widen the segment as a whole is one", s)
		default:
			b.WriteString(named(s, used))
			widened = true
		}
	}
	return b.String(), widened, nil
}

// named is a wildcard with a name that ServeMux takes.
func named(segment string, used map[string]bool) string {
	name := strings.Trim(noName.ReplaceAllString(segment, "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "p" + name
	}
	for base, n := name, 2; used[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	used[name] = true
	return "{" + name + "}"
}

// shapeOf is a pattern without the names, which make no difference to what it matches.
func shapeOf(pattern string) string {
	return wildcards.ReplaceAllString(pattern, "{}")
}
