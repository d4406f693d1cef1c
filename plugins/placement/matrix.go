// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// leastFolded is the number of equal rows that are worth folding into one.
const leastFolded = 4

// stageOrder are the stages as rows are sorted: the earlier a cluster is out, the higher it is.
var stageOrder = []schedule.Stage{
	schedule.StageNotInSet, schedule.StageDeleting, schedule.StagePredicate, schedule.StageTaint, schedule.StageSpread, schedule.StageRank, schedule.StageSelected,
}

// matrix is the table of clusters by requirements: one row for each cluster with what it fulfils
// and how it is scored, those that are not selected first. It has no rows if no cluster was judged.
func (s sheet) matrix() ui.Table {
	t := ui.Table{Heads: []string{"CLUSTER", "SELECTED", "SET"}, Wide: 1}
	if s.e.Kept || s.e.Report.Result.Candidates == 0 {
		return t
	}
	predicates := len(s.e.Placement.Spec.Predicates)
	for i := range predicates {
		t.Heads = append(t.Heads, predicateHead(i, predicates))
	}
	t.Heads = append(t.Heads, "TAINTS")
	if s.spreads() {
		t.Heads = append(t.Heads, "SPREAD")
	}
	t.Heads = append(t.Heads, "SCORE")
	if s.grouped() {
		t.Heads = append(t.Heads, "GROUP")
	}
	for _, p := range s.e.Report.Prioritizers {
		t.Heads = append(t.Heads, fmt.Sprintf("%s(%d)", strings.Replace(p.Name, "ResourceAllocatable", "Alloc", 1), p.Weight))
	}
	t.Heads = append(t.Heads, "REASON")
	for _, c := range s.ordered() {
		t.Rows = append(t.Rows, s.row(c))
	}
	return t
}

// predicateHead is the head of the column of predicate i of n; the table of stages has its text.
func predicateHead(i, n int) string {
	if n == 1 {
		return "PREDICATE"
	}
	return fmt.Sprintf("PRED%d", i+1)
}

func (s sheet) spreads() bool { return len(s.e.Placement.Spec.SpreadPolicy.SpreadConstraints) > 0 }
func (s sheet) grouped() bool { return len(s.e.Groups) > 1 }

// ordered returns the clusters in the order of the rows.
func (s sheet) ordered() []*schedule.ClusterReport {
	out := make([]*schedule.ClusterReport, 0, len(s.e.Clusters))
	for i := range s.e.Clusters {
		out = append(out, &s.e.Clusters[i])
	}
	place := func(c *schedule.ClusterReport) int {
		if c.Selected {
			return len(stageOrder)
		}
		return slices.Index(stageOrder, c.Stage)
	}
	slices.SortStableFunc(out, func(a, b *schedule.ClusterReport) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Rank, b.Rank))
	})
	return out
}

// row returns the cells of a cluster.
func (s sheet) row(c *schedule.ClusterReport) []string {
	row := []string{c.Name, yes(c.Selected), s.set(c)}
	for i := range s.e.Placement.Spec.Predicates {
		cell := s.u.Symbol(fleet.Skipped)
		if i < len(c.Predicates) {
			cell = s.cell(c.Predicates[i].Matched, strings.Trim(firstMismatch(c.Predicates[i].Parts), " ()"))
		}
		row = append(row, cell)
	}
	row = append(row, s.taints(c))
	if s.spreads() {
		row = append(row, s.spread(c))
	}
	ranked := c.Rank > 0 && c.Total != nil
	number := func(n int64) string {
		if !ranked {
			return "-"
		}
		return strconv.FormatInt(n, 10)
	}
	if ranked {
		row = append(row, number(*c.Total))
	} else {
		row = append(row, "-")
	}
	if s.grouped() {
		row = append(row, group(c))
	}
	for _, p := range s.e.Report.Prioritizers {
		row = append(row, number(c.Scores[p.Name]))
	}
	return append(row, c.Reason)
}

