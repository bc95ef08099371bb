package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key names a login in a Store: who issued it, to which client, and for which of the user's accounts.
type Key struct {
	// Issuer is the authorization server's issuer (RFC 8414, section 2), or, where it has none, the address of its token
	// endpoint without a query.
	Issuer string
	// ClientID is the client identifier.
	ClientID string
	// Account tells the accounts of one user apart. It is the caller's choice, and "" is an account like any other.
	Account string
}

// Canonical returns the one form of all the keys that name the same login: the issuer's scheme and host in lower case,
// without the port that is implied, and without the slash of an empty path. The error is a *ConfigError
// with all mistakes.
func (k Key) Canonical() (Key, error) {
	var problems []Problem
	wrong := func(field, text string) {
		if text != "" {
			problems = append(problems, Problem{"Key." + field, text})
		}
	}
	issuer, problem := canonicalIssuer(k.Issuer)
	wrong("Issuer", problem)
	if k.ClientID == "" {
		wrong("ClientID", "is missing")
	}
	wrong("ClientID", textProblem(k.ClientID))
	wrong("Account", textProblem(k.Account))
	if len(problems) > 0 {
		return Key{}, &ConfigError{problems}
	}
	return Key{Issuer: issuer, ClientID: k.ClientID, Account: k.Account}, nil
}

// Name returns the name of the login where a store needs one that is short and safe in file systems and keyrings: 32
// characters of a hash of the canonical key. It never changes.
func (k Key) Name() string {
	if canonical, err := k.Canonical(); err == nil {
		k = canonical
	}
	h := sha256.New()
	for _, field := range []string{"heed login 1", k.Issuer, k.ClientID, k.Account} {
		fmt.Fprintf(h, "%d:%s,", len(field), field) // the length keeps two fields from being taken for two others
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// String returns the key as a person reads it.
func (k Key) String() string {
	s := fmt.Sprintf("client %s at %s", k.ClientID, k.Issuer)
	if k.Account != "" {
		s = fmt.Sprintf("account %s, %s", k.Account, s)
	}
	return s
}

func canonicalIssuer(s string) (issuer, problem string) {
	if s == "" {
		return "", "is missing"
	}
	if problem := textProblem(s); problem != "" {
		return "", problem
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || strings.ContainsAny(s, `\ `):
		return "", "is not an address"
	case u.User != nil:
		return "", "holds a user name or a password: leave it out"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		return "", "has a query or a fragment: leave it out"
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	default:
		return "", "is neither an https nor an http address"
	}
	if u.Hostname() == "" {
		return "", "names no host"
	}
	path := u.EscapedPath()
	if path == "/" {
		path = ""
	}
	return scheme + "://" + host + path, ""
}

func textProblem(s string) string {
	switch {
	case len(s) > 2048:
		return "is longer than 2048 bytes"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "holds a control character"
	}
	return ""
}
