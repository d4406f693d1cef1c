// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryDefinitionIsInOnePart keeps the parts apart: a definition that is in none cannot be
// applied, and one of the hub among those of agents makes the program of every agent larger.
func TestEveryDefinitionIsInOnePart(t *testing.T) {
	names := func(from fs.FS) []string {
		found, err := fs.Glob(from, "*.yaml")
		require.NoError(t, err)
		return found
	}
	require.ElementsMatch(t, []string{
		"about.k8s.io_clusterproperties.yaml",
		"cluster.open-cluster-management.io_clusterclaims.yaml",
		"work.open-cluster-management.io_appliedmanifestworks.yaml",
	}, names(ofAgents))
	parts := append(names(ofAgents), names(files)...)
	require.ElementsMatch(t, names(os.DirFS(".")), append(parts, "rbac.open-cluster-management.io_clusterpermissions.yaml"))
	properties, err := Properties()
	require.NoError(t, err)
	require.Equal(t, ClusterProperties, properties.GetName())
}
