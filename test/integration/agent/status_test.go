// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

var (
	nodes  = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	claims = schema.GroupVersionResource{Group: clusters.Group, Version: "v1alpha1", Resource: "clusterclaims"}
)

func (s *spoke) node(t *testing.T, name, cpu string, cordoned bool) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"unschedulable": cordoned}}}
	apply(t, s.client, u)
	amounts := fmt.Sprintf(`{"cpu":%q,"memory":"1Gi"}`, cpu)
	_, err := s.client.Resource(nodes).Patch(t.Context(), name, types.MergePatchType,
		[]byte(fmt.Sprintf(`{"status":{"capacity":%s,"allocatable":%s}}`, amounts, amounts)), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

func (s *spoke) claim(t *testing.T, name, value string, labels map[string]any) {
	t.Helper()
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": claims.GroupVersion().String(), "kind": "ClusterClaim",
		"metadata": map[string]any{"name": name, "labels": labels}, "spec": map[string]any{"value": value}}})
}

func TestStatusFollowsTheCluster(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "status", BootstrapKubeconfig: h.bootstrap(t)})
	s.node(t, "n1", "2", false)
	s.start(t)
	h.join(t, "status")
	says := func(capacity, allocatable string, want ...string) func() bool {
		return func() bool {
			c := h.cluster(t.Context(), "status")
			var got []string
			for _, claim := range c.Status.ClusterClaims {
				got = append(got, claim.Name+"="+claim.Value)
			}
			cpu, free := c.Status.Capacity["cpu"], c.Status.Allocatable["cpu"]
			return cpu.String() == capacity && free.String() == allocatable && strings.Join(got, " ") == strings.Join(want, " ")
		}
	}
	await(t, says("2", "2"))
	s.node(t, "n2", "500m", false)
	await(t, says("2500m", "2500m"))
	s.node(t, "n1", "2", true)
	await(t, says("2500m", "500m"))
	s.claim(t, "id.k8s.io", "one", nil)
	s.claim(t, "a.example.com", "two", nil)
	s.claim(t, "hidden", "x", map[string]any{"open-cluster-management.io/spoke-only": ""})
	await(t, says("2500m", "500m", "id.k8s.io=one", "a.example.com=two"))
	require.NoError(t, s.client.Resource(claims).Delete(t.Context(), "id.k8s.io", metav1.DeleteOptions{}))
	await(t, says("2500m", "500m", "a.example.com=two"))

	// At rest, nothing is written: the version stays the same for longer than any retry.
	calms(t, 3*time.Second, func() string { return h.cluster(t.Context(), "status").ResourceVersion }, "something is written at rest")
}

func TestClusterThatIsDeletedAndMadeAgainResumesWithoutARestart(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "resumed", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "resumed")
	require.NoError(t, h.client.Resource(clusters).Delete(t.Context(), "resumed", metav1.DeleteOptions{}))
	never(t, time.Second, func() bool { return h.cluster(t.Context(), "resumed") != nil }, "the agent made it again")
	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": clusters.GroupVersion().String(), "kind": "ManagedCluster",
		"metadata": map[string]any{"name": "resumed"}, "spec": map[string]any{}}})
	h.accept(t, "resumed")
	h.awaitCondition(t, "resumed", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.True(t, a.running())
	require.Len(t, h.requestsOf(t, "resumed"), 1)
}

func TestLeaseIsRenewedOnlyWhileAccepted(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "lease", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	h.join(t, "lease")
	renewed := func() string {
		u, err := h.client.Resource(leases).Namespace("lease").Get(t.Context(), clusterv1.LeaseName, metav1.GetOptions{})
		require.NoError(t, err)
		at, _, _ := unstructured.NestedString(u.Object, "spec", "renewTime")
		return at
	}
	await(t, func() bool { return renewed() != "" })
	h.change(t, "lease", func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 1 })
	for range 2 {
		last := renewed()
		await(t, func() bool { return renewed() != last }, "another duration takes effect at once")
	}
	h.condition(t, "lease", clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonHubClusterAdminDenied)
	s.degraded(t, refused, "the hub does not accept the cluster any more")
	calms(t, 3*time.Second, renewed, "renewed though not accepted")
}

func TestTenRequestsOfASenderAreEnough(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	token := h.bootstrap(t)
	s.install(t, config.Options{ClusterName: "many", BootstrapKubeconfig: token})
	a := s.start(t)
	first := h.awaitRequest(t, "many")
	a.kill()
	send := func(client dynamic.Interface) {
		for range 10 {
			u := first.DeepCopy()
			u.Object["status"] = nil
			u.Object["metadata"] = map[string]any{"generateName": "many-", "labels": map[string]any{clusterv1.LabelClusterName: "many"}}
			_, err := client.Resource(requests).Create(t.Context(), u, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(token)
	require.NoError(t, err)
	own, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	send(own)
	require.NoError(t, h.client.Resource(requests).Delete(t.Context(), first.GetName(), metav1.DeleteOptions{}))
	a = s.start(t)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigSecretMissing", "ten certificate requests")
	require.Len(t, h.requestsOf(t, "many"), 10)
	a.kill()

	// The agent ignores what others send under its name.
	for _, u := range h.requestsOf(t, "many") {
		require.NoError(t, h.client.Resource(requests).Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))
	}
	send(h.client)
	s.start(t)
	await(t, func() bool { return len(h.requestsOf(t, "many")) > 10 })
}
