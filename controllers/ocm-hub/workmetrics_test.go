// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

func TestSumsOfReplicaSets(t *testing.T) {
	sets := make([]workv1alpha1.ManifestWorkReplicaSet, 2)
	sets[0].Status.Summary = workv1alpha1.ManifestWorkReplicaSetSummary{DesiredTotal: 4, Total: 3, Applied: 3, Available: 2, Progressing: 1, Degraded: 1, Updated: 2}
	sets[1].Status.Summary = workv1alpha1.ManifestWorkReplicaSetSummary{DesiredTotal: 1, Applied: 1}
	require.Equal(t, map[string]int{"selected": 5, "applied": 4, "available": 2, "progressing": 1, "degraded": 1, "updated": 2}, setSums(sets))
	require.Len(t, setSums(nil), 6, "what is nothing is told too")
}
