// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyLinuxRunsPlaygrounds(t *testing.T) {
	require.NoError(t, supported("linux"))
	for system, name := range map[string]string{"darwin": "macOS", "windows": "Windows", "plan9": "plan9"} {
		require.EqualError(t, supported(system), "a playground needs Linux: this machine runs "+name)
	}
}
