// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

func TestValidate(t *testing.T) {
	type spec = clusterv1beta1.PlacementSpec
	var none clusterv1beta1.ClusterPredicate
	operator := none
	operator.RequiredClusterSelector.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
		Key:      "a",
		Operator: "Foo",
	}}
	group := groupBy("canary", "", "")
	group.GroupClusterSelector.LabelSelector.MatchExpressions = operator.RequiredClusterSelector.LabelSelector.MatchExpressions
	config := func(c clusterv1beta1.PrioritizerConfig) clusterv1beta1.PlacementSpec {
		return spec{PrioritizerPolicy: policy(exact, c)}
	}
	odd := builtIn("Balance", 1)
	odd.ScoreCoordinate.Type = "Odd"
	both := addOn("a", "b", 1)
	both.ScoreCoordinate.BuiltIn = "Balance"
	empty := addOn("a", "b", 1)
	empty.ScoreCoordinate.AddOn = nil
	for name, tc := range map[string]struct {
		spec spec
		want string // severity, field, message
	}{
		"nothing wrong": {spec{}, ""},
		"too many predicates": {
			spec{Predicates: slices.Repeat(all(none), 257)},
			"Error spec.predicates: there are 257 predicates with 0 CEL expressions of 0 bytes",
		},
		"too many expressions": {
			spec{Predicates: all(byCEL(none, slices.Repeat([]string{"true"}, 257)...))},
			"Error spec.predicates: there are 1 predicates with 257 CEL expressions of 1028 bytes",
		},
		"too long expressions": {
			spec{Predicates: all(byCEL(none, "true || "+strings.Repeat(" ", 64<<10)+"true"))},
			"Error spec.predicates: there are 1 predicates with 1 CEL expressions of 65548 bytes",
		},
		"too many tolerations": {
			spec{Tolerations: slices.Repeat([]clusterv1beta1.Toleration{{Operator: exists}}, 257)},
			"Error spec.tolerations: there are 257 of them",
		},
		"too many prioritizers": {
			spec{
				PrioritizerPolicy: policy(exact, slices.Repeat([]clusterv1beta1.PrioritizerConfig{addOn("a", "b", 1)}, 257)...),
			},
			"Error spec.prioritizerPolicy.configurations: there are 257 of them",
		},
		"too many groups": {
			spec{
				DecisionStrategy: grouped(nil, slices.Repeat([]clusterv1beta1.DecisionGroup{groupBy("g", "", "")}, 257)...),
			},
			"Error spec.decisionStrategy.groupStrategy.decisionGroups: there are 257 of them",
		},
		"negative number": {spec{NumberOfClusters: number(-1)}, "Error spec.numberOfClusters: numberOfClusters is -1"},
		"label operator": {
			spec{Predicates: all(operator)},
			`Error spec.predicates[0].requiredClusterSelector.labelSelector: "Foo" is not a valid label selector operator`,
		},
		"CEL that does not compile": {
			spec{Predicates: all(none, byCEL(none, "true", "xxxx"))},
			"Error spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[1]: compilation failed: 1:1: undeclared reference to 'xxxx'",
		},
		"CEL that gives no bool": {
			spec{Predicates: all(byCEL(none, "1"))},
			"Error spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: compilation failed: the expression gives int",
		},
		"toleration without key": {
			spec{Tolerations: []clusterv1beta1.Toleration{{Operator: equal}}},
			"Error spec.tolerations[0].operator: If the key is empty, operator must be Exists.",
		},
		"toleration with value": {
			spec{Tolerations: []clusterv1beta1.Toleration{{Operator: exists, Value: "v"}}},
			"Error spec.tolerations[0].value: If the operator is Exists, the value should be empty.",
		},
		"unknown toleration": {
			spec{Tolerations: []clusterv1beta1.Toleration{{Key: "k", Operator: "Odd"}}},
			`Warning spec.tolerations[0].operator: the operator "Odd" is not known, so it tolerates nothing`,
		},
		"unknown effect": {
			spec{Tolerations: []clusterv1beta1.Toleration{{Key: "k", Effect: "Odd"}}},
			`Warning spec.tolerations[0].effect: the effect "Odd" is not known`,
		},
		"no seconds": {
			spec{Tolerations: []clusterv1beta1.Toleration{{Key: "k", TolerationSeconds: seconds(0)}}},
			"Warning spec.tolerations[0].tolerationSeconds: ",
		},
		"unknown mode": {
			spec{PrioritizerPolicy: policy("exact")},
			"Error spec.prioritizerPolicy.mode: incorrect prioritizer policy mode: exact",
		},
		"no coordinate": {
			config(clusterv1beta1.PrioritizerConfig{}),
			"Error spec.prioritizerPolicy.configurations[0].scoreCoordinate: scoreCoordinate field is required",
		},
		"unknown built-in": {
			config(builtIn("Spread", 1)),
			"Error spec.prioritizerPolicy.configurations[0].scoreCoordinate.builtIn: incorrect builtin prioritizer: Spread",
		},
		"unknown type": {
			config(odd),
			`Error spec.prioritizerPolicy.configurations[0].scoreCoordinate.type: the type "Odd" is not known`,
		},
		"no add-on": {
			config(empty),
			"Error spec.prioritizerPolicy.configurations[0].scoreCoordinate.addOn: addOn should not be empty",
		},
		"built-in beside add-on": {
			config(both),
			"Warning spec.prioritizerPolicy.configurations[0].scoreCoordinate.builtIn: builtIn has no effect",
		},
		"weight": {
			config(builtIn("Balance", 11)),
			"Error spec.prioritizerPolicy.configurations[0].weight: the weight is 11",
		},
		"size of digits": {
			spec{DecisionStrategy: grouped("20")},
			"Error spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: 20 invalid type: string is not a percentage",
		},
		"size over all": {
			spec{DecisionStrategy: grouped("101%")},
			"Error spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: 101% is not a share",
		},
		"negative size": {
			spec{DecisionStrategy: grouped(-2)},
			"Warning spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: clustersPerDecisionGroup is -2",
		},
		"group selector": {
			spec{DecisionStrategy: grouped(nil, group)},
			`Error spec.decisionStrategy.groupStrategy.decisionGroups[0].groupClusterSelector.labelSelector: "Foo" is not`,
		},
		"group name": {
			spec{DecisionStrategy: grouped(nil, groupBy("-", "", ""))},
			`Error spec.decisionStrategy.groupStrategy.decisionGroups[0].groupName: the groupName "-"`,
		},
		"sortBy":      {spec{SortBy: "Odd"}, `Error spec.sortBy: sortBy "Odd" is not known`},
		"rate":        {spec{ScoreRateLimit: "1.5h"}, `Error spec.scoreRateLimit: scoreRateLimit "1.5h" is not a duration`},
		"a huge rate": {spec{ScoreRateLimit: "99999999999999h"}, "Error spec.scoreRateLimit: "},
		"skew": {
			spec{NumberOfClusters: number(1), SpreadPolicy: spreadPolicy(spreadBy("zone", "Label", -1, soft))},
			"Error spec.spreadPolicy.spreadConstraints[0].maxSkew: maxSkew is -1",
		},
		"topology": {
			spec{NumberOfClusters: number(1), SpreadPolicy: spreadPolicy(spreadBy("zone", "Odd", 1, soft))},
			`Error spec.spreadPolicy.spreadConstraints[0].topologyKeyType: the topologyKeyType "Odd"`,
		},
		"a spread without effect": {
			spec{SpreadPolicy: spreadPolicy(spreadBy("zone", "Label", 1, soft))},
			"Warning spec.spreadPolicy.spreadConstraints[0]: ScheduleAnyway without numberOfClusters",
		},
		"too many spreads": {
			spec{SpreadPolicy: spreadPolicy(make([]clusterv1beta1.SpreadConstraintsTerm, 9)...)},
			"Error spec.spreadPolicy.spreadConstraints[0].topologyKey: ",
		},
		"weight 0 of nobody is fine": {config(builtIn("Spread", 0)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := placementOf(tc.spec)
			problems := schedule.Validate(p)
			s := fleet(1)
			s.SetPlacement(p)
			r := s.Decide(key, now)
			require.Equal(t, problems, r.Problems)
			require.Equal(t, strings.HasPrefix(tc.want, "Error"), r.Kept, "what admission refuses is misconfigured, and nothing else")
			if tc.want == "" {
				require.Empty(t, problems)
				return
			}
			require.NotEmpty(t, problems)
			got := fmt.Sprintf("%s %s: %s", problems[0].Severity, problems[0].Field, problems[0].Message)
			require.Contains(t, got, tc.want)
			require.NotEmpty(t, problems[0].Fix)
		})
	}
	long := placementOf(spec{})
	long.Name = strings.Repeat("x", 64)
	require.Equal(t, "metadata.name", schedule.Validate(long)[0].Field)
	s := fleet(1)
	s.SetPlacement(long)
	r := s.Decide(schedule.Key{Namespace: "ns", Name: long.Name}, now)
	require.Nil(t, r.Groups, "no decision can carry the name")
	require.Contains(t, r.Misconfigured.Message, "use a name of at most 63 characters")
}

