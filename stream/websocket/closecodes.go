package websocket

import (
	"errors"
	"io"
	"strings"

	"github.com/coder/websocket"

	"github.com/heed-sdk/heed/stream"
)

// disconnect says why the connection ended. Only a close frame of the server counts as its word: a code that this side sent,
// and that came back, is nobody's reason.
func (c *Conn) disconnect(err error) error {
	if errors.Is(err, websocket.ErrMessageTooBig) {
		return &stream.DisconnectError{Class: stream.Transient, Err: ErrTooLarge}
	}
	frame, ok := errors.AsType[websocket.CloseError](err)
	if !ok {
		return &stream.DisconnectError{Class: stream.Transient, Err: c.clean(err)}
	}
	code := int(frame.Code)
	if code == int(websocket.StatusNormalClosure) && frame.Reason == "" {
		return io.EOF
	}
	return &stream.DisconnectError{
		Class:    ClassOfClose(code, frame.Reason, c.class),
		Everyone: code == int(websocket.StatusGoingAway) || code == int(websocket.StatusServiceRestart),
		Code:     code,
		Text:     c.redact(frame.Reason),
	}
}

// clean keeps secrets out of an error of the library.
func (c *Conn) clean(err error) error {
	if text := err.Error(); c.redact(text) != text {
		return errors.New(c.redact(text))
	}
	return err
}

// ClassOfClose classes a close code (RFC 6455, section 7.4, and the registry of close codes). 1002, 1003, 1007, 1009 and 1010
// say that the two sides do not understand each other, which is permanent; 1008 and 3000 to 4999 mean what the server wants
// them to mean, so own is asked; anything else is transient.
func ClassOfClose(code int, reason string, own func(code int, reason string) stream.Class) stream.Class {
	switch code {
	case 1002, 1003, 1007, 1009, 1010:
		return stream.Permanent
	case 1008:
		return own(code, reason)
	}
	if code >= 3000 && code <= 4999 {
		return own(code, reason)
	}
	return stream.Transient
}

// DefaultCloseClass classes the codes whose meaning is the server's own: Unauthorized where code or reason speak of
// credentials, else Transient. The codes are 3000 and 3003, which are registered for it, and 4401 and 4403, after HTTP's.
func DefaultCloseClass(code int, reason string) stream.Class {
	switch code {
	case 3000, 3003, 4401, 4403:
		return stream.Unauthorized
	}
	reason = strings.ToLower(reason)
	for _, word := range []string{"unauth", "not auth", "authentic", "authoriz", "authoris", "forbidden", "credential", "jwt"} {
		if strings.Contains(reason, word) {
			return stream.Unauthorized
		}
	}
	if strings.Contains(reason, "token") || strings.Contains(reason, "session") || strings.Contains(reason, "ticket") {
		for _, word := range []string{"expired", "invalid", "revoked", "missing", "bad"} {
			if strings.Contains(reason, word) {
				return stream.Unauthorized
			}
		}
	}
	return stream.Transient
}

func (d Dialer) closeClass() func(int, string) stream.Class {
	if d.CloseClass != nil {
		return d.CloseClass
	}
	return DefaultCloseClass
}
