// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
)

func TestAPanicOfAnAddOnIsAnErrorOfItsInstance(t *testing.T) {
	var logged []string
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	require.NoError(t, guarded(ctx, func() error { return nil }))
	own := errors.New("no value")
	require.Equal(t, own, guarded(ctx, func() error { return own }))
	require.Empty(t, logged)
	err := guarded(ctx, func() error {
		none := make([]error, len(logged))
		return none[len(logged)]
	})
	require.ErrorIs(t, err, errPanic)
	require.ErrorContains(t, err, "its log has the place: panic: runtime error: index out of range")
	require.Len(t, logged, 1)
	require.Contains(t, logged[0], "guard_test.go")
}
