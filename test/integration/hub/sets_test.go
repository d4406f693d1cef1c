// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	sets    = clusterv1beta2.GroupVersion.WithResource("managedclustersets")
	oldSets = schema.GroupVersionResource{Group: clusterv1.GroupName, Version: "v1beta1", Resource: "managedclustersets"}
)

// parsed reads a manifest.
func parsed(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &u.Object))
	return u
}

// makeSet creates a set with this spec, and removes it after the test.
func (s *scene) makeSet(t testing.TB, name, spec string) error {
	t.Helper()
	return s.makeSetAs(t, sets, name, spec)
}

func (s *scene) makeSetAs(t testing.TB, resource schema.GroupVersionResource, name, spec string) error {
	t.Helper()
	u := parsed(t, "apiVersion: "+resource.GroupVersion().String()+"\nkind: ManagedClusterSet\nspec: "+spec)
	u.SetName(name)
	_, err := s.dyn.Resource(resource).Create(t.Context(), u, metav1.CreateOptions{})
	if err == nil {
		s.after(t, sets, "", name)
	}
	return err
}

// after deletes an object when the test has ended, regardless of finalizers.
func (s *scene) after(t testing.TB, resource schema.GroupVersionResource, namespace, name string) {
	t.Cleanup(func() {
		api := s.dyn.Resource(resource).Namespace(namespace)
		_, _ = api.Patch(context.Background(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = api.Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// member creates a cluster with labels, and removes it after the test.
func (s *scene) member(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	mc := cluster(name)
	mc.Labels = labels
	settled(t, func() error { return create(s.dyn, mc) })
	t.Cleanup(func() {
		_ = s.dyn.Resource(clusters).Delete(context.Background(), name, metav1.DeleteOptions{})
		eventually(func() bool { return s.get(t, name) == nil })
	})
}

// relabel merges labels into a cluster; nil removes one.
func (s *scene) relabel(t testing.TB, name string, labels map[string]any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	require.NoError(t, err)
	require.NoError(t, patch(s.dyn, name, string(body)))
}

// patchSet merges a change into a set.
func (s *scene) patchSet(t testing.TB, name, body string) {
	t.Helper()
	_, err := s.dyn.Resource(sets).Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
}

// awaitSet waits until the set is as wanted.
func (s *scene) awaitSet(t testing.TB, name, what string, ok func(*clusterv1beta2.ManagedClusterSet) bool) *clusterv1beta2.ManagedClusterSet {
	t.Helper()
	var last *clusterv1beta2.ManagedClusterSet
	if !eventually(func() bool {
		set, err := typed.Get[clusterv1beta2.ManagedClusterSet](t.Context(), s.dyn, sets, "", name)
		if apierrors.IsNotFound(err) {
			return false
		}
		require.NoError(t, err)
		last = set
		return ok(set)
	}) {
		raw, _ := json.MarshalIndent(last, "", " ")
		t.Errorf("set %s: %s: %s", name, what, raw)
		s.logs(t)
		t.FailNow()
	}
	return last
}

// awaitEmpty waits until the set reports for its generation, with the message, whether it
// is empty.
func (s *scene) awaitEmpty(t testing.TB, name string, empty bool, message string) {
	t.Helper()
	status, reason := metav1.ConditionFalse, clusterv1beta2.ReasonClustersSelected
	if empty {
		status, reason = metav1.ConditionTrue, clusterv1beta2.ReasonNoClusterMatched
	}
	s.awaitSet(t, name, fmt.Sprintf("is empty: %v, and says %q", empty, message), func(set *clusterv1beta2.ManagedClusterSet) bool {
		c := apimeta.FindStatusCondition(set.Status.Conditions, clusterv1beta2.ConditionClusterSetEmpty)
		return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == set.Generation && strings.Contains(c.Message, message)
	})
}

func TestASetTellsOfItsMembers(t *testing.T) {
	s := sharedHub(t)
	for name, tc := range map[string]struct {
		resource        schema.GroupVersionResource
		spec            string
		inside, outside map[string]any
	}{
		"exclusive": {
			sets,
			"{clusterSelector: {selectorType: ExclusiveClusterSetLabel}}",
			map[string]any{clusterv1.LabelClusterSet: "tells-exclusive"},
			map[string]any{clusterv1.LabelClusterSet: "default"},
		},
		"no-type": {
			sets,
			"{clusterSelector: {}}",
			map[string]any{clusterv1.LabelClusterSet: "tells-no-type"},
			map[string]any{clusterv1.LabelClusterSet: "default"},
		},
		"no-spec": {
			sets,
			"{}",
			map[string]any{clusterv1.LabelClusterSet: "tells-no-spec"},
			map[string]any{clusterv1.LabelClusterSet: "default"},
		},
		"v1beta1": {
			oldSets,
			"{}",
			map[string]any{clusterv1.LabelClusterSet: "tells-v1beta1"},
			map[string]any{clusterv1.LabelClusterSet: "default"},
		},
		"labels": {
			sets, "{clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {tells: 'yes'}}}}",
			map[string]any{"tells": "yes"}, map[string]any{"tells": nil},
		},
		"expressions": {
			sets, "{clusterSelector: {selectorType: LabelSelector, labelSelector: {matchExpressions: [{key: tells, operator: In, values: ['yes', 'no']}]}}}",
			map[string]any{"tells": "no"}, map[string]any{"tells": "perhaps"},
		},
		"v1beta1-labels": {
			oldSets, "{clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {tells: 'yes'}}}}",
			map[string]any{"tells": "yes"}, map[string]any{"tells": nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set, member := "tells-"+name, "tells-"+name+"-c"
			require.NoError(t, s.makeSetAs(t, tc.resource, set, tc.spec))
			s.awaitEmpty(t, set, true, "No ManagedCluster selected")
			s.member(t, member, nil)
			s.relabel(t, member, tc.inside)
			s.awaitEmpty(t, set, false, "1 ManagedClusters selected")
			s.relabel(t, member, tc.outside)
			s.awaitEmpty(t, set, true, "No ManagedCluster selected")
			s.relabel(t, member, tc.inside)
			s.awaitEmpty(t, set, false, "1 ManagedClusters selected")
			require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), member, metav1.DeleteOptions{}))
			s.awaitEmpty(t, set, true, "No ManagedCluster selected")
		})
	}
}

func TestTheGlobalSetTakesEveryClusterAndNoSelectorTakesNone(t *testing.T) {
	s := sharedHub(t)
	require.NoError(t, s.makeSet(t, "takes-none", "{clusterSelector: {selectorType: LabelSelector}}"))
	require.NoError(t, s.makeSet(t, "takes-all", "{clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}"))
	s.member(t, "taken", nil)
	s.awaitEmpty(t, clusterv1beta2.GlobalClusterSet, false, "selected")
	s.awaitEmpty(t, "takes-all", false, "selected")
	s.awaitEmpty(t, "takes-none", true, "labelSelector is missing; {} selects every cluster")

	s.patchSet(t, "takes-none", `{"spec":{"clusterSelector":{"labelSelector":{}}}}`)
	s.awaitEmpty(t, "takes-none", false, "selected")
	s.patchSet(t, "takes-none", `{"spec":{"clusterSelector":{"selectorType":"ExclusiveClusterSetLabel"}}}`)
	s.awaitEmpty(t, "takes-none", true, "labelSelector is not used")
	s.relabel(t, "taken", map[string]any{clusterv1.LabelClusterSet: "takes-none"})
	s.awaitEmpty(t, "takes-none", false, "1 ManagedClusters selected")
}

func TestTheHubKeepsItsOwnSets(t *testing.T) {
	s := sharedHub(t)
	for _, name := range []string{clusterv1beta2.DefaultClusterSet, clusterv1beta2.GlobalClusterSet} {
		t.Run(name, func(t *testing.T) {
			made := s.awaitSet(t, name, "is there", func(*clusterv1beta2.ManagedClusterSet) bool { return true })
			t.Cleanup(func() { _ = s.dyn.Resource(sets).Delete(context.Background(), name, metav1.DeleteOptions{}) })
			s.patchSet(t, name, `{"metadata":{"labels":{"mine":"stays"},"annotations":{"mine":"stays"}},
				"spec":{"managedNamespaces":[{"name":"kept"}],"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"a":"b"}}}}}`)
			set := s.awaitSet(t, name, "has its selector back", func(set *clusterv1beta2.ManagedClusterSet) bool {
				return apiequality.Semantic.DeepEqual(set.Spec.ClusterSelector, made.Spec.ClusterSelector)
			})
			require.Equal(t, "stays", set.Labels["mine"])
			require.Equal(t, "stays", set.Annotations["mine"])
			require.Equal(t, []clusterv1.ManagedNamespaceConfig{{Name: "kept"}}, set.Spec.ManagedNamespaces)

			s.patchSet(t, name, `{"metadata":{"annotations":{"cluster.open-cluster-management.io/autoupdate":"false"}}}`)
			s.patchSet(t, name, `{"spec":{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"no-such":"label"}}}}}`)
			s.awaitEmpty(t, name, true, "No ManagedCluster selected")
			set = s.awaitSet(t, name, "is the user's now", func(*clusterv1beta2.ManagedClusterSet) bool { return true })
			require.Equal(t, map[string]string{"no-such": "label"}, set.Spec.ClusterSelector.LabelSelector.MatchLabels)
			s.patchSet(t, name, `{"metadata":{"annotations":{"cluster.open-cluster-management.io/autoupdate":null}}}`)
			s.awaitSet(t, name, "is the hub's again", func(set *clusterv1beta2.ManagedClusterSet) bool {
				return apiequality.Semantic.DeepEqual(set.Spec.ClusterSelector, made.Spec.ClusterSelector)
			})

			require.NoError(t, s.dyn.Resource(sets).Delete(t.Context(), name, metav1.DeleteOptions{}))
			set = s.awaitSet(t, name, "is made again", func(again *clusterv1beta2.ManagedClusterSet) bool { return again.UID != set.UID })
			require.True(t, apiequality.Semantic.DeepEqual(set.Spec.ClusterSelector, made.Spec.ClusterSelector))
			require.Empty(t, set.Labels["mine"])
		})
	}
}

// TestASetThatCannotBeRightHarmsNobody creates sets with mistakes of users: they are
// refused, and if they were stored before admission, the set reports the mistake.
func TestASetThatCannotBeRightHarmsNobody(t *testing.T) {
	s := sharedHub(t)
	require.NoError(t, s.makeSet(t, "bystander", "{}"))
	s.member(t, "bystanding", map[string]string{clusterv1.LabelClusterSet: "bystander"})
	long := strings.Repeat("n", 64)
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, "{key: 'k%d', operator: Likes},", i)
	}
	selector := func(s string) string {
		return "{clusterSelector: {selectorType: LabelSelector, labelSelector: " + s + "}}"
	}
	cases := map[string]struct{ set, spec, refused, told string }{
		"an unknown type": {
			"wrong",
			"{clusterSelector: {selectorType: Labels}}",
			"spec.clusterSelector.selectorType",
			"",
		},
		"the type of the oldest version": {
			"wrong",
			"{clusterSelector: {selectorType: LegacyClusterSetLabel}}",
			"spec.clusterSelector.selectorType",
			"",
		},
		"a selector that is a text": {"wrong", selector("'a=b'"), "labelSelector", ""},
		"labels that are numbers":   {"wrong", selector("{matchLabels: {a: 1}}"), "matchLabels", ""},
		"a name with capitals":      {"Wrong", "{}", "metadata.name", ""},
		"a name in other letters":   {"größe", "{}", "metadata.name", ""},
		"a namespace with a dot": {
			"wrong",
			"{managedNamespaces: [{name: a.b}]}",
			"spec.managedNamespaces[0].name",
			"",
		},
		"a namespace that is too long": {
			"wrong",
			"{managedNamespaces: [{name: " + long + "}]}",
			"spec.managedNamespaces[0].name",
			"",
		},
		"a namespace twice": {
			"wrong",
			"{managedNamespaces: [{name: a}, {name: a}]}",
			"spec.managedNamespaces[1]",
			"",
		},
		"a namespace without a name": {"wrong", "{managedNamespaces: [{}]}", "spec.managedNamespaces[0].name", ""},
		"an unknown operator": {
			"wrong-1",
			selector("{matchExpressions: [{key: a, operator: Likes}]}"),
			"spec.clusterSelector.labelSelector",
			"spec.clusterSelector.labelSelector.matchExpressions[0].operator",
		},
		"In without values": {
			"wrong-2",
			selector("{matchExpressions: [{key: a, operator: In}]}"),
			"spec.clusterSelector.labelSelector",
			"spec.clusterSelector.labelSelector.matchExpressions[0].values",
		},
		"Exists with values": {
			"wrong-3",
			selector("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}"),
			"spec.clusterSelector.labelSelector",
			"matchExpressions[0].values",
		},
		"an empty key": {
			"wrong-4",
			selector("{matchExpressions: [{key: '', operator: Exists}]}"),
			"spec.clusterSelector.labelSelector",
			"matchExpressions[0].key",
		},
		"a key in other letters": {
			"wrong-5",
			selector("{matchLabels: {größe: klein}}"),
			"spec.clusterSelector.labelSelector",
			"spec.clusterSelector.labelSelector.matchLabels",
		},
		"a value of emoji": {
			"wrong-6",
			selector("{matchLabels: {a: 🚀}}"),
			"spec.clusterSelector.labelSelector",
			"spec.clusterSelector.labelSelector.matchLabels",
		},
		"two thousand bad requirements": {
			"wrong-7",
			selector("{matchExpressions: [" + many.String() + "]}"),
			"spec.clusterSelector.labelSelector",
			"and 1997 more",
		},
		"a name that no label can hold": {long, "{}", "metadata.name", "metadata.name"},
	}
	stored := map[string]string{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := s.makeSet(t, tc.set, tc.spec)
			require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
			require.ErrorContains(t, err, tc.refused)
		})
		if tc.told != "" {
			stored[tc.set] = tc.spec
		}
	}
	require.Len(t, stored, 8)
	// A set from before admission reports the mistake itself.
	s.exempt(t, func() {
		for set, spec := range stored {
			settled(t, func() error { return s.makeSet(t, set, spec) })
		}
	})
	for name, tc := range cases {
		if tc.told == "" {
			continue
		}
		t.Run(name+", from before admission", func(t *testing.T) {
			s.awaitEmpty(t, tc.set, true, tc.told)
			s.awaitEmpty(t, "bystander", false, "1 ManagedClusters selected")
			s.patchSet(
				t, tc.set,
				`{"spec":{"clusterSelector":{"selectorType":"LabelSelector",
					"labelSelector":{"matchLabels":null,"matchExpressions":[{"key":"no-such-key","operator":"Exists"}]}}}}`,
			)
			s.awaitEmpty(t, tc.set, true, "No ManagedCluster selected")
		})
	}
	s.awaitEmpty(t, "bystander", false, "1 ManagedClusters selected")
}

func TestColumnsOfSets(t *testing.T) {
	s := sharedHub(t)
	require.NoError(t, s.makeSet(t, "columns", "{}"))
	s.awaitEmpty(t, "columns", true, "")
	for version, resource := range map[string]string{"v1beta2": "managedclustersets", "v1beta1": "managedclustersets"} {
		raw, err := s.kube.Discovery().RESTClient().Get().AbsPath("/apis/"+clusterv1.GroupName+"/"+version, resource, "columns").
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
		require.NoError(t, err)
		table := &metav1.Table{}
		require.NoError(t, json.Unmarshal(raw, table))
		var header []string
		for _, c := range table.ColumnDefinitions {
			header = append(header, c.Name)
		}
		require.Equal(t, []string{"Name", "Empty", "Age"}, header, version)
		require.Equal(t, "True", table.Rows[0].Cells[1], version)
	}
}
