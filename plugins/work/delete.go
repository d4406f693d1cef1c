// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// DeleteOptions are the flags of work delete.
type DeleteOptions struct {
	options.Change
	options.Targets
	// Name of the work.
	Name string
	// Orphan leaves its objects on the clusters.
	Orphan bool
	// Force does not wait for agents, and also deletes works of a replica set or an add-on.
	Force bool

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
			o.Name = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	o.Change.AddFlags(flags, options.Parts{Wait: true, WaitDefault: true, Yes: true, Deletes: true})
	o.Targets.AddFlags(cmd, completions(f))
	flags.BoolVar(&o.Orphan, "orphan", false, "leave the objects on the clusters")
	flags.BoolVar(&o.Force, "force", false, "do not wait for agents that are away, and also delete works of a replica set or an add-on; objects may stay")
	return cmd
}

// Validate checks the flags.
func (o *DeleteOptions) Validate() error {
	if err := o.Targets.Check(true); err != nil {
		return err
	}
	return o.Change.Check(o.f.UI)
}

// Run deletes the work.
func (o *DeleteOptions) Run(ctx context.Context) error {
	u := o.f.UI
	c, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	p := u.Progress()
	defer p.Close()
	wanted := work.Options{Common: o.Common(u, p.Step), Hub: c, Name: o.Name, Targets: o.Targets.Targets, Orphan: o.Orphan, Force: o.Force}
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
	if failure != nil && len(result.Clusters) == 0 {
		return failure
	}
	if err := o.Clusters(u, "WorkResult", result, failure, line); err != nil {
		return err
	}
	return failure
}

// confirm shows what would be deleted, and asks unless there is nothing.
func (o *DeleteOptions) confirm(ctx context.Context, wanted work.Options) error {
	if o.Reads() {
		return nil
	}
	found, err := work.Find(ctx, wanted)
	if err != nil || len(found) == 0 {
		return err
	}
	targets := []string{"hub: " + wanted.Hub.String()}
	for _, w := range found {
		targets = append(targets, fmt.Sprintf("work %s on %s: %s", w.Name, w.Cluster, ui.Many(w.Objects.Total, "object")))
	}
	return o.f.UI.Confirm(o.Yes, "Delete work "+o.Name+"?", targets)
}

// deleteSet deletes the replica set, and thereby its works.
func (o *DeleteOptions) deleteSet(ctx context.Context, wanted work.Options, set *unstructured.Unstructured) error {
	if !o.Reads() {
		targets := []string{"hub: " + wanted.Hub.String(), "replica set " + set.GetNamespace() + "/" + set.GetName() + " and its works on all clusters"}
		if err := o.f.UI.Confirm(o.Yes, "Delete work "+o.Name+"?", targets); err != nil {
			return err
		}
	}
	change, failure := work.DeleteSet(ctx, wanted, set)
	if failure != nil && change.Object == nil {
		return failure
	}
	if err := o.Finish(o.f.UI, "WorkSetResult", []fleet.Change{change}); err != nil {
		return err
	}
	return failure
}
