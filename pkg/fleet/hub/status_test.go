// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// TestAConditionIsAProblemByItsKind: what is good of some is bad of others.
func TestAConditionIsAProblemByItsKind(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		kind string
		is   metav1.ConditionStatus
		want bool
	}{
		"fields are left out": {
			kind: operatorv1.ConditionSpecSupported,
			is:   no,
			want: true,
		},
		"all fields are in effect": {
			kind: operatorv1.ConditionSpecSupported,
			is:   yes,
		},
		"degraded": {
			kind: operatorv1.ConditionHubRegistrationDegraded,
			is:   yes,
			want: true,
		},
		"not degraded": {
			kind: operatorv1.ConditionHubRegistrationDegraded,
			is:   no,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &operatorv1.ClusterManager{}
			cm.Status.Conditions = []metav1.Condition{
				{Type: operatorv1.ConditionApplied, Status: yes},
				{Type: tc.kind, Status: tc.is, Reason: "Reason", Message: "nodePlacement is left out"},
			}
			if !tc.want {
				require.Empty(t, Problems(cm))
				return
			}
			require.Len(t, Problems(cm), 1)
			require.Contains(t, Problems(cm)[0], "nodePlacement is left out")
		})
	}
}
