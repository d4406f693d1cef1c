// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

func TestEvents(t *testing.T) {
	condition := func(kind, reason, message string, is bool) metav1.Condition {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
		if is {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	verified := func(reason string) metav1.Condition {
		return condition(workv1alpha1.ConditionPlacementVerified, reason, "", reason == workv1alpha1.ReasonAsExpected)
	}
	out := func(message string, is bool) metav1.Condition {
		return condition(workv1alpha1.ConditionPlacementRolledOut, "R", message, is)
	}
	list := func(c ...metav1.Condition) []metav1.Condition { return c }
	for name, tc := range map[string]struct {
		before, after []metav1.Condition
		want          []string
	}{
		"nothing is known":         {},
		"the placements are found": {nil, list(verified("AsExpected")), []string{"Normal AsExpected"}},
		"they are as they were":    {list(verified("AsExpected")), list(verified("AsExpected")), nil},
		"one is gone": {
			list(verified("AsExpected")),
			list(verified("PlacementDecisionNotFound")),
			[]string{"Warning PlacementDecisionNotFound"},
		},
		"they select nothing": {
			list(verified("AsExpected")),
			list(verified("PlacementDecisionEmpty")),
			[]string{"Normal PlacementDecisionEmpty"},
		},
		"a rollout begins where none was": {nil, list(out("0 of 2", false)), nil},
		"a rollout goes on":               {list(out("0 of 2", false)), list(out("1 of 2", false)), nil},
		"a rollout ends": {
			list(out("1 of 2", false)),
			list(out("2 of 2", true)),
			[]string{"Normal RolledOut"},
		},
		"it ended before, with other words": {list(out("2 of 2", true)), list(out("3 of 3", true)), nil},
		"another rollout begins": {
			list(out("2 of 2", true)),
			list(out("0 of 2", false)),
			[]string{"Normal RolloutStarted"},
		},
		"failures stop it": {
			list(out("0 of 2", false)),
			list(out("0 of 2"+stopped, false)),
			[]string{"Warning RolloutStopped"},
		},
		"they still do": {list(out("0 of 2"+stopped, false)), list(out("1 of 2"+stopped, false)), nil},
		"a name that is too long": {
			nil,
			list(condition(workv1alpha1.ConditionManifestworkApplied, "InvalidManifestWorkName", "", false)),
			[]string{"Warning InvalidManifestWorkName"},
		},
		"how the works come along is no news": {
			nil,
			list(condition(workv1alpha1.ConditionManifestworkApplied, "Processing", "", false)),
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := replicaSet("p"), replicaSet("p")
			before.Status.Conditions, after.Status.Conditions = tc.before, tc.after
			var got []string
			for _, e := range events(before, after) {
				got = append(got, e.Type+" "+e.Reason)
			}
			require.Equal(t, tc.want, got)
		})
	}
}
