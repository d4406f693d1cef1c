// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOlderReleasesAreRecognized(t *testing.T) {
	for _, older := range [][2]string{{"v0.1.0", "v0.1.1"}, {"v0.9.0", "v0.10.0"}, {"v1.0.0-rc.1", "v1.0.0"}} {
		require.True(t, isOlder(older[0], older[1]))
		require.False(t, isOlder(older[1], older[0]))
		require.False(t, isOlder(older[0], older[0]))
	}
	require.False(t, isOlder("v0.1.0", "latest"), "what is no release cannot be compared")
}
