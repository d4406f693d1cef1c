// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var clusterKind = clusterv1.GroupVersion.WithKind("ManagedCluster")

// cluster returns a ManagedCluster, of which a hub has thousands.
func cluster(name, version string) *clusterv1.ManagedCluster {
	at := metav1.Unix(1_700_000_000, 0)
	o := &clusterv1.ManagedCluster{}
	o.SetGroupVersionKind(clusterKind)
	o.ObjectMeta = object("", name, version).ObjectMeta
	o.Labels = map[string]string{"cluster.open-cluster-management.io/clusterset": "default", "vendor": "kind"}
	o.Spec.HubAcceptsClient, o.Spec.LeaseDurationSeconds = true, 60
	o.Spec.Taints = []clusterv1.Taint{{Key: "gpu", Value: "yes", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: &at}}
	o.Status.Version.Kubernetes = "v1.37.0"
	for _, c := range []string{"HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"} {
		o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{
			Type: c, Status: metav1.ConditionTrue, Reason: c + "Reason", Message: "What this says is said by all: " + c, LastTransitionTime: at, ObservedGeneration: 3,
		})
	}
	return o
}

// clusterStore returns a store of ManagedClusters, packed or not.
func clusterStore(t testing.TB, pack bool) (*Manager, kept) {
	t.Helper()
	scheme := k8sruntime.NewScheme()
	require.NoError(t, clusterv1.AddToScheme(scheme))
	m, err := New(Options{
		Config: &rest.Config{Host: "https://127.0.0.1:1"}, Scheme: scheme,
		Kinds: []Kind{{Example: &clusterv1.ManagedCluster{}, Packed: pack, Transform: func(in any) (any, error) {
			if o, ok := in.(*clusterv1.ManagedCluster); ok {
				delete(o.Annotations, "large")
			}
			return in, nil
		}}},
	})
	require.NoError(t, err)
	Keep(m, &clusterv1.ManagedCluster{})
	s := m.stores[clusterKind]
	require.NotNil(t, s)
	require.Equal(t, pack, s.settings().Packed)
	return m, s
}

// fed is the interface that a reflector writes to.
func fed(t testing.TB, s kept) toolscache.ReflectorStore {
	t.Helper()
	out, ok := s.(toolscache.ReflectorStore)
	require.True(t, ok)
	return out
}

// requireSame compares the JSON of two objects.
func requireSame(t testing.TB, want, got reconcile.Object) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(a), string(b))
}

func TestWholeObjectsAreToldAndRead(t *testing.T) {
	for name, pack := range map[string]bool{"as they are": false, "packed": true} {
		t.Run(name, func(t *testing.T) { toldAndRead(t, pack) })
	}
}

func toldAndRead(t *testing.T, pack bool) {
	t.Helper()
	m, kept := clusterStore(t, pack)
	s := fed(t, kept)
	var events []string
	Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		switch {
		case old == nil:
			events = append(events, "new "+current.Name)
		case current == nil:
			events = append(events, "gone "+old.Name)
		default:
			events = append(events, fmt.Sprintf("changed %s %v to %v", current.Name, old.Spec.HubAcceptsClient, current.Spec.HubAcceptsClient))
		}
	})
	require.NoError(t, s.Replace([]any{cluster("b", "1"), cluster("a", "2")}, ""))
	denied := cluster("a", "3")
	denied.Spec.HubAcceptsClient = false
	denied.Annotations["large"] = "dropped"
	require.NoError(t, s.Update(denied))
	require.NoError(t, s.Replace([]any{denied}, ""), "a list after the watch broke")
	require.NoError(t, s.Delete(denied))
	require.NoError(t, s.Add(cluster("c", "9")))
	require.Equal(t, []string{"new b", "new a", "changed a true to false", "gone b", "gone a", "new c"}, events)
	require.Error(t, s.Add(object("", "d", "1")))

	r := m.Reader()
	got := &clusterv1.ManagedCluster{}
	require.NoError(t, r.Get(t.Context(), reconcile.Key{Name: "c"}, got))
	requireSame(t, cluster("c", "9"), got)
	require.True(t, apierrors.IsNotFound(r.Get(t.Context(), reconcile.Key{Name: "a"}, got)))
	list := &clusterv1.ManagedClusterList{}
	require.NoError(t, r.List(t.Context(), list))
	require.Len(t, list.Items, 1)
	requireSame(t, cluster("c", "9"), &list.Items[0])
	require.ErrorContains(t, r.Get(t.Context(), reconcile.Key{Name: "c"}, Metadata(clusterKind)), "what is kept of it is")
	var all []string
	require.NoError(t, Each(r, got, func(o *clusterv1.ManagedCluster) { all = append(all, o.Name) }))
	require.Equal(t, []string{"c"}, all)
	require.ErrorContains(t, Each(reads{scheme: m.o.Scheme}, got, func(*clusterv1.ManagedCluster) {}), "no loop watches it")

	got.Labels["own"], list.Items[0].Labels["own"] = "mine", "mine"
	require.NoError(t, r.Get(t.Context(), reconcile.Key{Name: "c"}, got))
	requireSame(t, cluster("c", "9"), got)
	require.NoError(t, r.List(t.Context(), list, NotCopied))
	requireSame(t, cluster("c", "9"), &list.Items[0])
}

