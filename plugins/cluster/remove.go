// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/unjoin"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// RemoveOptions are the flags of cluster remove.
type RemoveOptions struct {
	options.Change
	// Wanted says which cluster to remove, and how.
	Wanted unjoin.Options

	f *options.Factory
}

func newRemove(f *options.Factory) *cobra.Command {
	o := &RemoveOptions{f: f}
	cmd := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove a cluster from the hub", Args: options.Args(1, 1, "the name of the cluster"),
		Long: options.Long(`
		Delete a cluster from the hub of --context and wait until it is gone: its add-ons go first,
		then its works, which its agent removes from the cluster unless --keep-works is given. The
		agent itself stays there; "kubectl ocm unjoin" removes both. With --force the command does
		not wait for a dead agent, and what its works applied stays.`),
		Example: options.Example(`
		kubectl ocm cluster remove cluster1 --context hub
		kubectl ocm cluster remove cluster1 --context hub --force      # the cluster no longer exists`),
		ValidArgsFunction: complete.Clusters(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Wanted.Name = args[0]
			return f.Do(cmd, func() error { return o.Check(f.UI) }, o.Run)
		},
	}
	flags := cmd.Flags()
	o.AddFlags(flags, options.Parts{Yes: true, Deletes: true})
	flags.BoolVar(&o.Wanted.KeepWorks, "keep-works", false, "leave the objects of works on the cluster")
	flags.BoolVar(&o.Wanted.Force, "force", false, "continue if the agent does not answer, and remove the cluster's namespace on the hub if it is empty")
	return cmd
}

// Run removes the cluster and prints what was done.
func (o *RemoveOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	u.Note("hub: %s", hub)
	p := u.Progress()
	wanted := o.Wanted
	wanted.Common, wanted.Hub, wanted.HubOnly, wanted.Confirm = o.Common(u, p.Step), hub, true, o.confirm
	result, err := unjoin.Run(ctx, wanted)
	p.Close()
	if err != nil {
		return err
	}
	if result.Action == fleet.Unchanged && !o.IgnoreNotFound {
		return naming.NoCluster(o.Wanted.Name, hub)
	}
	if done, err := o.Printed(u, "RemoveResult", result, result.Items); done || err != nil {
		return err
	}
	if result.Action == fleet.Unchanged {
		u.Say("managedcluster/%s unchanged: there is none", result.Cluster)
		return nil
	}
	u.Say("managedcluster/%s removed%s", result.Cluster, options.Staying(result.Stays))
	if !o.Wanted.Force {
		u.Next(fmt.Sprintf("kubectl ocm unjoin %s --context <its context>      removes its agent", result.Cluster))
	}
	return nil
}

// confirm shows what would be removed, and asks.
func (o *RemoveOptions) confirm(plan unjoin.Plan) error {
	return o.f.UI.Confirm(o.Yes, "Remove "+o.Wanted.Name+"?", []string{options.LeavingCluster(o.Wanted.Name, plan)})
}
