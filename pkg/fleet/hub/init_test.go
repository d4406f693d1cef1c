// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	"github.com/stretchr/testify/require"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

func TestAutoAcceptanceTurnsItsGateOn(t *testing.T) {
	cm := &operatorv1.ClusterManager{}
	(&InitOptions{AutoAccept: []string{"alice"},
		FeatureGates: map[string]bool{"ManifestWorkReplicaSet": false, "AddonManagement": true,
			"PlacementDebugServer": true}}).applyOptions(cm)
	require.Equal(t, []string{"alice"}, cm.Spec.RegistrationConfiguration.AutoApproveUsers)
	require.Equal(t, "ManagedClusterAutoApproval", cm.Spec.RegistrationConfiguration.FeatureGates[0].Feature)
	require.Equal(t, operatorv1.FeatureGateModeTypeDisable, cm.Spec.WorkConfiguration.FeatureGates[0].Mode)
	require.Len(t, cm.Spec.AddOnManagerConfiguration.FeatureGates, 1)
	require.Len(t, cm.Spec.PlacementConfiguration.FeatureGates, 1)
}