func TestAKindIsWatchedInOneForm(t *testing.T) {
	m, _ := clusterStore(t, true)
	Watch(m, Metadata(clusterKind), func(_, _ *metav1.PartialObjectMetadata) {})
	require.ErrorContains(t, m.Run(t.Context()), "two forms")

	scheme := k8sruntime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	secrets := func() *Manager {
		m, err := New(Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Scheme: scheme})
		require.NoError(t, err)
		return m
	}
	kind := corev1.SchemeGroupVersion.WithKind("Secret")
	wholeFirst := secrets()
	Watch(wholeFirst, &corev1.Secret{}, func(_, _ *corev1.Secret) {})
	Watch(wholeFirst, Metadata(kind), func(_, _ *metav1.PartialObjectMetadata) {})
	require.ErrorContains(t, wholeFirst.Run(t.Context()), "two forms")
	wholeLast := secrets()
	Watch(wholeLast, Metadata(kind), func(_, _ *metav1.PartialObjectMetadata) {})
	Watch(wholeLast, &corev1.Secret{}, func(_, _ *corev1.Secret) {})
	require.ErrorContains(t, wholeLast.Run(t.Context()), "two forms")
}

// Reads work while objects change, and objects that were read do not change.
func TestReadsAndChangesDoNotDisturbEachOther(t *testing.T) {
	m, kept := clusterStore(t, true)
	s := fed(t, kept)
	require.NoError(t, s.Replace([]any{cluster("a", "0"), cluster("b", "0")}, ""))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				o, list := &clusterv1.ManagedCluster{}, &clusterv1.ManagedClusterList{}
				if err := m.Reader().Get(
					t.Context(), reconcile.Key{Name: "a"}, o,
				); err != nil || o.ResourceVersion != o.Status.Version.Kubernetes && o.ResourceVersion != "0" {
					t.Errorf("read %s of version %s: %v", o.Status.Version.Kubernetes, o.ResourceVersion, err)
				}
				o.Labels["own"] = "mine"
				if err := m.Reader().List(t.Context(), list); err != nil || len(list.Items) < 1 {
					t.Errorf("listed %d: %v", len(list.Items), err)
				}
			}
		})
	}
	for i := range 500 {
		o := cluster("a", fmt.Sprint(i+1))
		o.Status.Version.Kubernetes = o.ResourceVersion
		require.NoError(t, s.Update(o))
		require.NoError(t, s.Delete(cluster("b", "0")))
		require.NoError(t, s.Add(cluster("b", "0")))
	}
	close(done)
	wg.Wait()
}

func TestAClusterTakesLittleMemory(t *testing.T) {
	const objects, most = 10_000, 560
	_, kept := clusterStore(t, true)
	s := fed(t, kept)
	before := heap()
	began := time.Now()
	for i := range objects {
		o := cluster(fmt.Sprintf("cluster-%05d", i), fmt.Sprint(1_000_000+i))
		o.UID = types.UID(fmt.Sprintf("9f0bd1f4-1c1a-4a0e-9d8e-%012d", i))
		require.NoError(t, s.Add(o))
	}
	took := time.Since(began) / objects
	each := (heap() - before) / objects
	runtime.KeepAlive(s)
	t.Logf("%d bytes an object, %s to pack and tell of it", each, took)
	require.Less(t, each, int64(most))
}

func TestALoopIsGivenWhatItsKeysStandFor(t *testing.T) {
	m, kept := clusterStore(t, false)
	require.NoError(t, fed(t, kept).Replace([]any{cluster("a", "1")}, ""))
	var given, gone []string
	loop := For(m.Reader(), func(_ context.Context, o *clusterv1.ManagedCluster) (reconcile.Result, error) {
		given = append(given, o.Name)
		o.Labels["own"] = "mine"
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}, func(key reconcile.Key) { gone = append(gone, key.Name) })
	for range 2 {
		result, err := loop(t.Context(), reconcile.Key{Name: "a"})
		require.NoError(t, err)
		require.Equal(t, time.Second, result.RequeueAfter)
	}
	result, err := loop(t.Context(), reconcile.Key{Name: "b"})
	require.NoError(t, err)
	require.Zero(t, result)
	require.Equal(t, []string{"a", "a"}, given)
	require.Equal(t, []string{"b"}, gone)
	o := &clusterv1.ManagedCluster{}
	require.NoError(t, m.Reader().Get(t.Context(), reconcile.Key{Name: "a"}, o))
	requireSame(t, cluster("a", "1"), o)

	unwatched := For(reads{scheme: m.o.Scheme}, func(context.Context, *clusterv1.ManagedCluster) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	}, nil)
	_, err = unwatched(t.Context(), reconcile.Key{Name: "a"})
	require.ErrorContains(t, err, "no loop watches it", "a kind that nobody keeps must not look like an object that is gone")
}
