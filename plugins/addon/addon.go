// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

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

func completions(f *options.Factory) options.Words {
	return options.Words{Clusters: complete.Clusters(f), Sets: complete.Sets(f), Placements: complete.AllPlacements(f)}
}

// ListOptions are the flags of addon list.
type ListOptions struct {
	options.Listing
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
		List the add-ons of the hub of --context, how each is installed, and on how many clusters
		it is enabled, available or unavailable.`),
		Example: options.Example(`
		kubectl ocm addon list --context hub
		kubectl ocm addon list -o wide --context hub`),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			if err := checkSelector(o.Selector); err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("all-namespaces").Usage = "all clusters, which is the default"
	return cmd
}

func checkSelector(selector string) error {
	if _, err := labels.Parse(selector); err != nil {
		return options.Usage("wrong label selector "+strconv.Quote(selector), "for example -l env=prod")
	}
	return nil
}

// Run prints the add-ons.
func (o *ListOptions) Run(ctx context.Context) error {
	hub, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	return o.Show(ctx, o.f.UI, func(ctx context.Context) (options.Listed, error) {
		found, err := addon.List(ctx, addon.ListOptions{Hub: hub, Names: o.Names, Selector: o.Selector})
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
	out := options.Listed{Kind: "AddOnList", Items: found, Empty: "no add-ons", Table: ui.Table{Wide: 4, Heads: []string{
		"NAME", "DISPLAY", "INSTALL", "ENABLED", "AVAILABLE", "UNAVAILABLE", "VERSION", "AGE", "DEGRADED", "CONFIG", "LIFECYCLE", "REGISTRATION"}}}
	for i := range found {
		a := &found[i]
		out.Names = append(out.Names, "clustermanagementaddon."+addonv1alpha1.GroupName+"/"+a.Name)
		out.Labels = append(out.Labels, a.Labels)
		row := []string{a.Name, ui.Dash(a.DisplayName), ui.Dash(a.Install)}
		for _, n := range []int{a.Enabled, a.Available, a.Unavailable} {
			row = append(row, strconv.Itoa(n))
		}
		out.Table.Rows = append(out.Table.Rows, append(row, ui.Dash(a.Version), ui.Age(a.Created, now), strconv.Itoa(a.Degraded),
			ui.Dash(strings.Join(a.Configs, ",")), ui.Dash(a.Lifecycle), ui.Dash(strings.Join(a.Registrations, ","))))
	}
	return out
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
		disable" excluded from an install strategy are shown too.`),
		Example: options.Example(`
		kubectl ocm addon status metrics --context hub
		kubectl ocm addon status metrics -c cluster1 --context hub -w`),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if err := checkSelector(o.Listing.Selector); err != nil {
				return err
			}
			if err := o.Targets.Check(false); err != nil {
				return err
			}
			if err := o.Listing.Check(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Listing.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("all-namespaces").Usage = "all clusters, which is the default"
	o.AddListFlags(cmd, completions(f))
	return cmd
}

// Run prints the states.
func (o *StatusOptions) Run(ctx context.Context) error {
	hub, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	u := o.f.UI
	return o.Show(ctx, u, func(ctx context.Context) (options.Listed, error) {
		states, err := addon.States(ctx, addon.StatusOptions{Hub: hub, Name: o.Name, Targets: o.Targets.Targets, Selector: o.Listing.Selector})
		if err != nil {
			return options.Listed{}, err
		}
		out := options.Listed{Kind: "AddOnStatusList", Items: states, Empty: "the add-on " + o.Name + " is on none of these clusters",
			Table: ui.Table{Heads: []string{"CLUSTER", "AVAILABLE", "PROGRESSING", "REGISTERED", "APPLIED", "LEASE", "NAMESPACE", "CONFIG", "MESSAGE"}}}
		for _, s := range states {
			out.Names = append(out.Names, "managedclusteraddon."+addonv1alpha1.GroupName+"/"+s.Name)
			out.Labels = append(out.Labels, s.Labels)
			out.Table.Rows = append(out.Table.Rows, []string{s.Cluster, ui.Dash(s.Available), ui.Dash(s.Progressing), ui.Dash(s.Registered), ui.Dash(s.Applied),
				ui.Dash(s.Lease), ui.Dash(s.Namespace), ui.Ratio(s.Configs.Good, s.Configs.Total), ui.Dash(s.Message)})
		}
		return out, nil
	})
}

// line describes what was done with an add-on on one cluster.
func line(d fleet.ClusterChange) string {
	return fmt.Sprintf("managedclusteraddon/%s %s on %s", d.Object.GetName(), d.Action, d.Cluster)
}
