// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

func TestSumsOfReplicaSets(t *testing.T) {
	sets := make([]workv1alpha1.ManifestWorkReplicaSet, 2)
	sets[0].Status.Summary = workv1alpha1.ManifestWorkReplicaSetSummary{
		Total: 3, Applied: 3, Available: 2, Progressing: 1, Degraded: 1,
	}
	sets[1].Status.Summary = workv1alpha1.ManifestWorkReplicaSetSummary{Applied: 1}
	for i, message := range []string{workv1alpha1.MessageRolledOut(2, 4) + ", 2 wait for their turn", workv1alpha1.MessageRolledOut(0, 1)} {
		sets[i].Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionPlacementRolledOut, Message: message}}
	}
	require.Equal(
		t, map[string]int{"selected": 5, "applied": 4, "available": 2, "progressing": 1, "degraded": 1, "updated": 2},
		setSums(sets),
	)
	require.Len(t, setSums(nil), 6, "zero values are reported too")
}
