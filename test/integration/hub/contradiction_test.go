// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// An agent that reports but cannot renew its lease sets the cluster to available as often
// as the hub sets it to Unknown.
func TestHubAndAgentDoNotContradictEachOtherWithoutEnd(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	a := s.register(t, "loud", "agent1")
	require.NoError(t, patch(s.dyn, "loud", `{"spec":{"leaseDurationSeconds":1}}`))
	a.report(t, "loud", metav1.ConditionTrue)
	away := conditionIs(clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	s.await(t, "loud", "is away", away)
	a.report(t, "loud", metav1.ConditionTrue)
	told := 0
	never(t, func() bool {
		if away(s.get(t, "loud")) {
			told++
			a.report(t, "loud", metav1.ConditionTrue)
		}
		return told > 1
	}, 5*time.Second)
	a.report(t, "loud", metav1.ConditionTrue)
	s.await(t, "loud", "is away again", away)
	a.renew(t, "loud", 0)
	a.report(t, "loud", metav1.ConditionTrue)
}
