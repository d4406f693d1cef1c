// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule/verdict"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Limits of the text output; -o wide and -o json show everything.
const (
	maxNames = 5
	maxRows  = 30
)

// sheet prints an explanation as text.
type sheet struct {
	u    *ui.UI
	e    *verdict.Explanation
	wide bool
}

// printAll prints the explanation of all clusters in brief: what is wanted, what is selected
// and how that differs from the live decision, the steps, and the clusters with their scores.
func (s sheet) printAll() error {
	e, selected := s.e, ""
	if len(e.Selected) > 0 {
		selected = " (" + names(e.Selected) + ")"
	}
	s.u.Say("PLACEMENT %s/%s   wants %s   selected %d%s   live decision: %s", e.Placement.Metadata.Namespace, e.Placement.Metadata.Name,
		wantedText(e.Placement.Spec.NumberOfClusters), len(e.Selected), selected, drift(&e.Live))
	if stages := s.stages(); len(stages.Rows) > 0 {
		s.u.Say("")
		if err := s.u.Report(stages, s.wide); err != nil {
			return err
		}
	}
	if table := s.matrix(); len(table.Rows) > 0 {
		s.u.Say("")
		if err := s.printMatrix(table); err != nil {
			return err
		}
	}
	s.printRemarks()
	return nil
}

// printMatrix prints the table of clusters; unless it is wide, equal rows of a large fleet are folded.
func (s sheet) printMatrix(t ui.Table) error {
	clusters, hidden := len(t.Rows), 0
	if !s.wide && clusters > maxRows {
		t = fold(t)
		hidden = max(len(t.Rows)-maxRows, 0)
		t.Rows = t.Rows[:len(t.Rows)-hidden]
	}
	if err := s.u.Report(t, s.wide); err != nil {
		return err
	}
	switch {
	case hidden > 0:
		s.u.Say("and %d more rows: -o wide shows all %d clusters", hidden, clusters)
	case len(t.Rows) < clusters:
		s.u.Say("%d clusters, equal ones in one row: -o wide shows all", clusters)
	}
	return nil
}

// difference is a kind of change, and the clusters that it concerns.
type difference struct {
	sign  string
	names []string
}

func differences(live *verdict.Live) []difference {
	return []difference{{"+", live.Added}, {"-", live.Removed}, {"~", live.Moved}}
}

// drift describes how the computed decision differs from the live one.
func drift(live *verdict.Live) string {
	if live.Same {
		return "same"
	}
	var words []string
	for _, part := range differences(live) {
		for i, name := range part.names {
			if i == 2*maxNames {
				words = append(words, fmt.Sprintf("%s%d more", part.sign, len(part.names)-i))
				break
			}
			words = append(words, part.sign+name)
		}
	}
	if live.Reordered {
		words = append(words, "in another order")
	}
	return strings.Join(words, " ")
}

// names lists at most maxNames names and the number of the rest.
func names(all []string) string {
	if len(all) > maxNames {
		return strings.Join(all[:maxNames], ", ") + fmt.Sprintf(" and %d more", len(all)-maxNames)
	}
	return strings.Join(all, ", ")
}

// stages counts the clusters that are left after each step, and names those dropped.
func (s sheet) stages() ui.Table {
	r := &s.e.Report.Result
	t := ui.Table{Heads: []string{"STAGE", "IN", "OUT", "DROPPED"}}
	if len(s.e.Clusters) == 0 || s.e.Kept {
		return t // without clusters or a valid spec there are no steps
	}
	row := func(stage string, in int, out []string) {
		t.Rows = append(t.Rows, []string{stage, strconv.Itoa(in), strconv.Itoa(len(out)), ui.Dash(names(out))})
	}
	row("cluster sets: "+cmp.Or(strings.Join(s.eligible(), ","), "none"), r.Candidates, s.dropped(schedule.StageNotInSet, schedule.StageDeleting))
	if r.Candidates == 0 {
		return t
	}
	switch texts := placement.PredicateTexts(&s.e.Placement.Spec); len(texts) {
	case 0:
	case 1:
		row("predicate: "+texts[0], r.Matched, s.dropped(schedule.StagePredicate))
	default:
		for i, text := range texts {
			t.Rows = append(t.Rows, []string{fmt.Sprintf("predicate %d: %s", i+1, text), strconv.Itoa(s.fitting(i)), "", ""})
		}
		row(fmt.Sprintf("one of %d predicates", len(texts)), r.Matched, s.dropped(schedule.StagePredicate))
	}
	row("taints", r.Feasible, s.dropped(schedule.StageTaint))
	left := r.Feasible
	if len(s.e.Placement.Spec.SpreadPolicy.SpreadConstraints) > 0 {
		out := s.dropped(schedule.StageSpread)
		left -= len(out)
		row("spread: "+strings.Join(placement.SpreadTexts(&s.e.Placement.Spec), ", "), left, out)
	}
	if s.e.Placement.Spec.NumberOfClusters != nil {
		out := s.dropped(schedule.StageRank)
		row("rank: "+wantedText(s.e.Placement.Spec.NumberOfClusters)+" wanted", left-len(out), out)
	}
	return t
}

