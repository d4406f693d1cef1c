// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/unjoin"
)

// steps collects the progress of an operation.
type steps struct {
	mu    sync.Mutex
	lines []string
}

func (s *steps) record(step fleet.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, step.Name+": "+step.Detail)
}

// removed removes a cluster from the hub as "cluster remove" does.
func (s *scene) removed(t testing.TB, name string, force bool, timeout time.Duration) (*steps, error) {
	t.Helper()
	c, err := fleet.Connect(s.Config, "hub")
	require.NoError(t, err)
	told := &steps{}
	_, err = unjoin.Run(context.Background(), unjoin.Options{
		Name: name, Hub: c, HubOnly: true, Force: force, Common: fleet.Common{Timeout: timeout, Progress: told.record},
	})
	return told, err
}

// stuck removes a cluster that cannot go, with more and more time, until the removal has said why: a
// short one is over before it has asked, on a busy machine.
func (s *scene) stuck(t testing.TB, name string, force bool, cause string) *fleet.Error {
	t.Helper()
	for timeout := 6 * time.Second; ; timeout *= 2 {
		_, err := s.removed(t, name, force, timeout)
		var e *fleet.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, fleet.Timeout, e.Kind)
		if timeout > time.Minute || strings.Contains(e.Cause, cause) {
			require.Contains(t, e.Cause, cause)
			return e
		}
	}
}

// What a dead cluster has on the hub is removed in the usual order, together with its
// namespace.
func TestADeadClusterIsDetachedByForce(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	ctx := context.Background()
	s.register(t, "dead", "a")
	s.addon(t, "dead", "metrics", addonv1alpha1.FinalizerPreDelete, addonv1alpha1.FinalizerHostingManifests)
	s.work(t, "dead", "first", -1, workv1.FinalizerManifestWork)
	s.work(t, "dead", "second", 20, workv1.FinalizerManifestWork)

	// The hub finishes its part first, so that the plugin's timeout covers only its own
	// reads.
	require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, "dead", metav1.DeleteOptions{}))
	s.await(t, "dead", "waits for its add-on", remains("1 managedclusteraddons are left, 1 of them wait"))
	e := s.stuck(t, "dead", false, "1 managedclusteraddons are left, 1 of them wait for their finalizers")
	require.Contains(t, e.Cause, "ManagedClusterAddOn dead/metrics ("+addonv1alpha1.FinalizerPreDelete+", "+addonv1alpha1.FinalizerHostingManifests+")")
	require.Equal(t, unjoin.RemoveByForce, e.Fix.(fleet.Remedy).Code)

	told, err := s.removed(t, "dead", true, patience)
	require.NoError(t, err)
	require.Nil(t, s.get(t, "dead"))
	var order []string
	for _, line := range told.lines {
		for _, what := range []string{"releasing ManagedClusterAddOn dead/metrics", "releasing ManifestWork dead/first", "releasing ManifestWork dead/second"} {
			if line == "left the hub: "+what {
				order = append(order, what)
			}
		}
	}
	require.Equal(t, []string{"releasing ManagedClusterAddOn dead/metrics", "releasing ManifestWork dead/first", "releasing ManifestWork dead/second"}, order)
	_, err = s.kube.CoreV1().Namespaces().Get(ctx, "dead", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	_, err = s.removed(t, "dead", true, patience)
	require.NoError(t, err, "again")
}

func TestForceEndsAtFinalizersOfOthersAndNamesThem(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	s.register(t, "foreign", "a")
	s.addon(t, "foreign", "metrics", "example.com/backup")
	require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), "foreign", metav1.DeleteOptions{}))
	s.await(t, "foreign", "waits for its add-on", remains("1 managedclusteraddons are left, 1 of them wait"))
	_ = s.stuck(t, "foreign", true, "finalizers of others hold ManagedClusterAddOn foreign/metrics (example.com/backup)")
	s.letGo(t, addons, "foreign", "metrics")
	_, err := s.removed(t, "foreign", true, patience)
	require.NoError(t, err)
}

// Only a namespace that the hub created, and that holds nothing of others, is removed.
func TestForceLeavesNamespacesThatHoldSomethingOfOthers(t *testing.T) {
	s := sharedHub(t)
	ctx := context.Background()
	for name, put := range map[string]struct {
		do   func(namespace string) error
		want string
	}{
		"with-config": {
			func(ns string) error {
				_, err := s.kube.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
				return err
			},
			"stays: it holds configmap/mine",
		},
		"with-other-kinds": {func(ns string) error {
			_, err := s.kube.NetworkingV1().NetworkPolicies(ns).Create(
				ctx, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "mine"}},
				metav1.CreateOptions{},
			)
			return err
		}, "stays: it holds networkpolicy.networking.k8s.io/mine"},
		"with-other-owner": {func(ns string) error {
			body := `{"metadata":{"labels":{"` + clusterv1.LabelClusterName + `":"another"},"annotations":null}}`
			_, err := s.kube.CoreV1().Namespaces().Patch(ctx, ns, types.MergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		}, "stays: it was not made for the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, create(s.dyn, cluster(name)))
			s.accept(t, name, true)
			s.await(t, name, "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
			if name == "with-other-owner" {
				// The hub labels the namespace of a living cluster again.
				require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, name, metav1.DeleteOptions{}))
				s.await(t, name, "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
				require.NoError(t, put.do(name))
				require.NoError(t, create(s.dyn, cluster(name)))
			} else {
				require.NoError(t, put.do(name))
			}
			told, err := s.removed(t, name, true, patience)
			require.NoError(t, err)
			require.Contains(t, told.lines, "namespace "+name+": "+put.want)
			_, err = s.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			require.NoError(t, err)
		})
	}
}
