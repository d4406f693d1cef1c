// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/describe"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// TreeOptions are the flags of cluster tree.
type TreeOptions struct {
	options.Output
	// Unfold also shows what is well.
	Unfold bool
	// Names of the clusters.
	Names []string

	f *options.Factory
}

func newTree(f *options.Factory) *cobra.Command {
	o := &TreeOptions{f: f}
	cmd := &cobra.Command{
		Use: "tree NAME...", Short: "Show clusters with their sets, placements, add-ons and works", Args: options.Args(1, -1, "the name of a cluster"),
		Long: options.Long(`
		Show managed clusters as trees: the sets they are in, the placements that select them,
		their add-ons and works. Add-ons and works that are well are only counted, unless --unfold
		is given.`),
		Example: options.Example(`
		kubectl ocm cluster tree cluster1 --context hub
		kubectl ocm cluster tree cluster1 --unfold --context hub`),
		ValidArgsFunction: complete.Clusters(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return f.Do(cmd, o.Format.Check, o.Run)
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.Unfold, "unfold", false, "show every add-on and work")
	return cmd
}

// Run prints the trees.
func (o *TreeOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	var clusters []describe.Cluster
	var names []string
	for _, name := range o.Names {
		c, err := describe.Read(ctx, describe.Options{Common: fleet.Common{Clock: u.Streams.Clock}, Hub: hub, Name: name})
		if err != nil {
			return err
		}
		clusters, names = append(clusters, c), append(names, resource+name)
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "ClusterTree", clusters, names)
	}
	t := ui.Table{Heads: []string{"NAME", "READY", "REASON", "AGE"}}
	for i := range clusters {
		t.Rows = append(t.Rows, o.rows(&clusters[i])...)
	}
	return u.Report(t, o.Format == ui.Wide)
}

// branch is a group of objects below a cluster.
type branch struct {
	kind     string
	children []child
	// progress counts the children by what becomes of them; empty if they are only listed.
	progress cluster.Rollout
	// fold counts the children that are well instead of showing them.
	fold bool
	// empty is what it means that there are none; well what it means that all are well.
	empty, well string
}

type child struct {
	name, reason, age string
	good              bool
}

// rows returns the tree of one cluster.
func (o *TreeOptions) rows(c *describe.Cluster) [][]string {
	u := o.f.UI
	age := (&GetOptions{f: o.f}).age
	sets := branch{kind: "ManagedClusterSet", empty: "in no set"}
	for _, s := range c.Sets {
		reason := "bound nowhere"
		if len(s.Bound) > 0 {
			reason = "bound in " + strings.Join(s.Bound, ", ")
		}
		sets.children = append(sets.children, child{name: s.Name, reason: reason, good: true})
	}
	placements := branch{kind: "Placement", empty: "none selects it"}
	for _, name := range c.Placements {
		placements.children = append(placements.children, child{name: name, reason: "selects it", good: true})
	}
	addons := branch{kind: "ManagedClusterAddOn", progress: addon.Progress(c.AddOnStates), fold: !o.Unfold, empty: "none", well: "all available"}
	for _, a := range c.AddOnStates {
		addons.children = append(addons.children, child{a.Name, a.Message, age(a.Created), a.Available == "True"})
	}
	works := branch{kind: "ManifestWork", progress: work.Progress(c.WorkStates), fold: !o.Unfold, empty: "none", well: "all applied and available"}
	for _, w := range c.WorkStates {
		works.children = append(works.children, child{w.Name, strings.Trim(w.State+": "+w.Message, ": "), age(w.Created), work.Well(w.State)})
	}
	out := [][]string{{"ManagedCluster/" + c.Name, mark(u, c.Status == cluster.Available), strings.Trim(c.Status+": "+c.Message, ": "), age(c.Created)}}
	all := []branch{sets, placements, addons, works}
	for i, b := range all {
		out = append(out, b.rows(u, i == len(all)-1)...)
	}
	return out
}

// rows returns the group and its children.
func (b *branch) rows(u *ui.UI, last bool) [][]string {
	var shown []child
	for _, c := range b.children {
		if !c.good || !b.fold {
			shown = append(shown, c)
		}
	}
	ready, reason := mark(u, b.progress.Complete()), ""
	switch {
	case len(b.children) == 0:
		ready, reason = u.Symbol(fleet.Skipped), b.empty
	case b.progress.Total > 0 && b.progress.Complete():
		reason = ui.Bar(b.progress) + " " + b.well
	case b.progress.Total > 0:
		reason = ui.Bar(b.progress) + " " + ui.When(b.progress, time.Time{}) // since when is not known
	}
	out := [][]string{{fmt.Sprintf("%s%ss (%d)", u.Branch(last), b.kind, len(b.children)), ready, ui.Dash(reason), ""}}
	for i, c := range shown {
		out = append(out, []string{u.Stem(last) + u.Branch(i == len(shown)-1) + b.kind + "/" + c.name, mark(u, c.good), ui.Dash(c.reason), c.age})
	}
	return out
}
