// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

func TestAnAgentRenewsItsOwnCertificateOnly(t *testing.T) {
	s := sharedHub(t)
	prod1 := s.register(t, "prod1", "a")
	prod10 := s.register(t, "prod10", "a")
	const p = clusterv1.UserPrefix

	// CVE-2026-4740: the agent of prod10 requests the identity of prod1.
	stolen, _ := request(t, prod10.kube, "prod1", p+"prod1:a", p+"prod1", clusterv1.GroupManagedClusters)
	mixed, _ := request(t, prod10.kube, "prod10", p+"prod10:a", p+"prod1", clusterv1.GroupManagedClusters)
	suffixed, _ := request(t, prod1.kube, "prod1", p+"prod10:a", p+"prod10", clusterv1.GroupManagedClusters)
	masters, _ := request(t, prod1.kube, "prod1", p+"prod1:a", p+"prod1", "system:other")
	other, _ := request(t, prod1.kube, "prod1", p+"prod1:b", p+"prod1", clusterv1.GroupManagedClusters)

	own, key := agentRequest(t, prod1.kube, "prod1", "a")
	s.issued(t, own.Name, key)
	kind, reason := s.verdict(t, own.Name)
	require.Equal(t, "Approved", kind)
	require.Equal(t, clusterv1.ReasonAutoApproved, reason)
	for _, csr := range []string{stolen.Name, mixed.Name, suffixed.Name, masters.Name, other.Name} {
		kind, _ := s.verdict(t, csr)
		require.Empty(t, kind, "%s stays for a person", csr)
	}
}

func TestTheFirstRequestIsLeftToAPerson(t *testing.T) {
	s := sharedHub(t)
	dyn, kube := s.bootstrap(t)
	require.NoError(t, create(dyn, cluster("asking")))
	csr, _ := agentRequest(t, kube, "asking", "a")
	// Another cluster's renewal is answered later, so this one has been seen.
	s.register(t, "asking-after", "a")
	kind, _ := s.verdict(t, csr.Name)
	require.Empty(t, kind)
	require.Nil(t, findCondition(s.get(t, "asking"), clusterv1.ConditionHubAccepted), "nothing is done for a cluster that is not accepted")
	require.False(t, s.hasRole(clusterv1.RolePrefixManagedCluster+"asking"))
}

func TestASecondAgentOfTheSameNameWaitsForAPerson(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "twin", "a")
	a.renew(t, "twin", 0)
	a.report(t, "twin", metav1.ConditionTrue)
	s.await(t, "twin", "is held by a", func(mc *clusterv1.ManagedCluster) bool {
		return mc.Annotations[clusterv1.AnnotationAgentName] == "a"
	})
	_, kube := s.bootstrap(t)
	csr, key := agentRequest(t, kube, "twin", "b")
	mc := s.await(
		t, "twin", "shows the duplicate",
		conditionIs(clusterv1.ConditionDuplicateClusterName, metav1.ConditionTrue, clusterv1.ReasonDuplicateClusterName),
	)
	require.Contains(t, findCondition(mc, clusterv1.ConditionDuplicateClusterName).Message, "kubectl ocm accept twin --replace")
	own, ownKey := agentRequest(t, a.kube, "twin", "a")
	s.issued(t, own.Name, ownKey)
	kind, _ := s.verdict(t, csr.Name)
	require.Empty(t, kind, "an agent of OCM never gets over a denial")
	soon(t, func() bool {
		list, err := s.kube.EventsV1().Events("twin").List(t.Context(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == clusterv1.ReasonDuplicateClusterName })
	}, "no Event reports it")
	// An administrator lets the new agent take over.
	s.approve(t, csr.Name)
	s.issued(t, csr.Name, key)
	s.await(t, "twin", "is held by b", func(mc *clusterv1.ManagedCluster) bool {
		return mc.Annotations[clusterv1.AnnotationAgentName] == "b" && conditionIs(clusterv1.ConditionDuplicateClusterName, metav1.ConditionFalse, "")(mc)
	})
}

