// Package delay decides every wait of the SDK and sleeps through it. No other package computes, compares or caps a wait:
// a loop says what its last attempt came back with, and delay answers with a [Wait], which is a duration and the reason
// for it.
//
// # What is a retry
//
// A retry sends a request again that got no answer: the transport failed, or the server declined to serve it with a
// status that the loop declares retryable. Asking again because the answer was "not yet" is a poll. Retry-After (RFC
// 9110, section 10.2.3) is heeded on retries only, and this holds by construction: [Retries.Next] and
// [Cadence.Throttled] take a [RetryAfter]; [Cadence.Pending], [Cadence.SlowDown] and [Cadence.Unreachable] do not.
//
// # The composition table
//
// Five loops wait, and they differ in how a valid Retry-After combines with the delay that the loop would take on its
// own. [Table] has the rows, and everything runs from them:
//
//   - generated-retry and hop: Retry-After replaces the local delay, and nothing is added to it.
//   - device-poll: the longer of the interval and Retry-After, for one wait, within the code's lifetime.
//   - reconnect: the longer of a full-jitter draw and Retry-After.
//   - poll-retry: exactly Retry-After, whatever the draw.
//
// So Retry-After: 1 against a 50 s draw waits 50 s in reconnect and exactly 1 s in poll-retry.
//
// A readable value is honoured as given: not capped, not jittered, not summed; it saturates at [MaxWait] only because
// timers do. A value that cannot be read costs the loop's own delay. In place of a cap, every wait ends with the caller's
// context.
//
// A [Throttle] is for the many that one answer told to wait: what they wait for, and how they leave after it.
//
// # Time
//
// [Timers] is a registry of labelled timers over a clock of github.com/benbjohnson/clock, and [Pause] is a wait on it.
// Schedules are github.com/cenkalti/backoff/v4's, and a loop takes any of them.
package delay
