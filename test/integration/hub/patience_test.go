// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const (
	// patience is how long a test waits for what must happen. A passing test does not
	// wait for its end, so it is chosen for a slow and busy machine.
	patience = 3 * time.Minute
	tick     = 20 * time.Millisecond
)

// eventually polls ok until patience is over.
func eventually(ok func() bool) bool { return harness.Until(patience, ok) }

// soon fails the test unless ok returns true within patience. The message and its
// arguments are as in require; values that only the last poll sets are given as pointers.
func soon(t testing.TB, ok func() bool, message ...any) {
	t.Helper()
	if eventually(ok) {
		return
	}
	for i, argument := range message {
		if v := reflect.ValueOf(argument); v.Kind() == reflect.Pointer && !v.IsNil() {
			message[i] = v.Elem().Interface()
		}
	}
	require.Fail(t, "it did not become so", message...)
}

// never fails the test when ok returns true within a time.
func never(t testing.TB, ok func() bool, during time.Duration, message ...any) {
	t.Helper()
	require.False(t, harness.Until(during, ok), message...)
}

// rests waits until the polled state stays the same for a time: the last writes of a hub
// that has nothing more to do may still be in flight.
func rests(t testing.TB, look func() string, during time.Duration, message ...any) string {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		last := look()
		if !harness.Until(during, func() bool { return look() != last }) {
			return last
		}
	}
	require.Fail(t, "it does not come to rest", message...)
	return ""
}

// settled retries until newly written RBAC takes effect.
func settled(t testing.TB, try func() error) {
	t.Helper()
	var err error
	soon(t, func() bool { err = try(); return err == nil }, "%v", &err)
}

// reached makes a request that goes through a webhook, and retries while the API server
// does not reach the webhook: it learns of a hub that was started or removed only after
// some time.
func reached(t testing.TB, try func() error) {
	t.Helper()
	var err error
	soon(t, func() bool { err = try(); return !apierrors.IsInternalError(err) }, "%v", &err)
	require.NoError(t, err)
}
