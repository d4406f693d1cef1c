// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOlderReleasesAreRecognized(t *testing.T) {
	for _, older := range [][2]string{{"v0.1.0", "v0.1.1"}, {"v0.9.0", "v0.10.0"}, {"v1.0.0-rc.1", "v1.0.0"}} {
		require.True(t, IsOlder(older[0], older[1]))
		require.False(t, IsOlder(older[1], older[0]))
		require.False(t, IsOlder(older[0], older[0]))
	}
	require.False(t, IsOlder("v0.1.0", "latest"), "what is no release cannot be compared")
}

func TestAHubWorksWithAgentsOfFourMinorReleases(t *testing.T) {
	for agent, want := range map[string]bool{
		"v1.2.9": false, "v1.3.0": true, "v1.5.7": true, "v1.6.0": true, "v1.7.0": false, "v0.5.0": false, "v2.5.0": false,
		"": true, "latest": true, "v0.0.0-dev": true,
	} {
		require.Equal(t, want, Fits("v1.5.0", agent), agent)
	}
	require.True(t, Fits("v0.0.0-dev", "v1.5.0"), "a build of its own is not judged")
	require.True(t, Fits("v0.1.0", "v0.1.0"))
}
