// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// world is all objects of a fleet, by key.
type world struct {
	r          *rand.Rand
	clusters   map[string]*clusterv1.ManagedCluster
	sets       map[string]*clusterv1beta2.ManagedClusterSet
	bindings   map[schedule.Key]*clusterv1beta2.ManagedClusterSetBinding
	scores     map[schedule.Key]*clusterv1alpha1.AddOnPlacementScore
	placements map[schedule.Key]*clusterv1beta1.Placement
	decisions  map[schedule.Key]*clusterv1beta1.PlacementDecision
	generation int64
}

func newWorld(seed uint64) *world {
	return &world{
		r: rand.New(rand.NewPCG(seed, 1)), clusters: map[string]*clusterv1.ManagedCluster{}, sets: map[string]*clusterv1beta2.ManagedClusterSet{},
		bindings: map[schedule.Key]*clusterv1beta2.ManagedClusterSetBinding{}, scores: map[schedule.Key]*clusterv1alpha1.AddOnPlacementScore{},
		placements: map[schedule.Key]*clusterv1beta1.Placement{}, decisions: map[schedule.Key]*clusterv1beta1.PlacementDecision{},
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (w *world) maybe() bool         { return w.r.IntN(2) == 0 }
func (w *world) clusterName() string { return fmt.Sprintf("c%d", w.r.IntN(9)) }
func (w *world) setName() string     { return pick(w.r, "a", "b", "g", "x") }
func (w *world) namespace() string   { return pick(w.r, "n1", "n2") }
func (w *world) name() string        { return fmt.Sprintf("p%d", w.r.IntN(5)) }
func (w *world) moment() *metav1.Time {
	return &metav1.Time{Time: now.Add(time.Duration(w.r.IntN(90)-60) * time.Second)}
}

// step makes one random event, reports it to s, and returns its description.
func (w *world) step(s *schedule.Scheduler) string {
	switch n := w.r.IntN(100); {
	case n < 35:
		return w.stepCluster(s)
	case n < 42:
		return w.stepSet(s)
	case n < 50:
		return w.stepBinding(s)
	case n < 60:
		return w.stepScore(s)
	case n < 78:
		return w.stepPlacement(s)
	default:
		return w.stepDecision(s)
	}
}

func (w *world) stepCluster(s *schedule.Scheduler) string {
	name := w.clusterName()
	old := w.clusters[name]
	if w.r.IntN(8) == 0 {
		delete(w.clusters, name)
		s.DeleteCluster(name)
		return "delete cluster " + name
	}
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}}
	if old != nil && w.r.IntN(12) > 0 {
		c = old.DeepCopy()
	} else {
		c.UID = pick(w.r, c.UID, "2")
	}
	if c.Labels == nil {
		c.Labels = map[string]string{clusterv1.LabelClusterSet: "a"}
	}
	for range 1 + w.r.IntN(3) {
		w.changeCluster(c)
	}
	w.clusters[name] = c
	s.SetCluster(c)
	return "set cluster " + name
}

func (w *world) changeCluster(c *clusterv1.ManagedCluster) {
	value := pick(w.r, "1", "2", "3")
	switch w.r.IntN(10) {
	case 0:
		c.Labels[clusterv1.LabelClusterSet] = pick(w.r, "a", "b", "x")
	case 1:
		delete(c.Labels, pick(w.r, "l", "zone"))
	case 2:
		c.Labels[pick(w.r, "l", "zone", "unread")] = value
	case 3:
		c.Status.ClusterClaims = append(slices.Clone(c.Status.ClusterClaims), clusterv1.ManagedClusterClaim{Name: pick(w.r, "claim", "zone"), Value: value})
	case 4:
		c.Status.ClusterClaims = nil
	case 5:
		c.Spec.Taints = append(slices.Clone(c.Spec.Taints), clusterv1.Taint{
			Key: pick(w.r, "k1", "k2"), Value: value, TimeAdded: w.moment(),
			Effect: pick(w.r, clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectPreferNoSelect, clusterv1.TaintEffectNoSelectIfNew),
		})
	case 6:
		c.Spec.Taints = nil
	case 7:
		amount := resource.MustParse(value)
		list := clusterv1.ResourceList{pick(w.r, clusterv1.ResourceCPU, clusterv1.ResourceMemory): amount}
		c.Status.Allocatable, c.Status.Capacity = list, list
	case 8:
		c.Status.Conditions = []metav1.Condition{{
			Type:   "Available",
			Status: pick(w.r, metav1.ConditionTrue, metav1.ConditionFalse),
		}}
	case 9:
		c.DeletionTimestamp = nil
		if w.r.IntN(3) == 0 {
			c.DeletionTimestamp = &metav1.Time{Time: now}
		}
	}
}

