// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// DeleteOptions are the flags of placement delete.
type DeleteOptions struct {
	options.Change

	f    *options.Factory
	keys []types.NamespacedName
}

func newDelete(f *options.Factory) *cobra.Command {
	o := &DeleteOptions{f: f}
	cmd := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Short: "Delete placements", Args: options.Args(1, -1, "the name of a placement"),
		Long: options.Long(`
		Delete placements and their decisions. What uses them is shown first: replica sets remove
		their works from the clusters, and add-ons are no longer installed there.`),
		Example: options.Example(`
		kubectl ocm placement delete web -n shop --context hub`),
		ValidArgsFunction: complete.Placements(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.keys, err = parseKeys(f, args); err != nil {
				return err
			}
			if err := o.Check(f.UI); err != nil {
				return err
			}
			return o.Diffed(o.Run(cmd.Context()))
		},
	}
	o.AddFlags(cmd.Flags(), options.Parts{Diff: true, Yes: true, Deletes: true})
	return cmd
}

// Run deletes the placements and prints what was done.
func (o *DeleteOptions) Run(ctx context.Context) error {
	hub, err := o.f.Cluster("")
	if err != nil {
		return err
	}
	wanted := placement.DeleteOptions{Common: o.Common(o.f.UI, nil), Hub: hub, Placements: o.keys}
	if !o.Reads() {
		if err := o.confirm(ctx, wanted); err != nil {
			return err
		}
	}
	result, err := placement.Delete(ctx, wanted)
	if err != nil {
		return err
	}
	return o.Deleted(o.f.UI, "PlacementResult", result.Items, func(c fleet.Change) *fleet.Error {
		return naming.NoPlacement(c.Object.GetNamespace()+"/"+c.Object.GetName(), hub)
	})
}

// confirm shows what would be deleted and what uses it, and asks unless there is nothing.
func (o *DeleteOptions) confirm(ctx context.Context, wanted placement.DeleteOptions) error {
	infos, err := placement.List(ctx, placement.ListOptions{Hub: wanted.Hub})
	if err != nil {
		return err
	}
	uses, err := placement.Uses(ctx, wanted.Hub, o.keys)
	if err != nil {
		return err
	}
	targets := []string{"hub: " + wanted.Hub.String()}
	for _, p := range infos {
		for _, key := range o.keys {
			if p.Namespace != key.Namespace || p.Name != key.Name {
				continue
			}
			targets = append(targets, fmt.Sprintf("placement %s and its decision of %s", key, ui.Many(p.Selected, "cluster")))
			for _, use := range uses[key] {
				targets = append(targets, fmt.Sprintf("  used by %s: %s", use.Object, use.Loss))
			}
		}
	}
	if len(targets) == 1 {
		return nil
	}
	return o.f.UI.Confirm(o.Yes, "Delete "+ui.Many(len(o.keys), "placement")+"?", targets)
}
