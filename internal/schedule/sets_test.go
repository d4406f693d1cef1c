// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

func inSet(name string) func(*clusterv1.ManagedCluster) {
	return labelled(clusterv1.LabelClusterSet, name)
}

func labelled(key, value string) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) { c.Labels[key] = value }
}

// selecting returns a set with a label selector.
func selecting(name string, selector *metav1.LabelSelector) *clusterv1beta2.ManagedClusterSet {
	s := setOf(name)
	s.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.SelectorTypeLabelSelector, LabelSelector: selector}
	return s
}

func TestCandidatesComeFromBoundSets(t *testing.T) {
	const (
		noBinding = "NoManagedClusterSetBindings"
		noSet     = "NoIntersection"
		empty     = "AllManagedClusterSetsEmpty"
	)
	explicit := setOf("a")
	explicit.Spec.ClusterSelector.SelectorType = clusterv1beta2.SelectorTypeExclusiveClusterSetLabel
	odd := setOf("a")
	odd.Spec.ClusterSelector.SelectorType = "Odd"
	badOperator := selecting("a", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "k", Operator: "Odd"},
	}})
	renamed := bindingOf("ns", "a")
	renamed.Spec.ClusterSet = "b"
	deleting := setOf("a")
	deleting.DeletionTimestamp = &metav1.Time{Time: now}
	vendor := &metav1.LabelSelector{MatchLabels: map[string]string{"vendor": "openShift"}}
	for name, tc := range map[string]struct {
		sets     []*clusterv1beta2.ManagedClusterSet
		bindings []*clusterv1beta2.ManagedClusterSetBinding
		wanted   []string
		selected []string
		reason   string
	}{
		"a set without binding": {sets: sets(setOf("a")), reason: noBinding},
		"a binding without set": {bindings: bound("a"), reason: noBinding},
		"a binding in another namespace": {
			sets:     sets(setOf("a")),
			bindings: []*clusterv1beta2.ManagedClusterSetBinding{bindingOf("other", "a")},
			reason:   noBinding,
		},
		"a binding whose spec names another set": {
			sets:     sets(setOf("a"), setOf("b")),
			bindings: []*clusterv1beta2.ManagedClusterSetBinding{renamed},
			reason:   noBinding,
		},
		"set and binding":             {sets: sets(setOf("a")), bindings: bound("a"), selected: []string{"a1", "a2"}},
		"the selector type said":      {sets: sets(explicit), bindings: bound("a"), selected: []string{"a1", "a2"}},
		"a set that is being deleted": {sets: sets(deleting), bindings: bound("a"), selected: []string{"a1", "a2"}},
		"wanted sets without binding": {sets: sets(setOf("a")), wanted: []string{"a"}, reason: noBinding},
		"no wanted sets, two bound": {
			sets:     sets(setOf("a"), setOf("b")),
			bindings: bound("a", "b"),
			selected: []string{"a1", "a2", "b1"},
		},
		"wanted sets and bound ones have one": {
			sets:     sets(setOf("a"), setOf("b"), setOf("c")),
			bindings: bound("b", "c"),
			wanted:   []string{"a", "b"},
			selected: []string{"b1"},
		},
		"wanted sets that are not bound": {
			sets:     sets(setOf("a"), setOf("b")),
			bindings: bound("b"),
			wanted:   []string{"a"},
			reason:   noSet,
		},
		"a set without members": {sets: sets(setOf("c")), bindings: bound("c"), reason: empty},
		"by label, without the label of the set": {
			sets:     sets(selecting("v", vendor)),
			bindings: bound("v"),
			selected: []string{"b1"},
		},
		"the empty selector takes all": {
			sets:     sets(selecting("g", &metav1.LabelSelector{})),
			bindings: bound("g"),
			selected: []string{"a1", "a2", "b1", "free"},
		},
		"no selector takes none": {sets: sets(selecting("g", nil)), bindings: bound("g"), reason: empty},
		"two sets with the same clusters": {
			sets:     sets(setOf("a"), selecting("g", &metav1.LabelSelector{})),
			bindings: bound("a", "g"),
			selected: []string{"a1", "a2", "b1", "free"},
		},
		"a set with an unknown type":     {sets: sets(odd), bindings: bound("a"), reason: empty},
		"a set with an unknown operator": {sets: sets(badOperator), bindings: bound("a"), reason: empty},
		"a malformed set leaves the others as good": {
			sets:     sets(odd, setOf("b")),
			bindings: bound("a", "b"),
			selected: []string{"b1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := schedule.New()
			for _, c := range []*clusterv1.ManagedCluster{
				clusterOf("a2", inSet("a")), clusterOf("a1", inSet("a")), clusterOf("b1", inSet("b"), labelled("vendor", "openShift")),
				clusterOf("gone", inSet("a"), func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = &metav1.Time{Time: now} }),
				clusterOf("free", inSet("")),
			} {
				s.SetCluster(c)
			}
			for _, one := range tc.sets {
				s.SetClusterSet(one)
			}
			for _, one := range tc.bindings {
				s.SetBinding(one)
			}
			s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{ClusterSets: tc.wanted}))
			r := s.Decide(key, now)
			if tc.reason == "" {
				tc.reason = "AllDecisionsScheduled"
			}
			require.Equal(t, tc.reason, r.Satisfied.Reason, r.Satisfied.Message)
			require.ElementsMatch(t, tc.selected, names(r))
			require.NotEmpty(t, r.Groups, "there is a group, even an empty one")
		})
	}
}

