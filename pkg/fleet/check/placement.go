// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
)

const (
	// decisionPatience is how long a hub may take to handle a new placement before that is a finding.
	decisionPatience = time.Minute
	// maxPlacements bounds the placements with findings that are reported one by one.
	maxPlacements = 50
)

// placed is the placements of a hub and everything they are decided on.
type placed struct {
	scheduler  *schedule.Scheduler
	placements []*clusterv1beta1.Placement
	sets       map[string]*clusterv1beta2.ManagedClusterSet
	clusters   []string
	bound      map[string][]string
	// scores are the scores that at least one cluster has, as resource/score.
	scores map[string]bool
}

// placements checks every placement of the hub, or the named ones, and decides them with the
// library that the hub uses. Those that select what they want share one line.
func (c *checking) placements(ctx context.Context) []Area {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	all, err := c.readPlaced(ctx)
	if err != nil {
		return []Area{{"placements", []Finding{unreadable(CodePlacementDecided, err)}}}
	}
	var out []Area
	well, looked, left := 0, 0, 0
	missing := slices.Clone(c.o.Placements)
	for _, p := range all.placements {
		key := placement.KeyOf(p)
		if len(c.o.Placements) > 0 && !slices.Contains(c.o.Placements, key) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(other types.NamespacedName) bool { return other == key })
		looked++
		found := c.placement(ctx, all, p)
		switch {
		case len(found) == 0:
			well++
			continue
		case len(out) == maxPlacements:
			left++
			continue
		}
		out = append(out, Area{"placement " + key.String(), found})
	}
	for _, key := range missing {
		none := failure(CodePlacementDecided, fmt.Sprintf("there is no placement %s", key), "", naming.ListPlacements.On(c.o.Hub))
		out = append(out, Area{"placement " + key.String(), []Finding{none}})
	}
	var lines []Finding
	if well > 0 {
		lines = good(CodePlacementDecided, "%d of %d select what they want", well, looked)
	}
	if left > 0 {
		lines = append(lines, warning(CodePlacementDecided, fmt.Sprintf("%d more placements do not select what they want", left), "",
			naming.ListPlacements.On(c.o.Hub)))
	}
	if len(lines) > 0 {
		out = slices.Insert(out, 0, Area{"placements", lines})
	}
	return out
}

// readPlaced reads the placements and, where there are any, the fleet: six list requests at
// most.
func (c *checking) readPlaced(ctx context.Context) (*placed, error) {
	var items, clusters, sets, bindings, decisions, scores []unstructured.Unstructured
	err := fleet.ListTogether(ctx, c.o.Hub, fleet.Into(&items, fleet.Query{Resource: fleet.Placements}))
	if c.overlay(&items, "Placement"); err != nil || len(items) == 0 {
		return &placed{}, err
	}
	out := &placed{scheduler: schedule.New(), sets: map[string]*clusterv1beta2.ManagedClusterSet{}, bound: map[string][]string{}, scores: map[string]bool{}}
	reads := []fleet.Wanted{
		fleet.Into(&clusters, fleet.Query{Resource: fleet.ManagedClusters}), fleet.Into(&sets, fleet.Query{Resource: fleet.ManagedClusterSets}),
		fleet.Into(&bindings, fleet.Query{Resource: fleet.SetBindings}), fleet.Into(&decisions, fleet.Query{Resource: fleet.PlacementDecisions}),
	}
	err = placement.TakeUp(&items, func(p *clusterv1beta1.Placement) {
		if schedule.ReadsScores(p) && len(reads) == 4 {
			reads = append(reads, fleet.Into(&scores, fleet.Query{Resource: fleet.PlacementScores}))
		}
		// A placement that is frozen or being deleted is as its owner wants it.
		if _, frozen := schedule.Trial(p); p.DeletionTimestamp == nil && !frozen {
			out.placements = append(out.placements, p)
		}
	})
	if err == nil {
		err = fleet.ListTogether(ctx, c.o.Hub, reads...)
	}
	if err != nil {
		return nil, err
	}
	c.overlay(&clusters, "ManagedCluster")
	c.overlay(&sets, "ManagedClusterSet")
	c.overlay(&bindings, "ManagedClusterSetBinding")
	out.bound = placement.BoundIn(bindings)
	return out, out.fill(&clusters, &sets, &bindings, &decisions, &scores)
}

