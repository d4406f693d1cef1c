// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// TestTheAPIOfClustersIsServedByOneProcess: a request would often reach a replica without the
// tunnel.
func TestTheAPIOfClustersIsServedByOneProcess(t *testing.T) {
	on := &operatorv1.RegistrationHubConfiguration{
		FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterProxy", Mode: operatorv1.FeatureGateModeTypeEnable}},
	}
	told := func(replicas int32, hosted bool) *metav1.Condition {
		s := state(t, func(s *State) {
			s.Replicas, s.Hosted = replicas, hosted
			s.ClusterManager.Spec.RegistrationConfiguration = on
		})
		cm := s.ClusterManager.DeepCopy()
		setSupported(s, cm)
		return apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionSpecSupported)
	}
	require.Nil(t, told(1, false))
	require.Contains(t, told(2, false).Message, "registrationConfiguration.featureGates ClusterProxy (tunnels end in one process, and there are 2")
	require.Contains(t, told(1, true).Message, "registrationConfiguration.featureGates ClusterProxy (a hub of another cluster")
}

func TestTheAPIOfClustersIsRegisteredWithItsGate(t *testing.T) {
	kinds := func(f Features, bundle string) (out []string) {
		objects, err := rendering{Features: f, Bundle: []byte(bundle)}.objects()
		require.NoError(t, err)
		for _, u := range objects {
			out = append(out, u.GetKind()+" "+u.GetName())
		}
		return out
	}
	const want = "APIService v1alpha1.connect.open-cluster-management.io"
	require.Contains(t, kinds(Features{ClusterProxy: true}, "bundle"), want)
	require.NotContains(t, kinds(Features{}, "bundle"), want)
	require.NotContains(t, kinds(Features{ClusterProxy: true}, ""), want, "nothing verifies its certificate")
}
