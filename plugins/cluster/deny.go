// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/accept"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// DenyOptions are the flags of cluster deny.
type DenyOptions struct {
	options.Change
	// Names of the clusters.
	Names []string

	f *options.Factory
}

func newDeny(f *options.Factory) *cobra.Command {
	o := &DenyOptions{f: f}
	cmd := &cobra.Command{
		Use: "deny NAME...", Short: "Stop accepting clusters and revoke their rights on the hub", Args: options.Args(1, -1, "the name of a cluster"),
		Long: options.Long(`
		Stop accepting clusters on the hub of --context, and deny their certificate requests. Their
		agents lose all rights except to see that, and to remove the works they still have. What is
		on the clusters stays. A cluster that was never accepted waits for no answer any more. "kubectl ocm accept"
		accepts them again.`),
		Example: options.Example(`
		kubectl ocm cluster deny cluster1 --context hub`),
		ValidArgsFunction: complete.Clusters(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return f.Do(cmd, o.Validate, o.Run)
		},
	}
	o.AddFlags(cmd.Flags(), options.Parts{Yes: true, Wait: true, WaitDefault: true, Deletes: true})
	return cmd
}

// Validate checks the names and flags.
func (o *DenyOptions) Validate() error {
	for _, name := range o.Names {
		if err := naming.Check(name); err != nil {
			return err
		}
	}
	return o.Check(o.f.UI)
}

// Run denies the clusters and prints what was done.
func (o *DenyOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	u.Note("hub: %s", hub)
	known, err := naming.Deniable(ctx, hub, o.Names)
	if err != nil && !o.Tolerates(err) {
		return err
	}
	if o.Names = known; len(known) == 0 {
		return o.Finish(u, "DenyResult", nil)
	}
	if err := o.confirm(); err != nil {
		return err
	}
	p := u.Progress()
	defer p.Close()
	wanted := accept.Options{Hub: hub, Clusters: o.Names, Deny: true, Common: o.Common(u, p.Step)}
	result, failure := accept.Run(ctx, wanted)
	if failure != nil && len(result.Clusters) == 0 {
		return failure
	}
	if o.Wait && !o.Reads() {
		var denied []string
		for _, c := range result.Clusters {
			if c.Error == nil {
				denied = append(denied, c.Cluster)
			}
		}
		failure = cmp.Or(failure, accept.AwaitDenied(ctx, wanted, denied))
	}
	p.Close()
	return cmp.Or(o.print(result), failure)
}

// confirm shows which clusters would lose their rights, and asks.
func (o *DenyOptions) confirm() error {
	if o.Reads() {
		return nil
	}
	var targets []string
	for _, name := range o.Names {
		targets = append(targets, "managedcluster/"+name+": its agent loses its rights")
	}
	return o.f.UI.Confirm(o.Yes, "Deny "+ui.Many(len(o.Names), "cluster")+"?", targets)
}

func (o *DenyOptions) print(result accept.Result) error {
	u := o.f.UI
	if done, err := o.Printed(u, "DenyResult", result, result.Items); done || err != nil {
		return err
	}
	for _, c := range result.Clusters {
		switch {
		case c.Error != nil && len(result.Clusters) > 1:
			u.Note("managedcluster/%s failed: %s", c.Cluster, c.Failure)
		case c.Error == nil && c.Action == fleet.Unchanged:
			u.Say("managedcluster/%s unchanged", c.Cluster)
		case c.Error == nil:
			u.Say("managedcluster/%s %s", c.Cluster, c.Message)
		}
	}
	return nil
}