func (w *world) stepSet(s *schedule.Scheduler) string {
	name := w.setName()
	if w.r.IntN(3) == 0 {
		delete(w.sets, name)
		s.DeleteClusterSet(name)
		return "delete set " + name
	}
	set := setOf(name)
	how := &set.Spec.ClusterSelector
	switch w.r.IntN(6) {
	case 0:
		how.SelectorType = "Odd"
	case 1:
		how.SelectorType, how.LabelSelector = "LabelSelector", &metav1.LabelSelector{}
	case 2:
		how.SelectorType, how.LabelSelector = "LabelSelector", &metav1.LabelSelector{MatchLabels: map[string]string{
			"l": pick(w.r, "1", "2"),
		}}
	case 3:
		how.SelectorType, how.LabelSelector = "LabelSelector", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "l", Operator: "Odd"},
		}}
	}
	w.sets[name] = set
	s.SetClusterSet(set)
	return "set set " + name
}

func (w *world) stepBinding(s *schedule.Scheduler) string {
	b := bindingOf(w.namespace(), w.setName())
	key := schedule.Key{Namespace: b.Namespace, Name: b.Name}
	if w.r.IntN(3) == 0 {
		delete(w.bindings, key)
		s.DeleteBinding(key)
		return fmt.Sprint("delete binding ", key)
	}
	if w.r.IntN(6) == 0 {
		b.Spec.ClusterSet = "other"
	}
	w.bindings[key] = b
	s.SetBinding(b)
	return fmt.Sprint("set binding ", key)
}

func (w *world) stepScore(s *schedule.Scheduler) string {
	key := schedule.Key{Namespace: w.clusterName(), Name: pick(w.r, "s1", "s2")}
	if w.r.IntN(4) == 0 {
		delete(w.scores, key)
		s.DeleteScore(key)
		return fmt.Sprint("delete score ", key)
	}
	score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace,
		Name:      key.Name,
	}}
	if old := w.scores[key]; old != nil && w.maybe() {
		score = old.DeepCopy()
	} else {
		score.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "v", Value: int32(w.r.IntN(5))}}
	}
	if score.Status.ValidUntil = nil; w.maybe() {
		score.Status.ValidUntil = w.moment()
	}
	w.scores[key] = score
	s.SetScore(score)
	return fmt.Sprint("set score ", key)
}

func (w *world) stepPlacement(s *schedule.Scheduler) string {
	key := schedule.Key{Namespace: w.namespace(), Name: w.name()}
	if w.r.IntN(8) == 0 {
		delete(w.placements, key)
		s.DeletePlacement(key)
		return fmt.Sprint("delete placement ", key)
	}
	w.generation++
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace:  key.Namespace,
		Name:       key.Name,
		Generation: w.generation,
	}}
	if old := w.placements[key]; old != nil && w.maybe() {
		p = old.DeepCopy()
	} else {
		w.fill(&p.Spec)
	}
	p.Status.Conditions, p.Status.LastScoreUpdateTime = nil, nil
	if w.maybe() {
		p.Status.Conditions = []metav1.Condition{{Type: "PlacementSatisfied", ObservedGeneration: p.Generation}}
		p.Status.LastScoreUpdateTime = w.moment()
	}
	w.placements[key] = p
	s.SetPlacement(p)
	return fmt.Sprint("set placement ", key)
}

