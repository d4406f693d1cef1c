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
	// patience is how long a test waits for what is to come. One that passes does
	// not wait for it, so it is meant for a slow and busy machine.
	patience = 3 * time.Minute
	tick     = 20 * time.Millisecond
)

// eventually looks for as long as patience lasts.
func eventually(ok func() bool) bool { return harness.Until(patience, ok) }

// soon fails the test unless it becomes so. The message and its arguments are as
// those of require; what only the last look tells is given as a pointer.
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

// never fails the test when it becomes so within a time.
func never(t testing.TB, ok func() bool, during time.Duration, message ...any) {
	t.Helper()
	require.False(t, harness.Until(during, ok), message...)
}

// rests waits until what is looked at stays as it is for a time: the last writes of
// a hub that has nothing more to do may still be under way.
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

// settled waits until RBAC that was just made counts.
func settled(t testing.TB, try func() error) {
	t.Helper()
	var err error
	soon(t, func() bool { err = try(); return err == nil }, "%v", &err)
}

// reached makes a request once that a webhook is asked about, and again as long
// as the API server does not reach the webhook: it learns some time after a hub
// came or went where the hub is, or that nobody is to be asked any more.
func reached(t testing.TB, try func() error) {
	t.Helper()
	var err error
	soon(t, func() bool { err = try(); return !apierrors.IsInternalError(err) }, "%v", &err)
	require.NoError(t, err)
}
