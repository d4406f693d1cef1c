// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var key = reconcile.Key{Namespace: "apps", Name: "p"}

// pool is a fleet with one set, one binding and clusters.
type pool struct {
	*fleet
	clusters []*clusterv1.ManagedCluster
	looked   int
}

func newPool(t *testing.T, names ...string) *pool {
	t.Helper()
	p := &pool{}
	queue := reconcile.NewQueue("test")
	t.Cleanup(queue.Close)
	p.fleet = newFleet(queue, func(f func(*clusterv1.ManagedCluster)) error {
		p.looked++
		for _, mc := range p.clusters {
			f(mc)
		}
		return nil
	})
	for _, name := range names {
		p.clusters = append(p.clusters, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{clusterv1.LabelClusterSet: "s"}, Annotations: map[string]string{"big": "text"}}})
	}
	p.setChanged(nil, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	p.bindingChanged(nil, &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "s"},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "s"},
	})
	return p
}

// woken empties the queue and returns how many keys were in it.
func (p *pool) woken() int {
	n := p.queue.Len()
	p.queue.Close()
	p.queue = reconcile.NewQueue("test")
	return n
}

func TestNothingIsDecidedBeforeEverythingIsKnown(t *testing.T) {
	p := newPool(t, "c1")
	p.placementChanged(nil, somePlacement())
	_, ok := p.decide(key, now)
	require.False(t, ok)
	require.Zero(t, p.woken())
	require.NoError(t, p.start())
	require.Equal(t, 1, p.woken())
	state, ok := p.decide(key, now)
	require.True(t, ok)
	require.Equal(t, 1, state.Result.Selected)
	require.Equal(t, []schedule.Scored{{Cluster: "c1", Score: 100}}, state.Scores(), "also where they make no difference")
}

func TestClustersAreOnlyReadWherePlacementsAskForThem(t *testing.T) {
	p := newPool(t, "c1")
	require.NoError(t, p.start())
	require.Zero(t, p.looked, "there is no placement")
	p.clusterChanged(nil, p.clusters[0])
	require.Equal(t, needs{}, p.known)
	p.placementChanged(nil, somePlacement())
	require.Equal(t, 1, p.looked)
	require.Equal(t, needs{clusters: true}, p.known)
	require.Nil(t, p.known.of(p.clusters[0]).Annotations)
	p.placementChanged(nil, named("q", func(s *clusterv1beta1.PlacementSpec) {
		s.Predicates = []clusterv1beta1.ClusterPredicate{
			{
				RequiredClusterSelector: clusterv1beta1.ClusterSelector{CELSelector: clusterv1beta1.ClusterCELSelector{CELExpressions: []string{"true"}}},
			},
		}
	}))
	require.Equal(t, 2, p.looked, "an expression may read everything")
	require.NotNil(t, p.known.of(p.clusters[0]).Annotations)
	p.placementChanged(nil, named("r", func(*clusterv1beta1.PlacementSpec) {}))
	require.Equal(t, 2, p.looked)
}

func named(name string, change func(*clusterv1beta1.PlacementSpec)) *clusterv1beta1.Placement {
	p := somePlacement()
	p.Name = name
	change(&p.Spec)
	return p
}

func TestNeeds(t *testing.T) {
	claims := clusterv1beta1.ClusterClaimSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: metav1.LabelSelectorOpExists}}}
	for what, tc := range map[string]struct {
		change func(*clusterv1beta1.PlacementSpec)
		want   needs
	}{
		"labels and taints": {func(*clusterv1beta1.PlacementSpec) {}, needs{clusters: true}},
		"claims of a predicate": {
			func(s *clusterv1beta1.PlacementSpec) {
				s.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{ClaimSelector: claims}}}
			},
			needs{clusters: true, claims: true},
		},
		"claims of a group": {func(s *clusterv1beta1.PlacementSpec) {
			s.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{
				{GroupClusterSelector: clusterv1beta1.GroupClusterSelector{ClaimSelector: claims}},
			}
		}, needs{clusters: true, claims: true}},
		"claims of a spread": {
			func(s *clusterv1beta1.PlacementSpec) {
				s.SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraintsTerm{{TopologyKeyType: clusterv1beta1.TopologyKeyTypeClaim}}
			},
			needs{clusters: true, claims: true},
		},
		"resources": {func(s *clusterv1beta1.PlacementSpec) {
			s.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{
				{},
				{ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{BuiltIn: "ResourceAllocatableCPU"}},
			}
		}, needs{clusters: true, resources: true}},
	} {
		t.Run(what, func(t *testing.T) {
			require.Equal(t, tc.want, needs{}.with(named("p", tc.change)))
		})
	}
}

