// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestAClusterThatNobodyAcceptedGetsNothingAndGoesAtOnce(t *testing.T) {
	s := sharedHub(t)
	ctx := context.Background()
	dyn, _ := s.bootstrap(t)
	settled(t, func() error { return create(dyn, cluster("stranger")) })
	never(t, func() bool {
		_, err := s.kube.CoreV1().Namespaces().Get(ctx, "stranger", metav1.GetOptions{})
		return !apierrors.IsNotFound(err) || s.hasRole(clusterv1.RolePrefixManagedCluster+"stranger")
	}, time.Second)
	mc := s.get(t, "stranger")
	require.Nil(t, findCondition(mc, clusterv1.ConditionHubAccepted))
	require.NotContains(t, mc.Finalizers, clusterv1.FinalizerAPIResourceCleanup)
	require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, "stranger", metav1.DeleteOptions{}))
	s.await(t, "stranger", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
}

func TestADeletedClusterWithWorksLosesItsRightsAndStays(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "working", "a")
	s.work(t, "working", "w", -1)
	require.NoError(t, s.dyn.Resource(clusters).Delete(context.Background(), "working", metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool {
		return !s.hasRole(clusterv1.RolePrefixManagedCluster+"working") && !s.hasBinding("working", ":registration")
	}))
	mc := s.get(t, "working")
	require.Contains(t, mc.Finalizers, clusterv1.FinalizerAPIResourceCleanup)
	require.True(t, s.hasBinding("working", ":work"))
	_, err := a.dyn.Resource(works).Namespace("working").Get(context.Background(), "w", metav1.GetOptions{})
	require.NoError(t, err, "the agent can still remove its work")
	s.letGo(t, works, "working", "w")
	s.await(t, "working", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
}

// The pre-delete steps of add-ons need an agent that sees them and reports.
func TestTheAgentReportsWhileItsAddOnsAreRemoved(t *testing.T) {
	s := sharedHub(t)
	ctx := context.Background()
	a := s.register(t, "ending", "a")
	a.renew(t, "ending", 0)
	a.report(t, "ending", metav1.ConditionTrue)
	s.addon(t, "ending", "hooked", agentFinalizer)
	require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, "ending", metav1.DeleteOptions{}))
	s.await(t, "ending", "reports what remains", conditionIs(clusterv1.ConditionDeleting, metav1.ConditionFalse, clusterv1.ReasonResourceRemaining))
	reportAddOn(t, a.dyn, "ending", "hooked", metav1.ConditionFalse)
	a.report(t, "ending", metav1.ConditionFalse)
	a.renew(t, "ending", 0)
	require.True(t, s.hasBinding("ending", ":registration"))

	require.NoError(t, patch(s.dyn, "ending", `{"spec":{"hubAcceptsClient":false}}`))
	require.True(t, eventually(func() bool {
		return !s.hasRole(clusterv1.RolePrefixManagedCluster+"ending") && !s.hasBinding("ending", ":registration")
	}), "whoever has to lose its rights at once is denied")
	s.letGo(t, addons, "ending", "hooked")
	s.await(t, "ending", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
}
