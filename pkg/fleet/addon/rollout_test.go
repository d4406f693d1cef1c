// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// The hub counts the clusters that have or get the configurations together; what the instances
// have applied tells which of them are done.
func TestTheRolloutOfAnAddOn(t *testing.T) {
	kind := addonv1alpha1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"}
	config := func(hash string) *addonv1alpha1.ConfigSpecHash { return &addonv1alpha1.ConfigSpecHash{SpecHash: hash} }
	addOn := func(status metav1.ConditionStatus, message string) *rollout {
		a := &addonv1alpha1.ClusterManagementAddOn{}
		a.Status.InstallProgressions = []addonv1alpha1.InstallProgression{{
			ConfigReferences: []addonv1alpha1.InstallConfigReference{{ConfigGroupResource: kind, DesiredConfig: config("new")}},
			Conditions:       []metav1.Condition{{Type: addonv1alpha1.ConditionProgressing, Status: status, Message: message}},
		}}
		return rolloutOf(a)
	}
	instance := func(hash string, progressing metav1.ConditionStatus) *addonv1alpha1.ManagedClusterAddOn {
		a := &addonv1alpha1.ManagedClusterAddOn{}
		a.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{ConfigGroupResource: kind, LastAppliedConfig: config(hash)}}
		a.Status.Conditions = []metav1.Condition{{Type: addonv1alpha1.ConditionProgressing, Status: progressing}}
		return a
	}
	r := addOn(metav1.ConditionTrue, "selected clusters 9. configured addons 5/9 progressing..., 0 failed 1 timeout.")
	r.see(instance("new", metav1.ConditionFalse))
	r.see(instance("new", metav1.ConditionFalse))
	r.see(instance("new", metav1.ConditionTrue))
	r.see(instance("old", metav1.ConditionFalse))
	require.Equal(t, &cluster.Rollout{Total: 9, Done: 2, Running: 3, Failed: 1, Waiting: 3}, r.result())
	r = addOn(metav1.ConditionFalse, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	require.Equal(t, &cluster.Rollout{Total: 3, Done: 3}, r.result())
	require.Nil(t, addOn(metav1.ConditionTrue, "something else").result())
}
