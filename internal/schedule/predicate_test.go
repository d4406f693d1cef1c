// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

func byLabel(key, value string) clusterv1beta1.ClusterPredicate {
	var p clusterv1beta1.ClusterPredicate
	p.RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{key: value}
	return p
}

func byClaim(p clusterv1beta1.ClusterPredicate, key, value string) clusterv1beta1.ClusterPredicate {
	p.RequiredClusterSelector.ClaimSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}},
	}
	return p
}

func byCEL(p clusterv1beta1.ClusterPredicate, expressions ...string) clusterv1beta1.ClusterPredicate {
	p.RequiredClusterSelector.CELSelector.CELExpressions = expressions
	return p
}

func claiming(name, value string) func(*clusterv1.ManagedCluster) {
	return func(c *clusterv1.ManagedCluster) {
		c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: name, Value: value})
	}
}

// threeClouds are c1 on Amazon, c2 on Azure and c3 on Amazon, in two regions.
func threeClouds() *schedule.Scheduler {
	s := fleet(0)
	s.SetCluster(clusterOf("c1", labelled("cloud", "Amazon"), claiming("region", "east"), labelled("version", "1.30.6")))
	s.SetCluster(clusterOf("c2", labelled("cloud", "Azure"), claiming("region", "east"), labelled("version", "1.31.0")))
	s.SetCluster(clusterOf("c3", labelled("cloud", "Amazon"), claiming("region", "east"), claiming("region", "west")))
	s.SetScore(scoreOf("c1", "test", 90, nil))
	s.SetScore(scoreOf("c2", "test", 70, nil))
	return s
}

func TestPredicates(t *testing.T) {
	var none clusterv1beta1.ClusterPredicate
	const label = `managedCluster.metadata.labels["cloud"] == "Amazon"`
	for name, tc := range map[string]struct {
		predicates []clusterv1beta1.ClusterPredicate
		selected   []string
	}{
		"none":                          {nil, []string{"c1", "c2", "c3"}},
		"an empty one":                  {all(none), []string{"c1", "c2", "c3"}},
		"a label":                       {all(byLabel("cloud", "Amazon")), []string{"c1", "c3"}},
		"a claim":                       {all(byClaim(none, "region", "east")), []string{"c1", "c2"}},
		"the last of two claims counts": {all(byClaim(none, "region", "west")), []string{"c3"}},
		"label and claim":               {all(byClaim(byLabel("cloud", "Amazon"), "region", "east")), []string{"c1"}},
		"two predicates": {
			all(byLabel("cloud", "Azure"), byClaim(none, "region", "west")),
			[]string{"c2", "c3"},
		},
		"nothing fits":   {all(byLabel("cloud", "none")), []string{}},
		"CEL on a label": {all(byCEL(none, label)), []string{"c1", "c3"}},
		"CEL on a claim": {
			all(byCEL(none, `managedCluster.status.clusterClaims.exists(c, c.name == "region" && c.value == "west")`)),
			[]string{"c3"},
		},
		"CEL on a score": {
			all(byCEL(none, `managedCluster.scores("test").filter(s, s.name == "score").all(s, s.value > 80)`)),
			[]string{"c1"},
		},
		"two expressions": {
			all(byCEL(none, label, `managedCluster.metadata.name != "c1"`)),
			[]string{"c3"},
		},
		"CEL and a label":                    {all(byCEL(byLabel("cloud", "Azure"), `true`)), []string{"c2"}},
		"CEL and a label that does not hold": {all(byCEL(byLabel("cloud", "none"), `true`)), []string{}},
		"no expressions":                     {all(byCEL(none)), []string{"c1", "c2", "c3"}},
		"semver": {
			all(byCEL(none, `semver(managedCluster.metadata.labels.version).isLessThan(semver("1.31.0"))`)),
			[]string{"c1"},
		},
		"JSON": {
			all(byCEL(none, `'{"cloud": {"name": "Azure"}}'.parseJSON().cloud.name == managedCluster.metadata.labels.cloud`)),
			[]string{"c2"},
		},
		"JSON numbers are doubles": {all(byCEL(none, `'[1]'.parseJSON()[0] == 1.0`)), []string{"c1", "c2", "c3"}},
		"a key that is not there": {
			all(byCEL(none, `managedCluster.metadata.labels["version"] != ""`)),
			[]string{"c1", "c2"},
		},
		"optional": {
			all(byCEL(none, `managedCluster.metadata.?labels["version"].orValue("none") == "none"`)),
			[]string{"c3"},
		},
		"no kind and apiVersion": {
			all(byCEL(none, `!has(managedCluster.kind) && !has(managedCluster.apiVersion)`)),
			[]string{"c1", "c2", "c3"},
		},
		"status always has both": {
			all(byCEL(none, `has(managedCluster.status.version) && managedCluster.status.conditions.size() == 0`)),
			[]string{"c1", "c2", "c3"},
		},
		"acceptance is always there": {
			all(byCEL(none, `managedCluster.spec.hubAcceptsClient == false`)),
			[]string{"c1", "c2", "c3"},
		},
		"parts can be gone through": {
			all(byCEL(none, `managedCluster.map(k, k).size() == 3 && managedCluster.status.exists(k, k == "version") && managedCluster.size() == 3`)),
			[]string{"c1", "c2", "c3"},
		},
		"what is compared whole": {
			all(byCEL(none, `managedCluster.metadata == managedCluster.metadata && type(managedCluster) == map && !("x" in managedCluster)`)),
			[]string{"c1", "c2", "c3"},
		},
		"scores of something else": {all(byCEL(none, `{"a": 1}.scores("test").size() == 1`)), []string{}},
		"JSON that is none": {
			all(byCEL(none, `managedCluster.metadata.name.parseJSON() == 1`)),
			[]string{},
		},
		"what gives no bool when it is looked": {all(byCEL(none, `managedCluster.metadata.labels.cloud`)), []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := threeClouds()
			s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{Predicates: tc.predicates}))
			r := s.Decide(key, now)
			require.Equal(t, "False", string(r.Misconfigured.Status), r.Misconfigured.Message)
			require.Equal(t, tc.selected, names(r))
			if len(tc.selected) == 0 {
				require.Equal(t, "No ManagedCluster matches any of the cluster predicate", r.Satisfied.Message)
			}
		})
	}
}

