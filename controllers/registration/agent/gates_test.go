// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// all are the gates of both agents.
func all() map[string]Gate {
	gates := Gates()
	maps.Copy(gates, WorkGates())
	return gates
}

func TestGatesHaveTheDefaultsOfTheContract(t *testing.T) {
	gates, err := ParseGates(all(), nil)
	require.NoError(t, err)
	on := map[string]bool{}
	for name, g := range gates {
		on[name] = g.Enabled
	}
	require.Equal(t, map[string]bool{
		"ClusterClaim":               true,
		"AddonManagement":            true,
		"ClusterProperty":            false,
		"ClusterProxy":               false,
		"ExecutorValidatingCaches":   false,
		"RawFeedbackJsonString":      false,
		"MultipleHubs":               false,
		"V1beta1CSRAPICompatibility": false,
	}, on)
	gates, err = ParseGates(all(), []string{"MultipleHubs=true", " ClusterClaim=false", "V1beta1CSRAPICompatibility=false"})
	require.NoError(t, err)
	require.True(t, gates[GateMultipleHubs].Enabled)
	require.False(t, gates[GateClusterClaim].Enabled)
}

// FuzzParseGates checks that gates are either all known and served, or rejected with a text
// that says what is wrong.
func FuzzParseGates(f *testing.F) {
	for _, seed := range []string{
		"",
		"ClusterClaim=true,MultipleHubs=true",
		"ClusterClaim",
		"=true",
		"X=true",
		"V1beta1CSRAPICompatibility=true",
		"MultipleHubs=TRUE",
		"MultipleHubs=true=false",
	} {
		f.Add(seed)
	}
	known := all()
	f.Fuzz(func(t *testing.T, text string) {
		gates, err := ParseGates(known, strings.Split(text, ","))
		if err != nil {
			require.Nil(t, gates)
			require.ErrorContains(t, err, "feature gate")
			return
		}
		require.Len(t, gates, len(known))
		for name, g := range gates {
			require.Contains(t, known, name)
			require.True(t, g.Served || !g.Enabled, name)
		}
	})
}

// FuzzValidate checks that accepted settings can be carried out.
func FuzzValidate(f *testing.F) {
	f.Add("c1", "https://spoke", "hub-1", "hub-2", int32(3600))
	f.Add("a.b", "http://spoke", "hub-1", "hub-1", int32(1))
	f.Add("", "https://", "hub-kubeconfig-secret", "../x", int32(-1))
	f.Fuzz(func(t *testing.T, cluster, address, one, two string, seconds int32) {
		s := Settings{ClusterName: cluster, ExternalServerURLs: []ServerURL{{URL: address}}, Hubs: []string{one, two},
			HubTimeout: DefaultHubTimeout, HealthPeriod: DefaultHealthPeriod, CertificateSeconds: seconds}
		if s.Validate() != nil {
			return
		}
		require.True(t, strings.HasPrefix(strings.ToLower(address), "https://"))
		require.NotEqual(t, one, two)
		require.NotContains(t, one+two, "/")
		require.True(t, seconds == 0 || seconds >= minCertificateSeconds)
		require.Equal(
			t, cluster, Identity{Cluster: cluster}.Known().Cluster, "an accepted cluster name can be read back",
		)
	})
}
