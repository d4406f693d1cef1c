// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const me = "ocm.addon.install"

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)))
	return u
}

func index() *Index { return New(&manager.Manager{}, nil, me) }

func TestKeep(t *testing.T) {
	got, ok := index().keep(decoded(t, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ManagedClusterAddOn","metadata":{
		"namespace":"c1","name":"metrics","uid":"u","resourceVersion":"5","generation":2,"deletionTimestamp":"2026-01-01T00:00:00Z",
		"annotations":{"addon.open-cluster-management.io/a":"1","other":"2"},
		"ownerReferences":[{"apiVersion":"v","kind":"K","name":"n","uid":"o","controller":true}],
		"managedFields":[
			{"manager":"ocm.addon.install","operation":"Apply","fieldsV1":{"f:metadata":{"f:annotations":{".":{},
				"f:addon.open-cluster-management.io/b":{},"f:addon.open-cluster-management.io/a":{}}}}},
			{"manager":"ocm.addon.install","operation":"Update","fieldsV1":{"f:metadata":{"f:annotations":{"f:updated":{}}}}},
			{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:metadata":{"f:annotations":{"f:theirs":{}}}}}]},
		"spec":{"configs":[{"group":"g","resource":"r","namespace":"ns","name":"own"}]},
		"status":{"supportedConfigs":[{"group":"g","resource":"r"}],
			"configReferences":[{"group":"g","resource":"r","namespace":"ns","name":"own","lastObservedGeneration":3,
				"desiredConfig":{"namespace":"ns","name":"own","specHash":"h"}}],
			"conditions":[{"type":"Available","status":"True","reason":"R","message":"m","lastTransitionTime":null}]}}`))
	require.True(t, ok)
	kind, own := addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "r"}, addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "own"}
	yes := true
	want := AddOn{
		Cluster: "c1", Name: "metrics", UID: "u", Version: "5", Generation: 2, Deleting: true,
		Annotations: map[string]string{"addon.open-cluster-management.io/a": "1"},
		Given:       []string{"addon.open-cluster-management.io/a", "addon.open-cluster-management.io/b"},
		Owners:      []metav1.OwnerReference{{APIVersion: "v", Kind: "K", Name: "n", UID: "o", Controller: &yes}},
		Configs:     []addonv1alpha1.AddOnConfig{{ConfigGroupResource: kind, ConfigReferent: own}},
		Supported:   []addonv1alpha1.ConfigGroupResource{kind},
		References: []addonv1alpha1.ConfigReference{{ConfigGroupResource: kind, ConfigReferent: own, LastObservedGeneration: 3,
			DesiredConfig: &addonv1alpha1.ConfigSpecHash{ConfigReferent: own, SpecHash: "h"}}},
		Conditions: []metav1.Condition{{Type: "Available", Status: "True", Reason: "R", Message: "m"}},
	}
	require.Empty(t, cmp.Diff(want, got))
	newer := got
	newer.Version = "6"
	require.True(t, same(got, newer), "a new version alone is no change")
	newer.Generation = 3
	require.False(t, same(got, newer))
	_, ok = index().keep(decoded(t, `{"kind":"ManagedClusterAddOn","metadata":{"name":"x"},"spec":{"configs":"none"}}`))
	require.False(t, ok)
}

func TestKeepWork(t *testing.T) {
	conditions := func(applied, available int) string {
		return fmt.Sprintf(
			`[{"type":"Applied","status":"True","observedGeneration":%d},{"type":"Available","status":"True","observedGeneration":%d}]`,
			applied, available,
		)
	}
	work := func(namespace, name, labels, mark, conditions string) *unstructured.Unstructured {
		return decoded(t, fmt.Sprintf(`{"kind":"ManifestWork","metadata":{"namespace":%q,"name":%q,"generation":4,"labels":{%s},
			"annotations":{"open-cluster-management.io/config-spec-hash":%q}},"spec":{},"status":{"conditions":%s}}`, namespace, name, labels, mark, conditions))
	}
	const of = `"open-cluster-management.io/addon-name":"metrics"`
	for name, tc := range map[string]struct {
		work *unstructured.Unstructured
		want Work
		ok   bool
	}{
		"in place": {
			work("c1", "addon-metrics-deploy-0", of, `{"a":"1"}`, conditions(4, 4)),
			Work{reconcile.Key{Namespace: "c1", Name: "metrics"}, `{"a":"1"}`, true, true},
			true,
		},
		"of an older form": {
			work("c1", "addon-metrics-deploy", of, "", conditions(4, 4)),
			Work{reconcile.Key{Namespace: "c1", Name: "metrics"}, "", true, true},
			true,
		},
		"of an older spec": {
			work("c1", "addon-metrics-deploy-0", of, "", conditions(4, 3)),
			Work{reconcile.Key{Namespace: "c1", Name: "metrics"}, "", true, false},
			true,
		},
		"nothing said": {
			work("c1", "addon-metrics-deploy-0", of, "x", "[]"),
			Work{reconcile.Key{Namespace: "c1", Name: "metrics"}, "", false, false},
			true,
		},
		"on a hosting cluster": {
			work("host", "addon-metrics-deploy-hosting-c1-0", of+`,"open-cluster-management.io/addon-namespace":"c1"`, "", "[]"),
			Work{reconcile.Key{Namespace: "c1", Name: "metrics"}, "", true, false},
			true,
		},
		"a hook":                {work("c1", "addon-metrics-pre-delete", of, "", "[]"), Work{}, false},
		"a hook that is hosted": {work("host", "addon-metrics-pre-delete-hosting-c1", of, "", "[]"), Work{}, false},
		"of no add-on": {
			work("c1", "addon-metrics-deploy-0", `"open-cluster-management.io/addon-name":""`, "", "[]"),
			Work{},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := index().keepWork(tc.work)
			require.Equal(t, tc.ok, ok)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestWordsAreBounded(t *testing.T) {
	w := &words{}
	long := strings.Repeat("x", maxWord+1)
	require.Equal(t, long, w.of(long))
	require.Empty(t, w.of(""))
	require.Empty(t, w.held)
	for i := range maxWords + 10 {
		text := fmt.Sprint("word ", i)
		require.Equal(t, text, w.of(text))
	}
	require.Len(t, w.held, 10)
}
