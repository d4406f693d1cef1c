// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// TestProgressOfAnAddOn: each state counts once, and so does each configuration.
func TestProgressOfAnAddOn(t *testing.T) {
	of := func(available, progressing string) State {
		return State{Available: available, Progressing: progressing}
	}
	states := []State{of("True", "False"), of("True", "True"), of("False", "True"), of("", "True"), of("", ""), of("False", "False"), of("Unknown", "")}
	require.Equal(t, cluster.Rollout{Total: 7, Done: 2, Running: 2, Failed: 2, Waiting: 1}, Progress(states))

	applied := &addonv1alpha1.ConfigSpecHash{SpecHash: "h"}
	for name, tc := range map[string]struct {
		status metav1.ConditionStatus
		reason string
		want   cluster.Rollout
	}{
		"nothing is reported": {"", "", cluster.Rollout{Waiting: 1}},
		"on its way":          {metav1.ConditionTrue, addonv1alpha1.ReasonProgressing, cluster.Rollout{Running: 1}},
		"failed":              {metav1.ConditionFalse, addonv1alpha1.ReasonFailed, cluster.Rollout{Failed: 1}},
		"unsupported":         {metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationUnsupported, cluster.Rollout{Failed: 1}},
		"not begun":           {metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForManifestApplied, cluster.Rollout{Waiting: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &addonv1alpha1.ManagedClusterAddOn{}
			a.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{DesiredConfig: applied, LastAppliedConfig: applied}, {DesiredConfig: applied}}
			if tc.reason != "" {
				a.Status.Conditions = []metav1.Condition{{Type: addonv1alpha1.ConditionProgressing, Status: tc.status, Reason: tc.reason}}
			}
			tc.want.Total, tc.want.Done = 2, 1
			require.Equal(t, tc.want, stateOf(a).Rollout)
		})
	}
}
