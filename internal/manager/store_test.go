// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var bindings = corev1.SchemeGroupVersion.WithKind("Binding")

// object is one of a cluster's objects.
func object(namespace, name, version string) *metav1.PartialObjectMetadata {
	o := Metadata(bindings)
	o.Namespace, o.Name, o.ResourceVersion = namespace, name, version
	o.UID = "9f0bd1f4-1c1a-4a0e-9d8e-0f4b6b6c2a11"
	o.Generation = 3
	o.CreationTimestamp = metav1.Unix(1_700_000_000, 0)
	o.Labels = map[string]string{"open-cluster-management.io/cluster-name": namespace}
	o.Annotations = map[string]string{"open-cluster-management.io/intent": "0123456789abcdef01234567"}
	o.Finalizers = []string{"cluster.open-cluster-management.io/manifest-work-cleanup"}
	return o
}

// bindingStore keeps the metadata of one kind.
func bindingStore(t *testing.T) *store[string] {
	t.Helper()
	asItIs := func(o any) (any, error) { return o, nil }
	m, err := New(Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Scheme: k8sruntime.NewScheme(),
		Kinds: []Kind{{Example: Metadata(bindings), Transform: asItIs}}})
	require.NoError(t, err)
	Keep(m, Metadata(bindings))
	s, _ := m.stores[bindings].(*store[string])
	require.NotNil(t, s)
	return s
}

// told collects the notifications of a store.
func told(c kept) *[]string {
	out := &[]string{}
	c.addHandler(func(old, current reconcile.Object) {
		switch {
		case old == nil:
			*out = append(*out, "new "+current.GetName())
		case current == nil:
			*out = append(*out, "gone "+old.GetName())
		default:
			*out = append(*out, "changed "+current.GetName()+" "+old.GetResourceVersion()+" to "+current.GetResourceVersion())
		}
	})
	return out
}

func TestMetadataIsToldWhenItChanged(t *testing.T) {
	c := bindingStore(t)
	events := told(c)
	require.NoError(t, c.Replace([]any{object("c1", "b", "1"), object("c1", "a", "2"), object("c2", "a", "3")}, ""))
	require.Equal(t, []string{"new b", "new a", "new a"}, *events)

	*events = nil
	require.NoError(t, c.Update(object("c1", "a", "2")))
	require.Empty(t, *events, "what is known is told again")
	require.NoError(t, c.Update(object("c1", "a", "4")))
	require.NoError(t, c.Delete(object("c1", "b", "5")))
	require.NoError(t, c.Delete(object("c1", "b", "5")))
	require.Equal(t, []string{"changed a 2 to 4", "gone b"}, *events)

	*events = nil
	require.NoError(t, c.Replace([]any{object("c1", "a", "4")}, ""))
	require.Equal(t, []string{"gone a"}, *events)
	require.NotContains(t, c.spaces, "c2")
}

func TestMetadataIsRead(t *testing.T) {
	c := bindingStore(t)
	require.NoError(t, c.Replace([]any{object("c1", "b", "1"), object("c1", "a", "2"), object("c2", "a", "3")}, ""))
	r := reads{stores: map[schema.GroupVersionKind]kept{bindings: c}, scheme: k8sruntime.NewScheme()}

	o := Metadata(bindings)
	require.NoError(t, r.Get(t.Context(), reconcile.Key{Namespace: "c1", Name: "a"}, o, NotCopied))
	require.Equal(t, object("c1", "a", "2"), o)
	require.True(t, apierrors.IsNotFound(r.Get(t.Context(), reconcile.Key{Namespace: "c3", Name: "a"}, o)))

	for name, tc := range map[string]struct {
		options []ReadOption
		want    []string
	}{
		"of a namespace":             {[]ReadOption{InNamespace("c1")}, []string{"c1/a", "c1/b"}},
		"of a namespace without any": {[]ReadOption{InNamespace("c9")}, nil},
		"of all, by a label": {
			[]ReadOption{WithLabels(map[string]string{"open-cluster-management.io/cluster-name": "c2"})},
			[]string{"c2/a"},
		},
		"no more than are asked for":  {[]ReadOption{InNamespace("c1"), AtMost(1)}, []string{"c1/a"}},
		"by a label that nothing has": {[]ReadOption{WithLabels(map[string]string{"a": "b"})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list := MetadataList(bindings)
			require.NoError(t, r.List(t.Context(), list, tc.options...))
			var got []string
			for _, o := range list.Items {
				got = append(got, o.Namespace+"/"+o.Name)
			}
			require.Equal(t, tc.want, got)
		})
	}
	require.ErrorContains(t, r.Get(t.Context(), reconcile.Key{Name: "a"}, Metadata(corev1.SchemeGroupVersion.WithKind("Node"))), "no loop watches it")
}