var randomExpressions = []string{
	`managedCluster.metadata.labels["l"] == "1"`, `managedCluster.status.clusterClaims.exists(c, c.name == "claim" && c.value == "1")`,
	`managedCluster.scores("s1").exists(s, s.value > 2)`, `managedCluster.scores(managedCluster.metadata.name == "c1" ? "s1" : "s2")[0].value > 1`,
	`managedCluster.status.conditions.exists(c, c.status == "True")`, `has(managedCluster.metadata.labels.zone)`,
	`managedCluster.status.?allocatable["cpu"].hasValue()`, `managedCluster.exists(k, k == "spec")`, `managedCluster.spec.?taints.orValue([]).size() == 1`,
	`size(managedCluster.metadata.labels) > 2`,
}

// fill makes a random spec, sometimes an invalid one.
func (w *world) fill(spec *clusterv1beta1.PlacementSpec) {
	if w.maybe() {
		spec.NumberOfClusters = number(int32(w.r.IntN(6) - 1))
	}
	if w.r.IntN(3) == 0 {
		spec.ClusterSets = []string{w.setName(), w.setName()}
	}
	for range w.r.IntN(3) {
		var one clusterv1beta1.ClusterPredicate
		s := &one.RequiredClusterSelector
		switch w.r.IntN(4) {
		case 0:
			s.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
				{Key: "l", Operator: pick(w.r, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)},
			}
		case 1:
			s.ClaimSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
				Key:      "claim",
				Operator: "In",
				Values:   []string{"1", "2"},
			}}
		case 2:
			s.CELSelector.CELExpressions = []string{pick(w.r, randomExpressions...)}
		case 3:
			s.LabelSelector.MatchLabels = map[string]string{"zone": "1"}
			s.CELSelector.CELExpressions = []string{pick(w.r, randomExpressions...), pick(w.r, randomExpressions...)}
		}
		spec.Predicates = append(spec.Predicates, one)
	}
	for range w.r.IntN(3) {
		t := clusterv1beta1.Toleration{Key: pick(w.r, "k1", "k2"), Operator: pick(w.r, clusterv1beta1.TolerationOpExists, clusterv1beta1.TolerationOpEqual, "")}
		if t.Operator != clusterv1beta1.TolerationOpExists {
			t.Value = pick(w.r, "1", "2")
		}
		if w.maybe() {
			seconds := int64(w.r.IntN(60))
			t.TolerationSeconds = &seconds
		}
		spec.Tolerations = append(spec.Tolerations, t)
	}
	spec.PrioritizerPolicy.Mode = pick(w.r, clusterv1beta1.PrioritizerPolicyModeExact, clusterv1beta1.PrioritizerPolicyModeAdditive)
	for range w.r.IntN(3) {
		at := clusterv1beta1.ScoreCoordinate{Type: "BuiltIn", BuiltIn: pick(w.r, "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory", "Balance")}
		if w.maybe() {
			at = clusterv1beta1.ScoreCoordinate{Type: "AddOn", AddOn: &clusterv1beta1.AddOnScore{ResourceName: pick(w.r, "s1", "s2"), ScoreName: "v"}}
		}
		spec.PrioritizerPolicy.Configurations = append(
			spec.PrioritizerPolicy.Configurations,
			clusterv1beta1.PrioritizerConfig{ScoreCoordinate: &at, Weight: number(int32(w.r.IntN(5) - 1))},
		)
	}
	for range w.r.IntN(3) * w.r.IntN(2) {
		spec.SpreadPolicy.SpreadConstraints = append(spec.SpreadPolicy.SpreadConstraints, clusterv1beta1.SpreadConstraintsTerm{
			TopologyKey: "zone", TopologyKeyType: pick(w.r, clusterv1beta1.TopologyKeyTypeLabel, clusterv1beta1.TopologyKeyTypeClaim),
			MaxSkew: int32(1 + w.r.IntN(2)), WhenUnsatisfiable: pick(w.r, clusterv1beta1.DoNotSchedule, clusterv1beta1.ScheduleAnyway),
		})
	}
	spec.SortBy = pick(w.r, "", clusterv1beta1.SortByScore, clusterv1beta1.SortByClusterName)
	spec.ScoreRateLimit = pick(w.r, "", "0s", "1m")
	if w.maybe() {
		size := pick(w.r, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromInt32(0), intstr.FromString("40%"), intstr.FromString("20"))
		spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = &size
	}
	for range w.r.IntN(2) {
		spec.DecisionStrategy.GroupStrategy.DecisionGroups = append(spec.DecisionStrategy.GroupStrategy.DecisionGroups, clusterv1beta1.DecisionGroup{
			GroupName: "canary",
			GroupClusterSelector: clusterv1beta1.GroupClusterSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"l": "2"}},
			},
		})
	}
}

