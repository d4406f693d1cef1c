// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	bindings    = clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings")
	oldBindings = schema.GroupVersionResource{Group: clusterv1.GroupName, Version: "v1beta1", Resource: "managedclustersetbindings"}
)

// open creates a namespace, and removes it after the test.
func (s *scene) open(t testing.TB, name string) {
	t.Helper()
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), namespace(name), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.kube.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}) })
}

// bind creates a binding.
func (s *scene) bind(t testing.TB, resource schema.GroupVersionResource, namespace, name, spec string) error {
	t.Helper()
	u := parsed(t, "apiVersion: "+resource.GroupVersion().String()+"\nkind: ManagedClusterSetBinding\nspec: "+spec)
	u.SetNamespace(namespace)
	u.SetName(name)
	_, err := s.dyn.Resource(resource).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{})
	return err
}

// unbind deletes a binding.
func (s *scene) unbind(t testing.TB, namespace, name string) {
	t.Helper()
	require.NoError(t, s.dyn.Resource(bindings).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// awaitBound waits until a binding reports for its generation whether it is bound.
func (s *scene) awaitBound(t testing.TB, namespace, name string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	var last *clusterv1beta2.ManagedClusterSetBinding
	if !eventually(func() bool {
		b, err := typed.Get[clusterv1beta2.ManagedClusterSetBinding](t.Context(), s.dyn, bindings, namespace, name)
		require.NoError(t, err)
		last = b
		c := apimeta.FindStatusCondition(b.Status.Conditions, clusterv1beta2.ConditionBound)
		return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == b.Generation && strings.Contains(c.Message, message)
	}) {
		raw, _ := json.MarshalIndent(last, "", " ")
		t.Errorf("binding %s/%s is not %s %s %q: %s", namespace, name, status, reason, message, raw)
		s.logs(t)
		t.FailNow()
	}
}

func TestABindingFollowsItsSet(t *testing.T) {
	s := sharedHub(t)
	s.open(t, "follows-one")
	s.open(t, "follows-two")
	require.NoError(t, s.bind(t, bindings, "follows-one", "followed", "{clusterSet: followed}"))
	require.NoError(t, s.bind(t, oldBindings, "follows-two", "followed", "{clusterSet: followed}"))
	all := func(status metav1.ConditionStatus, reason, message string) {
		t.Helper()
		s.awaitBound(t, "follows-one", "followed", status, reason, message)
		s.awaitBound(t, "follows-two", "followed", status, reason, message)
	}
	all(metav1.ConditionFalse, clusterv1beta2.ReasonClusterSetNotFound, "There is no ManagedClusterSet followed")
	require.NoError(t, s.makeSet(t, "followed", "{}"))
	all(metav1.ConditionTrue, clusterv1beta2.ReasonClusterSetBound, "is bound")

	s.patchSet(t, "followed", `{"metadata":{"finalizers":["example.com/held"]}}`)
	require.NoError(t, s.dyn.Resource(sets).Delete(t.Context(), "followed", metav1.DeleteOptions{}))
	all(metav1.ConditionTrue, clusterv1beta2.ReasonClusterSetBound, "it is being deleted")
	s.patchSet(t, "followed", `{"metadata":{"finalizers":null}}`)
	all(metav1.ConditionFalse, clusterv1beta2.ReasonClusterSetNotFound, "There is no ManagedClusterSet followed")
	require.NoError(t, s.makeSetAs(t, oldSets, "followed", "{}"))
	all(metav1.ConditionTrue, clusterv1beta2.ReasonClusterSetBound, "is bound")

	body := `{"status":{"conditions":null}}`
	_, err := s.dyn.Resource(bindings).Namespace("follows-one").Patch(t.Context(), "followed", types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	all(metav1.ConditionTrue, clusterv1beta2.ReasonClusterSetBound, "is bound")
}

func TestABindingThatCannotBeRightIsRefused(t *testing.T) {
	s := sharedHub(t)
	s.open(t, "refuses")
	require.NoError(t, s.makeSet(t, "refusing", "{}"))
	require.NoError(t, s.bind(t, bindings, "refuses", "refusing", "{clusterSet: refusing}"))
	for name, tc := range map[string]struct{ name, spec, want string }{
		"another name":             {"other", "{clusterSet: refusing}", "must be the same as spec.clusterSet"},
		"no set":                   {"wrong", "{}", "must be the same as spec.clusterSet"},
		"an empty set":             {"wrong", "{clusterSet: ''}", "spec.clusterSet"},
		"a set that is a number":   {"wrong", "{clusterSet: 5}", "spec.clusterSet"},
		"several sets":             {"wrong", "{clusterSet: [a, b]}", "spec.clusterSet"},
		"a name with capitals":     {"Wrong", "{clusterSet: Wrong}", "metadata.name"},
		"a name in other letters":  {"größe", "{clusterSet: größe}", "metadata.name"},
		"a set in another writing": {"refusing-2", "{clusterSet: Refusing-2}", "must be the same as spec.clusterSet"},
		"a spec that is a text":    {"wrong", "refusing", "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.bind(t, bindings, "refuses", tc.name, tc.spec)
			require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
			require.ErrorContains(t, err, tc.want)
		})
	}
	_, err := s.dyn.Resource(bindings).Namespace("refuses").Patch(
		t.Context(), "refusing", types.MergePatchType, []byte(`{"spec":{"clusterSet":"default"}}`),
		metav1.PatchOptions{},
	)
	require.True(t, apierrors.IsBadRequest(err), "the set of a binding stays: %v", err)
	s.awaitBound(t, "refuses", "refusing", metav1.ConditionTrue, clusterv1beta2.ReasonClusterSetBound, "")
}

// TestABindingFromBeforeAdmissionBindsNothing creates a binding whose name differs from
// its set, while admission does not guard bindings.
func TestABindingFromBeforeAdmissionBindsNothing(t *testing.T) {
	s := sharedHub(t)
	s.open(t, "unguarded")
	require.NoError(t, s.makeSet(t, "guarded", "{}"))
	s.exempt(t, func() {
		settled(t, func() error { return s.bind(t, bindings, "unguarded", "other", "{clusterSet: guarded}") })
	})
	s.awaitBound(t, "unguarded", "other", metav1.ConditionFalse, clusterv1beta2.ReasonClusterSetNotFound, "both are the name of the set")
}

func TestBindingsAreServedInBothVersions(t *testing.T) {
	s := sharedHub(t)
	s.open(t, "versions")
	require.NoError(t, s.bind(t, oldBindings, "versions", "default", "{clusterSet: default}"))
	s.awaitBound(t, "versions", "default", metav1.ConditionTrue, clusterv1beta2.ReasonClusterSetBound, "")
	for _, resource := range []schema.GroupVersionResource{bindings, oldBindings} {
		u, err := s.dyn.Resource(resource).Namespace("versions").Get(t.Context(), "default", metav1.GetOptions{})
		require.NoError(t, err)
		conditions, found, err := unstructured.NestedSlice(u.Object, "status", "conditions")
		require.NoError(t, err)
		require.True(t, found)
		require.Len(t, conditions, 1)
	}
}
