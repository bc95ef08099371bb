package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strings"
)

// members are what an answer says: the members of a JSON object, or the parameters of a form. Names are exact, unlike
// those that encoding/json matches with the fields of a struct; of a member that comes twice the last one counts, and
// nobody asks for one that is unknown. Each value is kept as it was written until somebody does.
type members struct {
	values map[string]json.RawMessage
	form   bool // every value is a string, there being nothing else in a form
}

var (
	errNoObject = errors.New("the body is no JSON object")
	errNoForm   = errors.New("the body is no form")
	errCutShort = errors.New("the answer was cut short")
	errTooLarge = fmt.Errorf("the body is larger than %d bytes", maxBody)
)

// readMembers reads a body. Of one that was cut, a JSON object that is complete is good; a form has no end that could be
// told.
func readMembers(contentType string, body []byte, cut bool) (members, error) {
	if media, _, _ := mime.ParseMediaType(contentType); media == "application/x-www-form-urlencoded" {
		if cut {
			return members{}, errCutShort
		}
		return readForm(string(body))
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		if cut {
			return members{}, errCutShort
		}
		return members{}, errNoObject
	}
	m := members{}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&m.values); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return members{}, errCutShort
		}
		return members{}, errNoObject // err may quote the body
	}
	if len(bytes.Trim(body[d.InputOffset():], " \t\r\n")) > 0 {
		return members{}, errNoObject
	}
	return m, nil
}

func readForm(body string) (members, error) {
	params, err := url.ParseQuery(strings.TrimSpace(body))
	if err != nil {
		return members{}, errNoForm
	}
	m := members{values: map[string]json.RawMessage{}, form: true}
	for name, values := range params {
		// A parameter without a value counts as left out (RFC 6749, section 3.2).
		if values[0] == "" {
			continue
		}
		text, err := json.Marshal(values[0])
		if err != nil {
			return members{}, errNoForm
		}
		m.values[name] = text
	}
	return m, nil
}

// has reports whether a member is there and not null.
func (m members) has(name string) bool {
	raw, ok := m.values[name]
	return ok && string(raw) != "null"
}

// text reads a string; found is false when it is absent or null.
func (m members) text(name string) (text string, found bool, err error) {
	if !m.has(name) {
		return "", false, nil
	}
	if json.Unmarshal(m.values[name], &text) != nil {
		return "", true, fmt.Errorf("%s is no string", name)
	}
	return text, true, nil
}

// textOr reads a string, taking whatever is none for "".
func (m members) textOr(name string) string {
	text, _, err := m.text(name)
	if err != nil {
		return ""
	}
	return text
}

// required reads a string that has to be there and not empty.
func (m members) required(name string) (string, error) {
	text, _, err := m.text(name)
	if err == nil && text == "" {
		err = fmt.Errorf("%s is missing or empty", name)
	}
	return text, err
}

// number reads a whole number from 0 to most; found is false when it is absent or null. Unless strict, it may be
// written as a string, as some servers do.
func (m members) number(name string, most int64, strict bool) (n int64, found bool, err error) {
	if !m.has(name) {
		return 0, false, nil
	}
	literal := string(m.values[name])
	if literal[0] == '"' {
		if strict && !m.form {
			return 0, true, fmt.Errorf("%s is no number", name)
		}
		literal = m.textOr(name)
	}
	n, err = wholeNumber(literal, most)
	if err != nil {
		err = fmt.Errorf("%s %w", name, err)
	}
	return n, true, err
}

// list reads a string, or unless strict an array of strings, which is joined by spaces.
func (m members) list(name string, strict bool) (text string, found bool, err error) {
	text, found, err = m.text(name)
	if err == nil || strict {
		return text, found, err
	}
	var items []*string
	if json.Unmarshal(m.values[name], &items) != nil {
		return "", true, fmt.Errorf("%s is neither a string nor an array of strings", name)
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		if item == nil {
			return "", true, fmt.Errorf("%s is neither a string nor an array of strings", name)
		}
		texts = append(texts, *item)
	}
	return strings.Join(texts, " "), true, nil
}

// extra returns every member as encoding/json has it, for oauth2.Token.Extra. A number that no float64 holds stays a
// json.Number: what nobody asked for must not fail.
func (m members) extra() map[string]any {
	all := make(map[string]any, len(m.values))
	for name, raw := range m.values {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber()
			if d.Decode(&v) != nil {
				continue
			}
		}
		all[name] = v
	}
	return all
}