// fill adds everything to the scheduler.
func (p *placed) fill(clusters, sets, bindings, decisions, scores *[]unstructured.Unstructured) error {
	s := p.scheduler
	err := cmp.Or(
		placement.TakeUp(clusters, func(mc *clusterv1.ManagedCluster) {
			p.clusters = append(p.clusters, mc.Name)
			s.SetCluster(mc)
		}),
		placement.TakeUp(sets, func(set *clusterv1beta2.ManagedClusterSet) {
			p.sets[set.Name] = set
			s.SetClusterSet(set)
		}),
		placement.TakeUp(bindings, s.SetBinding),
		placement.TakeUp(decisions, s.SetDecision),
		placement.TakeUp(scores, func(score *clusterv1alpha1.AddOnPlacementScore) {
			for _, item := range score.Status.Scores {
				p.scores[score.Name+"/"+item.Name] = true
			}
			s.SetScore(score)
		}),
	)
	for _, one := range p.placements {
		s.SetPlacement(one)
	}
	return err
}

// placement checks one placement; no findings mean that all is well.
func (c *checking) placement(ctx context.Context, all *placed, p *clusterv1beta1.Placement) []Finding {
	r := all.scheduler.Decide(placement.KeyOf(p), c.run.Now())
	for r.Skip == schedule.SkipMore && ctx.Err() == nil {
		r = all.scheduler.Decide(placement.KeyOf(p), c.run.Now())
	}
	if r.Skip != schedule.SkipNone {
		return []Finding{warning(CodePlacementDecided, "its expressions are too expensive to be evaluated in this check", "", c.explain(p))}
	}
	out := misconfigurations(&r)
	if !r.Kept {
		out = append(out, c.selection(all, p, &r)...)
		out = append(out, c.missingScores(all, p, &r)...)
	}
	if isSilent(p, c.run.Now()) {
		out = append(out, warning(CodePlacementDecided, "the hub has not decided on it yet", "", fleet.CheckHub.On(c.o.Hub)))
	}
	return out
}

// explain is the fix that shows why a placement selects what it does.
func (c *checking) explain(p *clusterv1beta1.Placement) fleet.Fix {
	return ExplainPlacement.On(c.o.Hub, "placement", placement.KeyOf(p).String())
}

// misconfigurations returns what is wrong or without effect in the spec.
func misconfigurations(r *schedule.Result) []Finding {
	var out []Finding
	for _, problem := range r.Problems {
		f := warning(CodePlacementSpec, problem.Message, problem.Field, fleet.Advice(problem.Fix))
		if problem.Severity == schedule.SeverityError {
			f.Severity = SeverityError
		}
		out = append(out, f)
	}
	return out
}

// isSilent reports whether the hub has not handled the current spec of the placement although it
// had the time.
func isSilent(p *clusterv1beta1.Placement, now time.Time) bool {
	return now.Sub(p.CreationTimestamp.Time) >= decisionPatience && apimeta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.ConditionSatisfied) == nil
}

