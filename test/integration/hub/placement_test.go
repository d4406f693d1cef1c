// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	clusterSets = clusterv1beta2.GroupVersion.WithResource("managedclustersets")
	setBindings = clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings")
)

// field is a namespace with placements that the hub decides, and a set of its own.
type field struct {
	*scene
	namespace, set string
}

// newField creates a namespace, a set and a binding on the shared hub, with available
// clusters <name>-0 and so on.
func newField(t *testing.T, name string, count int) (*field, []string) {
	t.Helper()
	f := &field{scene: sharedHub(t), namespace: name, set: name}
	_, err := f.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	f.bind(t, name)
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
		f.join(t, names[i], nil)
	}
	return f, names
}

// bind creates a set if there is none, and binds it.
func (f *field) bind(t *testing.T, set string) {
	t.Helper()
	s := decoded(t, fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSet","metadata":{"name":%q},"spec":{}}`, set))
	if _, err := f.dyn.Resource(clusterSets).Create(t.Context(), s, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	b := decoded(
		t,
		fmt.Sprintf(
			`{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSetBinding","metadata":{"name":%q},"spec":{"clusterSet":%q}}`,
			set, set,
		),
	)
	_, err := f.dyn.Resource(setBindings).Namespace(f.namespace).Create(t.Context(), b, metav1.CreateOptions{})
	require.NoError(t, err)
}

// add creates a cluster in the set.
func (f *field) add(name string, labels map[string]string) error {
	mc := cluster(name)
	mc.Labels = map[string]string{clusterv1.LabelClusterSet: f.set}
	maps.Copy(mc.Labels, labels)
	return create(f.dyn, mc)
}

// join creates an available cluster in the set, so that no taint of the hub keeps it out.
func (f *field) join(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	f.Claim(t, name)
	settled(t, func() error { return f.add(name, labels) })
	body := `{"status":{"conditions":[{"type":"ManagedClusterConditionAvailable","status":"True","reason":"R","message":"m",
		"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	require.NoError(t, patch(f.dyn, name, body, "status"))
	f.await(t, name, "is without taints", func(mc *clusterv1.ManagedCluster) bool { return mc != nil && len(mc.Spec.Taints) == 0 })
}

// place applies a placement.
func (f *field) place(t *testing.T, name, spec string) {
	t.Helper()
	u := decoded(t, fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":%q},"spec":%s}`, name, spec))
	_, err := f.dyn.Resource(placements).Namespace(f.namespace).Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(t, err)
}

// placement reads a placement.
func (f *field) placement(t *testing.T, name string) *clusterv1beta1.Placement {
	t.Helper()
	p, err := typed.Get[clusterv1beta1.Placement](context.Background(), f.dyn, placements, f.namespace, name)
	require.NoError(t, err)
	return p
}

// objects returns the decisions of a placement, sorted by name.
func (f *field) objects(t *testing.T, name string) []clusterv1beta1.PlacementDecision {
	t.Helper()
	list, err := f.dyn.Resource(decisions).Namespace(f.namespace).List(context.Background(), metav1.ListOptions{
		LabelSelector: clusterv1beta1.LabelPlacement + "=" + name,
	})
	require.NoError(t, err)
	var out []clusterv1beta1.PlacementDecision
	for i := range list.Items {
		d, err := typed.FromUnstructured[clusterv1beta1.PlacementDecision](&list.Items[i])
		require.NoError(t, err)
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b clusterv1beta1.PlacementDecision) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// groups returns the decisions of a placement as "name index: clusters"; the name is left
// out when it is empty.
func (f *field) groups(t *testing.T, name string) []string {
	t.Helper()
	var out []string
	for _, d := range f.objects(t, name) {
		group := strings.TrimSpace(d.Labels[clusterv1beta1.LabelDecisionGroupName] + " " + d.Labels[clusterv1beta1.LabelDecisionGroupIndex])
		out = append(out, strings.TrimSpace(group+": "+strings.Join(selectedIn(&d), " ")))
	}
	return out
}

// satisfied reports whether the status of the current generation counts this many
// clusters and has all of them decided.
func (f *field) satisfied(t *testing.T, name string, selected int) bool {
	t.Helper()
	p := f.placement(t, name)
	c := apimeta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.ConditionSatisfied)
	return c != nil && c.ObservedGeneration == p.Generation && c.Status == metav1.ConditionTrue && int(p.Status.NumberOfSelectedClusters) == selected
}

// awaitGroups waits for decisions in the form of groups.
func (f *field) awaitGroups(t *testing.T, name string, want ...string) {
	t.Helper()
	if !eventually(func() bool { return slices.Equal(want, f.groups(t, name)) }) {
		t.Errorf("placement %s: wanted %q, last %q, status %+v", name, want, f.groups(t, name), f.placement(t, name).Status)
		f.logs(t)
		t.FailNow()
	}
}

// awaitVerdict waits for "status reason" of a condition of the current generation,
// and returns its message.
func (f *field) awaitVerdict(t *testing.T, name, kind, want string) string {
	t.Helper()
	var last *metav1.Condition
	if !eventually(func() bool {
		p := f.placement(t, name)
		last = apimeta.FindStatusCondition(p.Status.Conditions, kind)
		return last != nil && last.ObservedGeneration == p.Generation && string(last.Status)+" "+last.Reason == want
	}) {
		t.Errorf("placement %s: wanted %s %q, last %+v", name, kind, want, last)
		f.logs(t)
		t.FailNow()
	}
	return last.Message
}

// merge merges a patch into an object of the namespace.
func (f *field) merge(t *testing.T, resource, name, body string, sub ...string) {
	t.Helper()
	gvr := map[string]func() (any, error){
		"placement": func() (any, error) {
			return f.dyn.Resource(placements).Namespace(f.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
		},
		"decision": func() (any, error) {
			return f.dyn.Resource(decisions).Namespace(f.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
		},
	}
	_, err := gvr[resource]()
	require.NoError(t, err)
}