// carry decides on the placement and passes the results of all steps to the fleet, as the
// executor does; it returns the objects that the API server would hold.
func (p *pool) carry(t *testing.T, version string) []*clusterv1beta1.PlacementDecision {
	t.Helper()
	state, ok := p.decide(key, now)
	require.True(t, ok)
	plan := Decide(state)
	after := plan.Object.(*clusterv1beta1.Placement)
	p.begin(key, &after.Status)
	var out []*clusterv1beta1.PlacementDecision
	for _, d := range carried(state, plan).Decisions {
		d.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(kindDecision))
		d.ResourceVersion, d.UID = version, "d"
		u, err := typed.ToUnstructured(d)
		require.NoError(t, err)
		p.recordWrite(reconcile.Target{Namespace: d.Namespace, Name: d.Name}, u)
		out = append(out, d)
	}
	p.end(key)
	next := after.DeepCopy()
	p.placementChanged(state.Placement, next)
	return out
}

func TestWhatTheLoopHasWrittenWakesNobody(t *testing.T) {
	p := newPool(t, "c1", "c2")
	p.placementChanged(nil, somePlacement())
	require.NoError(t, p.start())
	p.woken()
	written := p.carry(t, "10")
	require.Len(t, written, 1)
	require.Zero(t, p.woken(), "the own status is no news")
	older := written[0].DeepCopy()
	older.ResourceVersion, older.Status.Decisions = "9", nil
	p.decisionChanged(nil, older)
	require.Zero(t, p.woken(), "the creation before it arrives late")
	require.Len(t,
		p.objects[reconcile.Key{Namespace: "apps", Name: "p-decision-1"}].Status.Decisions, 2,
		"and an old event does not undo newer state")
	p.decisionChanged(older, written[0])
	require.Zero(t, p.woken())
	state, _ := p.decide(key, now)
	require.Empty(t, Decide(state).Writes)

	foreign := written[0].DeepCopy()
	foreign.ResourceVersion, foreign.Status.Decisions = "11", nil
	p.decisionChanged(written[0], foreign)
	require.Equal(t, 1, p.woken(), "others emptied it")
	state, _ = p.decide(key, now)
	require.Equal(t, []string{"patch status p-decision-1"}, writesOf(Decide(state)))
	p.decisionChanged(foreign, nil)
	require.Equal(t, 1, p.woken(), "others deleted it")
	state, _ = p.decide(key, now)
	require.Equal(t, []string{"create p-decision-1", "patch status p-decision-1"}, writesOf(Decide(state)))
}

func TestAnAnswerThatComesAfterTheEventIsKnownAgain(t *testing.T) {
	p := newPool(t, "c1")
	p.placementChanged(nil, somePlacement())
	require.NoError(t, p.start())
	p.woken()
	d := decision("apps", "p-decision-1")
	d.UID, d.ResourceVersion, d.Labels = "d", "10", map[string]string{clusterv1beta1.LabelPlacement: "p"}
	u, err := typed.ToUnstructured(d)
	require.NoError(t, err)
	p.begin(key, &clusterv1beta1.PlacementStatus{})
	p.decisionChanged(nil, d)
	p.recordWrite(reconcile.Target{Namespace: "apps", Name: "p-decision-1"}, u)
	p.end(key)
	require.Zero(t, p.woken())
	require.NotNil(t, p.objects[reconcile.Key{Namespace: "apps", Name: "p-decision-1"}])
	require.Empty(t, p.own, "nothing is awaited any more")

	p.begin(key, &clusterv1beta1.PlacementStatus{})
	p.recordWrite(reconcile.Target{Namespace: "apps", Name: "p-decision-1"}, nil)
	p.decisionChanged(d, nil)
	p.end(key)
	require.Empty(t, p.objects)
	require.Empty(t, p.own)
	require.Zero(t, p.woken())
}