// selection returns why fewer clusters are selected than are wanted.
func (c *checking) selection(all *placed, p *clusterv1beta1.Placement, r *schedule.Result) []Finding {
	hub := c.o.Hub
	bound := all.bound[p.Namespace]
	var out []Finding
	for _, name := range p.Spec.ClusterSets {
		if len(bound) > 0 && !slices.Contains(bound, name) {
			out = append(out, warning(CodePlacementUnbound, fmt.Sprintf("it names the cluster set %s, to which its namespace is not bound", name), "",
				placement.BindSet.On(hub, "set", name, "namespace", p.Namespace)))
		}
	}
	for _, name := range bound {
		if all.sets[name] == nil && (len(p.Spec.ClusterSets) == 0 || slices.Contains(p.Spec.ClusterSets, name)) {
			out = append(out, warning(CodePlacementUnbound, fmt.Sprintf("its namespace is bound to the cluster set %s, which does not exist", name), "",
				placement.CreateSet.On(hub, "set", name)))
		}
	}
	names := slices.Sorted(maps.Keys(all.sets))
	f := Finding{Severity: SeverityWarning, Cause: r.Satisfied.Message, Fix: c.explain(p)}
	switch {
	case len(bound) == 0:
		f.Code, f.Title, f.Cause, f.Fix = CodePlacementNoBinding, "no cluster set is bound to its namespace", "there are the sets "+
			fleet.OrElse(fleet.Listed(names), "(none)"), placement.BindSet.On(hub, "set", placement.Only(names), "namespace", p.Namespace)
	case r.Satisfied.Reason == clusterv1beta1.ReasonAllManagedClusterSetsEmpty:
		f.Code, f.Title, f.Fix = CodePlacementEmpty, "the cluster sets that it selects from have no clusters", all.fillFix(p, hub)
	case r.Candidates == 0, r.Unscheduled == 0 && r.Selected > 0, p.Spec.NumberOfClusters != nil && *p.Spec.NumberOfClusters == 0:
		return out // the sets say it, or all is well
	case r.Matched == 0:
		f.Code, f.Title, f.Cause = CodePlacementPredicate, fmt.Sprintf("none of %s fits a predicate", fleet.Many(r.Candidates, "cluster")),
			strings.Join(placement.PredicateTexts(&p.Spec), " or ")
	case r.Feasible == 0:
		f.Code, f.Title = CodePlacementCount, fmt.Sprintf("taints that it does not tolerate keep out %s, all that fit", fleet.Many(r.Matched, "cluster"))
	default:
		f.Code, f.Title, f.Cause = CodePlacementCount, fmt.Sprintf("it selects %s of %s", fleet.Many(r.Selected, "cluster"), wantedText(p)), describeSteps(r)
	}
	return append(out, f)
}

// fillFix is the fix that gives a placement a cluster, in the first set that it selects from.
func (p *placed) fillFix(of *clusterv1beta1.Placement, hub *fleet.Cluster) fleet.Fix {
	for _, name := range p.bound[of.Namespace] {
		if set := p.sets[name]; set != nil && (len(of.Spec.ClusterSets) == 0 || slices.Contains(of.Spec.ClusterSets, name)) {
			return placement.Fill(set, p.clusters, hub)
		}
	}
	return naming.ListSets.On(hub)
}

// wantedText says how many clusters a placement wants.
func wantedText(p *clusterv1beta1.Placement) string {
	if n := p.Spec.NumberOfClusters; n != nil {
		return fmt.Sprintf("%d that it wants", *n)
	}
	return "all that fit"
}

// describeSteps says how many clusters are left after each step.
func describeSteps(r *schedule.Result) string {
	text := fmt.Sprintf("%s in its sets, %d fit its predicates, %d of them have no taint that keeps them out", fleet.Many(r.Candidates, "cluster"), r.Matched,
		r.Feasible)
	if r.Selected < r.Feasible {
		text += fmt.Sprintf(", %d fit its spread constraints", r.Selected)
	}
	return text
}

// missingScores returns the scores that a placement ranks by and no cluster has, and those
// that have expired.
func (c *checking) missingScores(all *placed, p *clusterv1beta1.Placement, r *schedule.Result) []Finding {
	var out []Finding
	add := func(title string) {
		out = append(out, warning(CodePlacementScores, title, "what is missing counts 0", ListScores.On(c.o.Hub)))
	}
	for _, config := range p.Spec.PrioritizerPolicy.Configurations {
		at := config.ScoreCoordinate
		if at == nil || at.AddOn == nil || at.Type != clusterv1beta1.ScoreCoordinateTypeAddOn || (config.Weight != nil && *config.Weight == 0) {
			continue
		}
		if name := at.AddOn.ResourceName + "/" + at.AddOn.ScoreName; !all.scores[name] {
			add("no cluster has the score " + name + " that it ranks by")
		}
	}
	for _, text := range r.Warnings {
		if strings.HasPrefix(text, "AddOnPlacementScores ") {
			add(text)
		} else {
			out = append(out, warning(CodePlacementUnbound, text, "", naming.ListSets.On(c.o.Hub)))
		}
	}
	return out
}
