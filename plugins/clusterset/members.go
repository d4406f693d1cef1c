// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// MemberOptions are the flags of clusterset add and drop.
type MemberOptions struct {
	options.Change
	options.Targets
	// Name of the set.
	Name string
	// Drop removes clusters from the set.
	Drop bool
	// Move also adds clusters that are in another set.
	Move bool

	f *options.Factory
}

func newAdd(f *options.Factory) *cobra.Command {
	o := &MemberOptions{f: f}
	cmd := o.command(&cobra.Command{
		Use: "add SET", Short: "Add clusters to a set",
		Long: options.Long(`
		Add managed clusters to a set of the hub of --context. A cluster is in at most one such set:
		one that is in a set other than default stays there, unless --move is given.`),
		Example: options.Example(`
		kubectl ocm clusterset add prod -c cluster1,cluster2 --context hub
		kubectl ocm clusterset add prod -l env=prod --context hub --move`),
	})
	cmd.Flags().BoolVar(&o.Move, "move", false, "move clusters out of the set they are in")
	return cmd
}

func newDrop(f *options.Factory) *cobra.Command {
	o := &MemberOptions{f: f, Drop: true}
	return o.command(&cobra.Command{
		Use: "drop SET", Aliases: []string{"remove"}, Short: "Remove clusters from a set",
		Long: options.Long(`
		Remove managed clusters from a set of the hub of --context; they return to the set default.
		The placements of the namespaces that are bound to the set can no longer select them.`),
		Example: options.Example(`
		kubectl ocm clusterset drop prod -c cluster2 --context hub`),
	})
}

func (o *MemberOptions) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args = options.Args(1, 1, "the name of the set")
	cmd.ValidArgsFunction = complete.Sets(o.f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Name = args[0]
		return o.Diffed(o.f.Do(cmd, o.Validate, o.Run))
	}
	o.Change.AddFlags(cmd.Flags(), options.Parts{Diff: true, Yes: true})
	o.Targets.AddFlags(cmd, complete.Targets(o.f))
	return cmd
}

// Validate checks the flags.
func (o *MemberOptions) Validate() error {
	if err := clusterset.CheckName(o.Name); err != nil {
		return err
	}
	return o.CheckAll(&o.Change, o.f.UI)
}

// Run changes the labels of the clusters and prints what was done.
func (o *MemberOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	wanted := clusterset.Options{Common: o.Common(u, nil), Hub: hub, Name: o.Name, Targets: o.Targets.Targets, Move: o.Move}
	do := clusterset.Join
	if o.Drop {
		do = clusterset.Leave
	}
	if (o.Drop || o.Move) && !o.Reads() {
		if err := o.confirm(ctx, wanted, do); err != nil {
			return err
		}
	}
	result, failure := do(ctx, wanted)
	if failure == nil && len(result.Clusters) == 0 && !o.Format.Machine() {
		u.Note("none of these clusters is in the set %s", o.Name)
	}
	return o.Clusters(u, "ClusterSetResult", result, failure, o.line)
}

// confirm shows which clusters would leave which set, and asks if there are any.
func (o *MemberOptions) confirm(ctx context.Context, wanted clusterset.Options,
	do func(context.Context, clusterset.Options) (fleet.ClusterChanges, error)) error {
	wanted.DryRun = fleet.DryRunClient
	result, err := do(ctx, wanted)
	if err != nil {
		return err
	}
	var targets []string
	for _, d := range result.Clusters {
		if from := setOf(d.Live); d.Action != fleet.Unchanged && from != "" && from != clusterv1beta2.DefaultClusterSet {
			targets = append(targets, fmt.Sprintf("managedcluster/%s: from the set %s to %s", d.Cluster, from, setOf(d.Object)))
		}
	}
	return o.Ask(o.f.UI, wanted.Hub, "Take "+ui.Many(len(targets), "cluster")+" out of the current set?", targets)
}

// setOf returns the set that a cluster's label names, "" if none.
func setOf(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	return u.GetLabels()[clusterv1.LabelClusterSet]
}

// line describes what was done to one cluster.
func (o *MemberOptions) line(d fleet.ClusterChange) string {
	switch {
	case d.Action == fleet.Unchanged:
		return fmt.Sprintf("managedcluster/%s unchanged", d.Cluster)
	case o.Drop:
		return fmt.Sprintf("managedcluster/%s taken out of %s", d.Cluster, o.Name)
	}
	return fmt.Sprintf("managedcluster/%s put into %s", d.Cluster, o.Name)
}
