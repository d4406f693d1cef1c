// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// entries returns the managed namespaces of a cluster as set/name.
func entries(mc *clusterv1.ManagedCluster) []string {
	out := []string{}
	for _, e := range mc.Status.ManagedNamespaces {
		out = append(out, e.ClusterSet+"/"+e.Name)
	}
	return out
}

func (s *scene) awaitEntries(t testing.TB, name string, want ...string) *clusterv1.ManagedCluster {
	t.Helper()
	return s.await(t, name, "has the managed namespaces "+strings.Join(want, " "), func(mc *clusterv1.ManagedCluster) bool {
		return mc != nil && cmp.Equal(entries(mc), append([]string{}, want...))
	})
}

// reportNamespaces writes the condition of every managed namespace as an agent does.
func reportNamespaces(t testing.TB, s *scene, name string) {
	t.Helper()
	require.True(t, eventually(func() bool {
		mc := s.get(t, name)
		for i := range mc.Status.ManagedNamespaces {
			e := &mc.Status.ManagedNamespaces[i]
			e.Conditions = []metav1.Condition{{
				Type: clusterv1.ConditionNamespaceAvailable, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonNamespaceApplied,
				Message: "of " + e.Name, LastTransitionTime: metav1.NewTime(time.Unix(1_700_000_000, 0)),
			}}
		}
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{
				"resourceVersion": mc.ResourceVersion,
			}, "status": map[string]any{
				"managedNamespaces": mc.Status.ManagedNamespaces,
			},
		})
		return err == nil && patch(s.dyn, name, string(body), "status") == nil
	}))
}

func TestAClusterIsToldTheNamespacesOfItsSets(t *testing.T) {
	s := sharedHub(t)
	require.NoError(t, s.makeSet(t, "ns-b", "{managedNamespaces: [{name: two}, {name: one}]}"))
	require.NoError(
		t,
		s.makeSet(t, "ns-a", "{clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {ns-a: 'yes'}}}, managedNamespaces: [{name: one}]}"),
	)
	s.member(t, "told", map[string]string{clusterv1.LabelClusterSet: "ns-b", "ns-a": "yes"})
	s.awaitEntries(t, "told", "ns-a/one", "ns-b/one", "ns-b/two")

	s.relabel(t, "told", map[string]any{"ns-a": nil})
	s.awaitEntries(t, "told", "ns-b/one", "ns-b/two")
	s.relabel(t, "told", map[string]any{"ns-a": "yes"})
	s.awaitEntries(t, "told", "ns-a/one", "ns-b/one", "ns-b/two")

	s.patchSet(t, "ns-b", `{"metadata":{"finalizers":["example.com/held"]}}`)
	require.NoError(t, s.dyn.Resource(sets).Delete(t.Context(), "ns-b", metav1.DeleteOptions{}))
	s.awaitEntries(t, "told", "ns-a/one")
	s.patchSet(t, "ns-b", `{"metadata":{"finalizers":null}}`)
	require.NoError(t, s.dyn.Resource(sets).Delete(t.Context(), "ns-a", metav1.DeleteOptions{}))
	s.awaitEntries(t, "told")
}

// TestTheAgentsConditionsOfNamespacesStay has hub and agent write the same list.
func TestTheAgentsConditionsOfNamespacesStay(t *testing.T) {
	s := sharedHub(t)
	require.NoError(t, s.makeSet(t, "keeps", "{managedNamespaces: [{name: one}, {name: two}]}"))
	s.member(t, "kept", map[string]string{clusterv1.LabelClusterSet: "keeps"})
	s.awaitEntries(t, "kept", "keeps/one", "keeps/two")
	reportNamespaces(t, s, "kept")
	reported := s.get(t, "kept")

	s.patchSet(t, "keeps", `{"spec":{"managedNamespaces":[{"name":"one"},{"name":"three"}]}}`)
	mc := s.awaitEntries(t, "kept", "keeps/one", "keeps/three")
	require.Equal(t, reported.Status.ManagedNamespaces[0], mc.Status.ManagedNamespaces[0])
	require.Empty(t, mc.Status.ManagedNamespaces[1].Conditions)
	reportNamespaces(t, s, "kept")

	// Changes of sets cause no write to the cluster.
	quiet := s.get(t, "kept")
	require.NoError(t, s.makeSet(t, "keeps-other", "{managedNamespaces: [{name: one}]}"))
	s.awaitEmpty(t, "keeps-other", true, "")
	s.patchSet(t, "keeps", `{"metadata":{"labels":{"changed":"yes"}},"spec":{"managedNamespaces":[{"name":"three"},{"name":"one"}]}}`)
	// The next write of the hub to the cluster is caused by another change, and keeps
	// what the agent wrote.
	s.patchSet(t, "keeps", `{"spec":{"managedNamespaces":[{"name":"three"},{"name":"one"},{"name":"four"}]}}`)
	mc = s.awaitEntries(t, "kept", "keeps/four", "keeps/one", "keeps/three")
	require.Equal(t, quiet.Status.ManagedNamespaces, mc.Status.ManagedNamespaces[1:])
	require.Equal(t, 1, s.versionsSince(t, quiet, mc), "writes to the cluster")
	require.Empty(t, mc.Status.ManagedNamespaces[0].Conditions)

	// Changes of the entries by others are repaired.
	require.NoError(
		t,
		patch(s.dyn, "kept", `{"status":{"managedNamespaces":[{"clusterSet":"keeps","name":"one"},{"clusterSet":"nobody","name":"wanted"}]}}`, "status"),
	)
	s.awaitEntries(t, "kept", "keeps/four", "keeps/one", "keeps/three")
}

// versionsSince counts the versions of a cluster after from, up to to.
func (s *scene) versionsSince(t testing.TB, from, to *clusterv1.ManagedCluster) int {
	t.Helper()
	w, err := s.dyn.Resource(clusters).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + from.Name, ResourceVersion: from.ResourceVersion})
	require.NoError(t, err)
	defer w.Stop()
	for n := 1; ; n++ {
		event, open := <-w.ResultChan()
		require.True(t, open)
		o, err := apimeta.Accessor(event.Object)
		require.NoError(t, err)
		if o.GetResourceVersion() == to.ResourceVersion {
			return n
		}
	}
}

func TestNamespacesOfAllClustersOfTheGlobalSet(t *testing.T) {
	s := sharedHub(t)
	s.member(t, "global-one", nil)
	s.member(t, "global-two", nil)
	s.patchSet(t, "global", `{"spec":{"managedNamespaces":[{"name":"everywhere"}]}}`)
	t.Cleanup(func() {
		_, err := s.dyn.Resource(sets).Patch(
			context.Background(), "global", types.MergePatchType, []byte(`{"spec":{"managedNamespaces":null}}`),
			metav1.PatchOptions{},
		)
		require.NoError(t, err)
		// The clusters of all other tests lose it as well before the next test begins.
		soon(t, func() bool {
			list, err := s.dyn.Resource(clusters).List(context.Background(), metav1.ListOptions{})
			require.NoError(t, err)
			return !slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool {
				told, _, _ := unstructured.NestedSlice(u.Object, "status", "managedNamespaces")
				return slices.ContainsFunc(told, func(e any) bool { return e.(map[string]any)["clusterSet"] == "global" })
			})
		}, "namespaces of the global set stay")
	})
	s.awaitEntries(t, "global-one", "global/everywhere")
	s.awaitEntries(t, "global-two", "global/everywhere")
	require.False(t, s.get(t, "global-one").Spec.HubAcceptsClient, "acceptance is another matter")
}
