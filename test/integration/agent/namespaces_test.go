// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// requestNamespaces makes the sets of a cluster request namespaces, given as
// set/namespace. As on the hub, the conditions of an existing entry stay.
func (h *hub) requestNamespaces(t *testing.T, cluster string, entries ...string) {
	t.Helper()
	h.write(t, cluster, func(c *clusterv1.ManagedCluster) {
		said := map[string][]metav1.Condition{}
		for _, e := range c.Status.ManagedNamespaces {
			said[e.ClusterSet+"/"+e.Name] = e.Conditions
		}
		c.Status.ManagedNamespaces = nil
		for _, entry := range entries {
			set, name, _ := strings.Cut(entry, "/")
			c.Status.ManagedNamespaces = append(c.Status.ManagedNamespaces, clusterv1.ClusterSetManagedNamespace{
				ClusterSet: set, ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: name}, Conditions: said[entry],
			})
		}
	}, "status")
}

// awaitNamespaces waits until the hub shows exactly these entries with these
// states, as set/namespace=status.
func (h *hub) awaitNamespaces(t *testing.T, cluster string, want ...string) *clusterv1.ManagedCluster {
	t.Helper()
	var c *clusterv1.ManagedCluster
	var got []string
	await(t, func() bool {
		got, c = nil, h.cluster(t.Context(), cluster)
		for _, e := range c.Status.ManagedNamespaces {
			state := "-"
			if condition := apimeta.FindStatusCondition(e.Conditions, clusterv1.ConditionNamespaceAvailable); condition != nil {
				state = string(condition.Status)
			}
			got = append(got, e.ClusterSet+"/"+e.Name+"="+state)
		}
		return strings.Join(got, " ") == strings.Join(want, " ")
	}, "want %v, got %v", want, func() any { return got })
	return c
}

// awaitLabel waits until a namespace has the label with this value; "" waits for a
// namespace without it.
func (s *spoke) awaitLabel(t *testing.T, namespace, key, value string) *unstructured.Unstructured {
	t.Helper()
	var u *unstructured.Unstructured
	await(t, func() bool {
		var err error
		u, err = s.client.Resource(namespaces).Get(t.Context(), namespace, metav1.GetOptions{})
		return err == nil && u.GetLabels()[key] == value
	}, "%s of %s is not %q", key, namespace, value)
	return u
}

func TestNamespacesOfSetsAreMadeAndNeverDeleted(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "spaces", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	key := "clusterset.open-cluster-management.io/" + kubeconfig.HubHash(h.Config.Host)[:63]
	const otherHub = "clusterset.open-cluster-management.io/0123456789abcdef"
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": "payroll", "labels": map[string]any{
			"team":   "pay",
			otherHub: "true",
		}, "annotations": map[string]any{
			"owner": "ann",
		}}}})
	s.node(t, "n1", "2", false)
	h.join(t, "spaces")
	h.awaitReport(t, "spaces", "2")

	h.requestNamespaces(t, "spaces", "blue/web", "blue/payroll", "green/web", "green/kube-system")
	c := h.awaitNamespaces(t, "spaces", "blue/web=True", "blue/payroll=True", "green/web=True", "green/kube-system=False")
	web := apimeta.FindStatusCondition(c.Status.ManagedNamespaces[0].Conditions, clusterv1.ConditionNamespaceAvailable)
	require.Equal(t, clusterv1.ReasonNamespaceApplied, web.Reason)
	system := apimeta.FindStatusCondition(c.Status.ManagedNamespaces[3].Conditions, clusterv1.ConditionNamespaceAvailable)
	require.Equal(t, clusterv1.ReasonNamespaceApplyFailed, system.Reason)
	require.Contains(t, system.Message, "kube-*")
	s.awaitLabel(t, "web", key, "true")
	s.awaitLabel(t, "kube-system", key, "")
	// A namespace of another owner gets the label and nothing else.
	payroll := s.awaitLabel(t, "payroll", key, "true")
	require.Equal(t, map[string]string{"owner": "ann"}, payroll.GetAnnotations())
	require.Equal(t, map[string]string{"team": "pay", otherHub: "true", key: "true", "kubernetes.io/metadata.name": "payroll"}, payroll.GetLabels())

	// At rest, nothing is written on either side.
	before, quiet := h.cluster(t.Context(), "spaces").ResourceVersion, s.awaitLabel(t, "web", key, "true").GetResourceVersion()
	// A user removes the label, and deletes a namespace.
	_, err := s.client.Resource(namespaces).Patch(
		t.Context(), "payroll", types.MergePatchType, []byte(`{"metadata":{"labels":{"`+key+`":null}}}`),
		metav1.PatchOptions{},
	)
	require.NoError(t, err)
	s.awaitLabel(t, "payroll", key, "true")
	require.Equal(t, before, h.cluster(t.Context(), "spaces").ResourceVersion)
	require.Equal(t, quiet, s.awaitLabel(t, "web", key, "true").GetResourceVersion())

	// One set drops the namespace, the other keeps it; nothing is deleted.
	h.requestNamespaces(t, "spaces", "green/web")
	h.awaitNamespaces(t, "spaces", "green/web=True")
	payroll = s.awaitLabel(t, "payroll", key, "false")
	require.Equal(t, "true", payroll.GetLabels()[otherHub], "another hub's label is not ours")
	s.awaitLabel(t, "web", key, "true")

	// Changes from while the agent was down are found.
	a.kill()
	h.requestNamespaces(t, "spaces", "green/web", "green/new")
	s.start(t)
	h.awaitNamespaces(t, "spaces", "green/web=True", "green/new=True")
	s.awaitLabel(t, "new", key, "true")
	s.awaitLabel(t, "payroll", key, "false")

	// The cluster is deleted.
	h.write(t, "spaces", func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{"example.com/hold"} })
	require.NoError(t, h.client.Resource(clusters).Delete(t.Context(), "spaces", metav1.DeleteOptions{}))
	s.awaitLabel(t, "web", key, "false")
	s.awaitLabel(t, "new", key, "false")
	h.write(t, "spaces", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
}

func TestANamespaceThatCannotBeMadeIsTold(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "held", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	h.join(t, "held")
	// A namespace that is being deleted, and is held by something in it.
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "ending"}}})
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "ending", "name": "held", "finalizers": []any{"example.com/hold"}}}})
	require.NoError(t, s.client.Resource(namespaces).Delete(t.Context(), "ending", metav1.DeleteOptions{}))
	h.requestNamespaces(t, "held", "blue/ending", "blue/fine")
	c := h.awaitNamespaces(t, "held", "blue/ending=False", "blue/fine=True")
	told := apimeta.FindStatusCondition(c.Status.ManagedNamespaces[0].Conditions, clusterv1.ConditionNamespaceAvailable)
	require.Contains(t, told.Message, "is being deleted")
	configmaps := namespaces
	configmaps.Resource = "configmaps"
	_, err := s.client.Resource(configmaps).Namespace("ending").Patch(
		t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	h.awaitNamespaces(t, "held", "blue/ending=True", "blue/fine=True")
}