func (w *world) stepDecision(s *schedule.Scheduler) string {
	owner, namespace := w.name(), w.namespace()
	key := schedule.Key{Namespace: namespace, Name: fmt.Sprintf("%s-decision-%d", owner, 1+w.r.IntN(2))}
	if w.r.IntN(5) == 0 {
		delete(w.decisions, key)
		s.DeleteDecision(key)
		return fmt.Sprint("delete decision ", key)
	}
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace,
		Name:      key.Name,
		Labels: map[string]string{
			clusterv1beta1.LabelPlacement:          owner,
			clusterv1beta1.LabelDecisionGroupName:  pick(w.r, "", "canary"),
			clusterv1beta1.LabelDecisionGroupIndex: pick(w.r, "0", "1"),
		},
	}}
	if w.r.IntN(8) == 0 {
		d.Labels = nil
	}
	if current := s.Decide(schedule.Key{Namespace: namespace, Name: owner}, now); w.maybe() && current.Skip == schedule.SkipNone && len(current.Groups) > 0 {
		// These are the decisions that a loop would write.
		for _, one := range current.Groups[0].Clusters {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: one.ClusterName, Score: one.Score})
		}
	} else {
		for range w.r.IntN(4) {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: w.clusterName()})
		}
	}
	w.decisions[key] = d
	s.SetDecision(d)
	return fmt.Sprint("set decision ", key)
}

// tell reports all objects to a new Scheduler, in random order.
func (w *world) tell() *schedule.Scheduler {
	s := schedule.New()
	var events []func()
	events = also(events, w.clusters, s.SetCluster)
	events = also(events, w.sets, s.SetClusterSet)
	events = also(events, w.bindings, s.SetBinding)
	events = also(events, w.scores, s.SetScore)
	events = also(events, w.placements, s.SetPlacement)
	events = also(events, w.decisions, s.SetDecision)
	w.r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, event := range events {
		event()
	}
	return s
}

// also appends an event for each object, in the order of the keys.
func also[K comparable, T any](events []func(), of map[K]T, tell func(T)) []func() {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b K) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, key := range keys {
		events = append(events, func() { tell(of[key]) })
	}
	return events
}

// readsBalance reports whether decisions of other placements count for a placement.
func readsBalance(p *clusterv1beta1.Placement) bool {
	exact := p.Spec.PrioritizerPolicy.Mode == clusterv1beta1.PrioritizerPolicyModeExact
	for _, c := range p.Spec.PrioritizerPolicy.Configurations {
		exact = exact && c.ScoreCoordinate.BuiltIn != "Balance"
	}
	return !exact
}

