// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var (
	works  = workv1.GroupVersion.WithResource("manifestworks")
	addons = schema.GroupVersionResource{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Resource: "managedclusteraddons"}
)

const agentFinalizer = "example.com/agent"

// work creates a ManifestWork that an agent holds, by a finalizer of its own
// unless others are named.
func (s *scene) work(t testing.TB, namespace, name string, priority int, finalizers ...string) {
	t.Helper()
	if len(finalizers) == 0 {
		finalizers = []string{agentFinalizer}
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": workv1.GroupVersion.String(), "kind": "ManifestWork",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"workload": map[string]any{"manifests": []any{
				map[string]any{
					"apiVersion": "v1",
					"kind":       "ConfigMap",
					"metadata":   map[string]any{"namespace": "default", "name": name},
				},
			}},
		},
	}}
	u.SetFinalizers(finalizers)
	if priority >= 0 {
		u.SetAnnotations(map[string]string{clusterv1.AnnotationCleanupPriority: strconv.Itoa(priority)})
	}
	reached(t, func() error {
		_, err := s.dyn.Resource(works).Namespace(namespace).Create(context.Background(), u, metav1.CreateOptions{})
		return err
	})
}

// letGo removes the agent's finalizer.
func (s *scene) letGo(t testing.TB, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	_, err := s.dyn.Resource(resource).Namespace(namespace).Patch(context.Background(), name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// deleting returns the objects that are being deleted, and all that exist.
func (s *scene) deleting(t testing.TB, resource schema.GroupVersionResource, namespace string) (going, all []string) {
	t.Helper()
	list, err := s.dyn.Resource(resource).Namespace(namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, o := range list.Items {
		all = append(all, o.GetName())
		if o.GetDeletionTimestamp() != nil {
			going = append(going, o.GetName())
		}
	}
	return going, all
}

func (s *scene) hasRole(name string) bool {
	_, err := s.kube.RbacV1().ClusterRoles().Get(context.Background(), name, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

func (s *scene) hasBinding(namespace, suffix string) bool {
	_, err := s.kube.RbacV1().RoleBindings(namespace).Get(context.Background(), clusterv1.RolePrefixManagedCluster+namespace+suffix, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

func TestADeniedClusterKeepsOnlyTheRightToSeeItself(t *testing.T) {
	s := sharedHub(t)
	a := s.register(t, "denied", "a")
	a.report(t, "denied", metav1.ConditionTrue)
	s.work(t, "denied", "w", -1)
	s.accept(t, "denied", false)
	s.await(t, "denied", "is denied", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonHubClusterAdminDenied))
	s.await(t, "denied", "is no longer joined", conditionIs(clusterv1.ConditionJoined, metav1.ConditionFalse, clusterv1.ReasonNotAccepted))
	role, err := s.kube.RbacV1().ClusterRoles().Get(context.Background(), clusterv1.RolePrefixManagedCluster+"denied", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, role.Rules, 1)
	require.Equal(t, []string{"get", "list", "watch"}, role.Rules[0].Verbs)
	require.True(t, eventually(func() bool { return !s.hasBinding("denied", ":registration") }))
	require.True(t, s.hasBinding("denied", ":work"), "the agent can still remove its work")
	// It still sees its works, but not those that are created from now on.
	had, err := a.dyn.Resource(works).Namespace("denied").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, had.Items, 1)
	later := had.Items[0].DeepCopy()
	later.Object["metadata"] = map[string]any{"name": "later", "namespace": "denied"}
	for _, by := range []dynamic.Interface{s.dyn, dynamic.NewForConfigOrDie(s.As(t, hub.Namespace, hub.Name))} {
		_, err = by.Resource(works).Namespace("denied").Create(t.Context(), later, metav1.CreateOptions{})
		require.ErrorContains(t, err, "kubectl ocm accept denied")
	}
	soon(t, func() bool {
		list, err := s.kube.EventsV1().Events("denied").List(t.Context(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "ManagedClusterDenied" && strings.Contains(e.Note, "read and finish its existing works")
		})
	}, "the Event does not say what is so")
	s.letGo(t, works, "denied", "w")
	require.NoError(t, s.dyn.Resource(works).Namespace("denied").Delete(context.Background(), "w", metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool { return !s.hasBinding("denied", ":work") }))
	require.True(t, s.hasRole(clusterv1.RolePrefixManagedCluster+"denied"))

	s.accept(t, "denied", true)
	s.await(t, "denied", "is accepted again", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
	require.True(t, eventually(func() bool { return s.hasBinding("denied", ":work") && s.hasBinding("denied", ":registration") }))
	_, err = s.dyn.Resource(works).Namespace("denied").Create(t.Context(), later, metav1.CreateOptions{})
	require.NoError(t, err, "once it is accepted again")
}

// remains reports whether a cluster that is being deleted lists this as left.
func remains(message string) func(*clusterv1.ManagedCluster) bool {
	return func(mc *clusterv1.ManagedCluster) bool {
		return conditionIs(clusterv1.ConditionDeleting, metav1.ConditionFalse, clusterv1.ReasonResourceRemaining)(mc) &&
			strings.Contains(findCondition(mc, clusterv1.ConditionDeleting).Message, message)
	}
}

func TestADeletedClusterGoesInOrder(t *testing.T) {
	s := sharedHub(t)
	s.register(t, "leaving", "a")
	s.work(t, "leaving", "first", -1)
	s.work(t, "leaving", "second", 20)
	s.work(t, "leaving", "third", 100)
	s.addon(t, "leaving", "addon", agentFinalizer)
	require.NoError(t, s.dyn.Resource(clusters).Delete(context.Background(), "leaving", metav1.DeleteOptions{}))

	s.await(t, "leaving", "reports what remains", remains("1 managedclusteraddons are left, 1 of them wait"))
	require.True(t, eventually(func() bool {
		going, _ := s.deleting(t, addons, "leaving")
		return len(going) == 1
	}))
	require.True(t, s.hasRole(clusterv1.RolePrefixManagedCluster+"leaving"), "the agent works on while its add-ons go")
	going, _ := s.deleting(t, addons, "leaving")
	require.Equal(t, []string{"addon"}, going)
	going, all := s.deleting(t, works, "leaving")
	require.Empty(t, going)
	require.Len(t, all, 3)
	s.letGo(t, addons, "leaving", "addon")
	require.True(t, eventually(func() bool { return !s.hasRole(clusterv1.RolePrefixManagedCluster + "leaving") }))
	require.True(t, s.hasBinding("leaving", ":work"))
	binding, err := s.kube.RbacV1().RoleBindings("leaving").Get(t.Context(), clusterv1.RolePrefixManagedCluster+"leaving:work", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(
		t, []string{"cluster.open-cluster-management.io/manifest-work-cleanup"}, binding.Finalizers,
		"the agent keeps its rights until its works are gone",
	)
	for _, name := range []string{"first", "second", "third"} {
		require.True(t, eventually(func() bool {
			going, _ := s.deleting(t, works, "leaving")
			return len(going) == 1 && going[0] == name
		}), "%s is the next", name)
		s.letGo(t, works, "leaving", name)
	}
	s.await(t, "leaving", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
	require.True(t, eventually(func() bool { return !s.hasBinding("leaving", ":work") }))
	_, err = s.kube.CoreV1().Namespaces().Get(context.Background(), "leaving", metav1.GetOptions{})
	require.NoError(t, err, "a namespace is never deleted")
}

func TestAStrippedClusterIsStillCleanedUp(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	s.register(t, "stripped", "a")
	s.work(t, "stripped", "w", -1)
	require.NoError(t, patch(s.dyn, "stripped", `{"metadata":{"finalizers":null}}`))
	require.NoError(t, s.dyn.Resource(clusters).Delete(context.Background(), "stripped", metav1.DeleteOptions{}))
	eventually(func() bool {
		_ = patch(s.dyn, "stripped", `{"metadata":{"finalizers":null}}`)
		return s.get(t, "stripped") == nil
	})
	require.True(t, eventually(func() bool {
		going, _ := s.deleting(t, works, "stripped")
		return len(going) == 1
	}))
	require.True(t, eventually(func() bool { return !s.hasRole(clusterv1.RolePrefixManagedCluster + "stripped") }))

	// The next cluster of that name is prepared while something of this one is still
	// left.
	s.work(t, "stripped", "next", -1)
	s.letGo(t, works, "stripped", "w")
	soon(t, func() bool {
		_, all := s.deleting(t, works, "stripped")
		return len(all) == 1
	}, "what the cluster left goes")
	never(t, func() bool {
		going, _ := s.deleting(t, works, "stripped")
		return len(going) > 0
	}, 2*time.Second, "and nothing else")
	s.letGo(t, works, "stripped", "next")
	require.NoError(t, s.dyn.Resource(works).Namespace("stripped").Delete(context.Background(), "next", metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool { return !s.hasBinding("stripped", ":work") && !s.hasBinding("stripped", ":registration") }))
}

func TestDriftOfRightsIsRepaired(t *testing.T) {
	s := sharedHub(t)
	s.register(t, "drift", "a")
	ctx := context.Background()
	name := clusterv1.RolePrefixManagedCluster + "drift"
	_, err := s.kube.RbacV1().ClusterRoles().Patch(ctx, name, types.MergePatchType, []byte(`{"rules":null}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.True(t, eventually(func() bool {
		role, err := s.kube.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		return err == nil && len(role.Rules) == 4
	}))
	require.NoError(t, s.kube.RbacV1().RoleBindings("drift").Delete(ctx, name+":registration", metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool { return s.hasBinding("drift", ":registration") }))
	require.NoError(t, s.kube.CoordinationV1().Leases("drift").Delete(ctx, clusterv1.LeaseName, metav1.DeleteOptions{}))
	require.True(t, eventually(func() bool {
		_, err := s.kube.CoordinationV1().Leases("drift").Get(ctx, clusterv1.LeaseName, metav1.GetOptions{})
		return err == nil
	}))
}

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