func TestTrimmingTwiceIsTrimmingOnce(t *testing.T) {
	trim := TrimMetadata("owner", "kept")
	o := object("c1", "a", "1")
	o.Annotations = map[string]string{"kept": "x", "dropped": "y"}
	o.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager:   "somebody",
		Operation: metav1.ManagedFieldsOperationUpdate,
		Time:      &metav1.Time{Time: time.Unix(1, 0)},
	}}
	for range 2 {
		_, err := trim(o)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"kept": "x", SharedAnnotation: "true"}, o.Annotations)
	}
}

// Anyone who may write an object may remove its managedFields: that hides neither changes
// nor annotations that would fill the memory.
func TestAnObjectWithoutManagedFieldsIsTrimmedAndCountsAsShared(t *testing.T) {
	o := object("c1", "a", "1")
	o.Annotations = map[string]string{"kept": "x", "large": "y"}
	_, err := TrimMetadata("owner", "kept")(o)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"kept": "x", SharedAnnotation: "true"}, o.Annotations)
}

// Removing a field leaves its remover without fields, so its absence is the only trace.
func TestMetadataThatLostItsContentIsNotOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		fields string
		shared bool
	}{
		"a role":                     {`{"f:metadata":{},"f:rules":{}}`, false},
		"a role without rules":       {`{"f:metadata":{}}`, true},
		"a binding":                  {`{"f:roleRef":{},"f:subjects":{}}`, false},
		"a binding without subjects": {`{"f:roleRef":{}}`, true},
		"one that tells no fields":   {``, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := object("c1", "a", "1")
			fields := &metav1.FieldsV1{}
			fields.SetRawBytes([]byte(tc.fields))
			o.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager:   "owner",
				Operation: metav1.ManagedFieldsOperationApply,
				FieldsV1:  fields,
			}}
			_, err := TrimMetadata("owner")(o)
			require.NoError(t, err)
			require.Equal(t, tc.shared, o.Annotations[SharedAnnotation] == "true")
		})
	}
}

func TestAKindIsNamedOnce(t *testing.T) {
	scheme := k8sruntime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	for name, kinds := range map[string][]Kind{
		"two whole":       {{Example: &corev1.Secret{}}, {Example: &corev1.Secret{}}},
		"two of metadata": {{Example: Metadata(bindings)}, {Example: Metadata(bindings)}},
		"one whole, one of metadata": {
			{Example: &corev1.Secret{}},
			{Example: Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Config: &rest.Config{}, Scheme: scheme, Kinds: kinds})
			require.ErrorContains(t, err, "two entries")
		})
	}
	_, err := New(Options{Config: &rest.Config{}, Scheme: scheme, Kinds: []Kind{{
		Example: &corev1.Secret{},
	}, {
		Example: Metadata(bindings),
	}}})
	require.NoError(t, err)
	_, err = New(Options{Config: &rest.Config{}, Scheme: scheme, Kinds: []Kind{{Example: &clusterv1.ManagedCluster{}}}})
	require.ErrorContains(t, err, "ManagedCluster")
}

func TestAnObjectTakesLittleMemory(t *testing.T) {
	const objects, most = 20_000, 260
	c := bindingStore(t)
	before := heap()
	for i := range objects {
		cluster := fmt.Sprintf("cluster-%05d", i/2)
		require.NoError(t, c.Add(object(cluster, fmt.Sprintf("open-cluster-management:managedcluster:%s:%d", cluster, i%2), fmt.Sprint(1_000_000+i))))
	}
	each := (heap() - before) / objects
	runtime.KeepAlive(c)
	t.Logf("%d bytes an object", each)
	require.Less(t, each, int64(most))
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far from the limit
}
