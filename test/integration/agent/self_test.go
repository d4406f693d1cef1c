// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

func TestAHubManagesItself(t *testing.T) {
	t.Parallel()
	c := harness.ControlPlane(t, "self")
	h, s := prepareHub(t, c), &spoke{Cluster: c, client: c.Dynamic(t)}
	s.install(t, config.Options{ClusterName: "local-cluster", BootstrapKubeconfig: h.bootstrap(t)})
	s.node(t, "n1", "2", false)
	s.start(t)
	h.join(t, "local-cluster")
	h.change(t, "local-cluster", func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 1 })
	seen := map[string]bool{}
	await(t, func() bool {
		u, err := h.client.Resource(leases).Namespace("local-cluster").Get(t.Context(), clusterv1.LeaseName, metav1.GetOptions{})
		require.NoError(t, err)
		at, _, _ := unstructured.NestedString(u.Object, "spec", "renewTime")
		seen[at] = true
		return len(seen) > 2
	}, "the lease is renewed twice")
	s.claim(t, "id.k8s.io", "itself", nil)
	await(t, func() bool {
		c := h.cluster(t.Context(), "local-cluster")
		cpu, free := c.Status.Capacity["cpu"], c.Status.Allocatable["cpu"]
		return apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ConditionJoined) && cpu.String() == "2" && free.String() == "2" &&
			len(c.Status.ClusterClaims) == 1 && c.Status.ClusterClaims[0].Value == "itself"
	})
	h.deliver(t, "local-cluster", "own")
	await(t, func() bool {
		_, err := s.client.Resource(configmaps).Namespace("default").Get(t.Context(), "own-1", metav1.GetOptions{})
		return err == nil
	}, "a hub gives works to itself")
}