// eligible returns the sets whose members are candidates.
func (s sheet) eligible() []string {
	var out []string
	for _, set := range s.e.Sets {
		if set.Eligible {
			out = append(out, set.Name)
		}
	}
	return out
}

// fitting counts the clusters that match predicate i.
func (s sheet) fitting(i int) int {
	n := 0
	for _, c := range s.e.Clusters {
		if i < len(c.Predicates) && c.Predicates[i].Matched {
			n++
		}
	}
	return n
}

// dropped names the clusters that were dropped at the stages, each with a short reason.
func (s sheet) dropped(stages ...schedule.Stage) []string {
	var out []string
	for i := range s.e.Clusters {
		c := &s.e.Clusters[i]
		if slices.Contains(stages, c.Stage) {
			out = append(out, c.Name+shortReason(c))
		}
	}
	return out
}

// shortReason says in a few words why a cluster is out.
func shortReason(c *schedule.ClusterReport) string {
	switch c.Stage {
	case schedule.StageDeleting:
		return " (being deleted)"
	case schedule.StagePredicate:
		if len(c.Predicates) == 1 {
			return firstMismatch(c.Predicates[0].Parts)
		}
	case schedule.StageTaint:
		for _, t := range c.Taints {
			if !t.Tolerated {
				return " (" + taintReason(&t) + ")"
			}
		}
	case schedule.StageRank:
		return " (" + placement.Ordinal(c.Rank) + ")"
	}
	return ""
}

// taintReason says in a few words why a taint keeps a cluster out.
func taintReason(t *schedule.TaintReport) string {
	if t.Until != nil {
		return shortKey(t.Key) + ", toleration over"
	}
	return shortKey(t.Key) + ", no toleration"
}

// firstMismatch shows what the cluster has in place of the first requirement that does
// not hold.
func firstMismatch(parts []schedule.PartReport) string {
	for _, p := range parts {
		switch {
		case p.Matched:
			continue
		case p.Error != "":
			return " (" + string(p.Part) + ": " + p.Error + ")"
		case p.Part == schedule.PartCEL:
			return " (false)"
		case p.Actual == nil:
			return " (no " + string(p.Part) + ")"
		}
		key, _, _ := strings.Cut(strings.TrimPrefix(p.Requirement, "!"), " ")
		key, _, _ = strings.Cut(key, "=")
		key, _, _ = strings.Cut(key, "!")
		return " (" + shortKey(key) + "=" + *p.Actual + ")"
	}
	return ""
}

