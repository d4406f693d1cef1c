// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

type labelSet = labels.Set

func expression(key, operator string, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOperator(operator), Values: values},
	}}
}

func TestTheOldNameOfASelectorTypeMeansTheSame(t *testing.T) {
	old := exclusive("s")
	old.Spec.ClusterSelector.SelectorType = clusterv1beta2.SelectorTypeLegacyClusterSetLabel
	got, err := parseSelector(old)
	require.NoError(t, err)
	require.True(t, got.Exclusive)
}

func TestASelectorThatCannotBeUsedSaysWhereAndHow(t *testing.T) {
	huge := &metav1.LabelSelector{}
	for range 10_000 {
		huge.MatchExpressions = append(huge.MatchExpressions, metav1.LabelSelectorRequirement{
			Key:      strings.Repeat("ü", 500),
			Operator: "Likes",
		})
	}
	typo := exclusive("s")
	typo.Spec.ClusterSelector.SelectorType = "Labelselector"
	for name, tc := range map[string]struct {
		set  *clusterv1beta2.ManagedClusterSet
		want []string
	}{
		"an unknown operator": {
			selecting("s", expression("a", "Likes", "b")),
			[]string{"matchExpressions[0].operator", `"Likes"`, "In and NotIn"},
		},
		"an operator in lower case": {
			selecting("s", expression("a", "in", "b")),
			[]string{"matchExpressions[0].operator", `"in"`},
		},
		"no operator":          {selecting("s", expression("a", "")), []string{"matchExpressions[0].operator"}},
		"In without values":    {selecting("s", expression("a", "In")), []string{"matchExpressions[0].values", "In"}},
		"NotIn without values": {selecting("s", expression("a", "NotIn")), []string{"matchExpressions[0].values"}},
		"Exists with values": {
			selecting("s", expression("a", "Exists", "b")),
			[]string{"matchExpressions[0].values", "Exists and DoesNotExist without"},
		},
		"DoesNotExist with values": {
			selecting("s", expression("a", "DoesNotExist", "b")),
			[]string{"matchExpressions[0].values"},
		},
		"an empty key":           {selecting("s", expression("", "Exists")), []string{"matchExpressions[0].key"}},
		"a key in other letters": {selecting("s", expression("größe", "Exists")), []string{"matchExpressions[0].key"}},
		"a key with two slashes": {selecting("s", expression("a/b/c", "Exists")), []string{"matchExpressions[0].key"}},
		"a value that is too long": {
			selecting("s", expression("a", "In", strings.Repeat("x", 64))),
			[]string{"matchExpressions[0].values[0]"},
		},
		"a value with a space":  {selecting("s", matching("a", "b c")), []string{"matchLabels"}},
		"a value of emoji":      {selecting("s", matching("a", "🚀")), []string{"matchLabels"}},
		"a label without a key": {selecting("s", matching("", "b")), []string{"matchLabels"}},
		"a huge selector":       {selecting("s", huge), []string{"and ", " more"}},
		"an unknown type": {
			typo,
			[]string{
				"spec.clusterSelector.selectorType", `"Labelselector"`, "ExclusiveClusterSetLabel or LabelSelector",
			},
		},
		"a name that cannot be a label value": {
			exclusive(strings.Repeat("n", 64)),
			[]string{"metadata.name", "63", "LabelSelector"},
		},
		"a name with an empty label": {exclusive("a..b." + strings.Repeat("c", 60)), []string{"metadata.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseSelector(tc.set)
			require.Error(t, err)
			for _, part := range tc.want {
				require.ErrorContains(t, err, part)
			}
			require.Less(t, len(err.Error()), 2048, "it fits a condition")
			require.True(t, utf8.ValidString(err.Error()))

			x := newIndex()
			x.Cluster(nil, clusterWith("c1", inSet("good", "a", "b")))
			x.Set(nil, exclusive("good"))
			x.Set(nil, tc.set)
			require.Equal(t, []string{"c1"}, x.Members("good"), "other sets are not affected")
			require.Empty(t, x.Members(tc.set.Name))
		})
	}
}

func TestSelectorsThatCanBeUsed(t *testing.T) {
	unnamed := exclusive("s")
	unnamed.Spec.ClusterSelector.SelectorType = ""
	long := selecting(strings.Repeat("n", 200), &metav1.LabelSelector{})
	for name, tc := range map[string]struct {
		set       *clusterv1beta2.ManagedClusterSet
		exclusive bool
		keys      []string
		matches   bool
	}{
		"no type is the label of the set": {unnamed, true, nil, false},
		"no selector selects nothing":     {selecting("s", nil), false, nil, false},
		"an empty selector selects all":   {selecting("s", &metav1.LabelSelector{}), false, nil, true},
		"several requirements of one key": {
			selecting(
				"s",
				&metav1.LabelSelector{
					MatchLabels:      map[string]string{"b": "1"},
					MatchExpressions: expression("b", "Exists").MatchExpressions,
				},
			),
			false,
			[]string{"b"},
			false,
		},
		"a long name that no label must hold": {long, false, nil, true},
		"an empty value is a value":           {selecting("s", matching("a", "")), false, []string{"a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parseSelector(tc.set)
			require.NoError(t, err)
			require.Equal(t, tc.exclusive, s.Exclusive)
			require.Equal(t, tc.keys, s.Keys)
			if !s.Exclusive {
				require.Equal(t, tc.matches, s.Selector.Matches(labelSet{"z": "1"}))
			}
		})
	}
}
