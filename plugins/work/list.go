// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// ListOptions are the flags of work list.
type ListOptions struct {
	options.Listing
	options.Targets
	// Names keeps works of these names.
	Names []string

	f *options.Factory
}

func newList(f *options.Factory) *cobra.Command {
	o := &ListOptions{f: f}
	cmd := &cobra.Command{
		Use: "list [NAME...]", Aliases: []string{"ls"}, Short: "List works and how they are", Args: options.Args(0, -1, "the name of a work"),
		ValidArgsFunction: complete.Works(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Listing.AddFlags(cmd.Flags())
	o.Targets.AddListFlags(cmd, words(f))
	cmd.Flags().Lookup("selector").Usage = "works of managed clusters with these labels"
	return cmd
}

// Validate checks the flags.
func (o *ListOptions) Validate() error {
	o.Targets.Selector = o.Listing.Selector
	o.Targets.All = o.Targets.All || o.Listing.All
	if err := o.Targets.Check(false); err != nil {
		return err
	}
	return o.Listing.Check()
}

// Run prints the works.
func (o *ListOptions) Run(ctx context.Context) error {
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	u := o.f.UI
	return o.Show(ctx, u, func(ctx context.Context) (options.Listed, error) {
		works, err := fleet.ListWorks(ctx, fleet.WorkListOptions{Hub: c, Names: o.Names, Targets: o.Targets.Targets})
		if err != nil {
			return options.Listed{}, err
		}
		if err := o.missing(c, works); err != nil {
			return options.Listed{}, err
		}
		out := options.Listed{Kind: "WorkList", Items: works, Empty: "no works", Table: ui.Table{Wide: 4, Heads: []string{"CLUSTER", "NAME", "APPLIED", "AVAILABLE",
			"OBJECTS", "STATE", "OWNER", "AGE", "GENERATION", "EXECUTOR", "STRATEGY", "MESSAGE"}}}
		for _, w := range works {
			out.Names = append(out.Names, "manifestwork.work.open-cluster-management.io/"+w.Name)
			out.Labels = append(out.Labels, w.Labels)
			out.Table.Rows = append(out.Table.Rows, []string{w.Cluster, w.Name, ui.Dash(w.Applied), ui.Dash(w.Available), fmt.Sprintf("%d/%d", w.Objects.Good, w.Objects.Total),
				w.State, ui.Dash(w.Owner), ui.Age(w.Created, u.Streams.Clock.Now()), fmt.Sprintf("%d/%d", w.Generation, w.Observed), ui.Dash(w.Executor), w.Strategy, ui.Dash(w.Message)})
		}
		return out, nil
	})
}

// missing is the error for a name that no work has.
func (o *ListOptions) missing(hub *fleet.Cluster, works []fleet.WorkInfo) error {
	for _, name := range o.Names {
		if !slices.ContainsFunc(works, func(w fleet.WorkInfo) bool { return w.Name == name }) {
			return &fleet.Error{Message: fmt.Sprintf("there is no work %q on the clusters that are meant", name), Fix: "kubectl ocm work list" + options.ContextFlag(hub)}
		}
	}
	return nil
}
