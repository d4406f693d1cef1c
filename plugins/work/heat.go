// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// heats are the states of steps that have the marks of the states of clusters.
var heats = map[string]fleet.StepState{
	work.PlaceFailing: fleet.Broken, work.PlaceSilent: fleet.Warned, work.PlacePending: fleet.Running, work.PlaceReady: fleet.Done, work.PlaceEmpty: fleet.Skipped,
}

// printHeat prints the clusters of the fleet by the state of their works: one mark for each.
func (o *ListOptions) printHeat(ctx context.Context, c *fleet.Cluster) error {
	return o.Show(ctx, o.f.UI, func(ctx context.Context) (options.Listed, error) {
		places, err := work.Everywhere(ctx, work.ListOptions{Common: fleet.Common{Clock: o.f.UI.Streams.Clock}, Hub: c, Names: o.Names})
		if err != nil {
			return options.Listed{}, err
		}
		if len(o.Names) > 0 && !slices.ContainsFunc(places, func(p work.Place) bool { return p.Works.Total > 0 }) {
			return options.Listed{}, naming.NoWork(o.Names[0], "on any cluster", c)
		}
		out := options.Listed{Kind: "WorkFleet", Items: places, Empty: "no clusters", Table: heatTable(o.f.UI, places)}
		for _, p := range places {
			out.Names = append(out.Names, "managedcluster.cluster.open-cluster-management.io/"+p.Cluster)
		}
		return out, nil
	})
}

// heatTable returns a row for each state that clusters are in, and further rows for marks that do
// not fit into one. The first column is the legend of the marks.
func heatTable(u *ui.UI, places []work.Place) ui.Table {
	legend := ui.Table{Heads: []string{"STATE", "CLUSTERS", "WORKS"}}
	names := map[string][]string{}
	for _, state := range work.PlaceStates {
		var works cluster.Rollout
		for _, p := range places {
			if p.State == state {
				names[state] = append(names[state], p.Cluster)
				works.Add(p.Progress)
			}
		}
		if n := len(names[state]); n > 0 {
			legend.Rows = append(legend.Rows, []string{u.Heat(heats[state]) + " " + state, strconv.Itoa(n), ui.Bar(works)})
		}
	}
	room := u.Room(legend)
	t := ui.Table{Heads: append(legend.Heads, "HEAT", "NAMES"), Wide: 1}
	for _, row := range legend.Rows {
		_, state, _ := strings.Cut(row[0], " ")
		for i, line := range u.HeatLines(heats[state], len(names[state]), room) {
			if i == 0 {
				t.Rows = append(t.Rows, append(row, line, strings.Join(names[state], ",")))
			} else {
				t.Rows = append(t.Rows, []string{"", "", "", line, ""})
			}
		}
	}
	return t
}
