// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// wait is how long a test waits for something that should take a second, or for a pause
// of the agent of up to a minute; the machines that run tests are slow and shared. tick
// is the polling interval.
const wait, tick = 3 * time.Minute, 20 * time.Millisecond

// await fails the test when f does not return true in time. It calls f in the test's own
// goroutine, so that f may use require, and nothing outlives the test. The message is a
// format and its arguments; an argument of type func() any is replaced by its result.
func await(t *testing.T, f func() bool, message ...any) {
	t.Helper()
	if !harness.Until(wait, f) {
		require.Fail(t, "what is waited for does not come", explained(message))
	}
}

func explained(message []any) string {
	switch len(message) {
	case 0:
		return ""
	case 1:
		return message[0].(string)
	}
	args := make([]any, 0, len(message)-1)
	for _, arg := range message[1:] {
		if now, ok := arg.(func() any); ok {
			arg = now()
		}
		args = append(args, arg)
	}
	return fmt.Sprintf(message[0].(string), args...)
}

// never fails when f returns true within d. It calls f in the test's own goroutine, as
// await does. What f says after d does not count, however late that is on a busy machine.
func never(t *testing.T, d time.Duration, f func() bool, message string) {
	t.Helper()
	for begin := time.Now(); ; <-time.After(100 * time.Millisecond) {
		is := f()
		if time.Since(begin) >= d {
			return
		}
		require.False(t, is, message)
	}
}

// calms waits until look returns the same text for d: what was under way when the caller asked may
// still come.
func calms(t *testing.T, d time.Duration, look func() string, message string) {
	t.Helper()
	last, since := look(), time.Now()
	await(t, func() bool {
		if now := look(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > d
	}, message)
}

// read repeats a read while the API server of a busy machine does not answer it properly.
// It returns the object, or the error that there is none.
func read[T any](ctx context.Context, get func() (T, error)) (T, error) {
	for end := time.Now().Add(wait); ; {
		out, err := get()
		if err == nil || !passes(err) || time.Now().After(end) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(tick):
		}
	}
}

// passes reports whether an error is due to the state of the API server, and not to the
// request.
func passes(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}
