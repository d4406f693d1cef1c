// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

const (
	hard = clusterv1beta1.DoNotSchedule
	soft = clusterv1beta1.ScheduleAnyway
)

func spreadBy(
	key string, kind clusterv1beta1.TopologyKeyType, skew int32, when clusterv1beta1.UnsatisfiableMaxSkewAction,
) clusterv1beta1.SpreadConstraintsTerm {
	return clusterv1beta1.SpreadConstraintsTerm{TopologyKey: key, TopologyKeyType: kind, MaxSkew: skew, WhenUnsatisfiable: when}
}

// Clusters a1 to a4 in zone a are better than b1 in zone b, and x1 has no zone.
func TestSpread(t *testing.T) {
	label := clusterv1beta1.TopologyKeyTypeLabel
	claim := clusterv1beta1.TopologyKeyTypeClaim
	for name, tc := range map[string]struct {
		wanted   *int32
		terms    []clusterv1beta1.SpreadConstraintsTerm
		selected []string
		missing  int
	}{
		"none":           {number(2), nil, []string{"a1", "a2"}, 0},
		"hard, two":      {number(2), terms(spreadBy("zone", label, 1, hard)), []string{"a1", "b1"}, 0},
		"hard, by claim": {number(2), terms(spreadBy("zone", claim, 1, hard)), []string{"a1", "b1"}, 0},
		"hard, the emptiest zone has no more": {
			number(4),
			terms(spreadBy("zone", label, 1, hard)),
			[]string{"a1", "a2", "b1"},
			1,
		},
		"hard, more skew": {
			number(3),
			terms(spreadBy("zone", label, 2, hard)),
			[]string{"a1", "a2", "b1"},
			0,
		},
		"hard, all that fit":       {nil, terms(spreadBy("zone", label, 1, hard)), []string{"a1", "a2", "b1"}, 0},
		"hard, nobody has the key": {number(2), terms(spreadBy("none", label, 1, hard)), []string{}, 2},
		"soft, two":                {number(2), terms(spreadBy("zone", label, 1, soft)), []string{"a1", "b1"}, 0},
		"soft, goes on by score": {
			number(4),
			terms(spreadBy("zone", label, 1, soft)),
			[]string{"a1", "a2", "a3", "b1"},
			0,
		},
		"soft, without key last": {
			number(6),
			terms(spreadBy("zone", label, 1, soft)),
			[]string{"a1", "a2", "a3", "a4", "b1", "x1"},
			0,
		},
		"soft, nobody has the key": {number(2), terms(spreadBy("none", label, 1, soft)), []string{"a1", "a2"}, 0},
		"hard and soft": {
			number(3),
			terms(spreadBy("zone", label, 2, hard), spreadBy("half", label, 1, soft)),
			[]string{"a1", "a3", "b1"},
			0,
		},
		"what a typed client leaves out": {number(2), terms(spreadBy("zone", label, 0, "")), []string{"a1", "b1"}, 0},
		"the first soft constraint counts most": {
			number(2),
			terms(spreadBy("half", label, 1, soft), spreadBy("zone", label, 1, soft)),
			[]string{"a1", "b1"},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleet(0)
			for i, one := range []string{"a1", "a2", "a3", "a4", "b1", "x1"} {
				c := clusterOf(one)
				if one != "x1" {
					c.Labels["zone"], c.Labels["half"] = one[:1], fmt.Sprint(i/2%2)
					c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "zone", Value: one[:1]}}
				}
				if one == "b1" {
					c.Labels["half"] = "1"
				}
				s.SetCluster(c)
				s.SetScore(scoreOf(one, "test", int32(90-10*i), nil))
			}
			s.SetPlacement(placementOf(clusterv1beta1.PlacementSpec{NumberOfClusters: tc.wanted,
				SpreadPolicy: clusterv1beta1.SpreadPolicy{
					SpreadConstraints: tc.terms,
				}, PrioritizerPolicy: policy(exact, addOn("test", "score", 1))}))
			r := s.Decide(key, now)
			require.Equal(t, tc.selected, names(r))
			require.Equal(t, tc.missing, r.Unscheduled)
			if tc.missing == 1 {
				require.Equal(t, schedule.StageSpread, s.Explain(key, now).Clusters[2].Stage)
				require.Equal(t, "zone=a would exceed the lowest count by more than 1", s.Explain(key, now).Clusters[2].Reason)
				require.Equal(t, "the cluster has no label zone to be spread by", s.Explain(key, now).Clusters[5].Reason)
			}
			if tc.missing == 2 {
				require.Equal(t, "No ManagedCluster fits the spread constraints", r.Satisfied.Message)
			}
		})
	}
}

func terms(of ...clusterv1beta1.SpreadConstraintsTerm) []clusterv1beta1.SpreadConstraintsTerm {
	return of
}