// TestHistoriesEndAsFromScratch runs random histories. After every event each placement
// is decided as by a Scheduler that only knows the final state, reported in any order;
// the decisions of placements that Take omits are unchanged; Explain agrees.
func TestHistoriesEndAsFromScratch(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w, s := newWorld(seed), schedule.New()
			before := map[schedule.Key]schedule.Result{}
			at := now
			for i := range 100 {
				event := w.step(s)
				taken := s.Take()
				if w.r.IntN(6) == 0 {
					at = now.Add(time.Duration(w.r.IntN(60)-20) * time.Second)
					clear(before)
				}
				fresh := w.tell()
				require.Equal(t, fresh.Keys(), s.Keys())
				for _, key := range s.Keys() {
					got := s.Decide(key, at)
					same(t, fresh.Decide(key, at), got, "event %d, %s: %s differs from scratch", i, event, key)
					same(t, fresh.Scores(key, at), s.Scores(key, at), "event %d, %s: scores of %s", i, event, key)
					if old, known := before[key]; known && !slices.Contains(taken, key) && !readsBalance(w.placements[key]) {
						require.False(
							t,
							!old.LookAgain.IsZero() && !got.LookAgain.IsZero() && got.LookAgain.Before(old.LookAgain),
							"event %d, %s: %s has to be looked at earlier", i, event, key,
						)
						old.LookAgain = got.LookAgain
						same(t, old, got, "event %d, %s: %s was not touched and differs", i, event, key)
					}
					before[key] = got
					explained(t, s.Explain(key, at), got)
				}
			}
			// Delete everything that was ever created; nothing must be left behind.
			for _, key := range s.Keys() {
				s.DeletePlacement(key)
				require.Equal(t, schedule.SkipUnknown, s.Decide(key, at).Skip)
			}
		})
	}
}

// same compares fast, and shows the difference if there is one.
func same[T any](t *testing.T, want, got T, message string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		require.Empty(t, cmp.Diff(want, got), fmt.Sprintf(message, args...))
	}
}

// explained compares a report with the decision.
func explained(t *testing.T, report schedule.Report, decided schedule.Result) {
	t.Helper()
	// Explain computes scores even if they make no difference, and warns of expired ones.
	report.Result.LookAgain, report.Result.Warnings = decided.LookAgain, decided.Warnings
	same(t, decided, report.Result, "%s is explained otherwise", decided.Key)
	if decided.Skip != schedule.SkipNone {
		return
	}
	var selected []string
	stages := map[schedule.Stage]int{}
	for _, c := range report.Clusters {
		stages[c.Stage]++
		if c.Selected {
			selected = append(selected, c.Name)
			require.Equal(t, decided.Groups[*c.Group].Name, c.GroupName)
		}
		require.NotEmpty(t, c.Reason, "%s of %v", c.Name, decided.Key)
		matched := len(c.Predicates) == 0
		for _, p := range c.Predicates {
			matched = matched || p.Matched
		}
		require.True(
			t,
			matched == (c.Stage != schedule.StagePredicate) || c.Stage == schedule.StageNotInSet || c.Stage == schedule.StageDeleting,
			"%s: predicates and stage disagree", c.Name,
		)
		require.Equal(t, c.Rank > 0, c.Total != nil, c.Name)
		if c.Total == nil {
			continue
		}
		total := int64(0)
		for _, p := range report.Prioritizers {
			require.Contains(t, c.Scores, p.Name)
			total += c.Scores[p.Name] * p.Weight
		}
		require.Equal(t, *c.Total, total, c.Name)
	}
	want := names(decided)
	slices.Sort(want)
	require.ElementsMatch(t, want, selected)
	if decided.Kept {
		return
	}
	require.Equal(t, decided.Candidates, len(report.Clusters)-stages[schedule.StageNotInSet]-stages[schedule.StageDeleting])
	require.Equal(t, decided.Matched, decided.Candidates-stages[schedule.StagePredicate])
	require.Equal(t, decided.Feasible, decided.Matched-stages[schedule.StageTaint])
	if !decided.Delayed {
		require.Equal(t, decided.Selected, stages[schedule.StageSelected])
	}
}
