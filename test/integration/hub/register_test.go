// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestAnAcceptedClusterGetsItsPlaceOnTheHub(t *testing.T) {
	s := sharedHub(t)
	dyn, kube := s.bootstrap(t)
	require.NoError(t, create(dyn, cluster("place")))
	mc := s.get(t, "place")
	require.Equal(t, "default", mc.Labels[clusterv1.LabelClusterSet])
	require.Equal(t, []string{clusterv1.FinalizerResourceCleanup}, mc.Finalizers)
	require.Len(t, mc.Spec.Taints, 1)
	require.Equal(t, clusterv1.TaintUnreachable, mc.Spec.Taints[0].Key)
	require.NotNil(t, mc.Spec.Taints[0].TimeAdded)
	require.Equal(t, "system:serviceaccount:open-cluster-management:agent-registration-bootstrap", mc.Annotations[clusterv1.AnnotationCreator])

	csr, key := agentRequest(t, kube, "place", "a1")
	s.approve(t, csr.Name)
	s.accept(t, "place", true)
	a := &agent{}
	a.dyn, a.kube = s.issued(t, csr.Name, key)
	mc = s.await(t, "place", "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, clusterv1.ReasonHubClusterAdminAccepted))
	require.Contains(t, mc.Finalizers, clusterv1.FinalizerAPIResourceCleanup)

	ctx := context.Background()
	ns, err := s.kube.CoreV1().Namespaces().Get(ctx, "place", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "place", ns.Labels[clusterv1.LabelClusterName])
	role, err := s.kube.RbacV1().ClusterRoles().Get(ctx, "open-cluster-management:managedcluster:place", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []rbacv1.PolicyRule{
		{
			APIGroups: []string{"certificates.k8s.io"},
			Resources: []string{"certificatesigningrequests"},
			Verbs:     []string{"create", "get", "list", "watch"},
		},
		{
			APIGroups: []string{"register.open-cluster-management.io"},
			Resources: []string{"managedclusters/clientcertificates"},
			Verbs:     []string{"renew"},
		},
		{
			APIGroups:     []string{"cluster.open-cluster-management.io"},
			Resources:     []string{"managedclusters"},
			ResourceNames: []string{"place"},
			Verbs:         []string{"get", "list", "update", "watch"},
		},
		{
			APIGroups:     []string{"cluster.open-cluster-management.io"},
			Resources:     []string{"managedclusters/status"},
			ResourceNames: []string{"place"},
			Verbs:         []string{"patch", "update"},
		},
	}, role.Rules)
	require.Equal(t, "place", role.Labels[clusterv1.LabelClusterName])
	for _, suffix := range []string{"registration", "work"} {
		binding, err := s.kube.RbacV1().RoleBindings("place").Get(ctx, "open-cluster-management:managedcluster:place:"+suffix, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "open-cluster-management:managedcluster:"+suffix, binding.RoleRef.Name)
		require.Equal(t, []rbacv1.Subject{
			{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "system:open-cluster-management:place"},
			{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "open-cluster-management:place"},
		}, binding.Subjects)
	}

	a.renew(t, "place", 0)
	a.report(t, "place", metav1.ConditionTrue)
	s.await(t, "place", "loses the taint when it is available", func(mc *clusterv1.ManagedCluster) bool { return len(mc.Spec.Taints) == 0 })
	s.await(t, "place", "is held by the agent that got the certificate", func(mc *clusterv1.ManagedCluster) bool {
		return mc.Annotations[clusterv1.AnnotationAgentName] == "a1" && mc.Annotations[clusterv1.AnnotationCertificateExpires] != ""
	})
}
