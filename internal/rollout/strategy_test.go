// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

func TestBadStrategiesNameTheField(t *testing.T) {
	negative := config("", "0", 0)
	negative.MaxFailures = intstr.FromInt32(-1)
	cases := map[string]struct {
		strategy clusterv1alpha1.RolloutStrategy
		want     string
	}{
		"unknown type": {
			clusterv1alpha1.RolloutStrategy{Type: "Canary"},
			`type: "Canary" is none of All, Progressive, ProgressivePerGroup`,
		},
		"word as deadline": {all("soon"), `all.progressDeadline: "soon" is neither None nor a duration such as 10m`},
		"negative deadline": {
			perGroup(config("-1m", "0", 0)),
			`progressivePerGroup.progressDeadline: "-1m" is neither None nor a duration such as 10m`,
		},
		"negative soak": {
			progressive(config("", "0", -time.Second), ""),
			`progressive.minSuccessTime: -1s must not be negative`,
		},
		"word as size": {
			progressive(config("", "0", 0), "some"),
			`progressive.maxConcurrency: "some" is neither a number nor a percentage from 0% to 100%`,
		},
		"share above the whole": {
			progressive(config("", "101%", 0), ""),
			`progressive.maxFailures: "101%" is neither a number nor a percentage from 0% to 100%`,
		},
		"negative failures": {progressive(negative, ""), `progressive.maxFailures: -1 must not be negative`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := rollout.Parse(c.strategy)
			require.EqualError(t, err, c.want)
		})
	}
}

func TestMissingBlocksHaveDefaults(t *testing.T) {
	groups := three()
	for _, kind := range []clusterv1alpha1.RolloutType{"", clusterv1alpha1.RolloutTypeAll, clusterv1alpha1.RolloutTypeProgressive} {
		s, err := rollout.Parse(clusterv1alpha1.RolloutStrategy{Type: kind})
		require.NoError(t, err)
		require.Len(t, s.Plan(groups, nil, now).Start, 6, "type %q", kind)
	}
	s, err := rollout.Parse(clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.RolloutTypeProgressivePerGroup})
	require.NoError(t, err)
	require.Len(t, s.Plan(groups, nil, now).Start, 2)
	require.Len(t, rollout.Strategy{}.Plan(groups, nil, now).Start, 6, "the zero value is All")
}

func decision(name, index, group string, clusters ...string) *clusterv1beta1.PlacementDecision {
	d := &clusterv1beta1.PlacementDecision{}
	d.Name = name
	d.Labels = map[string]string{clusterv1beta1.LabelDecisionGroupIndex: index, clusterv1beta1.LabelDecisionGroupName: group}
	for _, c := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	return d
}

func TestGroups(t *testing.T) {
	groups, err := rollout.Groups([]*clusterv1beta1.PlacementDecision{
		decision("p-3", "1", "", "d"), decision("p-2", "0", "canary", "b", "a"), decision("p-1", "0", "canary", "c"),
		decision("p-4", "1", "", "a", "e"),
	})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]rollout.Group{
		{Name: "canary", Index: 0, Clusters: []string{"a", "b", "c"}}, {Index: 1, Clusters: []string{"d", "e"}},
	}, groups), "a cluster that moves between decisions is counted once")

	eleven := []*clusterv1beta1.PlacementDecision{decision("p-10", "10", "", "z")}
	for i := range 10 {
		eleven = append(eleven, decision("p-"+string(rune('0'+i)), string(rune('0'+i)), ""))
	}
	groups, err = rollout.Groups(eleven)
	require.NoError(t, err)
	require.Equal(t, []string{"z"}, groups[10].Clusters, "indexes are numbers, not words")
}

func TestBadGroupsNameTheLabel(t *testing.T) {
	const index, name = "label cluster.open-cluster-management.io/decision-group-index", "label cluster.open-cluster-management.io/decision-group-name"
	cases := map[string]struct {
		decisions []*clusterv1beta1.PlacementDecision
		want      string
	}{
		"no index": {
			[]*clusterv1beta1.PlacementDecision{decision("p", "", "")},
			index + ` of placementdecision p: "" is not a number from 0`,
		},
		"negative index": {
			[]*clusterv1beta1.PlacementDecision{decision("p", "-1", "")},
			index + ` of placementdecision p: "-1" is not a number from 0`,
		},
		"gap": {
			[]*clusterv1beta1.PlacementDecision{decision("p", "0", ""), decision("q", "2", "")},
			"the decision groups have no index 1, though there are 2 of them",
		},
		"two names": {
			[]*clusterv1beta1.PlacementDecision{decision("p", "0", "a"), decision("q", "0", "b")},
			name + ` of placementdecision q: group 0 has the names "a" and "b"`,
		},
	}
	for label, c := range cases {
		t.Run(label, func(t *testing.T) {
			_, err := rollout.Groups(c.decisions)
			require.EqualError(t, err, c.want)
		})
	}
}
