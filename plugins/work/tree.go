// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

func newTree(f *options.Factory) *cobra.Command {
	o := &ListOptions{f: f}
	cmd := o.command(&cobra.Command{
		Use: "tree {NAME...|--all}", Short: "Show works with their objects and the state of each",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.Targets.All {
				return nil
			}
			return options.Args(1, -1, "the name of a work")(cmd, args)
		},
		Long: options.Long(`
		Show works with their objects: what is applied and available, the values read back by
		feedback rules, the conditions set by condition rules, and what is wrong. For a work that
		is being deleted, show what holds it.

		With --all, show the whole fleet instead: one mark for each managed cluster, grouped by the
		state of its works, or of those with a given name. A cluster is Failing if a work needs
		somebody, Silent if its agent does not report, Pending if a work is under way, Ready if all
		are well, and Empty if it has none. -o wide names the clusters.`),
		Example: options.Example(`
		kubectl ocm work tree web --context hub
		kubectl ocm work tree web -c cluster1 --watch --context hub
		kubectl ocm work tree --all --context hub
		kubectl ocm work tree web --all -o wide --context hub`),
	}, o.printTree)
	cmd.Flags().Lookup("all").Usage = "all managed clusters: one mark for each, by the state of its works"
	return cmd
}

// printTree prints the works with their objects.
func (o *ListOptions) printTree(ctx context.Context, c *fleet.Cluster) error {
	if o.whole {
		return o.printHeat(ctx, c)
	}
	return o.Show(ctx, o.f.UI, func(ctx context.Context) (options.Listed, error) {
		trees, err := work.ReadTrees(ctx, work.ListOptions{Hub: c, Names: o.Names, Targets: o.Targets.Targets})
		if err != nil {
			return options.Listed{}, err
		}
		out := options.Listed{Kind: "WorkTree", Items: trees, Empty: "no works", Table: ui.Table{Heads: []string{
			"KIND", "NAME", "APPLIED", "AVAILABLE", "FEEDBACK", "CONDITIONS", "MESSAGE"}}}
		for _, w := range trees {
			out.Names = append(out.Names, resource+w.Name)
			out.Table.Rows = append(out.Table.Rows, []string{"ManifestWork", w.Cluster + "/" + w.Name, ui.Dash(w.Applied), ui.Dash(w.Available), "-",
				ui.Dash(conditionText(w.Conditions)), stateText(w.Info)})
			for i, m := range w.Manifests {
				out.Table.Rows = append(out.Table.Rows, []string{o.f.UI.Branch(i == len(w.Manifests)-1) + m.Kind, strings.TrimPrefix(m.Namespace+"/"+m.Name, "/"),
					ui.Dash(m.Applied), ui.Dash(m.Available), ui.Dash(valueText(m.Feedback)), ui.Dash(conditionText(m.Conditions)), ui.Dash(m.Message)})
			}
		}
		return out, o.checkMissing(c, out.Names)
	})
}

// stateText returns the state of a work and its message, if any.
func stateText(w work.Info) string {
	if w.Message == "" {
		return w.State
	}
	return w.State + ": " + w.Message
}

func valueText(values []work.Value) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, v.Name+"="+v.Value)
	}
	return strings.Join(parts, ",")
}

func conditionText(conditions []work.Condition) string {
	var parts []string
	for _, c := range conditions {
		parts = append(parts, c.Type+"="+c.Status)
	}
	return strings.Join(parts, ",")
}
