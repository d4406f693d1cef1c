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
	requirePatience(t, func() *metav1.Condition { return findCondition(s.get(t, "loud"), clusterv1.ConditionAvailable) },
		func() { a.report(t, "loud", metav1.ConditionTrue) })
	a.report(t, "loud", metav1.ConditionTrue)
	s.await(t, "loud", "is away again", away)
	a.renew(t, "loud", 0)
	a.report(t, "loud", metav1.ConditionTrue)
}

// requirePatience reports True whenever the hub has set a condition to Unknown, and fails if
// the hub does so again before the ten seconds are over that it leaves between two such writes.
// They are counted by the hub's own times, which have no fractions: on a slow machine, the test
// may look only after them.
func requirePatience(t *testing.T, look func() *metav1.Condition, report func()) {
	t.Helper()
	var last time.Time
	never(t, func() bool {
		c := look()
		if c.Status != metav1.ConditionUnknown {
			return false
		}
		early := !last.IsZero() && c.LastTransitionTime.Sub(last) < 9*time.Second
		last = c.LastTransitionTime.Time
		report()
		return early
	}, 5*time.Second, "the hub contradicts again at once")
}
