// SPDX-License-Identifier: Apache-2.0

//go:build perf

package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/scale/report"
)

var (
	bindings    = clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings")
	placements  = clusterv1beta1.GroupVersion.WithResource("placements")
	works       = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)
	replicaSets = workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets")
	definitions = addonv1alpha1.GroupVersion.WithResource("clustermanagementaddons")
	templates   = addonv1alpha1.GroupVersion.WithResource("addontemplates")
	instances   = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")
)

const (
	// labelTier is the label that placements read, and tierEach how many of them leave a
	// cluster out whose label has one value.
	labelTier = "tier"
	tierEach  = 10
)

// from decodes an object that the API server has checked.
func from[T any](s *run, u *unstructured.Unstructured) *T {
	s.t.Helper()
	o, err := typed.FromUnstructured[T](u)
	require.NoError(s.t, err)
	return o
}

// placements creates one placement of all clusters, then a hundred at once, and changes a label of
// one cluster so that it leaves ten of them.
func (s *run) placements(stage *report.Stage) {
	s.must(bindings, `{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSetBinding",
		"metadata":{"namespace":"default","name":"default"},"spec":{"clusterSet":"default"}}`)
	api, size := s.Dyn.Resource(placements).Namespace("default"), int32(*clusterCount) //nolint:gosec // a number of clusters
	create := func(ctx context.Context, name string, hidden int) error {
		return s.Create(ctx, placements, `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement",
			"metadata":{"namespace":"default","name":%q},"spec":{"predicates":[{"requiredClusterSelector":{"labelSelector":
			{"matchExpressions":[{"key":%q,"operator":"NotIn","values":["hidden-%d"]}]}}}]}}`, name, labelTier, hidden)
	}
	alone := s.Until(api, "", func() { require.NoError(s.t, create(s.t.Context(), "alone", placementCount)) }, func(u *unstructured.Unstructured) bool {
		return from[clusterv1beta1.Placement](s, u).Status.NumberOfSelectedClusters == size
	})
	stage.Add("one placement decided and written", "after %s", alone.Round(time.Millisecond))
	s.Settle(quiet)

	began, took := map[string]time.Time{}, map[string]time.Duration{}
	whole := s.Until(api, "", func() {
		now := time.Now()
		for i := range placementCount {
			began[placementName(i)] = now
		}
		s.Each(0, placementCount, func(ctx context.Context, i int) error {
			return create(ctx, placementName(i), i%(placementCount/tierEach))
		})
	}, func(u *unstructured.Unstructured) bool {
		p := from[clusterv1beta1.Placement](s, u)
		if at, mine := began[p.Name]; mine && took[p.Name] == 0 && p.Status.NumberOfSelectedClusters == size {
			took[p.Name] = time.Since(at)
		}
		return len(took) == placementCount
	})
	stage.Add("placements decided", "%d, each of %d clusters, in %s", placementCount, size, whole.Round(time.Millisecond))
	s.Settle(quiet)

	left := map[string]time.Duration{}
	var changed time.Time
	last := s.Until(api, "", func() {
		changed = time.Now()
		_, err := s.Dyn.Resource(clusters).Patch(s.t.Context(), names()[0], types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:"hidden-3"}}}`, labelTier), metav1.PatchOptions{})
		require.NoError(s.t, err)
	}, func(u *unstructured.Unstructured) bool {
		p := from[clusterv1beta1.Placement](s, u)
		if _, seen := left[p.Name]; !seen && p.Status.NumberOfSelectedClusters == size-1 {
			left[p.Name] = time.Since(changed)
		}
		return len(left) == tierEach
	})
	stage.Add("one cluster leaves ten placements by a changed label", "the last is decided after %s", last.Round(time.Millisecond))
	stage.Times = []report.Times{
		{What: "a placement, from the creation of the first until it is decided", Took: values(took)},
		{What: "a placement, from the change of a label until it is decided again", Took: values(left)},
	}
	s.Settle(quiet)
}

func placementName(i int) string { return fmt.Sprintf("p-%03d", i) }

// must creates an object.
func (s *run) must(resource schema.GroupVersionResource, text string, args ...any) {
	s.t.Helper()
	require.NoError(s.t, s.Create(s.t.Context(), resource, text, args...))
}

// values returns the durations in order.
func values[K comparable](all map[K]time.Duration) []time.Duration {
	var out []time.Duration
	for _, d := range all {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

// rollout brings a work of about 1 KB to all clusters, a tenth of them at a time.
func (s *run) rollout(stage *report.Stage) {
	created, took := map[string]time.Time{}, map[string]time.Duration{}
	size := *clusterCount
	whole := s.Until(s.Dyn.Resource(works), workv1alpha1.LabelManifestWorkReplicaSet, func() {
		s.must(replicaSets, `{"apiVersion":"work.open-cluster-management.io/v1alpha1","kind":"ManifestWorkReplicaSet",
			"metadata":{"namespace":"default","name":"web"},"spec":{"placementRefs":[{"name":%q,"rolloutStrategy":{"type":"Progressive",
			"progressive":{"maxConcurrency":"10%%"}}}],"manifestWorkTemplate":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",
			"metadata":{"namespace":"default","name":"web"},"data":{"value":"%01000d"}}]}}}}`, placementName(0), 1)
	}, func(u *unstructured.Unstructured) bool {
		w := from[workv1.ManifestWork](s, u)
		if _, seen := created[w.Namespace]; !seen {
			created[w.Namespace] = time.Now()
		}
		if _, seen := took[w.Namespace]; !seen && apimeta.IsStatusConditionTrue(w.Status.Conditions, workv1.ConditionAvailable) {
			took[w.Namespace] = time.Since(created[w.Namespace])
		}
		return len(took) == size
	})
	began := time.Now()
	require.Eventually(s.t, func() bool {
		set, err := typed.Get[workv1alpha1.ManifestWorkReplicaSet](s.t.Context(), s.Dyn, replicaSets, "default", "web")
		return err == nil && set.Status.Summary.Available == size &&
			apimeta.IsStatusConditionTrue(set.Status.Conditions, workv1alpha1.ConditionPlacementRolledOut)
	}, time.Minute, 20*time.Millisecond)
	stage.Add("works available on all clusters", "%d in %s: %.1f a second", size, whole.Round(time.Millisecond), float64(size)/whole.Seconds())
	stage.Add("from the last work until the set says that it is rolled out", "%s", time.Since(began).Round(time.Millisecond))
	stage.Times = []report.Times{{What: "a work, from its creation until the hub knows that it is available", Took: values(took)}}
	s.Settle(quiet)
}

// addOns installs five add-ons on all clusters, one after the other. The first has a certificate
// for the hub.
func (s *run) addOns(stage *report.Stage) {
	size := s.watch.available() // one more has joined since
	for i := range addOnCount {
		name, registration := fmt.Sprintf("addon-%d", i), ""
		if i == 0 {
			registration = `"registration":[{"type":"KubeClient"}],`
		}
		s.must(templates, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnTemplate","metadata":{"name":%[1]q},
			"spec":{"addonName":%[1]q,%[2]s"agentSpec":{"workload":{"manifests":[
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":%[1]q},"data":{"value":"one"}}]}}}}`, name, registration)
		s.must(definitions, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ClusterManagementAddOn","metadata":{"name":%[1]q,
			"annotations":{"addon.open-cluster-management.io/lifecycle":"addon-manager"}},"spec":{"addOnMeta":{},"supportedConfigs":[
			{"group":"addon.open-cluster-management.io","resource":"addontemplates","defaultConfig":{"name":%[1]q}}],
			"installStrategy":{"type":"Manual"}}}`, name)
		began, took := time.Now(), map[string]time.Duration{}
		whole := s.Until(s.Dyn.Resource(instances), "", func() {
			began = time.Now()
			_, err := s.Dyn.Resource(definitions).Patch(s.t.Context(), name, types.MergePatchType, fmt.Appendf(nil,
				`{"spec":{"installStrategy":{"type":"Placements","placements":[{"namespace":"default","name":%q,"rolloutStrategy":{"type":"All"}}]}}}`,
				placementName(0)), metav1.PatchOptions{})
			require.NoError(s.t, err)
		}, func(u *unstructured.Unstructured) bool {
			a := from[addonv1alpha1.ManagedClusterAddOn](s, u)
			if _, seen := took[a.Namespace]; !seen && a.Name == name && isServing(a, i == 0) {
				took[a.Namespace] = time.Since(began)
			}
			return len(took) == size
		})
		stage.Add(name+" works on all clusters", "after %s", whole.Round(time.Millisecond))
		stage.Times = append(stage.Times, report.Times{What: name + " on a cluster, from the change of its definition", Took: values(took)})
		s.Settle(quiet)
	}
}

// isServing reports whether an add-on is deployed and available, and has its certificate if it is to
// have one.
func isServing(a *addonv1alpha1.ManagedClusterAddOn, certified bool) bool {
	wanted := []string{addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ConditionAvailable}
	if certified {
		wanted = append(wanted, addonv1alpha1.ConditionClusterCertificateRotated)
	}
	return !slices.ContainsFunc(wanted, func(kind string) bool { return !apimeta.IsStatusConditionTrue(a.Status.Conditions, kind) })
}
