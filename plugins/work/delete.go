// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// DeleteOptions are the flags of work delete.
type DeleteOptions struct {
	options.Change
	options.Targets
	// Wanted says which work to delete, and how.
	Wanted work.Options

	f *options.Factory
}

func newDelete(f *options.Factory) *cobra.Command {
	o := &DeleteOptions{f: f}
	cmd := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Delete works and their objects", Args: options.Args(1, 1, "the name of the work"),
		Long: options.Long(`
		Delete the work NAME from each of the clusters, along with what it applied there. The
		command returns when both are gone; if that does not happen in time, it reports what holds
		the work. With --placement alone, delete the replica set of that name and all its works.`),
		Example: options.Example(`
		kubectl ocm work delete web -c cluster1 --context hub
		kubectl ocm work delete web --all --orphan --yes
		kubectl ocm work delete web --placement apps/everywhere`),
		ValidArgsFunction: complete.Works(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Wanted.Name = args[0]
			return f.Do(cmd, func() error { return o.CheckAll(&o.Change, f.UI) }, o.Run)
		},
	}
	flags := cmd.Flags()
	o.Change.AddFlags(flags, options.Parts{Wait: true, WaitDefault: true, Yes: true, Deletes: true})
	o.Targets.AddFlags(cmd, complete.Targets(f))
	flags.BoolVar(&o.Wanted.Orphan, "orphan", false, "leave the objects on the clusters")
	flags.BoolVar(&o.Wanted.Force, "force", false, "do not wait for agents that are away, and also delete works of a replica set or an add-on; objects may stay")
	return cmd
}

// Run deletes the work.
func (o *DeleteOptions) Run(ctx context.Context, c *fleet.Cluster) error {
	u := o.f.UI
	p := u.Progress()
	defer p.Close()
	wanted := o.Wanted
	wanted.Common, wanted.Hub, wanted.Targets = o.Common(u, p.Step), c, o.Targets.Targets
	if set, err := work.FindSet(ctx, wanted); err != nil {
		return err
	} else if set != nil {
		return o.deleteSet(ctx, wanted, set)
	}
	if err := o.confirm(ctx, wanted); err != nil {
		return err
	}
	result, failure := work.Delete(ctx, wanted)
	p.Close()
	switch {
	case len(result.Clusters) > 0 && o.Tolerates(failure):
		failure = nil
	case errors.Is(failure, naming.ErrNotFound):
		return failure
	}
	return o.Clusters(u, "WorkResult", result, failure, line)
}

// confirm shows what would be deleted, and asks unless there is nothing.
func (o *DeleteOptions) confirm(ctx context.Context, wanted work.Options) error {
	if o.Reads() {
		return nil
	}
	found, err := work.Find(ctx, wanted)
	if err != nil {
		return err
	}
	return o.Ask(o.f.UI, wanted.Hub, "Delete work "+o.Wanted.Name+"?", describeWorks(found))
}

// deleteSet deletes the replica set, and thereby its works.
func (o *DeleteOptions) deleteSet(ctx context.Context, wanted work.Options, set *unstructured.Unstructured) error {
	if !o.Reads() {
		targets := []string{"replica set " + set.GetNamespace() + "/" + set.GetName() + " and its works on all clusters"}
		if err := o.Ask(o.f.UI, wanted.Hub, "Delete work "+o.Wanted.Name+"?", targets); err != nil {
			return err
		}
	}
	change, failure := work.DeleteSet(ctx, wanted, set)
	if failure != nil && change.Object == nil {
		return failure
	}
	return o.FinishSome(o.f.UI, "WorkSetResult", []fleet.Change{change}, failure)
}
