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
	// Name of the cluster.
	Name string
	// KeepWorks leaves the objects of works on the cluster.
	KeepWorks bool
	// Force continues without an answer from the agent.
	Force bool

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
			o.Name = args[0]
			if err := o.Check(f.UI); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.AddFlags(flags, options.Parts{Yes: true, Deletes: true})
	flags.BoolVar(&o.KeepWorks, "keep-works", false, "leave the objects of works on the cluster")
	flags.BoolVar(&o.Force, "force", false, "continue if the agent does not answer, and remove the cluster's namespace on the hub if it is empty")
	return cmd
}

// Run removes the cluster and prints what was done.
func (o *RemoveOptions) Run(ctx context.Context) error {
	u := o.f.UI
	hub, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	u.Note("hub: %s", hub)
	p := u.Progress()
	result, err := unjoin.Run(ctx, unjoin.Options{Name: o.Name, Hub: hub, HubOnly: true,
		KeepWorks: o.KeepWorks, Force: o.Force, Confirm: o.confirm, Common: o.Common(u, p.Step)})
	p.Close()
	if err != nil {
		return err
	}
	if result.Action == fleet.Unchanged && !o.IgnoreNotFound {
		return naming.NoCluster(o.Name, hub)
	}
	if done, err := o.Preview(u, "RemoveResult", result, result.Items); done || err != nil {
		return err
	}
	if o.Format.Machine() {
		return u.Result(o.Format, "RemoveResult", result, fleet.Names(result.Items))
	}
	if result.Action == fleet.Unchanged {
		u.Say("managedcluster/%s unchanged: there is none", result.Cluster)
		return nil
	}
	u.Say("managedcluster/%s removed%s", result.Cluster, options.Staying(result.Stays))
	if !o.Force {
		u.Next(fmt.Sprintf("kubectl ocm unjoin %s --context <its context>      removes its agent", result.Cluster))
	}
	return nil
}

// confirm shows what would be removed, and asks.
func (o *RemoveOptions) confirm(plan unjoin.Plan) error {
	return o.f.UI.Confirm(o.Yes, "Remove "+o.Name+"?", []string{options.LeavingCluster(o.Name, plan)})
}
