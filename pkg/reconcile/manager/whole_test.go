// SPDX-License-Identifier: Apache-2.0

package manager

import (
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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

var clusterKind = clusterv1.GroupVersion.WithKind("ManagedCluster")

// cluster is a ManagedCluster as a hub has thousands of them.
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

// clusterStore is the store of ManagedClusters.
func clusterStore(t testing.TB) (*Manager, *store) {
	t.Helper()
	scheme := k8sruntime.NewScheme()
	require.NoError(t, clusterv1.AddToScheme(scheme))
	m, err := New(Options{
		Config: &rest.Config{Host: "https://127.0.0.1:1"}, Scheme: scheme, Packed: []client.Object{&clusterv1.ManagedCluster{}},
		Kinds: map[client.Object]cache.ByObject{&clusterv1.ManagedCluster{}: {Transform: func(in any) (any, error) {
			if o, ok := in.(*clusterv1.ManagedCluster); ok {
				delete(o.Annotations, "large")
			}
			return in, nil
		}}},
	})
	require.NoError(t, err)
	return m, m.packed[clusterKind]
}

// requireSame compares what is sent of two objects.
func requireSame(t testing.TB, want, got client.Object) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(a), string(b))
}

func TestWholeObjectsAreToldAndRead(t *testing.T) {
	m, s := clusterStore(t)
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
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Name: "c"}, got))
	requireSame(t, cluster("c", "9"), got)
	require.True(t, apierrors.IsNotFound(r.Get(t.Context(), client.ObjectKey{Name: "a"}, got)))
	list := &clusterv1.ManagedClusterList{}
	require.NoError(t, r.List(t.Context(), list))
	require.Len(t, list.Items, 1)
	requireSame(t, cluster("c", "9"), &list.Items[0])
	require.ErrorContains(t, r.Get(t.Context(), client.ObjectKey{Name: "c"}, Metadata(clusterKind)), "what is kept of it is")
	var all []string
	require.NoError(t, Each(r, got, func(o *clusterv1.ManagedCluster) { all = append(all, o.Name) }))
	require.Equal(t, []string{"c"}, all)
	require.ErrorContains(t, Each(reads{scheme: m.o.Scheme}, got, func(*clusterv1.ManagedCluster) {}), "not packed")
}

func TestAKindIsWatchedInOneForm(t *testing.T) {
	m, _ := clusterStore(t)
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

// Reads go on while objects change, and what was read stays as it was.
func TestReadsAndChangesDoNotDisturbEachOther(t *testing.T) {
	m, s := clusterStore(t)
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
				if err := m.Reader().Get(t.Context(), client.ObjectKey{Name: "a"}, o); err != nil || o.ResourceVersion != o.Status.Version.Kubernetes && o.ResourceVersion != "0" {
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
	_, s := clusterStore(t)
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
