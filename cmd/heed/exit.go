package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/heed-sdk/heed/auth"
	"github.com/heed-sdk/heed/requests"
	"github.com/heed-sdk/heed/stream"
)

// The exit codes are stable: scripts branch on them. Those of requests are requests.Code's, and the others follow them.
const (
	exitUsage       = 1
	exitOutput      = 11
	exitInterrupted = 130
)

const exitCodes = `Exit codes: 0 done; 1 wrong use; 2 not found; 3 log in (again); 4 forbidden or denied; 5 rate limit; 6 no answer;
7 an answer that is of no use; 8 ambiguous; 9 invalid; 10 limit exceeded; 11 the output or the store could not be written; 130 interrupted.`

// verdict returns the exit code of an error and the one line that says what to do about it.
func verdict(ctx context.Context, err error) (int, string) {
	var (
		output  *outputError
		request *requests.Error
		login   *auth.DeviceError
		ended   *stream.Error
		broken  *brokenOff
		demo    *demoError
		store   *auth.StoreError
		expired *auth.SessionExpired
		refresh *auth.RefreshError
		found   *auth.DiscoveryError
		changed *checksumError
		claimed *claimedError
	)
	switch {
	case errors.As(err, &output), errors.As(err, &claimed):
		return exitOutput, err.Error()
	case ctx.Err() != nil:
		return exitInterrupted, "interrupted: run it again when you are ready"
	case errors.As(err, &expired), errors.Is(err, auth.ErrStoreNotFound):
		return requests.CodeAuthRequired.ExitCode(), err.Error()
	case errors.As(err, &request):
		return request.ExitCode(), err.Error() + advice(request)
	case errors.As(err, &login):
		return loginCode(login), err.Error()
	case errors.As(err, &ended):
		return streamCode(ended), err.Error()
	case errors.As(err, &store):
		return exitOutput, err.Error()
	case errors.As(err, &refresh):
		return answerCode(refresh.Status), err.Error()
	case errors.As(err, &found):
		return discoveryCode(found), err.Error()
	case errors.As(err, &changed):
		return requests.CodeAPI.ExitCode(), err.Error()
	case errors.As(err, &demo):
		return demo.ExitCode(), err.Error()
	case errors.As(err, &broken), errors.Is(err, context.DeadlineExceeded):
		return requests.CodeNetwork.ExitCode(), err.Error()
	}
	return exitUsage, err.Error()
}

// unread reports whether nobody reads the output any more, as behind head: that is told to nobody either.
func unread(err error) bool {
	output, ok := errors.AsType[*outputError](err)
	return ok && errors.Is(output, syscall.EPIPE)
}

// advice says what to do about a failed request, where the server has not.
func advice(e *requests.Error) string {
	switch {
	case e.Hint != "" || e.Code == requests.CodeUsage:
		return ""
	case e.RetryAfter > 0:
		return fmt.Sprintf(": try again in %v", e.RetryAfter)
	}
	switch e.Code {
	case requests.CodeNetwork:
		return ": check the address and the connection, and run it again"
	case requests.CodeAuthRequired:
		return ": put an access token that is good for it into " + tokenVariable
	case requests.CodeRateLimit:
		return ": try again later"
	}
	if e.Retryable {
		return ": try again later"
	}
	return ""
}

// answerCode is for an answer of no use, or none.
func answerCode(status int) int {
	if status == 0 {
		return requests.CodeNetwork.ExitCode()
	}
	return requests.CodeAPI.ExitCode()
}

// discoveryCode is for metadata that is not there or of no use. A status alone does not tell: an error has it only where it is
// what is wrong.
func discoveryCode(e *auth.DiscoveryError) int {
	switch e.Reason {
	case auth.ErrIdentifier:
		return exitUsage
	case auth.ErrUnreachable, auth.ErrRefusedAddress:
		return requests.CodeNetwork.ExitCode()
	}
	return requests.CodeAPI.ExitCode()
}

func loginCode(e *auth.DeviceError) int {
	switch {
	case errors.Is(e, auth.ErrAccessDenied):
		return requests.CodeForbidden.ExitCode()
	case errors.Is(e, auth.ErrExpired):
		return requests.CodeAuthRequired.ExitCode()
	case errors.Is(e, auth.ErrTransport), errors.Is(e, auth.ErrUnavailable):
		return requests.CodeNetwork.ExitCode()
	}
	return requests.CodeAPI.ExitCode()
}

func streamCode(e *stream.Error) int {
	var refused *stream.AttemptError
	switch {
	case errors.Is(e, stream.Usage):
		return exitUsage
	case errors.Is(e, stream.AuthorizationFailed):
		if errors.As(e, &refused) && refused.Status == 403 {
			return requests.CodeForbidden.ExitCode() // another login does not help
		}
		return requests.CodeAuthRequired.ExitCode()
	case errors.As(e, &refused) && (refused.Status == 404 || refused.Status == 410):
		return requests.CodeNotFound.ExitCode()
	case errors.As(e, &refused) && (refused.Status == 400 || refused.Status == 422):
		return requests.CodeValidation.ExitCode()
	case errors.As(e, &refused) && refused.Status == 0 && refused.Class == stream.Permanent:
		return exitUsage
	case errors.As(e, &refused) && refused.Status == 0:
		return requests.CodeNetwork.ExitCode()
	}
	return requests.CodeAPI.ExitCode()
}
