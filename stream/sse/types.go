package sse

// A stream has few types of events, and one seen before costs no allocation. What is remembered is bounded, because the
// server chooses it.
const (
	maxTypes   = 64
	maxTypeLen = 128
)

// interner remembers the types of a stream, as they came: they are UTF-8, and so is what equals one.
type interner struct {
	seen  map[string]string
	front [16]string // of seen: most streams never get past it
}

func (in *interner) intern(p []byte) string {
	if len(p) == 0 {
		return ""
	}
	front := &in.front[(p[0]^p[len(p)-1]^byte(len(p)))%byte(len(in.front))]
	if string(p) == *front {
		return *front
	}
	s, ok := in.seen[string(p)]
	if !ok {
		if s = string(appendUTF8(nil, p)); len(s) > maxTypeLen {
			return s
		}
		if in.seen == nil || len(in.seen) >= maxTypes {
			in.seen = make(map[string]string)
		}
		in.seen[s] = s
	}
	*front = s
	return s
}
