// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// New returns the command "addon".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{Use: "addon", Aliases: []string{"addons"}, Short: "Manage add-ons on managed clusters"})
	cmd.AddCommand(newList(f), newEnable(f), newDisable(f), newResume(f), newStatus(f), newCreate(f), newDelete(f))
	return cmd
}

// ListOptions are the flags of addon list.
type ListOptions struct {
	options.Listing
	options.Targets
	// Names limits the list to these add-ons.
	Names []string

	f *options.Factory
}

func newList(f *options.Factory) *cobra.Command {
	o := &ListOptions{f: f}
	cmd := &cobra.Command{
		Use: "list [NAME...]", Aliases: []string{"ls"}, Short: "List add-ons and the number of clusters they run on",
		Args: options.Args(0, -1, "the name of an add-on"),
		Long: options.Long(`
		List the add-ons of the hub of --context, how each is installed, and on how many clusters,
		or how many of those that -c, --clusterset or --placement name,
		it is enabled, available or unavailable: those that do not work somewhere come first.
		--sort-by sorts them otherwise.

		A rollout of configurations to the clusters of placements has a bar: # are the clusters
		that are done, > those that have them and have not succeeded yet, ! those that failed or
		did not succeed in time, and . those that wait for their turn.`),
		Example: options.Example(`
		kubectl ocm addon list --context hub
		kubectl ocm addon list -o wide --context hub
		kubectl ocm addon list --clusterset prod --context hub`),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return f.Do(cmd, func() error { return cmp.Or(o.CheckSelector(), o.Targets.Check(false), o.Listing.Check()) }, o.Run)
		},
	}
	o.Listing.AddFlags(cmd.Flags())
	o.AddListFlags(cmd, complete.Targets(f))
	cmd.Flags().Lookup("all-namespaces").Usage = "all clusters, which is the default"
	return cmd
}

// Run prints the add-ons.
func (o *ListOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	return o.Show(ctx, o.f.UI, func(ctx context.Context) (options.Listed, error) {
		found, err := addon.List(ctx, addon.ListOptions{Hub: hub, Names: o.Names, Selector: o.Listing.Selector, Targets: o.Targets.Targets})
		if err != nil {
			return options.Listed{}, err
		}
		for _, name := range o.Names {
			if !slices.ContainsFunc(found, func(a addon.Info) bool { return a.Name == name }) {
				return options.Listed{}, naming.NoAddOn(name, hub)
			}
		}
		return o.listed(found), nil
	})
}

func (o *ListOptions) listed(found []addon.Info) options.Listed {
	now := o.f.UI.Streams.Clock.Now()
	out := options.Listed{Kind: "AddOnList", Items: found, Empty: "no add-ons", Table: ui.Table{Wide: 4,
		Least: []string{"AGE", "VERSION", "DISPLAY"}, Heads: []string{
			"NAME", "DISPLAY", "INSTALL", "ENABLED", "AVAILABLE", "UNAVAILABLE", "ROLLOUT", "WHEN", "VERSION", "AGE",
			"DEGRADED", "CONFIG", "LIFECYCLE", "REGISTRATION"}}}
	for i := range found {
		a := &found[i]
		bar, when := "-", "-"
		if a.Rollout != nil {
			bar, when = ui.Bar(*a.Rollout), ui.When(*a.Rollout, now)
		}
		out.Ranks = append(out.Ranks, rank(a))
		out.Add("clustermanagementaddon."+addonv1alpha1.GroupName+"/"+a.Name, a.Labels, a.Name, a.DisplayName, a.Install,
			strconv.Itoa(a.Enabled), strconv.Itoa(a.Available), strconv.Itoa(a.Unavailable), bar, when, a.Version, ui.Age(a.Created, now), strconv.Itoa(a.Degraded),
			strings.Join(a.Configs, ","), a.Lifecycle, strings.Join(a.Registrations, ","))
	}
	return out
}

// rank returns how urgent an add-on is.
func rank(a *addon.Info) options.Rank {
	switch {
	case a.Unavailable > 0:
		return options.Failing
	case a.Available == a.Enabled && a.Degraded == 0:
		return options.Well
	}
	return options.Pending
}

// StatusOptions are the flags of addon status.
type StatusOptions struct {
	options.Listing
	options.Targets
	// Name of the add-on.
	Name string

	f *options.Factory
}

func newStatus(f *options.Factory) *cobra.Command {
	o := &StatusOptions{f: f}
	cmd := &cobra.Command{
		Use: "status NAME", Short: "Show the state of an add-on on each cluster", Args: options.Args(1, 1, "the name of the add-on"),
		Long: options.Long(`
		Show for each cluster whether the add-on is available, registered and applied, how many of
		its configurations are applied there, and what it is waiting for. Clusters that "addon
		disable" excluded from an install strategy are shown too. The signs of a bar are
		configurations that are applied (#), on their way (>), failed (!) and waiting (.).`),
		Example: options.Example(`
		kubectl ocm addon status metrics --context hub
		kubectl ocm addon status metrics -c cluster1 --context hub -w`),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return f.Do(cmd, func() error { return cmp.Or(o.CheckSelector(), o.Targets.Check(false), o.Listing.Check()) }, o.Run)
		},
	}
	o.Listing.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("all-namespaces").Usage = "all clusters, which is the default"
	o.AddListFlags(cmd, complete.Targets(f))
	return cmd
}

// Run prints the states.
func (o *StatusOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	return o.Show(ctx, o.f.UI, func(ctx context.Context) (options.Listed, error) {
		states, err := addon.States(ctx, addon.StatusOptions{Hub: hub, Name: o.Name, Targets: o.Targets.Targets, Selector: o.Listing.Selector})
		out := options.Listed{Kind: "AddOnStatusList", Items: states, Empty: "the add-on " + o.Name + " is on none of these clusters",
			Table: ui.Table{Least: []string{"MESSAGE", "NAMESPACE", "LEASE"}, Heads: []string{
				"CLUSTER", "AVAILABLE", "PROGRESSING", "REGISTERED", "APPLIED", "LEASE", "NAMESPACE", "CONFIG", "MESSAGE"}}}
		for _, s := range states {
			out.Add("managedclusteraddon."+addonv1alpha1.GroupName+"/"+s.Name, s.Labels, s.Cluster, s.Available, s.Progressing, s.Registered, s.Applied,
				s.Lease, s.Namespace, ui.Bar(s.Rollout), s.Message)
		}
		return out, err
	})
}

// line describes what was done with an add-on on one cluster.
func line(d fleet.ClusterChange) string {
	return fmt.Sprintf("managedclusteraddon/%s %s on %s", d.Object.GetName(), d.Action, d.Cluster)
}
