// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManyFailuresBecomeOneError(t *testing.T) {
	bad, worse := Refuse("a", "", Advice("fix a")), Misuse("b", "", nil)
	require.NoError(t, Outcome(nil, 2))
	require.Equal(t, error(bad), Outcome([]error{bad}, 1))
	for want, failures := range map[Kind][]error{Partial: {bad}, Refused: {bad, bad, bad}, Failed: {bad, worse, bad}} {
		var e *Error
		require.True(t, errors.As(Outcome(failures, 3), &e))
		require.Equal(t, want, e.Kind)
		require.Equal(t, Advice("fix a"), e.Fix)
	}
}