func sets(of ...*clusterv1beta2.ManagedClusterSet) []*clusterv1beta2.ManagedClusterSet { return of }

func bound(names ...string) []*clusterv1beta2.ManagedClusterSetBinding {
	var out []*clusterv1beta2.ManagedClusterSetBinding
	for _, name := range names {
		out = append(out, bindingOf("ns", name))
	}
	return out
}

func TestMessagesNameTheSets(t *testing.T) {
	s := schedule.New()
	s.SetClusterSet(setOf("b"))
	s.SetClusterSet(setOf("a"))
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{ClusterSets: []string{"z", "b"}}))
	require.Equal(t, "No valid ManagedClusterSetBindings found in placement namespace", s.Decide(key, now).Satisfied.Message)
	s.SetBinding(bindingOf("ns", "a"))
	require.Equal(t, "None of ManagedClusterSets [z,b] is bound to placement namespace", s.Decide(key, now).Satisfied.Message)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{}))
	s.SetBinding(bindingOf("ns", "b"))
	require.Equal(t, "All ManagedClusterSets [a,b] have no member ManagedCluster", s.Decide(key, now).Satisfied.Message)
}

func TestTheOldNameOfASelectorTypeMeansTheSame(t *testing.T) {
	s := fleet(3)
	old := setOf("prod")
	old.Spec.ClusterSelector.SelectorType = clusterv1beta2.SelectorTypeLegacyClusterSetLabel
	s.SetClusterSet(old)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{}))
	require.Equal(t, []string{"c1", "c2", "c3"}, names(s.Decide(key, now)))
}

// A set that becomes invalid removes no cluster from the decisions, and is reported.
func TestAMalformedSetKeepsWhatIsSelected(t *testing.T) {
	s := fleet(3)
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{}))
	s.SetDecision(decisionOf(key, 1, "c1", "c2"))
	broken := setOf("prod")
	broken.Spec.ClusterSelector.SelectorType = "Odd"
	s.SetClusterSet(broken)
	r := s.Decide(key, now)
	require.Equal(t, []string{"c1", "c2"}, names(r), "nobody goes, and nobody comes")
	require.Equal(
		t,
		[]string{`ManagedClusterSet prod: spec.clusterSelector.selectorType "Odd" is not known: use ExclusiveClusterSetLabel or LabelSelector`},
		r.Warnings,
	)
	require.Equal(t, "All cluster decisions scheduled; "+r.Warnings[0], r.Satisfied.Message)
	s.DeleteCluster("c1")
	require.Equal(t, []string{"c2"}, names(s.Decide(key, now)))
	s.SetClusterSet(setOf("prod"))
	require.Equal(t, []string{"c2", "c3"}, names(s.Decide(key, now)))
}
