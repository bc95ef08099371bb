package requests

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// messageLimit is in bytes.
const messageLimit = 500

// newError makes an error of an answer that is none of success.
func newError(status int, h http.Header, body []byte) *Error {
	e := &Error{Status: status, RequestID: requestID(h)}
	e.Code, e.Retryable = classOf(status)
	e.read(h.Get("Content-Type"), body)
	if e.Hint == "" && e.Code == CodeAuthRequired {
		e.Hint = "log in again"
	}
	return e
}

func requestID(h http.Header) string { return h.Get("X-Request-Id") }

// classOf is a hint to the caller: it has no part in what is repeated.
func classOf(status int) (code Code, retryable bool) {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return CodeValidation, false
	case http.StatusUnauthorized:
		return CodeAuthRequired, false
	case http.StatusForbidden:
		return CodeForbidden, false
	case http.StatusNotFound:
		return CodeNotFound, false
	case http.StatusTooManyRequests:
		return CodeRateLimit, true
	case http.StatusInsufficientStorage:
		return CodeLimitExceeded, false
	}
	return CodeAPI, status >= 500
}

// read takes from a body what it says of the error, whatever it is.
func (e *Error) read(contentType string, body []byte) {
	var doc map[string]json.RawMessage
	_ = json.Unmarshal(body, &doc) // anything but an object says nothing
	e.Hint = text(doc["error_description"])
	message := firstOf(text(doc["error"]), text(doc["message"]), problem(contentType, doc))
	if e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity {
		e.FieldErrors = fieldErrors(doc)
	}
	switch flat := flatten(e.FieldErrors); {
	case flat == "":
		message = firstOf(message, statusText(e.Status))
	case message == "":
		message = flat
	default:
		message += " (" + flat + ")"
	}
	e.Message = cut(message, messageLimit)
}

// problem is RFC 9457, section 3.1. Outside its media type, a title may be anything.
func problem(contentType string, doc map[string]json.RawMessage) string {
	if media, _, _ := mime.ParseMediaType(contentType); media != "application/problem+json" {
		return ""
	}
	title, detail := text(doc["title"]), text(doc["detail"])
	if title != "" && detail != "" {
		return title + ": " + detail
	}
	return title + detail
}

// fieldErrors reads a map of messages by field: what is usable under "errors", or the whole body if it is nothing else.
func fieldErrors(doc map[string]json.RawMessage) map[string][]string {
	wrapped, ok := doc["errors"]
	if !ok {
		return onlyFieldErrors(doc)
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(wrapped, &members) // a list is no map of fields
	fields := map[string][]string{}
	for name, raw := range members {
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, item := range list {
			var s string
			if isString(item) && json.Unmarshal(item, &s) == nil {
				fields[name] = append(fields[name], s)
			}
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

func onlyFieldErrors(doc map[string]json.RawMessage) map[string][]string {
	fields := map[string][]string{}
	for name, raw := range doc {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return nil
		}
		for _, item := range list {
			s := text(item)
			if s == "" {
				return nil
			}
			fields[name] = append(fields[name], s)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

func flatten(fields map[string][]string) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + ": " + strings.Join(fields[name], "; "))
	}
	return b.String()
}

// text is a JSON string, or "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if !isString(raw) || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// isString tells a string from null, which also decodes into one.
func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

func firstOf(choices ...string) string {
	for _, s := range choices {
		if s != "" {
			return s
		}
	}
	return ""
}

func statusText(status int) string {
	if s := http.StatusText(status); s != "" {
		return s
	}
	return fmt.Sprintf("status %d", status)
}

// cut shortens to a number of bytes without cutting a rune.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
