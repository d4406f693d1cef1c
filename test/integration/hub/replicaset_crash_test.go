// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/hub/replicaset"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/manager"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// runReplicaSets runs the loop with the connection until it is dead or done says so.
func runReplicaSets(t *testing.T, config *rest.Config, dead <-chan struct{}, done func() bool) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	require.NoError(t, workv1alpha1.AddToScheme(scheme))
	require.NoError(t, clusterv1beta1.AddToScheme(scheme))
	m, err := manager.New(manager.Options{Config: config, Scheme: scheme, Clock: clock.RealClock{}, Log: logr.Discard()})
	require.NoError(t, err)
	replicaset.Register(m, replicaset.Config{Client: client, Clock: clock.RealClock{}})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = m.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-dead:
			return
		case <-deadline:
			t.Error("the loop neither died nor completed its work")
			return
		case <-time.After(tick):
		}
	}
}

// TestTheReplicaSetLoopMayDieAfterEveryWrite lets each life of the loop make one
// write: when a set is new, when its template changes while a cluster leaves, and
// when it is deleted.
func TestTheReplicaSetLoopMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	s, config := processless(t)
	life(t, config, nil, func() bool { return s.complete(t) })
	// No process serves admission here.
	hooks := s.kube.AdmissionregistrationV1()
	require.NoError(t, hooks.MutatingWebhookConfigurations().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, hooks.ValidatingWebhookConfigurations().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	f := &fan{scene: s, namespace: "apps", clusters: []string{"k1", "k2", "k3"}}
	for _, name := range append([]string{"apps"}, f.clusters...) {
		_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	dying := func(what string, atLeast int, done func() bool) {
		t.Helper()
		lives := 0
		for ; !done(); lives++ {
			require.Less(t, lives, 60, "%s does not converge", what)
			mortal, process := faults.StopAfter(config, 1)
			runReplicaSets(t, mortal, process.Died(), done)
			for _, c := range f.clusters {
				list, err := f.dyn.Resource(works).Namespace(c).List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				require.LessOrEqual(t, len(list.Items), 1, "%s: cluster %s has a work twice after %d lives", what, c, lives+1)
			}
		}
		t.Logf("%s: %d lives of one write", what, lives)
		require.GreaterOrEqual(t, lives, atLeast)
	}
	reported := func(total int) bool {
		set, err := f.get(t, "web")
		return err == nil && set.Status.Summary.Total == total && set.Status.Summary.DesiredTotal == total
	}
	f.place(t, "p", f.clusters...)
	f.deploy(t, "web", "one", "", "p")
	dying("a new set", 5, func() bool { return len(f.delivered(t, "web")) == 3 && reported(3) })
	f.deploy(t, "web", "two", "", "p")
	f.place(t, "p", "k1", "k2")
	dying("a new template and a cluster that leaves", 3, func() bool {
		got := f.delivered(t, "web")
		return len(got) == 2 && got[0] == "k1=two" && got[1] == "k2=two" && reported(2)
	})
	require.NoError(t, f.dyn.Resource(replicaSets).Namespace("apps").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	dying("a set that goes", 3, func() bool {
		_, err := f.get(t, "web")
		return apierrors.IsNotFound(err) && len(f.delivered(t, "web")) == 0
	})
}
