// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestRestartWhilePendingGoesOnWithTheSameKeyAndRequest(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "pending", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	request := h.awaitRequest(t, "pending")
	key := s.secret(t.Context(), "hub-kubeconfig-pending")["tls.key"]
	require.NotEmpty(t, key)
	for range 3 {
		a.kill()
		a = s.start(t)
		s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigSecretMissing", request.GetName()+" waits for approval")
	}
	a.kill()
	h.accept(t, "pending")
	h.approve(t, request.GetName())
	a = s.start(t)
	h.awaitCondition(t, "pending", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.Len(t, h.requestsOf(t, "pending"), 1)
	require.Equal(t, key, s.secret(t.Context(), "hub-kubeconfig-secret")["tls.key"])

	// A restarted agent that has joined requests nothing and works immediately.
	a.kill()
	restarted := time.Now()
	h.condition(t, "pending", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	s.start(t)
	h.awaitCondition(t, "pending", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	t.Logf("restart to available %s", time.Since(restarted).Round(time.Millisecond))
	require.Len(t, h.requestsOf(t, "pending"), 1)
}

func TestAgentWithoutNameKeepsTheOneItMadeUp(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "unused", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t, "agent")
	var first map[string][]byte
	await(t, func() bool {
		first = s.secret(t.Context(), "hub-kubeconfig-pending")
		return len(first["cluster-name"]) > 0 && h.cluster(t.Context(), string(first["cluster-name"])) != nil
	})
	name := string(first["cluster-name"])
	require.Len(t, name, 36)
	require.Len(t, string(first["agent-name"]), 5)
	a.kill()
	s.start(t, "agent")
	h.join(t, name)
	kept := s.secret(t.Context(), "hub-kubeconfig-secret")
	require.Equal(t, name, string(kept["cluster-name"]))
	require.Equal(t, first["agent-name"], kept["agent-name"])
	require.Len(t, h.requestsOf(t, name), 1)
}

// TestRestartWhileTheClusterIsRemovedEndsItsWorks restarts the agent while the hub
// removes its cluster: the hub first removes the right to read the ManagedCluster, and
// the right to works only when the last work is gone.
func TestRestartWhileTheClusterIsRemovedEndsItsWorks(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "leaving", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "leaving")
	h.work(t, "leaving", "leaving-work")
	s.applied(t, "leaving-work")
	a.kill()
	bindings := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	require.NoError(t, h.client.Resource(bindings).Delete(t.Context(), clusterv1.RolePrefixManagedCluster+"leaving", metav1.DeleteOptions{}))
	require.NoError(t, h.client.Resource(works).Namespace("leaving").Delete(t.Context(), "leaving-work", metav1.DeleteOptions{}))
	s.start(t)
	await(t, func() bool {
		_, err := h.client.Resource(works).Namespace("leaving").Get(t.Context(), "leaving-work", metav1.GetOptions{})
		_, gone := s.client.Resource(configMaps).Namespace("default").Get(t.Context(), "leaving-work", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && apierrors.IsNotFound(gone)
	}, "the work does not end after a restart of the agent")
}
