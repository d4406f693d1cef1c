// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// metadata is that of one of a cluster's objects, without its names.
func metadata(version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		ResourceVersion: version, UID: "9f0bd1f4-1c1a-4a0e-9d8e-0f4b6b6c2a11", Generation: 3,
		CreationTimestamp: metav1.Unix(1_700_000_000, 0),
		Labels:            map[string]string{"open-cluster-management.io/cluster-name": "c1"},
		Annotations:       map[string]string{"open-cluster-management.io/intent": "0123456789abcdef01234567"},
		Finalizers:        []string{"cluster.open-cluster-management.io/manifest-work-cleanup"},
	}
}

// requireMeta packs and unpacks metadata.
func requireMeta(t testing.TB, d *Dictionary, o metav1.ObjectMeta) {
	t.Helper()
	var got metav1.ObjectMeta
	d.UnpackMeta(d.PackMeta(&o), &got)
	require.Equal(t, o, got)
}

func TestWhatIsPackedComesBack(t *testing.T) {
	deleted := metav1.Unix(1_700_000_100, 0)
	for name, change := range map[string]func(*metav1.ObjectMeta){
		"an object with all that is kept":       func(*metav1.ObjectMeta) {},
		"one that is being deleted":             func(o *metav1.ObjectMeta) { o.DeletionTimestamp = &deleted },
		"a UID that is none":                    func(o *metav1.ObjectMeta) { o.UID = "somebody's own" },
		"a UID in capital letters":              func(o *metav1.ObjectMeta) { o.UID = "9F0BD1F4-1C1A-4A0E-9D8E-0F4B6B6C2A11" },
		"no UID":                                func(o *metav1.ObjectMeta) { o.UID = "" },
		"no labels, annotations and finalizers": func(o *metav1.ObjectMeta) { o.Labels, o.Annotations, o.Finalizers = nil, nil, nil },
		"no times":                              func(o *metav1.ObjectMeta) { o.CreationTimestamp = metav1.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			o := metadata("77")
			change(&o)
			requireMeta(t, &Dictionary{}, o)
		})
	}
}

func TestNewWordsDoNotFillTheDictionary(t *testing.T) {
	var d Dictionary
	for i := range 2 * maxWords {
		o := metadata("1")
		o.Labels[fmt.Sprintf("label-%d", i)] = "x"
		requireMeta(t, &d, o)
	}
	require.Len(t, d.words, maxWords)
}

func FuzzPackMeta(f *testing.F) {
	f.Add("9f0bd1f4-1c1a-4a0e-9d8e-0f4b6b6c2a11", "5", "key", "value", int64(1), int64(1_700_000_000))
	f.Add("", "", "", "", int64(-1), int64(-5))
	f.Fuzz(func(t *testing.T, uid, version, key, value string, generation, created int64) {
		o := metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version, Generation: generation}
		if at := metav1.Unix(created, 0); created != 0 && !at.IsZero() {
			o.CreationTimestamp = at
		}
		o.Labels, o.Annotations = map[string]string{key: value}, map[string]string{value: key}
		o.Finalizers = []string{key, value}
		requireMeta(t, &Dictionary{}, o)
	})
}

// cluster returns a ManagedCluster, of which a hub has thousands.
func cluster(number int) *clusterv1.ManagedCluster {
	at := metav1.Unix(1_700_000_000, 0)
	o := &clusterv1.ManagedCluster{ObjectMeta: metadata("77")}
	o.UID = types.UID(fmt.Sprintf("9f0bd1f4-1c1a-4a0e-9d8e-%012d", number))
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

// requireWhole packs and unpacks a whole object, and compares its JSON.
func requireWhole(t testing.TB, d *Dictionary, o *clusterv1.ManagedCluster) {
	t.Helper()
	got := &clusterv1.ManagedCluster{}
	d.Unpack(d.Pack(o), got)
	a, err := json.Marshal(o)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(a), string(b))
}