func spreadPolicy(of ...clusterv1beta1.SpreadConstraintsTerm) clusterv1beta1.SpreadPolicy {
	return clusterv1beta1.SpreadPolicy{SpreadConstraints: of}
}

// FuzzValidate checks that no selector, expression or size panics, hangs, or makes Decide
// and Validate disagree.
func FuzzValidate(f *testing.F) {
	f.Add("region", "In", "a,b", `managedCluster.metadata.name == "c1"`, "25%")
	f.Add("", "Exists", "", "", "20")
	f.Add("a/b/c", "Odd", "x", `managedCluster.scores("a")[0].value > '{}'.parseJSON().x`, "0%")
	f.Add("region", "NotIn", "", `managedCluster.map(a, managedCluster.map(b, a == b)).size() > 1`, "-1")
	f.Add("k", "Gt", "1", `[1].all(x, managedCluster.status.conditions == [] && managedCluster.spec == {})`, "1e3%")
	f.Fuzz(func(t *testing.T, label, operator, value, expression, size string) {
		requirement := []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOperator(operator)}}
		if value != "" {
			requirement[0].Values = strings.Split(value, ",")
		}
		var one clusterv1beta1.ClusterPredicate
		one.RequiredClusterSelector.LabelSelector.MatchExpressions = requirement
		one.RequiredClusterSelector.ClaimSelector.MatchExpressions = requirement
		group := clusterv1beta1.DecisionGroup{GroupName: "group"}
		group.GroupClusterSelector.LabelSelector.MatchExpressions = requirement
		spec := clusterv1beta1.PlacementSpec{Predicates: all(one, byCEL(clusterv1beta1.ClusterPredicate{}, expression)), DecisionStrategy: grouped(size, group)}
		p := placementOf(spec)
		broken := false
		for _, problem := range schedule.Validate(p) {
			broken = broken || problem.Severity == schedule.SeverityError
			require.LessOrEqual(t, len(problem.Text()), 2048)
		}
		s := threeClouds()
		s.SetPlacement(p)
		r := s.Decide(key, now)
		require.Equal(t, broken, r.Kept)
		require.LessOrEqual(t, len(r.Misconfigured.Message), 2048)
		explained(t, s.Explain(key, now), r)
		if !broken {
			seen := map[string]bool{}
			for _, name := range names(r) {
				require.False(t, seen[name], "in two groups")
				seen[name] = true
			}
			require.Len(t, seen, r.Selected)
		}
	})
}
