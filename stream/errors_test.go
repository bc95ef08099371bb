package stream_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/stream"
)

func TestErrorTexts(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&stream.AttemptError{}, "the attempt failed (transient)"},
		{&stream.AttemptError{Class: stream.Permanent, Status: 404}, "refused with 404 Not Found"},
		{&stream.AttemptError{Status: 599, Err: io.EOF}, "refused with 599: EOF"},
		{&stream.DisconnectError{}, "disconnected"},
		{&stream.DisconnectError{Code: 1012, Text: "bye"}, `closed by the server with code 1012 "bye"`},
		{&stream.DisconnectError{Err: io.EOF}, "disconnected: EOF"},
		{&stream.Error{Reason: stream.Usage, Err: &stream.ConfigError{Field: "Base", Mistake: "is negative"}}, "stream: usage: Base is negative"},
		{&stream.Error{Reason: stream.AuthorizationFailed}, "stream: authorization_failed; log in again, and check that the account may read this stream"},
		{&stream.Error{Reason: stream.MintFailed, Err: io.EOF}, "stream: mint_failed: EOF; check the source of the credential"},
		{&stream.Error{Reason: stream.ProtocolFatal, Err: io.EOF}, "stream: protocol_fatal: EOF; check what client and server expect of each other"},
		{&stream.Error{Reason: stream.PollFailed, Err: io.EOF}, "stream: poll_failed: EOF; check the address and the position of the poll"},
		{&stream.Error{Reason: stream.DeadlinePassed, Err: &delay.TooLongError{Wait: delay.Wait{For: time.Hour}}}, "stream: deadline_passed: the wait of 1h0m0s would end after the deadline: try again later or allow more time"},
		{stream.DialFailed, "dial_failed"},
	} {
		want(t, "text", tt.err.Error(), tt.want)
	}
}

func TestErrorsAreFound(t *testing.T) {
	err := fmt.Errorf("tailing: %w", &stream.Error{Reason: stream.DialFailed, Err: &stream.AttemptError{Status: 410, Err: io.ErrUnexpectedEOF}})
	want(t, "its reason", errors.Is(err, stream.DialFailed), true)
	want(t, "another reason", errors.Is(err, stream.PollFailed), false)
	want(t, "the cause", errors.Is(err, io.ErrUnexpectedEOF), true)
	e, ok := errors.AsType[*stream.Error](err)
	want(t, "as an Error", ok && e.Reason == stream.DialFailed, true)
}

func TestWords(t *testing.T) {
	for word, v := range map[string]fmt.Stringer{
		"transient": stream.Transient, "throttled": stream.Throttled, "unauthorized": stream.Unauthorized, "permanent": stream.Permanent,
		"class 9": stream.Class(9), "server": stream.ByServer, "watchdog": stream.ByWatchdog, "consumer": stream.ByConsumer, "nobody": stream.Side(0),
	} {
		want(t, "word", v.String(), word)
	}
	for status, class := range map[int]stream.Class{408: stream.Transient, 425: stream.Transient, 505: stream.Permanent, 599: stream.Transient, 600: stream.Permanent} {
		want(t, fmt.Sprint(status), stream.ClassOfStatus(status), class)
	}
	want(t, "an empty credential", stream.Credential{}.IsZero(), true)
	want(t, "a ticket", stream.Credential{URL: "wss://h"}.IsZero(), false)
}
