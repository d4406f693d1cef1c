// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// DeleteOptions are the flags of addon delete.
type DeleteOptions struct {
	options.Change
	// Name of the add-on.
	Name string

	f *options.Factory
}

func newDelete(f *options.Factory) *cobra.Command {
	o := &DeleteOptions{f: f}
	cmd := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Delete an add-on from the hub and from all clusters", Args: options.Args(1, 1, "the name of the add-on"),
		Long: options.Long(`
		Delete an add-on: its registration on the hub, the add-on on every cluster, and then the
		templates created for it and the variables set by "addon enable --set". The command
		returns when all of it is gone; if that does not happen in time, it reports why.`),
		Example: options.Example(`
		kubectl ocm addon delete metrics --context hub`),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Diffed(f.Do(cmd, o.Validate, o.Run))
		},
	}
	o.AddFlags(cmd.Flags(), options.Parts{Diff: true, Wait: true, WaitDefault: true, Yes: true, Deletes: true})
	return cmd
}

// Validate checks the name and the flags.
func (o *DeleteOptions) Validate() error {
	if err := addon.CheckName(o.Name); err != nil {
		return err
	}
	return o.Check(o.f.UI)
}

// Run deletes the add-on and prints what was done.
func (o *DeleteOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	u := o.f.UI
	p := u.Progress()
	defer p.Close()
	wanted := addon.Options{Common: o.Common(u, p.Step), Hub: hub, Names: []string{o.Name}, Warn: func(text string) { u.Warn("%s", text) }}
	if !o.Reads() {
		if err := o.confirm(ctx, wanted); err != nil {
			return err
		}
	}
	result, failure := addon.Delete(ctx, wanted)
	p.Close()
	if failure != nil && len(result.Items) == 0 {
		return failure
	}
	return cmp.Or(o.Deleted(u, "AddOnResult", result.Items, func(fleet.Change) *fleet.Error { return naming.NoAddOn(o.Name, hub) }), failure)
}

// confirm shows what would be deleted, and asks unless there is nothing.
func (o *DeleteOptions) confirm(ctx context.Context, wanted addon.Options) error {
	wanted.DryRun = fleet.DryRunClient
	result, err := addon.Delete(ctx, wanted)
	if err != nil {
		return err
	}
	var targets []string
	for _, c := range result.Items {
		if c.Action != fleet.Deleted {
			continue
		}
		text := c.Name()
		if cluster := c.Object.GetNamespace(); cluster != "" {
			text += " on " + cluster
		}
		targets = append(targets, text)
	}
	return o.Ask(o.f.UI, wanted.Hub, "Delete the add-on "+o.Name+"?", targets)
}