func TestASecondAgentIsNoticedWhenTheLeaseOfTheFirstAppears(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "late-lease", "a")
	s.joined(t, a, "late-lease")
	s.await(t, "late-lease", "is held by a", func(mc *clusterv1.ManagedCluster) bool {
		return mc.Annotations[clusterv1.AnnotationAgentName] == "a"
	})
	quotas := s.kube.CoreV1().ResourceQuotas("late-lease")
	none := corev1.ResourceList{"count/leases.coordination.k8s.io": resource.MustParse("0")}
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-lease"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	leases := s.kube.CoordinationV1().Leases("late-lease")
	soon(t, func() bool {
		_ = leases.Delete(t.Context(), clusterv1.LeaseName, metav1.DeleteOptions{})
		_, refused := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}, metav1.CreateOptions{})
		_, gone := leases.Get(t.Context(), clusterv1.LeaseName, metav1.GetOptions{})
		return apierrors.IsForbidden(refused) && apierrors.IsNotFound(gone)
	}, "the hub can make the lease again")

	_, kube := s.bootstrap(t)
	agentRequest(t, kube, "late-lease", "b")
	// A renewal is answered later, so this one has been seen.
	own, ownKey := agentRequest(t, a.kube, "late-lease", "a")
	s.issued(t, own.Name, ownKey)
	// The hub may learn of the request before it learns that the lease is gone.
	s.await(t, "late-lease", "has no known holder", func(mc *clusterv1.ManagedCluster) bool {
		return !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionDuplicateClusterName)
	})
	require.NoError(t, quotas.Delete(t.Context(), "no-lease", metav1.DeleteOptions{}))
	soon(t, func() bool { // the longer it was refused, the later the hub tries again
		_, err := leases.Get(t.Context(), clusterv1.LeaseName, metav1.GetOptions{})
		return err == nil
	}, "the hub does not make the lease again")
	shown := conditionIs(clusterv1.ConditionDuplicateClusterName, metav1.ConditionTrue, clusterv1.ReasonDuplicateClusterName)
	// Old requests are checked again after two minutes, whatever happens.
	require.True(t, harness.Until(time.Minute, func() bool { return shown(s.get(t, "late-lease")) }), "the lease does not show the duplicate")
}

func TestALeaseThatStopsMakesAClusterUnknown(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	a := s.register(t, "silent", "a")
	start := time.Now()
	s.joined(t, a, "silent")
	s.brief(t, "silent")
	s.await(t, "silent", "is unknown", isAway)
	require.Greater(t, time.Since(start), 4*time.Second, "five durations after it was heard")
	s.await(t, "silent", "is tainted", func(mc *clusterv1.ManagedCluster) bool {
		return len(mc.Spec.Taints) == 1 && mc.Spec.Taints[0].Key == clusterv1.TaintUnreachable && mc.Spec.Taints[0].TimeAdded != nil
	})
	require.True(t, eventually(func() bool {
		list, err := s.kube.EventsV1().Events("silent").List(t.Context(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "AvailableUnknown" && e.Type == "Warning" && e.Regarding.Name == "silent"
		})
	}), "an Event reports it")

	// Its clock is wrong, but it is alive: what counts is when a renewal arrives.
	require.NoError(t, patch(s.dyn, "silent", `{"spec":{"leaseDurationSeconds":60}}`))
	a.renew(t, "silent", -time.Hour)
	s.await(t, "silent", "has a wrong clock", conditionIs(clusterv1.ConditionClockSynced, metav1.ConditionFalse, clusterv1.ReasonManagedClusterClockOutOfSync))
	a.renew(t, "silent", 0)
	s.await(t, "silent", "has the right clock again", conditionIs(clusterv1.ConditionClockSynced, metav1.ConditionTrue, clusterv1.ReasonManagedClusterClockSynced))
	a.report(t, "silent", metav1.ConditionFalse)
	s.await(t, "silent", "is tainted as unavailable", func(mc *clusterv1.ManagedCluster) bool {
		return len(mc.Spec.Taints) == 1 && mc.Spec.Taints[0].Key == clusterv1.TaintUnavailable
	})
}
