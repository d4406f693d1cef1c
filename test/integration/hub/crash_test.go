// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/go-logr/logr"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// switched replaces the control loops, which are on or off. In these tests, no cluster
// has anything that loops would have to release.
type switched struct {
	mu sync.Mutex
	on bool
	f  func()
}

var errOff = errors.New("they are off")

func (s *switched) turn(on bool) {
	s.mu.Lock()
	changed, f := s.on != on, s.f
	s.on = on
	s.mu.Unlock()
	if changed && f != nil {
		f()
	}
}

func (s *switched) Run(clustermanager.Features) { s.turn(true) }
func (s *switched) Stop()                       { s.turn(false) }
func (s *switched) OnChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f = f
}

func (s *switched) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on {
		return errOff
	}
	return nil
}

// life runs the operator with the connection until it is dead or done returns true.
func life(t *testing.T, config *rest.Config, dead <-chan struct{}, done func() bool) {
	t.Helper()
	lifeOf(t, tag, config, dead, done)
}

// lifeOf is life of one release.
func lifeOf(t *testing.T, release string, config *rest.Config, dead <-chan struct{}, done func() bool) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	collections := clustermanager.NewCollections(client, observe.Profile{}, logr.Discard())
	var wg sync.WaitGroup
	wg.Go(func() { _ = collections.Run(ctx) })
	wg.Go(func() {
		_ = clustermanager.Lead(ctx, clustermanager.Config{
			Client: client, Clock: clock.RealClock{}, Version: release, Policy: certs.DefaultPolicy(),
			Serving: func() error { return nil }, OnServing: func(func()) {}, Loops: &switched{},
			Authority: func() (error, bool) { return nil, true }, OnAuthority: func(func()) {},
		}, collections)
	})
	defer wg.Wait()
	defer cancel()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-dead:
			return
		case <-deadline:
			t.Fatal("the operator neither ended nor completed its work")
		case <-time.After(tick):
		}
	}
}

// processless returns a hub that the tests themselves operate: everything that an
// installer applies except for the Deployment.
func processless(t *testing.T) (*scene, *rest.Config) {
	t.Helper()
	s := emptyHub(t)
	s.installAs(t, hub.LayoutCompact, "Deployment")
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		cm, err := typed.Get[operatorv1.ClusterManager](context.Background(), s.dyn, managers, "", hub.Name)
		t.Logf("the ClusterManager at the end: %+v %v", cm, err)
		space, err := s.kube.CoreV1().Namespaces().Get(context.Background(), hub.ComponentNamespace, metav1.GetOptions{})
		t.Logf("its namespace: %+v %v", space.Status, err)
	})
	return s, s.As(t, hub.Namespace, hub.Name)
}

// complete reports whether the ClusterManager has everything applied.
func (s *scene) complete(t *testing.T) bool {
	t.Helper()
	cm, err := typed.Get[operatorv1.ClusterManager](t.Context(), s.dyn, managers, "", hub.Name)
	require.NoError(t, err)
	return apimeta.IsStatusConditionTrue(cm.Status.Conditions, operatorv1.ConditionApplied) &&
		apimeta.IsStatusConditionFalse(cm.Status.Conditions, operatorv1.ConditionProgressing)
}

func (s *scene) absent(t *testing.T) bool {
	t.Helper()
	_, err := s.dyn.Resource(managers).Get(t.Context(), hub.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// definedBy reports whether the hub's definitions are all those of a release. That of the
// ClusterManager is the installer's.
func (s *scene) definedBy(t *testing.T, release string) bool {
	t.Helper()
	list, err := s.dyn.Resource(definitions).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return !slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool {
		by, ok := u.GetAnnotations()[operatorv1.AnnotationVersion]
		return ok && by != release && u.GetName() != hub.CRD
	})
}

// TestTheOperatorMayDieAfterEveryWrite ends the operator after every write, during
// installation, an upgrade and removal.
func TestTheOperatorMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	s, config := processless(t)
	const enough = 200
	lives := 0
	for ; !s.complete(t); lives++ {
		require.Less(t, lives, enough, "the start does not converge")
		mortal, process := faults.StopAfter(config, 1)
		life(t, mortal, process.Died(), func() bool { return s.complete(t) })
	}
	t.Logf("the hub was complete after %d lives of one write", lives)
	require.Greater(t, lives, 20)
	// The first starts make the writes that the last lives were about to make.
	var more []string
	for range 10 {
		counted, writes := faults.Count(config)
		start := time.Now()
		life(t, counted, nil, func() bool { return time.Since(start) > 2*time.Second })
		more = slices.DeleteFunc(writes.Seen(), func(w string) bool { return strings.Contains(w, "clustermanagers/cluster-manager/status") })
		if len(more) == 0 {
			break
		}
	}
	require.Empty(t, more, "of a complete hub nothing is written but that its controllers start")

	upgraded := func() bool { return s.definedBy(t, "0.1.0") && s.complete(t) }
	lives = 0
	for ; !upgraded(); lives++ {
		require.Less(t, lives, enough, "the upgrade does not converge")
		mortal, process := faults.StopAfter(config, 1)
		lifeOf(t, "v0.1.0", mortal, process.Died(), upgraded)
	}
	t.Logf("the hub was upgraded after %d lives of one write", lives)
	require.Greater(t, lives, 10)

	s.withoutAdmission(t)
	settled(t, func() error { return create(s.dyn, cluster("c1")) })
	require.NoError(t, s.dyn.Resource(managers).Delete(t.Context(), hub.Name, metav1.DeleteOptions{}))
	lives = 0
	for ; !s.absent(t); lives++ {
		require.Less(t, lives, enough, "the end does not converge")
		s.awaitBlind(t, config)
		mortal, process := faults.StopAfter(config, 1)
		life(t, mortal, process.Died(), func() bool { return s.absent(t) })
	}
	t.Logf("the hub was gone after %d lives of one write", lives)
	s.leftovers(t, []string{hub.CRD})
}

