// SPDX-License-Identifier: Apache-2.0

//go:build perf

package replicaset

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
)

const (
	// path of the budgets.
	path = "../replicaset.yaml"
	// fleetSize is how many clusters the set goes to, perDecision how many stand
	// in one PlacementDecision.
	fleetSize, perDecision = 1000, 100
	// window is how long the hub is watched at rest, which it has come to after
	// quiet.
	window, quiet = 15 * time.Second, 3 * time.Second
	// payload is the size of the ConfigMap of the template, in bytes.
	payload = 1000
)

var (
	clusters    = clusterv1.GroupVersion.WithResource("managedclusters")
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	placements  = clusterv1beta1.GroupVersion.WithResource("placements")
	decisions   = clusterv1beta1.GroupVersion.WithResource("placementdecisions")
	works       = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)
	replicaSets = workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets")
)

// run is a hub with a fleet.
type run struct {
	*scene.Scene
	t *testing.T
}

func nameOf(i int) string { return fmt.Sprintf("c-%04d", i) }

// each runs do for every cluster.
func (s *run) each(do func(ctx context.Context, name string) error) {
	s.t.Helper()
	s.Each(0, fleetSize, func(ctx context.Context, i int) error { return do(ctx, nameOf(i)) })
}

// create makes an object.
func (s *run) create(ctx context.Context, resource schema.GroupVersionResource, text string, args ...any) error {
	u, err := scene.Object(text, args...)
	if err != nil {
		return err
	}
	_, err = s.Dyn.Resource(resource).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
	return err
}

// prepare makes clusters and namespaces, and a placement that selects all.
func (s *run) prepare() {
	s.t.Helper()
	s.each(func(ctx context.Context, name string) error {
		if err := s.create(ctx, clusters, `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":%q}}`, name); err != nil {
			return err
		}
		return s.create(ctx, namespaces, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	})
	require.NoError(s.t, s.create(s.t.Context(), placements, `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement",
		"metadata":{"name":"all","namespace":"default","annotations":{"cluster.open-cluster-management.io/experimental-scheduling-disable":"true"}},"spec":{}}`))
	for first := 0; first < fleetSize; first += perDecision {
		name := fmt.Sprintf("all-%d", first/perDecision+1)
		require.NoError(s.t, s.create(s.t.Context(), decisions, `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"PlacementDecision","metadata":{"name":%q,"namespace":"default","labels":{
			"cluster.open-cluster-management.io/placement":"all","cluster.open-cluster-management.io/decision-group-index":"0","cluster.open-cluster-management.io/decision-group-name":""}}}`, name))
		list := []map[string]string{}
		for i := range perDecision {
			list = append(list, map[string]string{"clusterName": nameOf(first + i), "reason": ""})
		}
		body, err := json.Marshal(map[string]any{"status": map[string]any{"decisions": list}})
		require.NoError(s.t, err)
		_, err = s.Dyn.Resource(decisions).Namespace("default").Patch(s.t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		require.NoError(s.t, err)
	}
}

// deploy applies the set with a value, and returns how long it takes until every
// cluster has a work with it.
func (s *run) deploy(value string) time.Duration {
	s.t.Helper()
	list, err := s.Dyn.Resource(works).List(s.t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(s.t, err)
	w, err := s.Dyn.Resource(works).Watch(s.t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), LabelSelector: workv1alpha1.LabelManifestWorkReplicaSet})
	require.NoError(s.t, err)
	defer w.Stop()
	set, err := scene.Object(`{"apiVersion":"work.open-cluster-management.io/v1alpha1","kind":"ManifestWorkReplicaSet","metadata":{"name":"web"},"spec":{"placementRefs":[{"name":"all"}],
		"manifestWorkTemplate":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"},"data":{"value":%q,"rest":%q}}]}}}}`,
		value, strings.Repeat("x", payload))
	require.NoError(s.t, err)
	began := time.Now()
	_, err = s.Dyn.Resource(replicaSets).Namespace("default").Apply(s.t.Context(), "web", set, metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(s.t, err)
	have := map[string]bool{}
	deadline := time.After(scene.Patience)
	for len(have) < fleetSize {
		select {
		case event := <-w.ResultChan():
			u, ok := event.Object.(*unstructured.Unstructured)
			require.True(s.t, ok, "%+v", event.Object)
			manifests, _, _ := unstructured.NestedSlice(u.Object, "spec", "workload", "manifests")
			if data, _, _ := unstructured.NestedStringMap(manifests[0].(map[string]any), "data"); data["value"] == value {
				have[u.GetNamespace()] = true
			}
		case <-deadline:
			require.FailNow(s.t, "timed out", "%d of %d works", len(have), fleetSize)
		}
	}
	return time.Since(began)
}

// report says of every work, as the agents do, that it is applied and available,
// and returns how long it takes from the last report until the set is rolled out.
func (s *run) report() time.Duration {
	s.t.Helper()
	list, err := s.Dyn.Resource(works).List(s.t.Context(), metav1.ListOptions{LabelSelector: workv1alpha1.LabelManifestWorkReplicaSet})
	require.NoError(s.t, err)
	require.Len(s.t, list.Items, fleetSize, "one work a cluster")
	byCluster := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		byCluster[list.Items[i].GetNamespace()] = &list.Items[i]
	}
	stamp := time.Now().UTC().Format(time.RFC3339)
	s.each(func(ctx context.Context, cluster string) error {
		u := byCluster[cluster]
		body := fmt.Appendf(nil, `{"status":{"conditions":[
			{"type":"Applied","status":"True","reason":"AppliedManifestWorkComplete","message":"Apply manifest work complete","lastTransitionTime":%[1]q,"observedGeneration":%[2]d},
			{"type":"Available","status":"True","reason":"ResourcesAvailable","message":"All resources are available","lastTransitionTime":%[1]q,"observedGeneration":%[2]d}]}}`,
			stamp, u.GetGeneration())
		_, err := s.Dyn.Resource(works).Namespace(cluster).Patch(ctx, u.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	})
	began := time.Now()
	require.Eventually(s.t, func() bool {
		set, err := typed.Get[workv1alpha1.ManifestWorkReplicaSet](s.t.Context(), s.Dyn, replicaSets, "default", "web")
		return err == nil && apimeta.IsStatusConditionTrue(set.Status.Conditions, workv1alpha1.ConditionPlacementRolledOut) && set.Status.Summary.Available == fleetSize
	}, scene.Patience, 10*time.Millisecond)
	return time.Since(began)
}

func TestASetReachesAThousandClustersWithinItsBudgets(t *testing.T) {
	b := budget.Open(t, path)
	s := &run{Scene: scene.New(t, audit.OnlyResources, audit.NotReads, audit.NotLeases), t: t}
	puts := budget.LeasePuts(t, s.Config)
	s.prepare()
	s.Settle(quiet)
	t.Logf("before: %.1f MiB", float64(s.Resident())/(1<<20))

	began := s.Mark()
	b.Time("created", []time.Duration{s.deploy("one")}, puts)
	b.Time("changed", []time.Duration{s.deploy("two")}, puts)
	b.Time("rolledOut", []time.Duration{s.report()}, puts)
	s.Settle(quiet)
	asked := s.Asked(began)
	b.Count("writesEach", s.Sum("written", asked)/fleetSize)
	b.Count("statusWrites", float64(asked["patch manifestworkreplicasets/status"]))

	began = s.Mark()
	<-time.After(window)
	b.Count("writesAtRest", s.Sum("at rest", s.Asked(began)))
	b.Memory("hubResident", s.Resident())
	b.Complete()
}