func all(of ...clusterv1beta1.ClusterPredicate) []clusterv1beta1.ClusterPredicate { return of }

// The costs of the contract. The Kubernetes libraries are charged by their own estimates,
// which upstream omits, so the costs of semver differ.
func TestExplainTellsCostsAndErrors(t *testing.T) {
	var none clusterv1beta1.ClusterPredicate
	for expression, want := range map[string]struct {
		cost  uint64
		error string
	}{
		`managedCluster.metadata.labels["cloud"] == "Amazon"`: {cost: 5},
		`managedCluster.metadata.labels["cloud"] == "none"`:   {cost: 5},
		`managedCluster.scores("none") == []`: {
			error: "failed to get score none of cluster c1: there is none",
		},
		`managedCluster.scores("old") == []`: {
			error: "failed to get score old of cluster c1: it has expired",
		},
		`managedCluster.scores("empty").size() == 0`:      {cost: 13},
		`managedCluster.scores("two").size() == 2`:        {cost: 75},
		`'{"a": 1}'.parseJSON() == dyn(true)`:             {cost: 32},
		`'{"a": {"b": 1}}'.parseJSON() == dyn(true)`:      {cost: 63},
		`'[1]'.parseJSON() == dyn(true)`:                  {cost: 12},
		`'[{"a": 1}, {"b": 2}]'.parseJSON() == dyn(true)`: {cost: 74},
		`managedCluster.metadata.labels["none"] == ""`:    {error: "no such key: none"},
		`managedCluster.metadata.labels["cloud"].parseJSON() == dyn("cloud")`: {
			error: "reading JSON: invalid character 'A' looking for beginning of value",
		},
	} {
		t.Run(expression, func(t *testing.T) {
			s := threeClouds()
			two := scoreOf("c1", "two", 1, nil)
			two.Status.Scores = append(two.Status.Scores, two.Status.Scores[0])
			s.SetScore(two)
			s.SetScore(scoreOf("c1", "old", 1, &metav1.Time{Time: now}))
			empty := scoreOf("c1", "empty", 1, nil)
			empty.Status.Scores = nil
			s.SetScore(empty)
			s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{Predicates: all(byCEL(none, expression))}))
			part := s.Explain(key, now).Clusters[0].Predicates[0].Parts[0]
			require.Equal(t, expression, part.Requirement)
			require.Equal(t, want.error, part.Error)
			if want.cost > 0 {
				require.InDelta(t, want.cost, part.Cost, 3, "the comparison around it costs up to three")
			}
		})
	}
}