func TestADeletedPlacementLeavesNothing(t *testing.T) {
	p := newPool(t, "c1")
	p.placementChanged(nil, somePlacement())
	require.NoError(t, p.start())
	written := p.carry(t, "10")
	p.decisionChanged(nil, written[0])
	p.placementChanged(somePlacement(), nil)
	p.decisionChanged(written[0], nil)
	_, ok := p.decide(key, now)
	require.False(t, ok)
	require.Empty(t, p.placements)
	require.Empty(t, p.objects)
	require.Empty(t, p.of)
	require.Empty(t, p.reported)
	require.Empty(t, p.own)
}

func TestAClusterThatChangesWakesItsPlacements(t *testing.T) {
	p := newPool(t, "c1")
	p.placementChanged(nil, somePlacement())
	require.NoError(t, p.start())
	p.carry(t, "10")
	p.woken()
	p.clusterChanged(p.clusters[0], nil)
	require.Eventually(t, func() bool { return p.queue.Len() == 1 }, 2*time.Minute, time.Millisecond) // longer than a machine may stand still
	state, _ := p.decide(key, now)
	require.Zero(t, state.Result.Selected)
}

// Decisions that others have changed are decided again, until they are right.
func TestDecisionsOfOthersAreNotProtected(t *testing.T) {
	p := newPool(t, "c1", "c2")
	p.placementChanged(nil, named("p", func(s *clusterv1beta1.PlacementSpec) {
		one := int32(1)
		s.NumberOfClusters, s.ScoreRateLimit = &one, "1h"
		s.PrioritizerPolicy = clusterv1beta1.PrioritizerPolicy{Mode: "Exact", Configurations: []clusterv1beta1.PrioritizerConfig{
			{ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: "AddOn", AddOn: &clusterv1beta1.AddOnScore{ResourceName: "r", ScoreName: "s"}}}}}
	}))
	require.NoError(t, p.start())
	written := p.carry(t, "10")
	p.decisionChanged(nil, written[0])
	limited := p.placements[key].DeepCopy()
	limited.Status.LastScoreUpdateTime = &metav1.Time{Time: now}
	p.placementChanged(p.placements[key], limited)
	score := &clusterv1alpha1.AddOnPlacementScore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c2", Name: "r"},
		Status: clusterv1alpha1.AddOnPlacementScoreStatus{
			Scores: []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "s", Value: 5}},
		},
	}
	p.scoreChanged(nil, score)
	state, _ := p.decide(key, now)
	require.True(t, state.Result.Delayed, "scores alone wait")

	p.scoreChanged(score, nil)
	swapped := written[0].DeepCopy()
	swapped.ResourceVersion, swapped.Status.Decisions[0].ClusterName = "11", "c2"
	p.decisionChanged(written[0], swapped)
	state, _ = p.decide(key, now)
	require.False(t, state.Result.Delayed)
	require.Equal(t, "c1", state.Result.Groups[0].Clusters[0].ClusterName, "it is put back at once")
	plan := Decide(state)
	p.recordUnchanged(state, plan)
	require.Len(t, p.foreign, 1, "it is not put right yet")
	p.carry(t, "12")
	require.Empty(t, p.foreign)

	relabelled := p.objects[reconcile.Key{Namespace: "apps", Name: "p-decision-1"}].DeepCopy()
	relabelled.ResourceVersion, relabelled.Labels["team"] = "13", "x"
	p.decisionChanged(nil, relabelled)
	state, _ = p.decide(key, now)
	p.recordUnchanged(state, Decide(state))
	require.Empty(t, p.foreign, "correct decisions are trusted again")
}
