// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

func configMap(namespace, name string, labels, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Data: data,
	}
}

var mark = map[string]string{labelSynced: name}

func TestWhatBecomesOfACopy(t *testing.T) {
	source := configMap("c1", "greeting", map[string]string{"a": "b"}, map[string]string{"hello": "world"})
	same := configMap("default", "greeting", map[string]string{labelSynced: name, "by": "a person"}, map[string]string{"hello": "world"})
	other := configMap("default", "greeting", same.Labels, map[string]string{"hello": "you"})
	other.UID, other.ResourceVersion = "1", "7"
	changed := configMap("default", "greeting", same.Labels, source.Data)
	changed.UID, changed.ResourceVersion = "1", "7"
	binary := source.DeepCopy()
	binary.BinaryData = map[string][]byte{"x": {0}}
	withBinary := configMap("default", "greeting", same.Labels, source.Data)
	withBinary.BinaryData = binary.BinaryData
	for name, tc := range map[string]struct {
		source, copy *corev1.ConfigMap
		goes         bool
		want         plan
	}{
		"it is new": {
			source: source,
			want:   plan{write: configMap("default", "greeting", mark, source.Data)},
		},
		"it is the same":                      {source: source, copy: same},
		"somebody changed it":                 {source: source, copy: other, want: plan{write: changed}},
		"binary data are data":                {source: binary, copy: same, want: plan{write: withBinary}},
		"its source is gone":                  {copy: same, want: plan{remove: same}},
		"both are gone":                       {},
		"every namespace has it":              {source: configMap("c1", "kube-root-ca.crt", nil, nil)},
		"it is a copy itself":                 {source: configMap("c1", "greeting", mark, nil)},
		"the add-on goes, it is new":          {source: source, goes: true},
		"the add-on goes, its source is gone": {copy: same, goes: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.source.DeepCopy()
			require.Equal(t, tc.want, decide(state{namespace: "default", addOn: "helloworld", source: tc.source, copy: tc.copy, stays: !tc.goes}))
			require.Equal(t, before, tc.source)
		})
	}
}

// cluster is a managed cluster with these ConfigMaps.
func cluster(t *testing.T, objects ...*corev1.ConfigMap) *fake.FakeDynamicClient {
	t.Helper()
	var list []runtime.Object
	for _, o := range objects {
		u, err := typed.ToUnstructured(o)
		require.NoError(t, err)
		list = append(list, u)
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(),
		map[schema.GroupVersionResource]string{configMaps: "ConfigMapList", leases: "LeaseList"}, list...,
	)
}

// data returns those of each ConfigMap there is.
func data(t *testing.T, client *fake.FakeDynamicClient) map[string]map[string]string {
	t.Helper()
	list, err := typed.List[corev1.ConfigMap](t.Context(), client, configMaps, "default", metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]map[string]string{}
	for _, c := range list {
		out[c.Name] = c.Data
	}
	return out
}

func TestWritesOfTheAgent(t *testing.T) {
	old := configMap("default", "old", mark, map[string]string{"a": "1"})
	old.UID = "1"
	theirs := configMap("default", "theirs", nil, map[string]string{"a": "theirs"})
	client := cluster(t, old, theirs, configMap("default", "gone", mark, nil))
	a := &agent{options: options{namespace: "default"}, managed: client}
	changed := old.DeepCopy()
	changed.Data = map[string]string{"a": "2"}
	for _, p := range []plan{
		{write: configMap("default", "new", mark, map[string]string{"a": "3"})},
		{write: changed},
		{write: configMap("default", "theirs", mark, map[string]string{"a": "mine"})},
		{remove: configMap("default", "gone", mark, nil)},
		{remove: configMap("default", "never", mark, nil)},
		{},
	} {
		require.NoError(t, a.execute(t.Context(), p))
	}
	require.Equal(t, map[string]map[string]string{"new": {
		"a": "3",
	}, "old": {
		"a": "2",
	}, "theirs": {
		"a": "theirs",
	}}, data(t, client))
}

func TestCleanupRemovesCopiesAndNothingElse(t *testing.T) {
	client := cluster(t, configMap("default", "a", mark, nil), configMap("default", "b", mark, nil), configMap("default", "theirs", nil, nil),
		configMap("default", "another", map[string]string{labelSynced: "another"}, nil), configMap("other", "c", mark, nil))
	o := options{namespace: "default", addOn: name}
	for _, called := range []string{name, "another"} {
		_, err := client.Resource(leases).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": called},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	ctx := logr.NewContext(context.Background(), logr.Discard())
	stuck := true
	client.PrependReactor("delete", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return stuck && action.(clienttesting.DeleteAction).GetName() == "a", nil, errors.New("no")
	})
	require.EqualError(t, remove(ctx, o, client), "removing configmap default/a: no")
	require.Equal(t, map[string]map[string]string{"a": nil, "theirs": nil, "another": nil}, data(t, client))
	stuck = false
	require.NoError(t, remove(ctx, o, client))
	require.Equal(t, map[string]map[string]string{"theirs": nil, "another": nil}, data(t, client))
	_, err := client.Resource(configMaps).Namespace("other").Get(t.Context(), "c", metav1.GetOptions{})
	require.NoError(t, err)
	left, err := client.Resource(leases).Namespace("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 1)
	require.Equal(t, "another", left.Items[0].GetName())
}
