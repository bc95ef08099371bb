package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// credentialVersion is the version of the form that this package writes, and the latest that it reads. A new member that
// an older reader may ignore does not change it.
const credentialVersion = 1

// VersionError reports something stored by a newer release in a form that this one does not know.
type VersionError struct {
	Version int // the version found
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("auth: the stored login has version %d, and this release reads version %d", e.Version, credentialVersion)
}

// ErrMalformedCredential reports stored data that is not a credential. It quotes nothing of the data.
var ErrMalformedCredential = errors.New("auth: the stored login is damaged")

// credentialForm is the JSON form of a Credential, version 1.
type credentialForm struct {
	Version      int           `json:"v"`
	AccessToken  string        `json:"access_token,omitempty"`
	TokenType    string        `json:"token_type,omitempty"`
	RefreshToken string        `json:"refresh_token,omitempty"`
	Expiry       time.Time     `json:"expiry,omitzero"`
	Obtained     time.Time     `json:"obtained,omitzero"`
	Scope        string        `json:"scope,omitempty"`
	Resources    []string      `json:"resources,omitempty"`
	IDToken      string        `json:"id_token,omitempty"`
	Extra        extraForm     `json:"extra,omitempty"`
	Presented    *Presentation `json:"presented,omitempty"`
}

// MarshalJSON writes the credential for a store, secrets included. It refuses what would not come back as it was.
func (c Credential) MarshalJSON() ([]byte, error) {
	f := credentialForm{
		credentialVersion, c.AccessToken, c.TokenType, c.RefreshToken, wallTime(c.Expiry), wallTime(c.Obtained),
		c.Scope, c.Resources, c.IDToken, c.Extra, nil,
	}
	if c.Presented != nil {
		f.Presented = &Presentation{Digest: c.Presented.Digest, At: wallTime(c.Presented.At)}
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(f)
	if err != nil {
		// The cause may quote a member of Extra.
		return nil, errors.New("auth: a member of the credential's Extra cannot be written as JSON: leave it out")
	}
	return b, nil
}

// UnmarshalJSON reads what MarshalJSON wrote. It returns a *VersionError for a later version, and ErrMalformedCredential
// for everything else that it cannot use.
func (c *Credential) UnmarshalJSON(b []byte) error {
	var versioned struct {
		Version *int `json:"v"`
	}
	if json.Unmarshal(b, &versioned) != nil || versioned.Version == nil || *versioned.Version < 1 {
		return ErrMalformedCredential
	}
	if *versioned.Version > credentialVersion {
		return &VersionError{Version: *versioned.Version}
	}
	var f credentialForm
	if json.Unmarshal(b, &f) != nil { // its error may quote the data
		return ErrMalformedCredential
	}
	f.Expiry, f.Obtained = wallTime(f.Expiry), wallTime(f.Obtained)
	if f.Presented != nil {
		f.Presented.At = wallTime(f.Presented.At)
	}
	if f.check() != nil {
		return ErrMalformedCredential
	}
	*c = Credential{
		f.AccessToken, f.TokenType, f.RefreshToken, f.Expiry, f.Obtained, f.Scope, f.Resources, f.IDToken, f.Extra, f.Presented,
	}
	return nil
}

// check says what keeps the form from being written and read again without a loss.
func (f *credentialForm) check() error {
	if f.AccessToken == "" && f.RefreshToken == "" {
		return errors.New("auth: the credential holds neither an access token nor a refresh token: there is nothing to keep")
	}
	for _, s := range append([]string{f.AccessToken, f.TokenType, f.RefreshToken, f.Scope, f.IDToken}, f.Resources...) {
		if !utf8.ValidString(s) {
			return errors.New("auth: the credential is not valid UTF-8: it cannot be kept")
		}
	}
	times := []time.Time{f.Expiry, f.Obtained}
	if f.Presented != nil {
		times = append(times, f.Presented.At)
	}
	for _, t := range times {
		if year := t.Year(); year < 1 || year > 9999 {
			return errors.New("auth: a time of the credential lies outside the years 1 to 9999: it cannot be kept")
		}
	}
	return nil
}

// extraForm reads a number that no float64 holds as a json.Number: one odd member must not cost the login.
type extraForm map[string]any

func (e *extraForm) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil || len(raw) == 0 {
		return err
	}
	*e = make(extraForm, len(raw))
	for name, text := range raw {
		var v any
		if json.Unmarshal(text, &v) != nil {
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				return err
			}
		}
		(*e)[name] = v
	}
	return nil
}
