// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
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
	// Force does not wait for agents.
	Force bool

	f *options.Factory
}

func newDelete(f *options.Factory) *cobra.Command {
	o := &DeleteOptions{f: f}
	cmd := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Take back what was sent", Args: options.Args(1, 1, "the name of the work"),
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
	o.Change.AddFlags(flags, options.Parts{Wait: true, WaitDefault: true, Yes: true})
	o.Targets.AddFlags(cmd, words(f))
	flags.BoolVar(&o.Orphan, "orphan", false, "leave the objects on the clusters")
	flags.BoolVar(&o.Force, "force", false, "do not wait for agents that are away, and delete works of a replica set or an add-on; objects may stay")
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
	wanted := fleet.WorkOptions{Common: o.Common(u, p.Step), Hub: c, Name: o.Name, Targets: o.Targets.Targets, Orphan: o.Orphan, Force: o.Force}
	if !o.Reads() {
		found, err := fleet.FindWorks(ctx, wanted)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			targets := []string{"hub: " + c.String()}
			for _, w := range found {
				targets = append(targets, fmt.Sprintf("work %s on %s: %s", w.Name, w.Cluster, ui.Many(w.Objects.Total, "object")))
			}
			if err := u.Confirm(o.Yes, "Delete work "+o.Name+"?", targets); err != nil {
				return err
			}
		}
	}
	result, failure := fleet.DeleteWorks(ctx, wanted)
	p.Close()
	if failure != nil && len(result.Clusters) == 0 {
		return failure
	}
	if err := show(u, &o.Change, "WorkResult", result, failure); err != nil {
		return err
	}
	return failure
}
