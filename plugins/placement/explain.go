// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule/verdict"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// ExplainOptions are the flags of placement explain.
type ExplainOptions struct {
	options.Output
	// Clusters are shown in full detail; without any, all clusters are shown in brief.
	Clusters []string

	f   *options.Factory
	key types.NamespacedName
}

func newExplain(f *options.Factory) *cobra.Command {
	o := &ExplainOptions{f: f}
	cmd := &cobra.Command{
		Use: "explain NAME", Short: "Explain why each cluster is selected or not", Args: options.Args(1, 1, "the name of the placement"),
		Long: options.Long(`
		Compute on this machine what a placement selects, with the library that the hub uses, and
		show why each cluster is in or out. The result is compared with the live decision: "same",
		or + for clusters to be added, - for clusters to be removed, ~ for clusters that change
		their decision group.

		The last table has a row for each cluster, those that are not selected first, and a column
		for each requirement: whether the cluster is in a set, matches each predicate and has only
		tolerated taints. A cluster that does has a score, the sum of those of the prioritizers
		times their weights. -o wide adds the reasons. Of many clusters, those with equal marks
		share one row, unless -o wide is given.`),
		Example: options.Example(`
		kubectl ocm placement explain web -n shop --context hub
		kubectl ocm placement explain shop/web -o wide --context hub
		kubectl ocm placement explain shop/web -c cluster3 --context hub
		kubectl ocm placement explain shop/web -o json --context hub`),
		ValidArgsFunction: complete.Placements(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := parseKeys(f, args)
			if err != nil {
				return err
			}
			o.key = found[0]
			if err := o.Format.Check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringSliceVarP(&o.Clusters, "cluster", "c", nil, "show these clusters in full detail")
	options.Hidden(cmd.Flags(), "clusters", "cluster")
	_ = cmd.RegisterFlagCompletionFunc("cluster", complete.Clusters(f))
	return cmd
}

// Run explains the placement.
func (o *ExplainOptions) Run(ctx context.Context) error {
	hub, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	e, hints, err := placement.Explain(ctx, placement.ExplainOptions{Common: fleet.Common{Clock: o.f.UI.Streams.Clock}, Hub: hub, Key: o.key})
	if err != nil {
		return err
	}
	e.Hints = hintTexts(hints)
	for _, name := range o.Clusters {
		if !slices.ContainsFunc(e.Clusters, func(c schedule.ClusterReport) bool { return c.Name == name }) {
			return naming.NoCluster(name, hub)
		}
	}
	return show(o.f.UI, o.Format, "PlacementExplanation", &e, o.Clusters)
}

// hintTexts returns the hints as text.
func hintTexts(hints []fleet.Note) []string {
	out := make([]string, 0, len(hints))
	for _, hint := range hints {
		out = append(out, ui.Told(hint, ": "))
	}
	return out
}

// show prints an explanation: of all clusters in brief, or of some in full detail.
func show(u *ui.UI, format ui.Format, kind string, e *verdict.Explanation, clusters []string) error {
	if len(clusters) > 0 {
		e.Clusters = slices.DeleteFunc(e.Clusters, func(c schedule.ClusterReport) bool { return !slices.Contains(clusters, c.Name) })
	}
	if format.Machine() {
		names := make([]string, 0, len(e.Selected))
		for _, name := range e.Selected {
			names = append(names, "managedcluster.cluster.open-cluster-management.io/"+name)
		}
		return u.Result(format, kind, e, names)
	}
	s := sheet{u: u, e: e, wide: format == ui.Wide}
	if len(clusters) > 0 {
		return s.printDetails()
	}
	return s.printAll()
}