// awaitBlind waits, once the hub's namespace is being deleted, until the operator may no longer read
// what is in it: its next life begins without that.
func (s *scene) awaitBlind(t *testing.T, operator *rest.Config) {
	t.Helper()
	space, err := s.kube.CoreV1().Namespaces().Get(t.Context(), hub.ComponentNamespace, metav1.GetOptions{})
	if err == nil && space.DeletionTimestamp == nil {
		return
	}
	require.NoError(t, reconcile.IgnoreNotFound(err))
	client, err := kubernetes.NewForConfig(operator)
	require.NoError(t, err)
	signer := metav1.ListOptions{FieldSelector: "metadata.name=" + operatorv1.SecretSigner}
	soon(t, func() bool {
		_, err := client.CoreV1().Secrets(hub.ComponentNamespace).List(t.Context(), signer)
		return apierrors.IsForbidden(err)
	}, "the operator can still read the hub's namespace")
}

// TestARemovalWithoutTheProcessMayDieAfterEveryWrite removes a hub with a cluster, whose
// process is gone, with a plugin that is killed again and again.
func TestARemovalWithoutTheProcessMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	s, _ := served(t)
	mc := cluster("c1")
	mc.Finalizers = []string{clusterv1.FinalizerAPIResourceCleanup, clusterv1.FinalizerResourceCleanup}
	settled(t, func() error { return create(s.dyn, mc) })
	s.ensureNamespace(t, "c1")
	_, err := s.kube.RbacV1().RoleBindings("c1").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: clusterv1.RolePrefixManagedCluster + "c1:work", Labels: map[string]string{clusterv1.LabelClusterName: "c1"},
			Finalizers: []string{clusterv1.FinalizerManifestWorkCleanup},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.work(t, "c1", "held", -1, workv1.FinalizerManifestWork)
	s.work(t, "c1", "foreign", -1)

	_, err = teardown.Hub(t.Context(), s.dyn, teardown.HubOptions{Patience: time.Second})
	require.ErrorIs(t, err, teardown.ErrHubBusy)
	require.ErrorContains(t, err, "c1 (held)", "the work of an absent agent is kept, and the error says so")
	going, _ := s.deleting(t, works, "c1")
	require.Empty(t, going, "nothing is deleted before the agent has let go of the objects")
	_, err = teardown.Hub(t.Context(), s.dyn, teardown.HubOptions{Force: true, AgentPatience: time.Nanosecond, Patience: time.Second})
	require.ErrorContains(t, err, "c1/foreign (held by "+agentFinalizer, "what another program holds is not taken from it")
	s.letGo(t, works, "c1", "foreign")

	lives, finished := 0, false
	for ; !finished; lives++ {
		require.Less(t, lives, 200, "the removal does not converge")
		mortal, _ := faults.StopAfter(s.Config, 1)
		client, err := dynamic.NewForConfig(mortal)
		require.NoError(t, err)
		_, err = teardown.Hub(t.Context(), client, teardown.HubOptions{Force: true, AgentPatience: time.Nanosecond})
		finished = err == nil
	}
	t.Logf("the hub was gone after %d lives of one write", lives)
	s.gone(t)
	_, err = s.kube.CoreV1().Namespaces().Get(t.Context(), "c1", metav1.GetOptions{})
	require.NoError(t, err, "the namespace of a cluster stays")
}

func (s *scene) ensureNamespace(t *testing.T, name string) {
	t.Helper()
	u, err := typed.ToUnstructured(namespace(name))
	require.NoError(t, err)
	_, err = s.dyn.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
}