// cell returns the mark of a requirement and, in a wide table, why it does not hold.
func (s sheet) cell(holds bool, reason string) string {
	if holds {
		return s.u.Symbol(fleet.Done)
	}
	return s.mark(fleet.Broken, reason)
}

// mark returns a mark and, in a wide table, the reason for it.
func (s sheet) mark(state fleet.StepState, reason string) string {
	if !s.wide {
		return s.u.Symbol(state)
	}
	return strings.TrimSpace(s.u.Symbol(state) + " " + reason)
}

// set says whether a cluster is a candidate.
func (s sheet) set(c *schedule.ClusterReport) string {
	if c.Stage == schedule.StageDeleting {
		return s.cell(false, "being deleted")
	}
	return s.cell(len(c.Sets) > 0, "in none of them")
}

// taints says whether all taints of a cluster are tolerated.
func (s sheet) taints(c *schedule.ClusterReport) string {
	if len(c.Sets) == 0 || c.Stage == schedule.StageDeleting {
		return s.u.Symbol(fleet.Skipped)
	}
	for _, t := range c.Taints {
		if !t.Tolerated {
			return s.cell(false, taintReason(&t))
		}
	}
	return s.cell(true, "")
}

// spread says whether a cluster fits all spread constraints. One that does not decide alone only
// warns.
func (s sheet) spread(c *schedule.ClusterReport) string {
	if len(c.Spread) == 0 {
		return s.u.Symbol(fleet.Skipped)
	}
	out := s.cell(true, "")
	for n, at := range c.Spread {
		term := s.e.Placement.Spec.SpreadPolicy.SpreadConstraints[n]
		reason := ""
		switch key := shortKey(term.TopologyKey); {
		case !at.Present:
			reason = "no " + key
		case at.Violated:
			reason = "too many with " + key + "=" + at.Topology
		default:
			continue
		}
		if term.WhenUnsatisfiable == clusterv1beta1.DoNotSchedule {
			return s.cell(false, reason)
		}
		out = s.mark(fleet.Warned, reason)
	}
	return out
}

// fold joins rows that differ in nothing but names and numbers into one row that names the first
// cluster and gives the range of the numbers; the column COUNT has how many clusters a row is for.
// Few equal rows stay as they are.
func fold(t ui.Table) ui.Table {
	numbers, groups := slices.Index(t.Heads, "SCORE"), slices.Index(t.Heads, "GROUP")
	key := func(row []string) string {
		words := append(slices.Clone(row[1:numbers]), strconv.FormatBool(row[numbers] == "-"))
		if groups >= 0 {
			words = append(words, row[groups])
		}
		return strings.Join(words, "\x00")
	}
	equal := map[string][][]string{}
	for _, row := range t.Rows {
		equal[key(row)] = append(equal[key(row)], row)
	}
	out := ui.Table{Heads: slices.Insert(slices.Clone(t.Heads), 1, "COUNT"), Wide: t.Wide}
	done := map[string]bool{}
	for _, row := range t.Rows {
		rows := equal[key(row)]
		switch {
		case len(rows) < leastFolded:
			out.Rows = append(out.Rows, slices.Insert(slices.Clone(row), 1, "1"))
		case !done[key(row)]:
			done[key(row)] = true
			out.Rows = append(out.Rows, slices.Insert(folded(rows, numbers, groups), 1, strconv.Itoa(len(rows))))
		}
	}
	return out
}

// folded returns the row that stands for all of rows; the columns from numbers on are numbers,
// except the one of groups and the reason at the end.
func folded(rows [][]string, numbers, groups int) []string {
	out := slices.Clone(rows[0])
	out[0] += ", .."
	for i := numbers; i < len(out)-1; i++ {
		if i == groups || out[i] == "-" {
			continue
		}
		var values []int64
		for _, row := range rows {
			n, _ := strconv.ParseInt(row[i], 10, 64)
			values = append(values, n)
		}
		if least, most := slices.Min(values), slices.Max(values); least != most {
			out[i] = fmt.Sprintf("%d..%d", least, most)
		}
	}
	return out
}
