// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// testKept removes a hub that is to leave its APIs in place, and makes it again.
func (s *scene) testKept(t *testing.T) {
	s.arguments(t, "run", hub.FlagKeepAPIs)
	soon(t, func() bool { return len(s.kept(t)) == len(s.definitions(t)) }, "the definitions do not say that they stay")
	s.work(t, "c1", "stays", -1)
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig",
		"metadata": map[string]any{"namespace": hub.ComponentNamespace, "name": "stays"}, "spec": map[string]any{},
	}}
	configs := s.dyn.Resource(schema.GroupVersionResource{Group: "addon.open-cluster-management.io", Version: "v1alpha1", Resource: "addondeploymentconfigs"}).
		Namespace(hub.ComponentNamespace)
	settled(t, func() error {
		_, err := configs.Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
	before := s.objectsOfUsers(t)
	for _, name := range []string{"managedclusters /c1", "managedclusters /c2", "manifestworks c1/stays", "managedclustersets /default"} {
		require.Contains(t, before, name)
	}

	s.removeManager(t)
	require.Subset(t, s.objectsOfUsers(t), before, "every object is the same, and is not being deleted")
	for _, d := range s.definitions(t) {
		require.NotContains(t, d.GetLabels(), operatorv1.LabelCreatedByClusterManager, d.GetName())
		require.NotContains(t, d.GetAnnotations(), operatorv1.AnnotationVersion, d.GetName())
		strategy, _, _ := unstructured.NestedString(d.Object, "spec", "conversion", "strategy")
		require.Equal(t, "None", strategy, "%s needs no process", d.GetName())
	}
	require.Len(t, s.kept(t), len(s.definitions(t)))
	require.False(t, s.hasRole(clusterv1.RolePrefixManagedCluster+"c1"), "nobody checks what agents change")
	hooks, err := s.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, hooks.Items)
	_, err = s.kube.CoreV1().Secrets(hub.ComponentNamespace).Get(t.Context(), operatorv1.SecretSigner, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), err)
	soon(t, func() bool {
		return slices.ContainsFunc(s.events(t, hub.Namespace, "Removing"), func(note string) bool { return strings.Contains(note, hub.FlagKeepAPIs) })
	}, "no Event says what stays")

	s.createManager(t)
	s.awaitHub(t)
	soon(t, func() bool { return s.hasBinding("c1", ":work") && s.hasBinding("c1", ":registration") }, "the agent gets its rights back")
	s.arguments(t, "run")
	soon(t, func() bool { return len(s.kept(t)) == 0 }, "the definitions go with the hub again")
	require.Subset(t, s.objectsOfUsers(t), before)
	for _, d := range s.definitions(t) {
		require.Equal(t, hub.Name, d.GetLabels()[operatorv1.LabelCreatedByClusterManager], d.GetName())
	}
	s.letGo(t, works, "c1", "stays")
	require.NoError(t, s.dyn.Resource(works).Namespace("c1").Delete(context.Background(), "stays", metav1.DeleteOptions{}))
}

// kept returns the definitions that say that they stay.
func (s *scene) kept(t *testing.T) []string {
	t.Helper()
	out, err := teardown.KeptAPIs(t.Context(), s.dyn)
	require.NoError(t, err)
	return out
}

// definitions returns those of the hub, without that of the installer.
func (s *scene) definitions(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	all, err := s.dyn.Resource(definitionsResource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return slices.DeleteFunc(all.Items, func(d unstructured.Unstructured) bool { return d.GetName() == "clustermanagers."+operatorv1.GroupName })
}

// objectsOfUsers returns the UID of every object of the hub's APIs that is not being deleted.
func (s *scene) objectsOfUsers(t *testing.T) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for _, d := range s.definitions(t) {
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		resource, _, _ := unstructured.NestedString(d.Object, "spec", "names", "plural")
		stored, _, _ := unstructured.NestedStringSlice(d.Object, "status", "storedVersions")
		list, err := s.dyn.Resource(schema.GroupVersionResource{Group: group, Version: stored[0], Resource: resource}).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, o := range list.Items {
			if o.GetDeletionTimestamp() == nil {
				out[resource+" "+o.GetNamespace()+"/"+o.GetName()] = o.GetUID()
			}
		}
	}
	return out
}

// TestARemovalThatKeepsTheAPIsMayDieAfterEveryWrite removes such a hub with a plugin that is killed
// again and again. Only its first life knows that the APIs are to stay.
func TestARemovalThatKeepsTheAPIsMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	s, _ := served(t)
	settled(t, func() error { return create(s.dyn, cluster("c1")) })
	s.ensureNamespace(t, "c1")
	s.work(t, "c1", "stays", -1, workv1.FinalizerManifestWork)
	before := s.objectsOfUsers(t)
	require.Contains(t, before, "managedclusters /c1")
	require.Contains(t, before, "manifestworks c1/stays")

	lives, finished := 0, false
	for ; !finished; lives++ {
		require.Less(t, lives, 200, "the removal does not converge")
		mortal, _ := faults.StopAfter(s.Config, 1)
		client, err := dynamic.NewForConfig(mortal)
		require.NoError(t, err)
		_, err = teardown.Hub(t.Context(), client, teardown.HubOptions{Force: true, KeepAPIs: lives == 0, AgentPatience: time.Nanosecond})
		finished = err == nil
	}
	t.Logf("the hub was gone after %d lives of one write", lives)
	require.Subset(t, s.objectsOfUsers(t), before, "every object is the same, and is not being deleted")
	require.Len(t, s.kept(t), len(s.definitions(t)))
	require.True(t, s.absent(t), "the ClusterManager is gone with its API")
	for _, name := range []string{hub.Namespace, hub.ComponentNamespace} {
		_, err := s.kube.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s: %v", name, err)
	}
}