// shortKey returns the key without the prefix of this API's group.
func shortKey(key string) string {
	return strings.TrimPrefix(key, clusterv1beta1.GroupName+"/")
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// group returns index and name of a cluster's decision group.
func group(c *schedule.ClusterReport) string {
	if c.Group == nil {
		return "-"
	}
	return strings.TrimSpace(strconv.Itoa(*c.Group) + " " + c.GroupName)
}

// printRemarks prints notes, problems, warnings and hints.
func (s sheet) printRemarks() {
	e := s.e
	if e.Frozen {
		s.u.Say("note: the hub does not schedule this placement: annotation %s is \"true\"", clusterv1beta1.AnnotationSchedulingDisable)
	}
	if e.Kept {
		s.u.Say("note: its spec is invalid, so it keeps its last decision")
	}
	if e.Delayed {
		s.u.Say("note: scores have changed, but scoreRateLimit delays the change")
	}
	for _, p := range e.Problems {
		s.u.Say("%s: %s: %s", strings.ToLower(string(p.Severity)), p.Field, p.Message)
		s.u.Say("  fix: %s", p.Fix)
	}
	for _, text := range e.Warnings {
		s.u.Say("warning: %s", text)
	}
	for _, text := range e.Hints {
		s.u.Say("hint: %s", s.u.Own(text))
	}
}

// printDetails prints single clusters in full detail.
func (s sheet) printDetails() error {
	for i := range s.e.Clusters {
		c := &s.e.Clusters[i]
		if i > 0 {
			s.u.Say("")
		}
		verb := "not selected by"
		if c.Selected {
			verb = "selected by"
		}
		s.u.Say("CLUSTER %s is %s %s/%s: %s", c.Name, verb,
			s.e.Placement.Metadata.Namespace, s.e.Placement.Metadata.Name, strings.TrimPrefix(c.Reason, "selected: "))
		s.u.Say("")
		if err := s.u.Report(s.steps(c), s.wide); err != nil {
			return err
		}
	}
	s.e.Hints = slices.DeleteFunc(s.e.Hints, func(hint string) bool {
		return !slices.ContainsFunc(s.e.Clusters, func(c schedule.ClusterReport) bool { return strings.HasPrefix(hint, c.Name+" ") })
	})
	s.printRemarks()
	return nil
}

// steps lists the steps that a cluster went through.
func (s sheet) steps(c *schedule.ClusterReport) ui.Table {
	t := ui.Table{Heads: []string{"STEP", "VERDICT", "DETAIL"}}
	row := func(step, verdict, detail string) { t.Rows = append(t.Rows, []string{step, verdict, ui.Dash(detail)}) }
	if len(c.Sets) == 0 {
		row("cluster sets", "out", "in none of the bound sets: "+cmp.Or(strings.Join(s.eligible(), ","), "none"))
		return t
	}
	row("cluster sets", "in", strings.Join(c.Sets, ","))
	for i, p := range c.Predicates {
		for _, part := range p.Parts {
			row(fmt.Sprintf("predicate %d %s", i+1, part.Part), yes(part.Matched), requirement(&part))
		}
		if len(p.Parts) == 0 {
			row(fmt.Sprintf("predicate %d", i+1), yes(p.Matched), "matches everything")
		}
	}
	for _, taint := range c.Taints {
		verdict := "out"
		if taint.Tolerated {
			verdict = "in"
		}
		row("taint "+shortKey(taint.Key), verdict, taint.Reason)
	}
	if c.Rank > 0 {
		for _, p := range s.e.Report.Prioritizers {
			row(p.Name, strconv.FormatInt(c.Scores[p.Name]*p.Weight, 10), fmt.Sprintf("%d with weight %d", c.Scores[p.Name], p.Weight))
		}
		row(
			"rank", strconv.Itoa(c.Rank),
			fmt.Sprintf("of %d, score %d; wanted: %s", s.e.Report.Result.Feasible, *c.Total, wantedText(s.e.Placement.Spec.NumberOfClusters)),
		)
	}
	s.addSpread(c, row)
	if c.Group != nil {
		row("decision group", strconv.Itoa(*c.Group), c.GroupName)
	}
	row("live decision", yes(slices.Contains(s.e.Live.Clusters, c.Name)), "")
	return t
}

// addSpread adds a row for each spread constraint.
func (s sheet) addSpread(c *schedule.ClusterReport, row func(step, verdict, detail string)) {
	for n, at := range c.Spread {
		term := s.e.Placement.Spec.SpreadPolicy.SpreadConstraints[n]
		verdict, detail := "fits", term.TopologyKey+" is "+at.Topology
		if at.Violated {
			verdict = "too many"
		}
		if !at.Present {
			verdict, detail = "no", "it has no "+strings.ToLower(string(term.TopologyKeyType))+" "+term.TopologyKey
		}
		row("spread "+shortKey(term.TopologyKey), verdict, detail)
	}
}

// requirement describes a requirement and what the cluster has.
func requirement(p *schedule.PartReport) string {
	switch {
	case p.Error != "":
		return p.Requirement + ": " + p.Error
	case p.Part == schedule.PartCEL:
		return p.Requirement
	case p.Actual == nil:
		return p.Requirement + ": it has no such " + string(p.Part)
	}
	return p.Requirement + ": it has " + strconv.Quote(*p.Actual)
}
