// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheRepositoryOfAnImageIsKept(t *testing.T) {
	for image, want := range map[string]string{
		"ghcr.io/kubectl-ocm/ocm-hub:v0.1.0":     "ghcr.io/kubectl-ocm/ocm-hub",
		"registry:5000/ocm-hub":                  "registry:5000/ocm-hub",
		"registry:5000/ocm-hub:v1@sha256:abcdef": "registry:5000/ocm-hub",
		"registry:5000/ocm-hub@sha256:abcdef":    "registry:5000/ocm-hub",
	} {
		require.Equal(t, want, repositoryOf(image))
	}
}

func TestOlderReleasesAreRecognized(t *testing.T) {
	for _, older := range [][2]string{{"v0.1.0", "v0.1.1"}, {"v0.9.0", "v0.10.0"}, {"v1.0.0-rc.1", "v1.0.0"}} {
		require.True(t, isOlder(older[0], older[1]))
		require.False(t, isOlder(older[1], older[0]))
		require.False(t, isOlder(older[0], older[0]))
	}
	require.False(t, isOlder("v0.1.0", "latest"), "what is no release cannot be compared")
}