func TestExplainNamesWhatFailed(t *testing.T) {
	s := threeClouds()
	var none clusterv1beta1.ClusterPredicate
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{
		Predicates: all(byClaim(byLabel("cloud", "none"), "region", "east"), byCEL(none, `managedCluster.metadata.labels["version"] == ""`)),
	}))
	reports := s.Explain(key, now).Clusters
	require.Equal(t, schedule.StagePredicate, reports[0].Stage)
	require.Equal(
		t,
		`predicate 1: label cloud=none does not hold, the value is "Amazon"; predicate 2: managedCluster.metadata.labels["version"] == "" is false`,
		reports[0].Reason,
	)
	require.Equal(
		t,
		`predicate 1: label cloud=none does not hold, the value is "Amazon"; predicate 2: managedCluster.metadata.labels["version"] == "": no such key: version`,
		reports[2].Reason,
	)
	require.False(t, reports[2].Predicates[0].Parts[1].Matched)
	require.Equal(t, "west", *reports[2].Predicates[0].Parts[1].Actual)
}

// A score that only an expression reads wakes its placement when it changes, and
// when it expires.
func TestScoresInExpressionsWake(t *testing.T) {
	s := threeClouds()
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{
		Predicates: all(byCEL(clusterv1beta1.ClusterPredicate{}, `managedCluster.scores("test")[0].value > 80`)),
	}))
	require.Equal(t, []string{"c1"}, names(s.Decide(key, now)))
	s.Take()
	s.SetScore(scoreOf("c2", "test", 95, &metav1.Time{Time: now.Add(time.Minute)}))
	require.Equal(t, []schedule.Key{key}, s.Take())
	r := s.Decide(key, now)
	require.Equal(t, []string{"c1", "c2"}, names(r))
	require.Equal(t, now.Add(time.Minute), r.LookAgain)
	before := s.Counters().Evaluations
	r = s.Decide(key, now.Add(time.Minute))
	require.Equal(t, []string{"c1"}, names(r))
	require.Equal(t, before+1, s.Counters().Evaluations, "only the verdict that has ended")
	require.Equal(t, []string{"c1", "c2"}, names(s.Decide(key, now)), "time may go back")
	s.SetScore(scoreOf("c2", "unread", 95, nil))
	require.Empty(t, s.Take())
}

// Expensive expressions do not block other placements: one Decide does part of the work.
func TestDearExpressionsAreDoneInParts(t *testing.T) {
	s := fleet(120)
	const ten = "[0,1,2,3,4,5,6,7,8,9]"
	s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{Predicates: all(byCEL(clusterv1beta1.ClusterPredicate{},
		ten+".all(a, "+ten+".all(b, "+ten+".all(c, "+ten+".all(d, a+b+c+d >= 0))))"))}))
	parts := 0
	r := s.Decide(key, now)
	for ; r.Skip == schedule.SkipMore; r = s.Decide(key, now) {
		require.Empty(t, r.Groups)
		require.Less(t, parts, 100)
		parts++
	}
	require.Greater(t, parts, 1)
	require.Equal(t, 120, r.Selected)
	require.Equal(t, uint64(120), s.Counters().Evaluations, "no part is done twice")
}