func TestAWholeObjectComesBack(t *testing.T) {
	deleted := metav1.Unix(1_700_000_100, 0)
	for name, change := range map[string]func(*clusterv1.ManagedCluster){
		"as most are":        func(*clusterv1.ManagedCluster) {},
		"empty":              func(o *clusterv1.ManagedCluster) { *o = clusterv1.ManagedCluster{} },
		"being deleted":      func(o *clusterv1.ManagedCluster) { o.DeletionTimestamp = &deleted },
		"with an empty list": func(o *clusterv1.ManagedCluster) { o.Status.Conditions = []metav1.Condition{} },
		"with bytes": func(o *clusterv1.ManagedCluster) {
			o.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{
				URL:      "https://a",
				CABundle: []byte{0, 1, 255},
			}}
		},
		"with a UID in a text":  func(o *clusterv1.ManagedCluster) { o.Status.Conditions[0].Message = string(o.UID) },
		"with a long message":   func(o *clusterv1.ManagedCluster) { o.Status.Conditions[0].Message = fmt.Sprintf("%4000d", 1) },
		"with 64 bytes of text": func(o *clusterv1.ManagedCluster) { o.Status.Conditions[0].Message = fmt.Sprintf("%64d", 1) },
		"with quantities": func(o *clusterv1.ManagedCluster) {
			o.Status.Capacity = clusterv1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, Packable(&clusterv1.ManagedCluster{}))
			var d Dictionary
			for i := range 3 { // spelled out, then by number
				o := cluster(i)
				change(o)
				requireWhole(t, &d, o)
			}
		})
	}
}

func FuzzPack(f *testing.F) {
	raw, err := json.Marshal(cluster(1))
	require.NoError(f, err)
	f.Add(raw)
	f.Add([]byte(`{"status":{"capacity":{"cpu":"1"},"conditions":[]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := &clusterv1.ManagedCluster{}
		if json.Unmarshal(raw, o) != nil {
			return
		}
		o.TypeMeta = metav1.TypeMeta{}
		o.ObjectMeta = metav1.ObjectMeta{
			UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation, CreationTimestamp: o.CreationTimestamp,
			DeletionTimestamp: o.DeletionTimestamp, Labels: o.Labels, Annotations: o.Annotations, Finalizers: o.Finalizers,
		}
		if before, err := json.Marshal(o); err != nil || json.Unmarshal(before, o) != nil { // times have whole seconds on the wire
			return
		}
		for _, at := range append(times(o), &o.CreationTimestamp, o.DeletionTimestamp) {
			if at != nil && at.Unix() == 0 {
				return // 1970 counts as no time
			}
		}
		var d Dictionary
		for i := range 3 {
			o.UID += types.UID(fmt.Sprint(i))
			requireWhole(t, &d, o)
		}
	})
}

func times(o *clusterv1.ManagedCluster) []*metav1.Time {
	var out []*metav1.Time
	for i := range o.Spec.Taints {
		out = append(out, o.Spec.Taints[i].TimeAdded)
	}
	for i := range o.Status.Conditions {
		out = append(out, &o.Status.Conditions[i].LastTransitionTime)
	}
	return out
}

func TestWhatOneObjectSaysDoesNotFillTheDictionary(t *testing.T) {
	var d Dictionary
	says := func(i, message int) *clusterv1.ManagedCluster {
		o := cluster(i)
		o.Status.Conditions[0].Message = fmt.Sprintf("only of %d", message)
		return o
	}
	for i := range 2 * maxWords {
		d.Pack(says(i, i))
		d.Pack(says(i, i))
	}
	require.Less(t, len(d.words), 30)
	for i := range 4 * maxWords {
		requireWhole(t, &d, says(i, i/2))
	}
	require.Len(t, d.words, maxWords)
}

func TestAUIDTakesFewBytes(t *testing.T) {
	type one struct{ UID string }
	var d Dictionary
	data := d.Pack(&one{"9f0bd1f4-1c1a-4a0e-9d8e-0f4b6b6c2a11"})
	require.Len(t, data, 1+uidBytes)
	var got one
	d.Unpack(data, &got)
	require.Equal(t, "9f0bd1f4-1c1a-4a0e-9d8e-0f4b6b6c2a11", got.UID)
}

func TestTypesThatCannotBePackedAreRefused(t *testing.T) {
	type loop struct{ Next *loop }
	for name, tc := range map[string]struct {
		of   any
		want string
	}{
		"an interface":              {&struct{ A any }{}, "a kind that cannot be packed"},
		"a field of its own":        {&struct{ a string }{}, "not exported"},
		"one that contains itself":  {&loop{}, "contains itself"},
		"keys that are not strings": {&struct{ A map[int]string }{}, "are not strings"},
		"a list of functions":       {&struct{ A []func() }{}, "a kind that cannot be packed"},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, Packable(tc.of), tc.want) })
	}
}
