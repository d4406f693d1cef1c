// SPDX-License-Identifier: Apache-2.0

package join

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

func TestRightsThatAreNotAskedForAreRemoved(t *testing.T) {
	const tunnel, admin = "kubectl-ocm:k-registration:proxy", "kubectl-ocm:k-work:execution-admin"
	const metrics, account = "kubectl-ocm:k:metrics", "k-registration-sa"
	old := func(narrow, proxy bool, operator *appsv1.Deployment) []string {
		o := agent.Options{Image: "i", Klusterlet: "k", ClusterName: "c", Namespace: "open-cluster-management-k", NarrowRights: narrow}
		if proxy {
			o.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
				FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterProxy", Mode: operatorv1.FeatureGateModeTypeEnable}},
			}
		}
		applied, err := agent.Objects(o)
		require.NoError(t, err)
		return (&join{Options: &Options{Klusterlet: "k"}, operator: operator}).oldRoles(applied)
	}
	require.Equal(t, []string{tunnel, metrics, account}, old(false, false, nil))
	require.Equal(t, []string{tunnel, admin, metrics, account}, old(true, false, nil))
	require.Equal(t, []string{metrics, account}, old(false, true, nil), "only an operator gives these")
	require.Empty(t, old(true, false, &appsv1.Deployment{}), "an operator looks after them")
	of := (&join{Options: &Options{Klusterlet: operatorv1.DefaultKlusterletName}}).oldRoles(nil)
	require.Subset(t, of, agent.FormerRights())
	require.True(t, slices.Contains(of, "kubectl-ocm:klusterlet-registration:proxy"))
}
