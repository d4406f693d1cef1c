// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trace"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// person is the administrator of both sides, who uses the plugin's library.
type person struct {
	*scene
	hub, spoke *fleet.Cluster
}

func (s *scene) person() person {
	s.t.Helper()
	definition, err := crd.Get("managedclusters.cluster.open-cluster-management.io")
	require.NoError(s.t, err)
	install(s.t, s.hub, definition)
	apply(s.t, s.hub, clusterv1.GroupVersion.WithResource("managedclusters"), "",
		fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":%q}}`, s.cluster))
	connect := func(name string) *fleet.Cluster {
		c, err := fleet.Connect(harness.Shared(s.t, name).Config, name)
		require.NoError(s.t, err)
		return c
	}
	return person{s, connect("hub"), connect("spoke")}
}

func (p person) options(name string) work.Options {
	return work.Options{Hub: p.hub, Spoke: p.spoke, Name: name, Targets: cluster.Targets{Clusters: []string{p.cluster}}}
}

// differing returns the objects that differ between a work and the cluster, by kind and
// name.
func (p person) differing(name string) map[string]fleet.Change {
	p.t.Helper()
	changes, err := work.DiffLive(context.Background(), p.options(name))
	require.NoError(p.t, err)
	out := map[string]fleet.Change{}
	for _, c := range changes {
		if c.Live == nil || c.Action == fleet.Deleted || cmp.Diff(c.Live.Object, c.Object.Object) != "" {
			out[c.Object.GetKind()+" "+c.Object.GetName()] = c
		}
	}
	return out
}

// The plugin's library reports about a work and its cluster what the agent would do, and
// writes nothing on either side.
func TestWhatAPersonSeesOfAWork(t *testing.T) {
	s := newScene(t)
	p := s.person()
	stop := s.start()
	s.create("seen", []string{
		configMap("kept", "a", "1"), configMap("once", "a", "1"), configMap("left", "a", "1"),
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"key","namespace":"NS"},"stringData":{"a":"first"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"app","namespace":"NS"},"spec":{"replicas":1,
			"selector":{"matchLabels":{"app":"app"}},"template":{"metadata":{"labels":{"app":"app"}},
			"spec":{"containers":[{"name":"a","image":"registry.example.org/a:1","resources":{"limits":{"cpu":"1000m"}}}]}}}}`,
	}, func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: s.namespace, Name: "once"},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
		}}
	})
	s.ready("seen")
	s.eventually(func() bool { return len(s.applied("seen").Status.AppliedResources) == 5 }, "its objects are not recorded")
	stop()
	require.Empty(t, p.differing("seen"), "an applied work differs from its cluster in nothing")

	s.patch(configMaps, "kept", `{"data":{"a":"2","theirs":"stays"}}`)
	s.patch(configMaps, "once", `{"data":{"a":"2"}}`)
	s.patch(secrets, "key", `{"stringData":{"a":"second"}}`)
	s.patch(deployments, "app", `{"spec":{"replicas":3}}`)
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(s.namespace).Delete(t.Context(), "left", metav1.DeleteOptions{}))
	versions := func() []any { // the controller of a Deployment writes its status
		return []any{s.get(deployments, "app").GetGeneration(), s.get(configMaps, "kept").GetResourceVersion(), s.get(secrets, "key").GetResourceVersion()}
	}
	before := versions()
	found := p.differing("seen")
	require.Len(t, found, 4)
	require.Equal(t, map[string]any{"a": "1", "theirs": "stays"}, found["ConfigMap kept"].Object.Object["data"])
	require.Equal(t, fleet.Created, found["ConfigMap left"].Action)
	require.Equal(t, map[string]any{"a": "*** (before)"}, found["Secret key"].Live.Object["data"])
	replicas, _, _ := unstructured.NestedInt64(found["Deployment app"].Object.Object, "spec", "replicas")
	require.EqualValues(t, 1, replicas)
	require.Equal(t, before, versions(), "something was written")
	require.Nil(t, s.get(configMaps, "left"))

	o := p.options("seen")
	o.Manifests = []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name":      "kept",
			"namespace": s.namespace,
		}, "data": map[string]any{
			"a":      "2",
			"theirs": "stays",
		}}}}
	changes, err := work.DiffLive(t.Context(), o)
	require.NoError(t, err)
	gone := 0
	for _, c := range changes {
		if c.Action == fleet.Deleted {
			gone++
		}
	}
	require.Equal(t, 3, gone, "what other manifests would no longer hold")

	trace, err := trace.Object(t.Context(), trace.Options{Spoke: p.spoke, Hub: p.hub, Cluster: s.cluster, Type: "deploy", Namespace: s.namespace, Name: "app"})
	require.NoError(t, err)
	var kinds []string
	for _, step := range trace.Steps {
		kinds = append(kinds, step.Kind)
	}
	require.Equal(t, []string{"Deployment", "AppliedManifestWork", "Hub", "ManifestWork"}, kinds)
	require.ElementsMatch(t, []string{"somebody", "work-agent"}, trace.Steps[0].By)
	require.Equal(t, work.Ready, trace.Steps[3].State)
}

// The rights of an executor are checked on its cluster before a work is sent, as the
// agent checks them.
func TestAPersonIsToldWhatAnExecutorLacks(t *testing.T) {
	s := newScene(t)
	p := s.person()
	o := p.options("asked")
	o.Executor = s.namespace + "/robot"
	o.Manifests = []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"metadata":   map[string]any{"name": "one", "namespace": s.namespace},
		}},
	}
	require.ErrorContains(t, work.CheckExecutor(t.Context(), o), "has no ServiceAccount")
	apply(t, s.spoke, serviceAccounts, s.namespace, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot"}}`)
	grant(s, on(`["get","update","patch","delete"]`, "one"))
	err := work.CheckExecutor(t.Context(), o)
	require.ErrorContains(t, err, "lacks 1 right")
	require.ErrorContains(t, err, "may not create configmaps")
	grant(s, on(`["create","get","update","patch","delete"]`))
	require.NoError(t, work.CheckExecutor(t.Context(), o))
}
