// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// ListOptions are the flags of work list.
type ListOptions struct {
	options.Listing
	options.Targets
	// Names limits the list to works of these names.
	Names []string
	// Sets lists replica sets of works instead.
	Sets bool

	f *options.Factory
	// whole is true if all clusters are asked for by --all.
	whole bool
}

func newList(f *options.Factory) *cobra.Command {
	o := &ListOptions{f: f}
	cmd := o.command(&cobra.Command{
		Use: "list [NAME...]", Aliases: []string{"ls"}, Short: "List works and their state", Args: options.Args(0, -1, "the name of a work"),
		Long: options.Long(`
		List works and their state: those that failed first, then those under way, then those that
		are well. --sort-by sorts them otherwise.

		With --sets, list replica sets of works with a bar of each rollout: # are the clusters that
		are done, > those that have the current template and have not succeeded yet, ! those that
		did not succeed in time, and . those that wait for their turn.`),
		Example: options.Example(`
		kubectl ocm work list --context hub
		kubectl ocm work list -c cluster1 -o wide --context hub
		kubectl ocm work list --sets --context hub`),
	}, o.Run)
	cmd.Flags().BoolVar(&o.Sets, "sets", false, "list the replica sets with which the hub keeps works on the clusters of placements")
	return cmd
}

// command adds the flags of a listing of works to cmd, and makes it call run.
func (o *ListOptions) command(cmd *cobra.Command, run func(context.Context, *fleet.Cluster) error) *cobra.Command {
	cmd.ValidArgsFunction = complete.Works(o.f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Names = args
		return o.f.Do(cmd, o.Validate, run)
	}
	o.Listing.AddFlags(cmd.Flags())
	o.Targets.AddListFlags(cmd, complete.Targets(o.f))
	cmd.Flags().Lookup("selector").Usage = "works of managed clusters with these labels"
	return cmd
}

// Validate checks the flags.
func (o *ListOptions) Validate() error {
	o.Targets.Selector = o.Listing.Selector
	o.whole = o.Targets.All
	o.Targets.All = o.Targets.All || o.Listing.All
	if o.Sets && !o.Targets.Empty() && !o.Listing.All {
		return options.Usage("--sets lists replica sets, which belong to no cluster", "leave out -c, -l, --clusterset, --placement and --all; use -n or -A")
	}
	if err := o.Targets.Check(false); err != nil {
		return err
	}
	return o.Listing.Check()
}

// Run prints the works.
func (o *ListOptions) Run(ctx context.Context, c *fleet.Cluster) error {
	u := o.f.UI
	if o.Sets {
		return o.listSets(ctx, c)
	}
	return o.Show(ctx, u, func(ctx context.Context) (options.Listed, error) {
		works, err := work.List(ctx, work.ListOptions{Hub: c, Names: o.Names, Targets: o.Targets.Targets})
		if err != nil {
			return options.Listed{}, err
		}
		out := options.Listed{Kind: "WorkList", Items: works, Empty: "no works", Table: ui.Table{Wide: 4, Heads: []string{"CLUSTER", "NAME", "APPLIED", "AVAILABLE",
			"OBJECTS", "STATE", "OWNER", "AGE", "GENERATION", "EXECUTOR", "STRATEGY", "MESSAGE"}}}
		for _, w := range works {
			out.Ranks = append(out.Ranks, rank(w.State))
			out.Add(resource+w.Name, w.Labels, w.Cluster, w.Name, w.Applied, w.Available,
				fmt.Sprintf("%d/%d", w.Objects.Good, w.Objects.Total), w.State, w.Owner, ui.Age(w.Created, u.Streams.Clock.Now()),
				fmt.Sprintf("%d/%d", w.Generation, w.Observed), w.Executor, w.Strategy, w.Message)
		}
		return out, o.checkMissing(c, out.Names)
	})
}

// rank returns how urgent a work in this state is.
func rank(state string) options.Rank {
	switch {
	case work.Failing(state):
		return options.Failing
	case work.Well(state):
		return options.Well
	}
	return options.Pending
}

// rankSet returns how urgent a replica set is. One with a message is under way or stuck: its
// counts do not tell which, so only degraded works make it failing.
func rankSet(s work.SetInfo) options.Rank {
	switch {
	case s.Degraded > 0:
		return options.Failing
	case s.Message != "", min(s.Applied, s.Available, s.Updated) < s.Clusters:
		return options.Pending
	}
	return options.Well
}

// checkMissing returns an error for the first of Names that was not found.
func (o *ListOptions) checkMissing(hub *fleet.Cluster, found []string) error {
	for _, name := range o.Names {
		if !slices.Contains(found, resource+name) {
			return naming.NoWork(name, "on the target clusters", hub)
		}
	}
	return nil
}

// resource is the prefix of works under -o name.
const resource = "manifestwork.work.open-cluster-management.io/"

// listSets prints the replica sets of the given namespace, or of all.
func (o *ListOptions) listSets(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	namespace := o.f.GivenNamespace()
	if o.Listing.All {
		namespace = ""
	}
	return o.Show(ctx, u, func(ctx context.Context) (options.Listed, error) {
		sets, err := work.ListSets(ctx, hub, namespace, o.Names)
		if err != nil {
			return options.Listed{}, err
		}
		for _, name := range o.Names {
			if !slices.ContainsFunc(sets, func(s work.SetInfo) bool { return s.Name == name }) {
				return options.Listed{}, naming.NoWorkSet(name, hub)
			}
		}
		out := options.Listed{Kind: "WorkSetList", Items: sets, Empty: "no replica sets", Table: ui.Table{Wide: 2, Least: []string{"CLUSTERS", "UPDATED"},
			Heads: []string{"NAMESPACE", "NAME", "PLACEMENT", "ROLLOUT", "WHEN", "CLUSTERS", "APPLIED", "AVAILABLE", "PROGRESSING", "DEGRADED",
				"UPDATED", "AGE", "STRATEGY", "MESSAGE"}}}
		now := u.Streams.Clock.Now()
		for _, s := range sets {
			row := []string{s.Namespace, s.Name, strings.Join(s.Placements, ","), ui.Bar(s.Rollout), ui.When(s.Rollout, now)}
			for _, n := range []int{s.Clusters, s.Applied, s.Available, s.Progressing, s.Degraded, s.Updated} {
				row = append(row, strconv.Itoa(n))
			}
			out.Ranks = append(out.Ranks, rankSet(s))
			out.Add("manifestworkreplicaset.work.open-cluster-management.io/"+s.Name, s.Labels,
				append(row, ui.Age(s.Created, now), s.Strategy, s.Message)...)
		}
		return out, nil
	})
}
