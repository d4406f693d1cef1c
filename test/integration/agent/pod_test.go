// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// TestInstalledAgentRunsAsAPod starts nothing by hand: it applies the objects of
// config/agent, and a node runs the pod.
func TestInstalledAgentRunsAsAPod(t *testing.T) {
	path, err := binary()
	require.NoError(t, err)
	h := newHub(t)
	c := harness.WithNode(t, "spoke", map[string]string{"ocm-agent": path})
	s := &spoke{Cluster: c, client: c.Dynamic(t)}
	started := time.Now()
	s.install(t, config.Options{ClusterName: "pod", BootstrapKubeconfig: h.bootstrap(t)})
	h.join(t, "pod")
	t.Logf("installation started to available %s", time.Since(started).Round(time.Millisecond))
	await(t, func() bool {
		u, err := s.client.Resource(deployments).Namespace(operatorv1.NamespaceAgent).Get(t.Context(), operatorv1.AgentDeployment("klusterlet"), metav1.GetOptions{})
		require.NoError(t, err)
		n, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		return n == 1
	}, "the probes pass")
	require.True(t, apimeta.IsStatusConditionTrue(h.cluster(t.Context(), "pod").Status.Conditions, clusterv1.ConditionJoined))
	deleted := time.Now()
	require.NoError(t, s.client.Resource(klusterlets).Delete(t.Context(), "klusterlet", metav1.DeleteOptions{}))
	s.awaitGone(t)
	t.Logf("deleted to nothing left %s", time.Since(deleted).Round(time.Millisecond))
}
